// SPDX-License-Identifier: Apache-2.0
#include "runtime/work/queued_work.hpp"

#include <new>
#include <utility>

#include "runtime/device/exit.hpp"

namespace quern::runtime {

void QueuedWork::after(CUstream stream, InFlight::Work work) {
  reap();  // a program that only launches calls no other function that reaps
  watch_exit_of_statics();
  CUresult result = CUDA_SUCCESS;
  try {
    result = in_flight_.add(context_.api(), stream, work);
    if (result == CUDA_SUCCESS) return;
  } catch (const std::bad_alloc&) {  // the work is done below, and only a fault is reported
  }
  // No callback will report that the stream has reached this point: wait now, before the kept objects are
  // released.
  const CUresult waited = context_.api().cuStreamSynchronize(stream);
  if (waited == CUDA_SUCCESS && work.run) work.run();
  context_.check(result, "cuLaunchHostFunc", "queue the end of a transfer");
  context_.check(waited, "cuStreamSynchronize", "finish the work of a stream");
}

void QueuedWork::call_after(CUstream stream, std::function<void()> function) {
  watch_exit_of_statics();
  InFlight::Work work{std::move(function), {}};
  context_.check(in_flight_.add(context_.api(), stream, work), "cuLaunchHostFunc",
                 "queue a callback on a stream");
}

}  // namespace quern::runtime
