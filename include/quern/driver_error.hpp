// SPDX-License-Identifier: Apache-2.0
// room: driver
#pragma once

#include <cstddef>
#include <string>

#include "quern/error.hpp"
#include "quern/export.hpp"

namespace quern {

/// A call of the CUDA Driver API that failed, on a GPU or on the CPU device. `what()` says what was attempted, with which
/// call, how it failed, and what to do. A result that ends its context (an illegal address, a trap, a failed assertion) has
/// code() == ErrorCode::device_fault: the session answers the same from then on, and a new one is needed.
class QUERN_API DriverError : public Error {
 public:
  DriverError(ErrorCode code, const std::string& message, int result, std::string result_name, std::string call);

  /// The CUresult's number (700) and name ("CUDA_ERROR_ILLEGAL_ADDRESS").
  int result() const noexcept { return result_; }
  const std::string& result_name() const noexcept { return result_name_; }
  /// The driver function, "cuLaunchKernel".
  const std::string& call() const noexcept { return call_; }

 private:
  int result_;
  std::string result_name_;
  std::string call_;
};

/// Device memory is exhausted, also after everything that was waiting to be released had been released.
class QUERN_API OutOfMemory : public DriverError {
 public:
  OutOfMemory(const std::string& message, int result, std::string call, std::size_t requested_bytes, std::size_t free_bytes,
              std::size_t total_bytes);

  std::size_t requested_bytes() const noexcept { return requested_bytes_; }
  std::size_t free_bytes() const noexcept { return free_bytes_; }
  std::size_t total_bytes() const noexcept { return total_bytes_; }

 private:
  std::size_t requested_bytes_;
  std::size_t free_bytes_;
  std::size_t total_bytes_;
};

}  // namespace quern
