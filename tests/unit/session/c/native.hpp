// SPDX-License-Identifier: Apache-2.0
// For tests that make driver calls themselves.
#pragma once

#include <cuda.h>

#include "support.hpp"

namespace c {

/// Makes the session's context current for driver calls of the program.
struct Current {
  QuernSession session;
  explicit Current(QuernSession in) : session(in) {
    void* context = nullptr;
    QUERN_GOOD(quern_session_context(session, &context));
    REQUIRE(driver<decltype(cuCtxPushCurrent_v2)>(
                session, "cuCtxPushCurrent_v2")(static_cast<CUcontext>(context)) == CUDA_SUCCESS);
  }
  ~Current() {
    CUcontext popped = nullptr;
    driver<decltype(cuCtxPopCurrent_v2)>(session, "cuCtxPopCurrent_v2")(&popped);
  }
};

}  // namespace c
