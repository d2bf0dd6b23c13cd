// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/stream_values.hpp"

#include <cstring>
#include <utility>

#include "cpu/device/work.hpp"

namespace quern::cpu::device {
namespace {

constexpr unsigned kMaxOperations = 256;  ///< cuda.h, cuStreamBatchMemOp

bool is_wait(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WAIT_VALUE_32 || type == CU_STREAM_MEM_OP_WAIT_VALUE_64;
}
std::uint32_t bytes_of(CUstreamBatchMemOpType type) {
  return type == CU_STREAM_MEM_OP_WAIT_VALUE_64 || type == CU_STREAM_MEM_OP_WRITE_VALUE_64 ? 8 : 4;
}

void check(const CUstreamBatchMemOpParams& operation) {
  switch (operation.operation) {
    case CU_STREAM_MEM_OP_WAIT_VALUE_32:
    case CU_STREAM_MEM_OP_WAIT_VALUE_64: {
      const unsigned relation =
          operation.waitValue.flags & ~static_cast<unsigned>(CU_STREAM_WAIT_VALUE_FLUSH);
      require(relation <= CU_STREAM_WAIT_VALUE_NOR);
      require(operation.waitValue.address % bytes_of(operation.operation) == 0);
      // This device has no remote writes to flush (CU_DEVICE_ATTRIBUTE_CAN_FLUSH_REMOTE_WRITES is 0).
      require((operation.waitValue.flags & CU_STREAM_WAIT_VALUE_FLUSH) == 0, CUDA_ERROR_NOT_SUPPORTED);
      return;
    }
    case CU_STREAM_MEM_OP_WRITE_VALUE_32:
    case CU_STREAM_MEM_OP_WRITE_VALUE_64:
      require(operation.writeValue.flags == 0);
      return require(operation.writeValue.address % bytes_of(operation.operation) == 0);
    case CU_STREAM_MEM_OP_BARRIER:
      return require(operation.memoryBarrier.flags <= CU_STREAM_MEMORY_BARRIER_TYPE_GPU);
    case CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES:
      fail(CUDA_ERROR_NOT_SUPPORTED);
  }
  fail(CUDA_ERROR_INVALID_VALUE);
}

/// A job that copies the value there; a value is aligned, so it is written at once.
engine::TransferJob write_job(Driver& driver, CUdeviceptr address, std::uint64_t value, std::uint32_t bytes) {
  FillWork work;
  work.destination = address;
  work.pattern_bytes = 4;
  work.width = bytes / 4;
  engine::TransferJob job = make_job(driver, work);
  job.staged = std::make_unique_for_overwrite<std::byte[]>(bytes);
  std::memcpy(job.staged.get(), &value, bytes);
  job.source = job.staged.get();
  return job;
}

engine::ValueJob wait_job(Driver& driver, CUdeviceptr address, std::uint64_t value, std::uint32_t bytes,
                          unsigned flags) {
  engine::TransferJob found = write_job(driver, address, 0, bytes);
  engine::ValueJob job;
  job.address = found.destination;
  job.keep = std::move(found.keep_destination);
  job.registered = found.registered;
  job.value = value;
  job.bytes = bytes;
  using Relation = engine::ValueJob::Relation;
  switch (flags) {
    case CU_STREAM_WAIT_VALUE_GEQ:
      job.relation = Relation::at_least;
      break;
    case CU_STREAM_WAIT_VALUE_EQ:
      job.relation = Relation::equal;
      break;
    case CU_STREAM_WAIT_VALUE_AND:
      job.relation = Relation::any_bit;
      break;
    case CU_STREAM_WAIT_VALUE_NOR:
      job.relation = Relation::no_nor_bit;
      break;
    default:
      fail(CUDA_ERROR_INVALID_VALUE);
  }
  return job;
}

engine::Job job_of(Driver& driver, const CUstreamBatchMemOpParams& operation) {
  const std::uint32_t bytes = bytes_of(operation.operation);
  if (operation.operation == CU_STREAM_MEM_OP_BARRIER) return engine::WaitJob{};  // jobs of a stream see all
  if (is_wait(operation.operation)) {
    const std::uint64_t value = bytes == 8 ? operation.waitValue.value64 : operation.waitValue.value;
    return wait_job(driver, operation.waitValue.address, value, bytes, operation.waitValue.flags);
  }
  const std::uint64_t value = bytes == 8 ? operation.writeValue.value64 : operation.writeValue.value;
  return write_job(driver, operation.writeValue.address, value, bytes);
}

}  // namespace

void check_operations(std::span<const CUstreamBatchMemOpParams> operations, unsigned flags) {
  require(flags == 0 && operations.size() <= kMaxOperations);
  for (const CUstreamBatchMemOpParams& operation : operations) check(operation);
}

void append_commands(Driver& driver, std::span<const CUstreamBatchMemOpParams> operations,
                     std::vector<std::unique_ptr<engine::Command>>& commands) {
  for (const CUstreamBatchMemOpParams& operation : operations) {
    auto command = std::make_unique<engine::Command>();
    command->job = job_of(driver, operation);
    commands.push_back(std::move(command));
  }
}

}  // namespace quern::cpu::device
