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
  pool,        ///< a stream-ordered pool
  addresses,   ///< a reservation of addresses
  backing,     ///< memory without addresses
  mapping,     ///< of a backing at addresses
  imported,    ///< memory of another process
  host,        ///< page-locked host memory
  registered,  ///< host memory of the program's, page-locked
  stream,
  event,
  module,
  link,
  library,
  context,
  primary,  ///< a retain of a device's primary context
  graph,
  graph_exec,
  user_object,  ///< a reference to one
  current,      ///< a push on the thread's stack of contexts
};

std::string_view to_string(DriverObject object) noexcept;

/// The suffix of a function's variant for the per-thread default stream.
enum class PerThread : std::uint8_t { none, ptds, ptsz };

/// The part of functions.def that a row belongs to.
enum class Support : std::uint8_t {
  slot,    ///< of DriverTable
  client,  ///< the CPU device has it for other programs
  none,    ///< the CPU device answers CUDA_ERROR_NOT_SUPPORTED
};

/// A row of functions.def, which describes the members.
struct FunctionFacts {
  std::string_view symbol;
  std::string_view name;
  int since;
  PerThread per_thread;
  DriverObject creates;
  DriverObject releases;
  Support support;
};

/// The slots of DriverTable, in its order.
inline constexpr FunctionFacts kFunctions[] = {
#define QUERN_DRIVER_FUNCTION(symbol, name, since, per_thread, creates, releases)                    \
  {#symbol,      #name, since, PerThread::per_thread, DriverObject::creates, DriverObject::releases, \
   Support::slot},
#include "driver/functions.def"
};

/// Every row.
inline constexpr FunctionFacts kSurface[] = {
#define QUERN_DRIVER_FUNCTION(symbol, name, since, per_thread, creates, releases)                    \
  {#symbol,      #name, since, PerThread::per_thread, DriverObject::creates, DriverObject::releases, \
   Support::slot},
#define QUERN_DRIVER_CLIENT_FUNCTION(symbol, name, since, per_thread, creates, releases)               \
  {#symbol,        #name, since, PerThread::per_thread, DriverObject::creates, DriverObject::releases, \
   Support::client},
#define QUERN_DRIVER_UNSUPPORTED(symbol, name, since, per_thread) \
  {#symbol, #name, since, PerThread::per_thread, DriverObject::none, DriverObject::none, Support::none},
#include "driver/functions.def"
};

/// Answer of find_version.
struct VersionFound {
  const FunctionFacts* function = nullptr;  ///< in kSurface; null: no function
  bool name_known = false;                  ///< other versions of CUDA have a function of that name
};
/// The function that a client of `cuda_version` (12080: 12.8) knows as `name`. A versioned symbol is a name,
/// too.
VersionFound find_version(std::string_view name, int cuda_version) noexcept;

/// The row of `symbol` in kFunctions.
enum class FunctionRow : std::size_t {
#define QUERN_DRIVER_FUNCTION(symbol, ...) symbol,
#include "driver/functions.def"
};

constexpr const FunctionFacts& facts_of(FunctionRow row) noexcept {
  return kFunctions[static_cast<std::size_t>(row)];
}

/// The facts about a slot's symbol; null: DriverTable has no such slot.
const FunctionFacts* find_function(std::string_view symbol) noexcept;

}  // namespace quern::driver
