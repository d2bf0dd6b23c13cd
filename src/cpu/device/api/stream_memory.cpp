// SPDX-License-Identifier: Apache-2.0
// Operations of streams on single values in memory, callbacks, and the association of managed memory.
#include "cpu/device/cuda_api.hpp"

#include <span>
#include <utility>

#include "cpu/device/driver.hpp"
#include "cpu/device/graph/capture.hpp"
#include "cpu/device/graph/node_params.hpp"
#include "cpu/device/stream_values.hpp"

using namespace quern::cpu::device;
using namespace quern::cpu;

namespace {

CUresult run(CUstream stream, std::span<const CUstreamBatchMemOpParams> operations, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(operations.empty() || operations.data() != nullptr);
    check_operations(operations, flags);
    if (is_capturing(its_stream)) {
      if (operations.empty()) return;
      CUDA_BATCH_MEM_OP_NODE_PARAMS_v2 params{};
      params.ctx = driver.contexts().handle_of(its_stream.context->id);
      params.count = static_cast<unsigned>(operations.size());
      params.paramArray = const_cast<CUstreamBatchMemOpParams*>(operations.data());
      return record(driver, its_stream, batch_contents(driver, params));
    }
    std::vector<std::unique_ptr<engine::Command>> commands;
    append_commands(driver, operations, commands);
    driver.scheduler().submit_all(its_stream.stream, std::move(commands), nullptr);
  });
}

CUresult wait_value(CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned flags,
                    CUstreamBatchMemOpType type) {
  CUstreamBatchMemOpParams operation{};
  operation.operation = type;
  operation.waitValue.address = address;
  operation.waitValue.value64 = value;
  operation.waitValue.flags = flags;
  return run(stream, {&operation, 1}, 0);
}

CUresult write_value(CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned flags,
                     CUstreamBatchMemOpType type) {
  CUstreamBatchMemOpParams operation{};
  operation.operation = type;
  operation.writeValue.address = address;
  operation.writeValue.value64 = value;
  operation.writeValue.flags = flags;
  return run(stream, {&operation, 1}, 0);
}

/// The first versions let a write overtake others, which it need not.
CUresult old_write_value(CUstream stream, CUdeviceptr address, std::uint64_t value, unsigned flags,
                         CUstreamBatchMemOpType type) {
  constexpr unsigned kHint = CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER;
  return write_value(stream, address, value, flags & ~kHint, type);
}

struct Callback {
  CUstreamCallback function = nullptr;
  CUstream stream = nullptr;
  void* user = nullptr;
  std::shared_ptr<const ContextState> context;
};

void call(void* pointer) {
  const auto& callback = *static_cast<const Callback*>(pointer);
  callback.function(callback.stream, result_of(callback.context->domain->fault()), callback.user);
}

}  // namespace

CUresult cuStreamWaitValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return wait_value(stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_32);
}
CUresult cuStreamWaitValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return wait_value(stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_32);
}
CUresult cuStreamWaitValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return wait_value(stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_64);
}
CUresult cuStreamWaitValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return wait_value(stream, address, value, flags, CU_STREAM_MEM_OP_WAIT_VALUE_64);
}
CUresult cuStreamWriteValue32(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return old_write_value(stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_32);
}
CUresult cuStreamWriteValue32_v2(CUstream stream, CUdeviceptr address, cuuint32_t value, unsigned flags) {
  return write_value(stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_32);
}
CUresult cuStreamWriteValue64(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return old_write_value(stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_64);
}
CUresult cuStreamWriteValue64_v2(CUstream stream, CUdeviceptr address, cuuint64_t value, unsigned flags) {
  return write_value(stream, address, value, flags, CU_STREAM_MEM_OP_WRITE_VALUE_64);
}
CUresult cuStreamBatchMemOp(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                            unsigned flags) {
  return run(stream, {operations, count}, flags);
}
CUresult cuStreamBatchMemOp_v2(CUstream stream, unsigned count, CUstreamBatchMemOpParams* operations,
                               unsigned flags) {
  return run(stream, {operations, count}, flags);
}

CUresult cuStreamAddCallback(CUstream stream, CUstreamCallback function, void* user, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    require(function != nullptr && flags == 0);
    refuse_capturing(its_stream);
    const auto callback = std::make_shared<Callback>(Callback{function, stream, user, its_stream.context});
    engine::HostJob job;
    job.function = &call;
    job.user = callback.get();
    job.keep = callback;
    job.after_fault = true;
    driver.scheduler().submit(its_stream.stream, std::move(job));
  });
}

CUresult cuStreamAttachMemAsync(CUstream stream, CUdeviceptr pointer, std::size_t bytes, unsigned flags) {
  return entry([&] {
    Driver& driver = Driver::get();
    const StreamObject its_stream = driver.stream_of(stream);
    refuse_capturing(its_stream);
    require(flags == CU_MEM_ATTACH_GLOBAL || flags == CU_MEM_ATTACH_HOST || flags == CU_MEM_ATTACH_SINGLE);
    require(flags != CU_MEM_ATTACH_SINGLE ||
            its_stream.stream != its_stream.context->domain->legacy_stream());
    const auto allocation = driver.memory().find(reinterpret_cast<const void*>(pointer));
    require(allocation != nullptr && allocation->kind == engine::AllocationKind::managed);
    require(allocation->base == reinterpret_cast<const std::byte*>(pointer));
    require(bytes == 0 || bytes == allocation->bytes);
    // Host and device see managed memory at any time here: there is nothing to associate.
  });
}
