// SPDX-License-Identifier: Apache-2.0
// Short ways to write the slots of a row.
#pragma once

#include "fills.hpp"
#include "row.hpp"
#include "sizes.hpp"

namespace quern::bench {

constexpr std::int64_t extent(std::size_t count) { return static_cast<std::int64_t>(count); }

inline Slot in(Dtype dtype, Shape shape, Fill fill) {
  return {Slot::Use::input, dtype, std::move(shape), std::move(fill)};
}
inline Slot in(Dtype dtype, std::size_t count, Fill fill) {
  return in(dtype, Shape{extent(count)}, std::move(fill));
}
inline Slot out(Dtype dtype, Shape shape, Tolerance tolerance = {}, Fill fill = {}) {
  return {Slot::Use::output, dtype, std::move(shape), std::move(fill), tolerance};
}
inline Slot out(Dtype dtype, std::size_t count, Tolerance tolerance = {}, Fill fill = {}) {
  return out(dtype, Shape{extent(count)}, tolerance, std::move(fill));
}
inline Slot state(Dtype dtype, std::size_t count, Fill fill = {}, Tolerance tolerance = {}) {
  return {Slot::Use::state, dtype, {extent(count)}, std::move(fill), tolerance};
}
inline Slot number(Dtype dtype, double value) {
  return {.use = Slot::Use::number, .dtype = dtype, .value = value};
}
inline Slot count(std::size_t value) { return number(Dtype::int32, static_cast<double>(value)); }

/// Both builds of a native function.
#define QUERN_BOTH(name) bench::strict::name, bench::fast::name

}  // namespace quern::bench
