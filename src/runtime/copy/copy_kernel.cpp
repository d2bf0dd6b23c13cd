// SPDX-License-Identifier: Apache-2.0
#include "runtime/copy/copy_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <string>
#include <vector>

namespace quern::runtime {
namespace {

constexpr std::size_t kMaxRank = 6;
constexpr unsigned kBlock = 256;
constexpr std::uint64_t kMaxGrid = 65535;

/// The kernel's one parameter; the axes are in loop order, the outermost first.
struct Parameters {
  std::uint64_t to = 0;
  std::uint64_t from = 0;
  std::uint64_t count = 0;
  struct Axis {
    std::int64_t extent = 1;
    std::int64_t to = 0;
    std::int64_t from = 0;
  };
  std::array<Axis, kMaxRank> axes;
};
static_assert(sizeof(Parameters) == 24 + 24 * kMaxRank);

/// Splits pieces so that each is one load and one store: 1, 2, 4 or 8 bytes, aligned on both sides.
CopyPlan with_small_pieces(CopyPlan plan, CUdeviceptr to, CUdeviceptr from) {
  std::uint64_t bits = plan.piece_bytes | to | from | 8u;
  for (const CopyPlan::Axis& axis : plan.axes)
    bits |= static_cast<std::uint64_t>(axis.to) | static_cast<std::uint64_t>(axis.from);
  const std::uint64_t piece = bits & (~bits + 1);  // the lowest bit that is set anywhere
  if (plan.piece_bytes == piece) return plan;
  const auto step = static_cast<std::int64_t>(piece);
  plan.axes.push_back({static_cast<std::int64_t>(plan.piece_bytes / piece), step, step});
  plan.piece_bytes = piece;
  return plan;
}

}  // namespace

std::string copy_kernel_ptx(std::size_t rank, std::size_t bytes) {
  std::string text = fmt::format(R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry quern_copy(.param .align 8 .b8 p[{}])
{{
  .reg .pred %q;
  .reg .b32 %r<5>;
  .reg .b64 %step, %i, %count, %to0, %from0, %to, %from, %rest, %next, %extent, %k, %stride;
  .reg .b{} %value;
  mov.u32 %r1, %ctaid.x;
  mov.u32 %r2, %ntid.x;
  mov.u32 %r3, %tid.x;
  mov.u32 %r4, %nctaid.x;
  mul.wide.u32 %i, %r1, %r2;
  cvt.u64.u32 %step, %r3;
  add.u64 %i, %i, %step;
  mul.wide.u32 %step, %r4, %r2;
  ld.param.u64 %to0, [p];
  ld.param.u64 %from0, [p+8];
  ld.param.u64 %count, [p+16];
again:
  setp.ge.u64 %q, %i, %count;
  @%q bra done;
  mov.u64 %rest, %i;
  mov.u64 %to, %to0;
  mov.u64 %from, %from0;
)",
                                 sizeof(Parameters), std::max<std::size_t>(8 * bytes, 16));
  for (std::size_t axis = rank; axis-- > 0;) {
    const std::size_t at = 24 + 24 * axis;
    if (axis > 0)
      text += fmt::format(
          "  ld.param.u64 %extent, [p+{}];\n  div.u64 %next, %rest, %extent;\n"
          "  mul.lo.u64 %k, %next, %extent;\n  sub.u64 %k, %rest, %k;\n  mov.u64 %rest, %next;\n",
          at);
    else
      text += "  mov.u64 %k, %rest;\n";
    text += fmt::format(
        "  ld.param.u64 %stride, [p+{}];\n  mad.lo.s64 %to, %k, %stride, %to;\n"
        "  ld.param.u64 %stride, [p+{}];\n  mad.lo.s64 %from, %k, %stride, %from;\n",
        at + 8, at + 16);
  }
  text += fmt::format("  ld.global.u{0} %value, [%from];\n  st.global.u{0} [%to], %value;\n", 8 * bytes);
  return text + "  add.u64 %i, %i, %step;\n  bra again;\ndone:\n  ret;\n}\n";
}

CopyKernels::Loaded CopyKernels::load(std::size_t rank, std::size_t bytes) {
  const std::string ptx = copy_kernel_ptx(rank, bytes);
  const driver::DriverTable& api = context_.api();
  CUmodule module = nullptr;
  context_.check(api.cuModuleLoadDataEx(&module, ptx.c_str(), 0, nullptr, nullptr), "cuModuleLoadDataEx",
                 "load the kernel that copies strided arrays");
  Loaded loaded;
  Release release = release_of(ResourceKind::module, module);
  release.internal = true;
  loaded.module = resources_.own(std::move(release));
  context_.check(api.cuModuleGetFunction(&loaded.function, module, "quern_copy"), "cuModuleGetFunction",
                 "find the kernel that copies strided arrays");
  if (const QuernCpuPlugin* plugin = context_.driver().plugin) plugin->mark_copy_kernel(loaded.function);
  return loaded;
}

CUfunction CopyKernels::function(std::size_t rank, std::size_t bytes) {
  const std::pair key(rank, bytes);
  {
    const base::LockGuard lock(mutex_);
    if (const auto found = loaded_.find(key); found != loaded_.end()) return found->second.function;
  }
  Loaded made = load(rank, bytes);  // if two threads load it, the kernel of the first one is used
  const base::LockGuard lock(mutex_);
  return loaded_.try_emplace(key, made).first->second.function;
}

void CopyKernels::launch(CUdeviceptr to, CUdeviceptr from, const CopyPlan& plan, std::size_t first_axis,
                         CUstream stream) {
  if (plan.axes.size() - first_axis > kMaxRank) {
    const CopyPlan::Axis& outer = plan.axes[first_axis];
    for (std::int64_t i = 0; i < outer.extent; ++i)
      launch(to + static_cast<std::uint64_t>(i * outer.to), from + static_cast<std::uint64_t>(i * outer.from),
             plan, first_axis + 1, stream);
    return;
  }
  Parameters parameters;
  parameters.to = to;
  parameters.from = from;
  parameters.count = 1;
  const std::size_t rank = std::max<std::size_t>(plan.axes.size() - first_axis, 1);
  for (std::size_t axis = first_axis; axis < plan.axes.size(); ++axis) {
    const CopyPlan::Axis& of = plan.axes[axis];
    parameters.axes[axis - first_axis] = {of.extent, of.to, of.from};
    parameters.count *= static_cast<std::uint64_t>(of.extent);
  }
  const std::uint64_t grid = std::min((parameters.count + kBlock - 1) / kBlock, kMaxGrid);
  void* pointers[] = {&parameters};
  context_.check(context_.api().cuLaunchKernel(function(rank, plan.piece_bytes), static_cast<unsigned>(grid),
                                               1, 1, kBlock, 1, 1, 0, stream, pointers, nullptr),
                 "cuLaunchKernel", "copy a strided array on the device");
}

void CopyKernels::copy(CUdeviceptr to, CUdeviceptr from, CopyPlan plan, CUstream stream) {
  if (plan.piece_bytes == 0) return;
  launch(to, from, with_small_pieces(std::move(plan), to, from), 0, stream);
}

void CopyKernels::unload() noexcept {
  std::map<std::pair<std::size_t, std::size_t>, Loaded> unloaded;  // destroyed after the lock
  const base::LockGuard lock(mutex_);
  unloaded.swap(loaded_);
}

}  // namespace quern::runtime
