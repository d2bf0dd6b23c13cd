// SPDX-License-Identifier: Apache-2.0
#include "runtime/copy/strided.hpp"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <utility>

namespace quern::runtime {
namespace {

using Axis = CopyPlan::Axis;

/// Merges two axes if, on both sides, the outer one continues where the inner one ends.
bool joins(const Axis& outer, const Axis& inner) {
  return outer.to == inner.to * inner.extent && outer.from == inner.from * inner.extent;
}

template <std::size_t kBytes>
void copy_row(std::byte* to, const std::byte* from, const Axis& axis) {
  for (std::int64_t i = 0; i < axis.extent; ++i, to += axis.to, from += axis.from)
    std::memcpy(to, from, kBytes);
}

void copy_row(std::byte* to, const std::byte* from, const Axis& axis, std::size_t bytes) {
  switch (bytes) {
    case 1:
      return copy_row<1>(to, from, axis);
    case 2:
      return copy_row<2>(to, from, axis);
    case 4:
      return copy_row<4>(to, from, axis);
    case 8:
      return copy_row<8>(to, from, axis);
    case 16:
      return copy_row<16>(to, from, axis);
    default:
      for (std::int64_t i = 0; i < axis.extent; ++i, to += axis.to, from += axis.from)
        std::memcpy(to, from, bytes);
  }
}

void copy_axes(std::byte* to, const std::byte* from, const CopyPlan& plan, std::size_t axis) {
  const Axis& at = plan.axes[axis];
  if (axis + 1 == plan.axes.size()) return copy_row(to, from, at, plan.piece_bytes);
  for (std::int64_t i = 0; i < at.extent; ++i) copy_axes(to + i * at.to, from + i * at.from, plan, axis + 1);
}

}  // namespace

std::uint64_t CopyPlan::count() const noexcept {
  std::uint64_t pieces = piece_bytes == 0 ? 0 : 1;
  for (const Axis& axis : axes) pieces *= static_cast<std::uint64_t>(axis.extent);
  return pieces;
}

CopyPlan plan_copy(const Layout& to, const Layout& from) {
  CopyPlan plan;
  if (to.size() == 0) return plan;
  plan.piece_bytes = to.item_bytes();
  std::vector<Axis> axes;
  for (std::size_t axis = 0; axis < to.ndim(); ++axis)
    if (to.shape()[axis] != 1)
      axes.push_back({to.shape()[axis], to.strides_bytes()[axis], from.strides_bytes()[axis]});
  std::sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) {
    return std::pair(std::abs(a.to), std::abs(a.from)) > std::pair(std::abs(b.to), std::abs(b.from));
  });
  for (const Axis& axis : axes) {
    if (!plan.axes.empty() && joins(plan.axes.back(), axis)) {
      Axis& outer = plan.axes.back();
      outer = {outer.extent * axis.extent, axis.to, axis.from};
    } else {
      plan.axes.push_back(axis);
    }
  }
  const auto piece = static_cast<std::int64_t>(plan.piece_bytes);
  if (!plan.axes.empty() && plan.axes.back().to == piece && plan.axes.back().from == piece) {
    plan.piece_bytes *= static_cast<std::size_t>(plan.axes.back().extent);
    plan.axes.pop_back();
  }
  return plan;
}

void copy_on_host(std::byte* to, const std::byte* from, const CopyPlan& plan) {
  if (plan.piece_bytes == 0) return;
  if (plan.axes.empty())
    std::memcpy(to, from, plan.piece_bytes);
  else
    copy_axes(to, from, plan, 0);
}

}  // namespace quern::runtime
