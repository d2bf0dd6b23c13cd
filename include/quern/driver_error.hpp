// SPDX-License-Identifier: Apache-2.0
// component: driver
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "quern/error.hpp"

namespace quern {

/// The kind of memory access that met a fault.
enum class MemoryAccess : std::uint8_t { none, load, store, atomic };

/// The launch, threads and source line of a kernel's fault. Only the CPU device reports them; with a GPU's
/// driver every field stays empty. Unknown facts are empty too: a field never holds a guess.
struct DeviceFault {
  using Index = std::array<std::uint32_t, 3>;  ///< x, y, z

  /// The kernel that faulted, as its author wrote it; not the one that the failed call was about.
  std::string kernel;
  Index grid{};                ///< of its launch, in blocks; all 0: not known
  Index block_dim{};           ///< in threads; all 0: not known
  std::optional<Index> block;  ///< index in the grid
  /// The lowest thread of the warp that faulted, as an index in the block; empty if only the warp, or the
  /// block, is known.
  std::optional<Index> thread;
  /// The first and the last thread that may have faulted: those of a warp, or of several. If the thread is
  /// known, both are that thread.
  std::optional<std::pair<Index, Index>> threads;
  /// The author's file and line: of Kernel Python always, of CUDA C++ compiled with -lineinfo. Elsewhere
  /// `file` is empty and `line` is one of the PTX; 0: not known.
  std::string file;
  std::uint32_t line = 0;
  std::optional<std::uint64_t> address;  ///< of the access, in bytes
  MemoryAccess access = MemoryAccess::none;
  std::uint32_t access_bytes = 0;  ///< by one thread; 0: not known
  std::string space;  ///< "global", "shared", "local", "constant", "param", "generic"; empty: not known

  /// False if nothing is known.
  bool known() const noexcept { return !kernel.empty(); }
};

/// A call of the CUDA Driver API that failed. `what()` contains the attempted operation, the call, the
/// result's name and the driver's text about it. Faults of a kernel (illegal address, trap, ...) have the
/// code ErrorCode::device_fault.
class DriverError : public Error {
 public:
  DriverError(ErrorCode code, int result, std::string result_name, std::string call,
              const std::string& message, std::string result_text = {},
              std::shared_ptr<const DeviceFault> fault = nullptr)
      : Error(code, message),
        result_(result),
        result_name_(std::move(result_name)),
        result_text_(std::move(result_text)),
        call_(std::move(call)),
        fault_(std::move(fault)) {}

  int result() const noexcept { return result_; }                           ///< the CUresult
  const std::string& result_name() const noexcept { return result_name_; }  ///< "CUDA_ERROR_INVALID_VALUE"
  /// The driver's sentence about the result. The CPU device adds the threads and the source line of a fault.
  const std::string& result_text() const noexcept { return result_text_; }
  /// "cuMemcpyHtoD_v2"; empty if no call was made, since an earlier fault had ended the context.
  const std::string& call() const noexcept { return call_; }
  /// The launch, thread and line of a device_fault, also if a later call reports the error. Valid as long as
  /// this exception lives.
  const DeviceFault& fault() const noexcept {
    static const DeviceFault unknown;
    return fault_ != nullptr ? *fault_ : unknown;
  }
  /// The same, as an owner; null if nothing is known.
  const std::shared_ptr<const DeviceFault>& shared_fault() const noexcept { return fault_; }

 private:
  int result_;
  std::string result_name_;
  std::string result_text_;
  std::string call_;
  std::shared_ptr<const DeviceFault> fault_;
};

/// Device memory is exhausted. The sizes are 0 if they are not known.
class OutOfMemory : public DriverError {
 public:
  OutOfMemory(int result, std::string result_name, std::string call, const std::string& message,
              std::uint64_t requested_bytes = 0, std::uint64_t free_bytes = 0, std::uint64_t total_bytes = 0)
      : DriverError(ErrorCode::out_of_memory, result, std::move(result_name), std::move(call), message),
        requested_bytes_(requested_bytes),
        free_bytes_(free_bytes),
        total_bytes_(total_bytes) {}

  std::uint64_t requested_bytes() const noexcept { return requested_bytes_; }
  std::uint64_t free_bytes() const noexcept { return free_bytes_; }
  std::uint64_t total_bytes() const noexcept { return total_bytes_; }

 private:
  std::uint64_t requested_bytes_;
  std::uint64_t free_bytes_;
  std::uint64_t total_bytes_;
};

}  // namespace quern
