// SPDX-License-Identifier: Apache-2.0
// Copies and fills. Device ranges must lie within one allocation; a host pointer outside the window is
// ordinary (pageable) memory and taken as it is. Ordinary memory behaves as the Driver API says ("API
// synchronization behavior"): a source may be reused and a target is filled when the call returns; pinned
// memory is copied when the stream comes to it.
#include "cpu/device/cuda_api.hpp"

#include <cstring>

#include "cpu/device/driver.hpp"
#include "cpu/engine/mapping.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;

namespace {

/// One side of a copy.
struct Side {
  std::byte* address = nullptr;
  std::shared_ptr<engine::Allocation> allocation;  ///< null: ordinary host memory
};

Side device_side(Driver& driver, CUdeviceptr pointer, std::size_t bytes) {
  auto* address = reinterpret_cast<std::byte*>(pointer);
  std::shared_ptr<engine::Allocation> allocation = driver.memory().find_range(address, bytes);
  require(allocation != nullptr);
  if (allocation->kind == engine::AllocationKind::shadow) {  // the host's memory is what both agree on
    const std::shared_ptr<engine::Mapping> mapping = allocation->shadow_of.lock();
    require(mapping != nullptr);
    address = mapping->host() + (address - allocation->base);
  }
  return {address, std::move(allocation)};
}

Side host_side(Driver& driver, const void* pointer, std::size_t bytes) {
  require(pointer != nullptr);
  if (const auto registered = driver.memory().find(pointer);
      registered != nullptr && registered->kind == engine::AllocationKind::registered)
    return device_side(driver, reinterpret_cast<CUdeviceptr>(pointer), bytes);
  if (driver.window().reaches(pointer))
    return device_side(driver, reinterpret_cast<CUdeviceptr>(pointer), bytes);
  return {static_cast<std::byte*>(const_cast<void*>(pointer)), nullptr};
}

engine::TransferJob copy_job(Side destination, Side source, std::size_t bytes) {
  engine::TransferJob job;
  job.destination = destination.address;
  job.source = source.address;
  job.bytes = bytes;
  job.keep_destination = std::move(destination.allocation);
  job.keep_source = std::move(source.allocation);
  return job;
}

engine::TransferJob fill_job(Driver& driver, CUdeviceptr pointer, std::uint32_t pattern,
                             std::uint32_t pattern_bytes, std::size_t count) {
  require(pointer % pattern_bytes == 0 && count <= SIZE_MAX / pattern_bytes);
  Side side = device_side(driver, pointer, count * pattern_bytes);
  engine::TransferJob job;
  job.destination = side.address;
  job.bytes = count * pattern_bytes;
  job.pattern = pattern;
  job.pattern_bytes = pattern_bytes;
  job.keep_destination = std::move(side.allocation);
  return job;
}

void wait_for(Driver& driver, const std::shared_ptr<engine::Stream>& stream, const ContextState& context) {
  driver.scheduler().synchronize(stream);
  check_fault(context);
}

/// For a stream without pending work. It may be empty because a fault, since the call began, has dropped the
/// work before the copy.
void run_at_once(const ContextState& context, const engine::TransferJob& job) {
  engine::run(job);
  check_fault(context);
}

/// On the legacy default stream, and done on return.
void transfer_now(Driver& driver, const ContextState& context, engine::TransferJob job) {
  const std::shared_ptr<engine::Stream>& stream = context.domain->legacy_stream();
  if (driver.scheduler().runs_at_once(*stream)) return run_at_once(context, job);
  driver.scheduler().submit(stream, std::move(job));
  wait_for(driver, stream, context);
}

/// Copies ordinary host memory aside, so that its owner may change it.
void stage(engine::TransferJob& job) {
  job.staged = std::make_unique_for_overwrite<std::byte[]>(job.bytes);
  std::memcpy(job.staged.get(), job.source, job.bytes);
  job.source = job.staged.get();
}

void transfer_async(Driver& driver, const std::shared_ptr<ContextState>& context, CUstream handle,
                    engine::TransferJob job) {
  const std::shared_ptr<engine::Stream> stream = driver.find_stream(handle, context);
  const bool ordinary_target = job.keep_destination == nullptr;
  const bool ordinary_source = job.source != nullptr && job.keep_source == nullptr;
  if ((ordinary_source || ordinary_target) && driver.scheduler().runs_at_once(*stream))
    return run_at_once(*context, job);
  if (ordinary_source) stage(job);
  driver.scheduler().submit(stream, std::move(job));
  if (ordinary_target) wait_for(driver, stream, *context);
}

template <class MakeJob>
CUresult now(std::size_t size, MakeJob&& make_job) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    if (size > 0) transfer_now(driver, *context, make_job(driver));
  });
}

template <class MakeJob>
CUresult async(CUstream stream, std::size_t size, MakeJob&& make_job) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    if (size == 0)
      driver.find_stream(stream, context);  // a bad stream is an error even then
    else
      transfer_async(driver, context, stream, make_job(driver));
  });
}

auto host_to_device(CUdeviceptr to, const void* from, std::size_t bytes) {
  return [=](Driver& driver) {
    return copy_job(device_side(driver, to, bytes), host_side(driver, from, bytes), bytes);
  };
}
auto device_to_host(void* to, CUdeviceptr from, std::size_t bytes) {
  return [=](Driver& driver) {
    return copy_job(host_side(driver, to, bytes), device_side(driver, from, bytes), bytes);
  };
}
auto device_to_device(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return [=](Driver& driver) {
    return copy_job(device_side(driver, to, bytes), device_side(driver, from, bytes), bytes);
  };
}
auto fill(CUdeviceptr to, std::uint32_t pattern, std::uint32_t pattern_bytes, std::size_t count) {
  return [=](Driver& driver) { return fill_job(driver, to, pattern, pattern_bytes, count); };
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return now(bytes, host_to_device(to, from, bytes));
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return now(bytes, device_to_host(to, from, bytes));
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return now(bytes, device_to_device(to, from, bytes));
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return async(stream, bytes, host_to_device(to, from, bytes));
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return async(stream, bytes, device_to_host(to, from, bytes));
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return async(stream, bytes, device_to_device(to, from, bytes));
}
CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return now(count, fill(to, value, 1, count));
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return now(count, fill(to, value, 4, count));
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return async(stream, count, fill(to, value, 1, count));
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return async(stream, count, fill(to, value, 4, count));
}
