// SPDX-License-Identifier: Apache-2.0
// Batches of copies. A batch is checked as a whole before its first copy is queued, and runs in the order of
// its copies.
#include "cpu/device/cuda_api.hpp"

#include <limits>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/thread_streams.hpp"
#include "cpu/device/work.hpp"

using namespace quern::cpu::device;

namespace {

/// failIdx where the error concerns no single copy.
constexpr std::size_t kNoCopy = std::numeric_limits<std::size_t>::max();

SourceAccess access_of(CUmemcpySrcAccessOrder order) {
  switch (order) {
    case CU_MEMCPY_SRC_ACCESS_ORDER_STREAM:
    case CU_MEMCPY_SRC_ACCESS_ORDER_ANY:
      return SourceAccess::stream_order;
    case CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL:
      return SourceAccess::during_call;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
}

void require_flags(unsigned flags) {
  require((flags & ~static_cast<unsigned>(CU_MEMCPY_FLAG_PREFER_OVERLAP_WITH_COMPUTE)) == 0);
}

CopySide side_of(CUdeviceptr pointer, const quern::cpu::engine::Strides& strides = {}) {
  require(pointer != 0);
  return {reinterpret_cast<std::byte*>(pointer), AddressKind::unified, strides};
}

/// The legacy stream takes no batches.
void require_stream(CUstream stream) {
  require((stream == nullptr ? default_stream() : stream) != CU_STREAM_LEGACY);
}

struct Batch {
  CUdeviceptr* to;
  CUdeviceptr* from;
  std::size_t* bytes;
  std::size_t count;
  CUmemcpyAttributes* attributes;
  std::size_t* first_copies;  ///< of each entry of `attributes`
  std::size_t attribute_count;
};

void require_whole(const Batch& batch) {
  require(batch.to != nullptr && batch.from != nullptr && batch.bytes != nullptr && batch.count > 0);
  require(batch.attributes != nullptr && batch.first_copies != nullptr);
  require(batch.attribute_count > 0 && batch.attribute_count <= batch.count && batch.first_copies[0] == 0);
  for (std::size_t i = 1; i < batch.attribute_count; ++i)
    require(batch.first_copies[i] > batch.first_copies[i - 1] && batch.first_copies[i] < batch.count);
  for (std::size_t i = 0; i < batch.attribute_count; ++i) {
    require_flags(batch.attributes[i].flags);
    access_of(batch.attributes[i].srcAccessOrder);
  }
}

CopyWork copy_of(const Batch& batch, std::size_t index, const CUmemcpyAttributes& attributes) {
  require(batch.bytes[index] > 0);
  CopyWork work;
  work.source_access = access_of(attributes.srcAccessOrder);
  work.destination = side_of(batch.to[index]);
  work.source = side_of(batch.from[index]);
  work.width_bytes = batch.bytes[index];
  return work;
}

quern::cpu::engine::Strides strides_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent) {
  const std::size_t row = operand.op.ptr.rowLength, height = operand.op.ptr.layerHeight;
  require((row == 0 || row >= extent.width) && (height == 0 || height >= extent.height));
  quern::cpu::engine::Strides strides;
  strides.row_bytes = row == 0 ? extent.width : row;
  require(
      !__builtin_mul_overflow(strides.row_bytes, height == 0 ? extent.height : height, &strides.slice_bytes));
  return strides;
}

CopySide side_of(const CUmemcpy3DOperand& operand, const CUextent3D& extent) {
  require(operand.type != CU_MEMCPY_OPERAND_TYPE_ARRAY, CUDA_ERROR_NOT_SUPPORTED);
  require(operand.type == CU_MEMCPY_OPERAND_TYPE_POINTER);
  return side_of(operand.op.ptr.ptr, strides_of(operand, extent));
}

CopyWork copy_of(const CUDA_MEMCPY3D_BATCH_OP& operation) {
  const CUextent3D& extent = operation.extent;
  require(extent.width > 0 && extent.height > 0 && extent.depth > 0);
  require_flags(operation.flags);
  CopyWork work;
  work.source_access = access_of(operation.srcAccessOrder);
  work.destination = side_of(operation.dst, extent);
  work.source = side_of(operation.src, extent);
  work.width_bytes = extent.width;
  work.height = extent.height;
  work.depth = extent.depth;
  return work;
}

/// Makes and checks each copy before any is queued; `failed` says which one was wrong.
template <class MakeCopy>
void run_batch(std::size_t count, std::size_t& failed, CUstream stream, MakeCopy&& make_copy) {
  Driver& driver = Driver::get();
  const StreamObject its_stream = driver.stream_of(stream);
  refuse_capturing(its_stream);
  require_stream(stream);
  std::vector<CopyWork> copies;
  for (failed = 0; failed < count; ++failed) {
    copies.push_back(make_copy(failed));
    make_job(driver, copies.back());  // throws for addresses that name no memory
  }
  failed = kNoCopy;
  for (const CopyWork& copy : copies) enqueue(driver, its_stream, copy);
}

CUresult run(const Batch& batch, std::size_t* fail_index, CUstream stream) {
  std::size_t failed = kNoCopy;
  const CUresult result = entry([&] {
    require_whole(batch);
    std::size_t entry_index = 0;
    run_batch(batch.count, failed, stream, [&](std::size_t index) {
      while (entry_index + 1 < batch.attribute_count && batch.first_copies[entry_index + 1] <= index)
        ++entry_index;
      return copy_of(batch, index, batch.attributes[entry_index]);
    });
  });
  if (result != CUDA_SUCCESS && fail_index != nullptr) *fail_index = failed;
  return result;
}

CUresult run(std::size_t count, const CUDA_MEMCPY3D_BATCH_OP* operations, std::size_t* fail_index,
             unsigned long long flags, CUstream stream) {
  std::size_t failed = kNoCopy;
  const CUresult result = entry([&] {
    require(count > 0 && operations != nullptr && flags == 0);
    run_batch(count, failed, stream, [&](std::size_t index) { return copy_of(operations[index]); });
  });
  if (result != CUDA_SUCCESS && fail_index != nullptr) *fail_index = failed;
  return result;
}

}  // namespace

CUresult cuMemcpyBatchAsync(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                            CUmemcpyAttributes* attributes, std::size_t* first_copies,
                            std::size_t attribute_count, std::size_t* fail_index, CUstream stream) {
  return run({to, from, sizes, count, attributes, first_copies, attribute_count}, fail_index, stream);
}

CUresult cuMemcpyBatchAsync_v2(CUdeviceptr* to, CUdeviceptr* from, std::size_t* sizes, std::size_t count,
                               CUmemcpyAttributes* attributes, std::size_t* first_copies,
                               std::size_t attribute_count, CUstream stream) {
  return run({to, from, sizes, count, attributes, first_copies, attribute_count}, nullptr, stream);
}

CUresult cuMemcpy3DBatchAsync(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* operations, std::size_t* fail_index,
                              unsigned long long flags, CUstream stream) {
  return run(count, operations, fail_index, flags, stream);
}

CUresult cuMemcpy3DBatchAsync_v2(std::size_t count, CUDA_MEMCPY3D_BATCH_OP* operations,
                                 unsigned long long flags, CUstream stream) {
  return run(count, operations, nullptr, flags, stream);
}
