// SPDX-License-Identifier: Apache-2.0
// Each thread's own default streams, and which stream a null handle means.
#pragma once

#include <cuda.h>

#include <memory>

#include "cpu/device/objects.hpp"
#include "cpu/engine/scheduler.hpp"

namespace quern::cpu::device {

/// The stream CU_STREAM_PER_THREAD of this thread in that context; made by the first call.
std::shared_ptr<engine::Stream> thread_stream(engine::Scheduler& scheduler,
                                              const std::shared_ptr<ContextState>& context);

/// The stream that a null handle means in the call that this thread is in: CU_STREAM_LEGACY, or within a
/// PerThreadCall CU_STREAM_PER_THREAD.
CUstream default_stream() noexcept;

/// True for the handles of streams that every context has: null, CU_STREAM_LEGACY, CU_STREAM_PER_THREAD.
inline bool is_default_stream(CUstream stream) noexcept {
  return stream == nullptr || stream == CU_STREAM_LEGACY || stream == CU_STREAM_PER_THREAD;
}

/// A scope: this thread is in a function of the per-thread variants (cu..._ptds, cu..._ptsz).
class PerThreadCall {
 public:
  PerThreadCall() noexcept;
  ~PerThreadCall();
  PerThreadCall(const PerThreadCall&) = delete;
  PerThreadCall& operator=(const PerThreadCall&) = delete;
};

}  // namespace quern::cpu::device
