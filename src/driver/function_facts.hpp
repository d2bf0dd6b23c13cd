// SPDX-License-Identifier: Apache-2.0
// The columns of functions.def as data. Needs no CUDA header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace quern::driver {

/// The kinds of things that a driver function creates and another one releases.
enum class DriverObject : std::uint8_t {
  none,
  memory,
  pooled,      ///< memory of a stream-ordered pool
  host,        ///< page-locked host memory
  registered,  ///< host memory of the program's, page-locked
  stream,
  event,
  module,
  link,
  context,
  primary,  ///< a retain of a device's primary context
  current,  ///< a push on the thread's stack of contexts
};

std::string_view to_string(DriverObject object) noexcept;

/// The suffix of a function's variant for the per-thread default stream.
enum class PerThread : std::uint8_t { none, ptds, ptsz };

/// A row of functions.def, which describes the members.
struct FunctionFacts {
  std::string_view symbol;
  std::string_view name;
  int since;
  PerThread per_thread;
  DriverObject creates;
  DriverObject releases;
};

inline constexpr FunctionFacts kFunctions[] = {
#define QUERN_DRIVER_FUNCTION(symbol, name, since, per_thread, creates, releases) \
  {#symbol, #name, since, PerThread::per_thread, DriverObject::creates, DriverObject::releases},
#include "driver/functions.def"
};

/// The row of `symbol` in kFunctions.
enum class FunctionRow : std::size_t {
#define QUERN_DRIVER_FUNCTION(symbol, ...) symbol,
#include "driver/functions.def"
};

constexpr const FunctionFacts& facts_of(FunctionRow row) noexcept {
  return kFunctions[static_cast<std::size_t>(row)];
}

/// The facts about a versioned symbol; null if functions.def has no such row.
const FunctionFacts* find_function(std::string_view symbol) noexcept;

}  // namespace quern::driver
