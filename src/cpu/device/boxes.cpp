// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/boxes.hpp"

namespace quern::cpu::device {
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

bool is_type(CUmemorytype type) { return type >= CU_MEMORYTYPE_HOST && type <= CU_MEMORYTYPE_UNIFIED; }

/// A pitch or a height of 0 means rows or slices without gaps.
CopySide side_of(BoxSide side, const Extent& extent) {
  const AddressKind kind = kind_of(side.type);
  if (side.pitch_bytes == 0) side.pitch_bytes = add(side.x_bytes, extent.width_bytes);
  if (side.height == 0) side.height = add(side.y, extent.height);
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

CopyWork copy(const BoxSide& to, const BoxSide& from, const Extent& extent) {
  CopyWork work;
  work.width_bytes = extent.width_bytes;
  work.height = extent.height;
  work.depth = extent.depth;
  if (extent.width_bytes == 0 || extent.height == 0 || extent.depth == 0) {
    require(is_type(to.type) && is_type(from.type));  // nothing else is looked at then
    return work;
  }
  work.destination = side_of(to, extent);
  work.source = side_of(from, extent);
  return work;
}

/// CUDA_MEMCPY3D and CUDA_MEMCPY3D_PEER. Levels of detail and reserved fields are not read, as by the driver
/// of a GPU.
template <class Box>
CopyWork copy3(const Box& box) {
  const BoxSide from{box.srcMemoryType, box.srcHost, box.srcDevice, box.srcXInBytes,
                     box.srcY,          box.srcZ,    box.srcPitch,  box.srcHeight};
  const BoxSide to{box.dstMemoryType, box.dstHost, box.dstDevice, box.dstXInBytes,
                   box.dstY,          box.dstZ,    box.dstPitch,  box.dstHeight};
  return copy(to, from, {box.WidthInBytes, box.Height, box.Depth});
}

}  // namespace

CopyWork copy_of(const CUDA_MEMCPY2D& box) {
  const BoxSide from{.type = box.srcMemoryType,
                     .host = box.srcHost,
                     .device = box.srcDevice,
                     .x_bytes = box.srcXInBytes,
                     .y = box.srcY,
                     .pitch_bytes = box.srcPitch};
  const BoxSide to{.type = box.dstMemoryType,
                   .host = box.dstHost,
                   .device = box.dstDevice,
                   .x_bytes = box.dstXInBytes,
                   .y = box.dstY,
                   .pitch_bytes = box.dstPitch};
  return copy(to, from, {box.WidthInBytes, box.Height, 1});
}

CopyWork copy_of(const CUDA_MEMCPY3D& box) { return copy3(box); }
CopyWork copy_of(const CUDA_MEMCPY3D_PEER& box) { return copy3(box); }

CUDA_MEMCPY3D box_of(const CopyWork& work) noexcept {
  CUDA_MEMCPY3D box{};
  const auto height_of = [](const engine::Strides& strides) {
    return strides.row_bytes == 0 ? 0 : strides.slice_bytes / strides.row_bytes;
  };
  box.srcMemoryType = work.source.kind == AddressKind::device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
  box.srcDevice = reinterpret_cast<CUdeviceptr>(work.source.address);
  box.srcPitch = work.source.strides.row_bytes;
  box.srcHeight = height_of(work.source.strides);
  box.dstMemoryType =
      work.destination.kind == AddressKind::device ? CU_MEMORYTYPE_DEVICE : CU_MEMORYTYPE_UNIFIED;
  box.dstDevice = reinterpret_cast<CUdeviceptr>(work.destination.address);
  box.dstPitch = work.destination.strides.row_bytes;
  box.dstHeight = height_of(work.destination.strides);
  box.WidthInBytes = work.width_bytes;
  box.Height = work.height;
  box.Depth = work.depth;
  return box;
}

}  // namespace quern::cpu::device
