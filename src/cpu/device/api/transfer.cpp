// SPDX-License-Identifier: Apache-2.0
// Copies and fills of one dimension; boxes are in box_transfer.cpp.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/driver.hpp"
#include "cpu/device/work.hpp"

using namespace quern::cpu::device;

namespace {

CUresult now(const Work& work) {
  return entry([&] {
    Driver& driver = Driver::get();
    enqueue_synchronous(driver, work);
  });
}

CUresult async(CUstream stream, const Work& work) {
  return entry([&] {
    Driver& driver = Driver::get();
    enqueue(driver, driver.stream_of(stream), work);
  });
}

CopySide device_side(CUdeviceptr pointer) {
  return {reinterpret_cast<std::byte*>(pointer), AddressKind::device, {}};
}
CopySide host_side(const void* pointer) {
  return {static_cast<std::byte*>(const_cast<void*>(pointer)), AddressKind::unified, {}};
}
CopySide unified_side(CUdeviceptr pointer) {
  return {reinterpret_cast<std::byte*>(pointer), AddressKind::unified, {}};
}

Work copy(CopySide to, CopySide from, std::size_t bytes) {
  CopyWork work;
  work.destination = to;
  work.source = from;
  work.width_bytes = bytes;
  return work;
}

Work fill(CUdeviceptr to, std::uint32_t pattern, std::uint32_t pattern_bytes, std::size_t count) {
  FillWork work;
  work.destination = to;
  work.pattern = pattern;
  work.pattern_bytes = pattern_bytes;
  work.width = count;
  return work;
}

Work fill_rows(CUdeviceptr to, std::size_t pitch, std::uint32_t pattern, std::uint32_t pattern_bytes,
               std::size_t width, std::size_t height) {
  FillWork work;
  work.destination = to;
  work.pattern = pattern;
  work.pattern_bytes = pattern_bytes;
  work.width = width;
  work.height = height;
  work.pitch_bytes = pitch;
  return work;
}

}  // namespace

CUresult cuMemcpyHtoD_v2(CUdeviceptr to, const void* from, std::size_t bytes) {
  return now(copy(device_side(to), host_side(from), bytes));
}
CUresult cuMemcpyDtoH_v2(void* to, CUdeviceptr from, std::size_t bytes) {
  return now(copy(host_side(to), device_side(from), bytes));
}
CUresult cuMemcpyDtoD_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return now(copy(device_side(to), device_side(from), bytes));
}
CUresult cuMemcpy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  return now(copy(unified_side(to), unified_side(from), bytes));
}
CUresult cuMemcpyHtoDAsync_v2(CUdeviceptr to, const void* from, std::size_t bytes, CUstream stream) {
  return async(stream, copy(device_side(to), host_side(from), bytes));
}
CUresult cuMemcpyDtoHAsync_v2(void* to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return async(stream, copy(host_side(to), device_side(from), bytes));
}
CUresult cuMemcpyDtoDAsync_v2(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return async(stream, copy(device_side(to), device_side(from), bytes));
}
CUresult cuMemcpyAsync(CUdeviceptr to, CUdeviceptr from, std::size_t bytes, CUstream stream) {
  return async(stream, copy(unified_side(to), unified_side(from), bytes));
}

CUresult cuMemsetD8_v2(CUdeviceptr to, unsigned char value, std::size_t count) {
  return now(fill(to, value, 1, count));
}
CUresult cuMemsetD16_v2(CUdeviceptr to, unsigned short value, std::size_t count) {
  return now(fill(to, value, 2, count));
}
CUresult cuMemsetD32_v2(CUdeviceptr to, unsigned value, std::size_t count) {
  return now(fill(to, value, 4, count));
}
CUresult cuMemsetD2D8_v2(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                         std::size_t height) {
  return now(fill_rows(to, pitch, value, 1, width, height));
}
CUresult cuMemsetD2D16_v2(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                          std::size_t height) {
  return now(fill_rows(to, pitch, value, 2, width, height));
}
CUresult cuMemsetD2D32_v2(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                          std::size_t height) {
  return now(fill_rows(to, pitch, value, 4, width, height));
}
CUresult cuMemsetD8Async(CUdeviceptr to, unsigned char value, std::size_t count, CUstream stream) {
  return async(stream, fill(to, value, 1, count));
}
CUresult cuMemsetD16Async(CUdeviceptr to, unsigned short value, std::size_t count, CUstream stream) {
  return async(stream, fill(to, value, 2, count));
}
CUresult cuMemsetD32Async(CUdeviceptr to, unsigned value, std::size_t count, CUstream stream) {
  return async(stream, fill(to, value, 4, count));
}
CUresult cuMemsetD2D8Async(CUdeviceptr to, std::size_t pitch, unsigned char value, std::size_t width,
                           std::size_t height, CUstream stream) {
  return async(stream, fill_rows(to, pitch, value, 1, width, height));
}
CUresult cuMemsetD2D16Async(CUdeviceptr to, std::size_t pitch, unsigned short value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return async(stream, fill_rows(to, pitch, value, 2, width, height));
}
CUresult cuMemsetD2D32Async(CUdeviceptr to, std::size_t pitch, unsigned value, std::size_t width,
                            std::size_t height, CUstream stream) {
  return async(stream, fill_rows(to, pitch, value, 4, width, height));
}
