// SPDX-License-Identifier: Apache-2.0
#include "driver/check.hpp"

#include <fmt/format.h>

namespace quern::driver {
namespace {

struct Meaning {
  CUresult result;
  ErrorCode code;
  std::string_view advice;
};

constexpr std::string_view kDeadContext =
    "the context is lost with all that it held; open a new session, and make arrays, streams and kernels "
    "anew";

constexpr Meaning kMeanings[] = {
    {CUDA_ERROR_OUT_OF_MEMORY, ErrorCode::out_of_memory,
     "free arrays or use smaller ones; on the CPU device QUERN_CPU_MEMORY sets the total"},
    {CUDA_ERROR_NOT_INITIALIZED, ErrorCode::driver,
     "cuInit has not run in this process; a driver cannot be used after fork, start a new process instead"},
    {CUDA_ERROR_NO_DEVICE, ErrorCode::not_found,
     "check CUDA_VISIBLE_DEVICES and that the machine has such a device"},
    {CUDA_ERROR_INVALID_CONTEXT, ErrorCode::driver, "make a context current on this thread first"},
    {CUDA_ERROR_CONTEXT_IS_DESTROYED, ErrorCode::driver, "the context was destroyed; make a new one current"},
    {CUDA_ERROR_NO_BINARY_FOR_GPU, ErrorCode::driver,
     "compile for an architecture that the device has, or ship PTX"},
    {CUDA_ERROR_INVALID_PTX, ErrorCode::compile, "the module log says which line was refused"},
    {CUDA_ERROR_UNSUPPORTED_PTX_VERSION, ErrorCode::compile,
     "the PTX is newer than the driver; lower its .version or update the driver"},
    {CUDA_ERROR_NOT_SUPPORTED, ErrorCode::unsupported, "this device does not offer that"},
    {CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES, ErrorCode::driver, "use a smaller block or less shared memory"},
    {CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE, ErrorCode::driver,
     "use no more blocks than fit on the device at once"},
    {CUDA_ERROR_ILLEGAL_ADDRESS, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_LAUNCH_TIMEOUT, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_ASSERT, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_HARDWARE_STACK_ERROR, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_ILLEGAL_INSTRUCTION, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_MISALIGNED_ADDRESS, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_INVALID_ADDRESS_SPACE, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_INVALID_PC, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_LAUNCH_FAILED, ErrorCode::device_fault, kDeadContext},
    {CUDA_ERROR_ECC_UNCORRECTABLE, ErrorCode::device_fault, kDeadContext},
};

const Meaning* meaning(CUresult result) noexcept {
  for (const Meaning& row : kMeanings)
    if (row.result == result) return &row;
  return nullptr;
}

std::string describe(const DriverTable& table, CUresult result, std::string_view call,
                     std::string_view attempted) {
  std::string message = fmt::format("cannot {}: {} answered {}", attempted, call, result_name(table, result));
  if (const std::string text = result_text(table, result); !text.empty())
    message += fmt::format(" ({})", text);
  if (const std::string_view hint = advice(result); !hint.empty()) message += fmt::format("; {}", hint);
  return message;
}

}  // namespace

std::string result_name(const DriverTable& table, CUresult result) {
  const char* text = nullptr;
  if (table.cuGetErrorName(result, &text) == CUDA_SUCCESS && text != nullptr) return text;
  return fmt::format("CUresult {}", static_cast<int>(result));
}

std::string result_text(const DriverTable& table, CUresult result) {
  const char* text = nullptr;
  if (table.cuGetErrorString(result, &text) == CUDA_SUCCESS && text != nullptr) return text;
  return {};
}

ErrorCode error_code(CUresult result) noexcept {
  const Meaning* row = meaning(result);
  return row != nullptr ? row->code : ErrorCode::driver;
}

std::string_view advice(CUresult result) noexcept {
  const Meaning* row = meaning(result);
  return row != nullptr ? row->advice : std::string_view{};
}

void fail(const DriverTable& table, CUresult result, std::string_view call, std::string_view attempted,
          std::shared_ptr<const DeviceFault> fault) {
  if (result == CUDA_ERROR_OUT_OF_MEMORY) check_allocation(table, result, call, attempted, 0);
  const ErrorCode code = error_code(result);
  if (code != ErrorCode::device_fault) fault = nullptr;
  throw DriverError(code, static_cast<int>(result), result_name(table, result), std::string(call),
                    describe(table, result, call, attempted), result_text(table, result), std::move(fault));
}

namespace {

DeviceFault::Index index_of(const std::uint32_t (&from)[3]) { return {from[0], from[1], from[2]}; }

DeviceFault as_fault(const QuernCpuFault& from) {
  DeviceFault fault;
  fault.kernel = from.kernel;
  fault.grid = index_of(from.grid);
  fault.block_dim = index_of(from.block_dim);
  if ((from.known & QUERN_CPU_KNOWS_BLOCK) != 0) fault.block = index_of(from.block);
  if ((from.known & QUERN_CPU_KNOWS_THREADS) != 0) {
    fault.threads = {index_of(from.first_thread), index_of(from.last_thread)};
    if (fault.threads->first == fault.threads->second) fault.thread = fault.threads->first;
  }
  fault.file = from.file;
  fault.line = from.line;
  if ((from.known & QUERN_CPU_KNOWS_ADDRESS) != 0) fault.address = from.address;
  fault.access = static_cast<MemoryAccess>(from.access);
  fault.access_bytes = from.access_bytes;
  fault.space = from.space;
  return fault;
}

/// The sink is called across C, which nothing may be thrown through.
void take_fault(void* user, const QuernCpuFault* from) {
  try {
    *static_cast<std::shared_ptr<const DeviceFault>*>(user) =
        std::make_shared<const DeviceFault>(as_fault(*from));
  } catch (...) {  // without memory, nothing is known
  }
}

}  // namespace

std::shared_ptr<const DeviceFault> current_fault(const QuernCpuPlugin* plugin) {
  std::shared_ptr<const DeviceFault> fault;
  if (plugin != nullptr) plugin->current_fault(&take_fault, &fault);
  return fault;
}

void check_allocation(const DriverTable& table, CUresult result, std::string_view call,
                      std::string_view attempted, std::uint64_t requested_bytes,
                      std::shared_ptr<const DeviceFault> fault) {
  if (result == CUDA_SUCCESS) return;
  if (result != CUDA_ERROR_OUT_OF_MEMORY) fail(table, result, call, attempted, std::move(fault));
  std::size_t free_bytes = 0;
  std::size_t total_bytes = 0;
  std::string message = describe(table, result, call, attempted);
  if (table.cuMemGetInfo_v2(&free_bytes, &total_bytes) == CUDA_SUCCESS)
    message += fmt::format(" ({} of {} bytes are free)", free_bytes, total_bytes);
  throw OutOfMemory(static_cast<int>(result), result_name(table, result), std::string(call), message,
                    requested_bytes, free_bytes, total_bytes);
}

}  // namespace quern::driver
