// SPDX-License-Identifier: Apache-2.0
// The gate from exceptions to CUresult: nothing throws across C.
#pragma once

#include <cuda.h>

#include <new>
#include <string>
#include <type_traits>
#include <utility>

#include "cpu/engine/jobs.hpp"

namespace quern::cpu::device {

/// The CUresult that a cu* function returns. Thrown and caught inside this component only.
struct Failure {
  CUresult result;
};

/// The reason of this thread's last failure, which cuGetErrorString adds to the sentence of that result; "":
/// the result says all.
void note_reason(CUresult result, const std::string& reason) noexcept;

[[noreturn]] inline void fail(CUresult result, const std::string& reason = {}) {
  note_reason(result, reason);
  throw Failure{result};
}
inline void require(bool condition, CUresult otherwise = CUDA_ERROR_INVALID_VALUE) {
  if (!condition) fail(otherwise);
}

/// True in a child that was forked after cuInit: threads and locks did not come along.
bool forked() noexcept;

/// The body of a cu* function that needs no initialised driver, and so works in a forked child, too.
template <class Body>
CUresult entry_even_forked(Body&& body) noexcept {
  try {
    if constexpr (std::is_same_v<decltype(body()), CUresult>) {
      return body();
    } else {
      body();
      return CUDA_SUCCESS;
    }
  } catch (const Failure& failure) {
    return failure.result;
  } catch (const std::bad_alloc&) {
    note_reason(CUDA_ERROR_OUT_OF_MEMORY, {});
    return CUDA_ERROR_OUT_OF_MEMORY;
  } catch (...) {
    return CUDA_ERROR_UNKNOWN;
  }
}

/// The body of a cu* function that needs an initialised driver, and waits for nothing: host functions may
/// call it.
template <class Body>
CUresult entry_in_host_function(Body&& body) noexcept {
  return forked() ? CUDA_ERROR_NOT_INITIALIZED : entry_even_forked(std::forward<Body>(body));
}

/// The body of every other cu* function that needs an initialised driver. Host functions may not call it:
/// "attempting to use a CUDA API may result in CUDA_ERROR_NOT_PERMITTED" (cuda.h, cuLaunchHostFunc), as a
/// GPU's driver answers. Otherwise some calls would wait for their own stream.
template <class Body>
CUresult entry(Body&& body) noexcept {
  return engine::in_host_function() ? CUDA_ERROR_NOT_PERMITTED
                                    : entry_in_host_function(std::forward<Body>(body));
}

}  // namespace quern::cpu::device
