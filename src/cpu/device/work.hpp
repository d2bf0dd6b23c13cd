// SPDX-License-Identifier: Apache-2.0
// Work for a stream as values: what a call asks for, before it becomes a job of the engine. Every function
// that queues something goes through enqueue().
#pragma once

#include <cuda.h>

#include <cstdint>
#include <memory>
#include <variant>

#include "cpu/device/driver.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::device {

/// How an address is looked up.
enum class AddressKind : std::uint8_t {
  unified,  ///< any address of the process; one that the device does not know is ordinary host memory
  device,   ///< memory that the device knows
};

/// One side of a copy.
struct CopySide {
  std::byte* address = nullptr;
  AddressKind kind = AddressKind::unified;
  engine::Strides strides;  ///< no meaning for a single row or slice
};

/// When a copy reads ordinary host memory.
enum class SourceAccess : std::uint8_t {
  during_call,   ///< its owner may change it as soon as the call has returned
  stream_order,  ///< when the stream comes to the copy
};

/// A copy of `depth` slices of `height` rows of `width_bytes`.
struct CopyWork {
  CopySide destination;
  CopySide source;
  std::uint64_t width_bytes = 0;
  std::uint64_t height = 1;
  std::uint64_t depth = 1;
  SourceAccess source_access = SourceAccess::during_call;
};

/// A fill of `height` rows of `width` patterns.
struct FillWork {
  CUdeviceptr destination = 0;
  std::uint32_t pattern = 0;
  std::uint32_t pattern_bytes = 1;  ///< 1, 2 or 4
  std::uint64_t width = 0;
  std::uint64_t height = 1;
  std::uint64_t pitch_bytes = 0;  ///< no meaning for a single row
};

using Work = std::variant<CopyWork, FillWork>;

/// True for work that does nothing.
bool is_empty(const CopyWork& work) noexcept;
bool is_empty(const FillWork& work) noexcept;

/// The job of the engine that does the work; it keeps the memory that it names. Throws Failure for addresses
/// that name no memory, or less than the work needs.
engine::TransferJob make_job(Driver& driver, const CopyWork& work);
engine::TransferJob make_job(Driver& driver, const FillWork& work);

/// Queues the work on `stream`. Ordinary host memory behaves as the Driver API
/// says ("API synchronization behavior"): a source may be reused and a target is filled on return. Throws
/// Failure.
void enqueue(Driver& driver, const StreamObject& stream, const Work& work);

/// The same on the default stream of the call in the current context (legacy, or the thread's own), and done
/// on return, but for work on device memory alone, for which the host does not wait.
void enqueue_synchronous(Driver& driver, const Work& work);

}  // namespace quern::cpu::device
