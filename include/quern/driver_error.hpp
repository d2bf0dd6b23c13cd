// SPDX-License-Identifier: Apache-2.0
// room: driver
#pragma once

#include <cstdint>
#include <string>

#include "quern/error.hpp"

namespace quern {

/// A call of the CUDA Driver API that failed. `what()` says what was attempted, the call, the result's name
/// and what the driver says about it. Faults of a kernel (illegal address, trap, ...) have the code
/// ErrorCode::device_fault.
class DriverError : public Error {
 public:
  DriverError(ErrorCode code, int result, std::string result_name, std::string call,
              const std::string& message, std::string result_text = {})
      : Error(code, message),
        result_(result),
        result_name_(std::move(result_name)),
        result_text_(std::move(result_text)),
        call_(std::move(call)) {}

  int result() const noexcept { return result_; }                           ///< the CUresult
  const std::string& result_name() const noexcept { return result_name_; }  ///< "CUDA_ERROR_INVALID_VALUE"
  /// The driver's sentence about the result. On the CPU device it says which threads met a fault, and where.
  const std::string& result_text() const noexcept { return result_text_; }
  /// "cuMemcpyHtoD_v2"; empty where no call was made, since an earlier fault had ended the context.
  const std::string& call() const noexcept { return call_; }

 private:
  int result_;
  std::string result_name_;
  std::string result_text_;
  std::string call_;
};

/// Device memory is exhausted. The sizes are 0 where they are not known.
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
