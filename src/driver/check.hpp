// SPDX-License-Identifier: Apache-2.0
// Turns a CUresult into an exception, with a message that says what to do.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "driver/cpu_plugin.h"
#include "driver/driver_table.hpp"
#include "quern/driver_error.hpp"

namespace quern::driver {

/// "CUDA_ERROR_INVALID_VALUE"; "CUresult 12345" if the driver does not know the number.
std::string result_name(const DriverTable& table, CUresult result);
/// The driver's sentence about the result; empty if it has none.
std::string result_text(const DriverTable& table, CUresult result);

/// The ErrorCode of a result: out_of_memory, device_fault (errors that end a context), unsupported, driver.
ErrorCode error_code(CUresult result) noexcept;
/// Advice for the user about the error; empty if there is no general advice.
std::string_view advice(CUresult result) noexcept;

/// Throws DriverError (OutOfMemory for CUDA_ERROR_OUT_OF_MEMORY). `call` is the function's name in
/// functions.def, `attempted` completes "cannot ...": "copy 4096 bytes to the device". `fault` goes with a
/// device_fault only.
[[noreturn]] void fail(const DriverTable& table, CUresult result, std::string_view call,
                       std::string_view attempted, std::shared_ptr<const DeviceFault> fault = nullptr);

/// The CPU device's report about the fault that ended this thread's current context; null if there is none,
/// or no plug-in.
std::shared_ptr<const DeviceFault> current_fault(const QuernCpuPlugin* plugin);

/// fail() unless `result` is CUDA_SUCCESS.
inline void check(const DriverTable& table, CUresult result, std::string_view call,
                  std::string_view attempted) {
  if (result != CUDA_SUCCESS) [[unlikely]]
    fail(table, result, call, attempted);
}

/// The same for an allocation: OutOfMemory then carries `requested_bytes` and, if the driver reports it, the
/// free memory.
void check_allocation(const DriverTable& table, CUresult result, std::string_view call,
                      std::string_view attempted, std::uint64_t requested_bytes,
                      std::shared_ptr<const DeviceFault> fault = nullptr);

}  // namespace quern::driver
