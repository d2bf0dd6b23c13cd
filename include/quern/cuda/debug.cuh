// SPDX-License-Identifier: Apache-2.0
// component: compile
// Checks of debug builds. The first failure of a launch is kept for the host, which reads it behind the
// launch; its thread ends. src/abi/failure.hpp has the host's side of `failure`.
#pragma once

namespace quern {
namespace debug {

struct failure {
  unsigned taken;  // 0: none yet
  int line;
  unsigned block[3];
  unsigned thread[3];
  int axis;  // of an index outside its array; -1: something else, and `text` says what
  int ndim;
  long long index;
  long long extents[8];
  char text[256];
};

}  // namespace debug
}  // namespace quern

extern "C" {
__device__ quern::debug::failure quern_failure;
}

namespace quern {
namespace debug {

/// True for the one thread whose failure is kept.
static __device__ __noinline__ bool take(int line, int axis) {
  if (atomicCAS(&quern_failure.taken, 0u, 1u) != 0u) return false;
  quern_failure.line = line;
  quern_failure.block[0] = blockIdx.x;
  quern_failure.block[1] = blockIdx.y;
  quern_failure.block[2] = blockIdx.z;
  quern_failure.thread[0] = threadIdx.x;
  quern_failure.thread[1] = threadIdx.y;
  quern_failure.thread[2] = threadIdx.z;
  quern_failure.axis = axis;
  return true;
}

__device__ __forceinline__ void end_thread() { asm volatile("exit;"); }

/// An exception: "ValueError: x must be positive".
template <int Count>
__device__ __forceinline__ void raise(int line, const char (&text)[Count]) {
  if (take(line, -1)) {
    const int most = Count < 256 ? Count : 255;
    for (int i = 0; i < most; ++i) quern_failure.text[i] = text[i];
  }
  end_thread();
}

/// An index of dimension Axis of an array with these extents; a negative one counts from the end.
template <int Axis, class... Extents>
__device__ __forceinline__ long long index(long long at, int line, Extents... extents) {
  const long long all[] = {static_cast<long long>(extents)...};
  const long long wrapped = at < 0 ? at + all[Axis] : at;
  if (wrapped >= 0 && wrapped < all[Axis]) return wrapped;
  if (take(line, Axis)) {
    constexpr int kMost = 8;
    quern_failure.ndim = sizeof...(Extents);
    quern_failure.index = at;
    for (int dim = 0; dim < static_cast<int>(sizeof...(Extents)) && dim < kMost; ++dim)
      quern_failure.extents[dim] = all[dim];
  }
  end_thread();
  return 0;
}

/// A divisor, which must not be 0.
template <class T>
__device__ __forceinline__ T divisor(T value, int line) {
  if (value == T(0)) raise(line, "ZeroDivisionError: division by zero");
  return value;
}

}  // namespace debug
}  // namespace quern
