// SPDX-License-Identifier: Apache-2.0
// Copies of boxes (2-D and 3-D), within a context and between contexts. There are no CUDA arrays on this
// device: a copy that names one is refused.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/driver.hpp"
#include "cpu/device/work.hpp"

using namespace quern::cpu::device;

namespace {

constexpr std::size_t kMaxPitchBytes = 0x7fffffff;  // CU_DEVICE_ATTRIBUTE_MAX_PITCH

/// One side of a copy as the structs of cuda.h describe it.
struct BoxSide {
  CUmemorytype type{};
  const void* host = nullptr;
  CUdeviceptr device = 0;
  std::size_t x_bytes = 0, y = 0, z = 0;
  std::size_t pitch_bytes = 0;
  std::size_t height = 0;
};

struct Extent {
  std::size_t width_bytes = 0, height = 0, depth = 0;
};

std::size_t add(std::size_t a, std::size_t b) {
  std::size_t sum = 0;
  require(!__builtin_add_overflow(a, b, &sum));
  return sum;
}
std::size_t multiply(std::size_t a, std::size_t b) {
  std::size_t product = 0;
  require(!__builtin_mul_overflow(a, b, &product));
  return product;
}

AddressKind kind_of(CUmemorytype type) {
  switch (type) {
    case CU_MEMORYTYPE_DEVICE:
      return AddressKind::device;
    case CU_MEMORYTYPE_HOST:
    case CU_MEMORYTYPE_UNIFIED:
      return AddressKind::unified;
    case CU_MEMORYTYPE_ARRAY:
      fail(CUDA_ERROR_NOT_SUPPORTED, "this device has no CUDA arrays");
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

CopySide side_of(const BoxSide& side, const Extent& extent) {
  const AddressKind kind = kind_of(side.type);
  const bool one_row = extent.height == 1 && extent.depth == 1 && side.y == 0 && side.z == 0;
  const bool one_slice = extent.depth == 1 && side.z == 0;
  require(one_row || side.pitch_bytes >= add(side.x_bytes, extent.width_bytes));
  require(one_slice || side.height >= add(side.y, extent.height));
  require(side.pitch_bytes <= kMaxPitchBytes);
  const std::size_t slice_bytes = multiply(side.pitch_bytes, side.height);
  const std::size_t offset =
      add(add(multiply(side.z, slice_bytes), multiply(side.y, side.pitch_bytes)), side.x_bytes);
  const auto base = side.type == CU_MEMORYTYPE_HOST ? reinterpret_cast<CUdeviceptr>(side.host) : side.device;
  require(base != 0);
  return {reinterpret_cast<std::byte*>(add(base, offset)), kind, {side.pitch_bytes, slice_bytes}};
}

Work box(const BoxSide& to, const BoxSide& from, const Extent& extent) {
  CopyWork work;
  work.width_bytes = extent.width_bytes;
  work.height = extent.height;
  work.depth = extent.depth;
  if (extent.width_bytes == 0 || extent.height == 0 || extent.depth == 0) {
    kind_of(to.type), kind_of(from.type);  // a bad type is an error even then
    return work;
  }
  work.destination = side_of(to, extent);
  work.source = side_of(from, extent);
  return work;
}

Work box(const CUDA_MEMCPY2D* copy) {
  require(copy != nullptr);
  const BoxSide from{.type = copy->srcMemoryType,
                     .host = copy->srcHost,
                     .device = copy->srcDevice,
                     .x_bytes = copy->srcXInBytes,
                     .y = copy->srcY,
                     .pitch_bytes = copy->srcPitch};
  const BoxSide to{.type = copy->dstMemoryType,
                   .host = copy->dstHost,
                   .device = copy->dstDevice,
                   .x_bytes = copy->dstXInBytes,
                   .y = copy->dstY,
                   .pitch_bytes = copy->dstPitch};
  return box(to, from, {copy->WidthInBytes, copy->Height, 1});
}

/// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER.
template <class Copy>
Work box3(const Copy* copy) {
  require(copy->srcLOD == 0 && copy->dstLOD == 0);
  const BoxSide from{copy->srcMemoryType, copy->srcHost, copy->srcDevice, copy->srcXInBytes,
                     copy->srcY,          copy->srcZ,    copy->srcPitch,  copy->srcHeight};
  const BoxSide to{copy->dstMemoryType, copy->dstHost, copy->dstDevice, copy->dstXInBytes,
                   copy->dstY,          copy->dstZ,    copy->dstPitch,  copy->dstHeight};
  return box(to, from, {copy->WidthInBytes, copy->Height, copy->Depth});
}

Work box(const CUDA_MEMCPY3D* copy) {
  require(copy != nullptr && copy->reserved0 == nullptr && copy->reserved1 == nullptr);
  return box3(copy);
}

template <class Copy>
CUresult now(const Copy* copy) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    enqueue_synchronous(driver, context, box(copy));
  });
}

template <class Copy>
CUresult async(const Copy* copy, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    enqueue(driver, context, stream, box(copy));
  });
}

/// A copy between contexts is ordered after all that both have been given, and before what follows.
void wait_for_peers(Driver& driver, CUcontext to, CUcontext from) {
  driver.contexts().synchronize_handle(to);
  if (from != to) driver.contexts().synchronize_handle(from);
}

void require_contexts(Driver& driver, CUcontext to, CUcontext from) {
  driver.contexts().device_of(to);
  driver.contexts().device_of(from);
}

Work peer_copy(CUdeviceptr to, CUdeviceptr from, std::size_t bytes) {
  CopyWork work;
  work.destination = {reinterpret_cast<std::byte*>(to), AddressKind::device, {}};
  work.source = {reinterpret_cast<std::byte*>(from), AddressKind::device, {}};
  work.width_bytes = bytes;
  return work;
}

}  // namespace

CUresult cuMemcpy2D_v2(const CUDA_MEMCPY2D* copy) { return now(copy); }
CUresult cuMemcpy2DUnaligned_v2(const CUDA_MEMCPY2D* copy) { return now(copy); }
CUresult cuMemcpy2DAsync_v2(const CUDA_MEMCPY2D* copy, CUstream stream) { return async(copy, stream); }
CUresult cuMemcpy3D_v2(const CUDA_MEMCPY3D* copy) { return now(copy); }
CUresult cuMemcpy3DAsync_v2(const CUDA_MEMCPY3D* copy, CUstream stream) { return async(copy, stream); }

CUresult cuMemcpyPeer(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                      std::size_t bytes) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require_contexts(driver, to_context, from_context);
    wait_for_peers(driver, to_context, from_context);
    enqueue_synchronous(driver, context, peer_copy(to, from, bytes));
  });
}

CUresult cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from, CUcontext from_context,
                           std::size_t bytes, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require_contexts(driver, to_context, from_context);
    enqueue(driver, context, stream, peer_copy(to, from, bytes));
  });
}

CUresult cuMemcpy3DPeer(const CUDA_MEMCPY3D_PEER* copy) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(copy != nullptr);
    require_contexts(driver, copy->dstContext, copy->srcContext);
    const Work work = box3(copy);
    wait_for_peers(driver, copy->dstContext, copy->srcContext);
    enqueue_synchronous(driver, context, work);
  });
}

CUresult cuMemcpy3DPeerAsync(const CUDA_MEMCPY3D_PEER* copy, CUstream stream) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(copy != nullptr);
    require_contexts(driver, copy->dstContext, copy->srcContext);
    enqueue(driver, context, stream, box3(copy));
  });
}
