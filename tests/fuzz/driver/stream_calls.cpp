// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

namespace quern::fuzz {

void Machine::call_stream() {
  const CUstream on = stream();
  CUevent event = nullptr;
  CUstream made = nullptr;
  switch (input_.below(21)) {
    case 0:
      return streams_.full() ? void() : streams_.add(new_stream());
    case 1:
      cuStreamDestroy_v2(any(streams_));
      return;
    case 2:
      return events_.add_if(cuEventCreate(&event, static_cast<unsigned>(input_.below(8))), event);
    case 3:
      cuEventDestroy_v2(any(events_));
      return;
    case 4:
      cuEventRecordWithFlags(any(events_), on, static_cast<unsigned>(input_.below(3)));
      return;
    case 5:
      cuStreamWaitEvent(on, any(events_), static_cast<unsigned>(input_.below(3)));
      return;
    case 6: {
      const CUDA_KERNEL_NODE_PARAMS params = kernel();
      cuLaunchKernel(params.func, params.gridDimX, 1, 1, params.blockDimX, 1, 1, 0, on, params.kernelParams,
                     nullptr);
      return;
    }
    case 7: {
      const CUdeviceptr to = address();
      cuMemsetD8Async(to, input_.byte() & 0x7f, bytes(), on);
      return;
    }
    case 8: {
      const CUdeviceptr to = address();
      const CUdeviceptr from = address();
      cuMemcpyDtoDAsync_v2(to, from, bytes(), on);
      return;
    }
    case 9:
      cuLaunchHostFunc(on, input_.below(8) == 0 ? nullptr : [](void*) {}, nullptr);
      return;
    case 10: {
      CUdeviceptr pointer = 0;
      return pointers_.add_if(cuMemAllocAsync(&pointer, bytes(), on), pointer);
    }
    case 11:
      cuMemFreeAsync(any(pointers_), on);
      return;
    case 12:
      cuStreamWriteValue32_v2(on, address(), input_.byte(), static_cast<unsigned>(input_.below(3)));
      return;
    case 13:
      cuStreamAddCallback(
          on, [](CUstream, CUresult, void*) {}, nullptr, static_cast<unsigned>(input_.below(2)));
      return;
    case 14: {
      CUstreamBatchMemOpParams operations[2]{};
      for (CUstreamBatchMemOpParams& each : operations) {
        each.operation = input_.below(2) == 0 ? CU_STREAM_MEM_OP_WRITE_VALUE_64 : CU_STREAM_MEM_OP_BARRIER;
        if (each.operation == CU_STREAM_MEM_OP_WRITE_VALUE_64) each.writeValue.address = address();
      }
      const bool given = !input_.rarely();
      cuStreamBatchMemOp_v2(on, given ? static_cast<unsigned>(input_.below(3)) : input_.word(),
                            given ? operations : nullptr, 0);
      return;
    }
    case 15: {
      CUstreamAttrValue value{};
      const auto id = static_cast<CUstreamAttrID>(input_.number());
      cuStreamGetAttribute(on, id, &value);
      value.priority = input_.number();
      cuStreamSetAttribute(on, id, input_.rarely() ? nullptr : &value);
      cuStreamCopyAttributes(stream(), on);
      return;
    }
    case 16: {
      unsigned long long id = 0;
      CUcontext context = nullptr;
      int priority = 0;
      unsigned flags = 0;
      cuStreamGetId(on, &id);
      cuStreamGetCtx(on, &context);
      cuStreamGetPriority(on, &priority);
      cuStreamGetFlags(on, input_.rarely() ? nullptr : &flags);
      return;
    }
    case 17:
      cuStreamAttachMemAsync(on, address(), bytes(), static_cast<unsigned>(input_.below(6)));
      return;
    case 18: {
      float milliseconds = 0;
      const CUevent from = any(events_);
      cuEventElapsedTime_v2(&milliseconds, from, any(events_));
      return;
    }
    case 19:
      if (streams_.full()) return;
      streams_.add_if(
          cuStreamCreateWithPriority(&made, static_cast<unsigned>(input_.below(3)), input_.number()), made);
      return;
    default:
      cuStreamQuery(on);
  }
}

void Machine::call_context() {
  CUcontext context = nullptr;
  std::size_t limit = 0;
  int low = 0, high = 0;
  unsigned flags = 0;
  switch (input_.below(15)) {
    case 0:
      if (contexts_.full(3)) return;
      contexts_.add_if(
          cuCtxCreate_v4(&context, nullptr, static_cast<unsigned>(input_.below(16)), input_.number()),
          context);
      return;
    case 1:
      cuCtxDestroy_v2(any(contexts_));
      return;
    case 2:
      cuCtxPushCurrent_v2(input_.below(2) == 0 ? context_ : any(contexts_));
      return;
    case 3:
      cuCtxPopCurrent_v2(input_.rarely() ? nullptr : &context);
      return;
    case 4:
    case 5:
      cuCtxSetCurrent(input_.below(4) != 0 ? context_ : any(contexts_));
      return;
    case 6:
      cuCtxSynchronize();
      return;
    case 7:
      cuCtxGetLimit(&limit, static_cast<CUlimit>(input_.number()));
      return;
    case 8: {
      const auto which = static_cast<CUlimit>(input_.number());
      cuCtxSetLimit(which, bytes());
      return;
    }
    case 9: {
      const CUcontext of = any(contexts_);
      cuCtxRecordEvent(of, any(events_));
      cuCtxWaitEvent(of, any(events_));
      return;
    }
    case 10:
      cuCtxSetFlags(static_cast<unsigned>(input_.below(32)));
      cuCtxGetFlags(&flags);
      return;
    case 11:
      cuCtxGetStreamPriorityRange(&low, input_.rarely() ? nullptr : &high);
      cuCtxGetApiVersion(any(contexts_), &flags);
      return;
    case 12: {
      const CUcontext of = input_.below(2) == 0 ? context_ : any(contexts_);
      cuCtxEnablePeerAccess(of, static_cast<unsigned>(input_.below(2)));
      cuCtxDisablePeerAccess(of);
      return;
    }
    case 13: {
      unsigned long long id = 0;
      cuCtxGetId(any(contexts_), &id);
      cuDevicePrimaryCtxGetState(input_.number(), &flags, &low);
      return;
    }
    default: {
      const CUdevice device = input_.rarely() ? input_.number() : 0;
      if (cuDevicePrimaryCtxRetain(&context, device) == CUDA_SUCCESS) cuDevicePrimaryCtxRelease_v2(device);
    }
  }
}

}  // namespace quern::fuzz
