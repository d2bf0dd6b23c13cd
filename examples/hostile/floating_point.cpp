// SPDX-License-Identifier: Apache-2.0
// A host may compute in any floating-point state: kernels compute as PTX says, whether they are compiled or
// run under it, on the host's thread or on others, and the host's state is as it was, also after a fault.
#include <cfenv>
#include <cmath>
#include <cstdint>
#include <quern/quern.hpp>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

// Results whose bits depend on rounding, on denormal numbers and on traps. `thread` is 0 in all that are
// asked for.
constexpr const char* kSource = R"(
__device__ unsigned long long bits(float x) { return __float_as_uint(x); }
__device__ unsigned long long bits(double x) { return __double_as_longlong(x); }
extern "C" __global__ void compute(unsigned long long* out, float one, double two, float tenth) {
  unsigned long long results[] = {
    bits(one + 0x1.8p-24f), bits(one + 0x1p-25f), bits(one * 0x1p-100f * 0x1p-40f), bits(0x1p-140f * one * 0x1p100f),
    bits(two * 0x1p-1041), bits(two / 6.0), bits(sqrt(two)), bits((one - one) / (two - two) == 0.0 ? 1.0f : 0.0f),
    bits(tenth), bits(0.1f), bits(1.0 / 3.0), bits(1e-310 / 2), bits((float)(two / 20.0)), bits(two / (one - one))};
  for (int i = 0; i < sizeof results / sizeof *results; ++i)
    if (out[i] != results[i]) out[i] = results[i];
}
extern "C" __global__ void wild(int* to) { *to = 1; }
)";
// Rounded to nearest by hand (IEEE 754), in the order above.
const std::vector<std::uint64_t> kExpected = {
    0x3f800001,         0x3f800000,         0x200,      0x2b800000,        1ull << 34,
    0x3fd5555555555555, 0x3ff6a09e667f3bcd, 0,          0x3dcccccd,        0x3dcccccd,
    0x3fd5555555555555, 0x0000093445b87316, 0x3dcccccd, 0x7ff0000000000000};

constexpr const char* kPython = R"(
from numba import cuda
THIRD = 1.0 / 3.0
TINY = 0.5 * 2.0 ** -1060
@cuda.jit
def constants(out):
    out[0] = THIRD
    out[1] = TINY
)";

struct State {
  std::uint32_t mxcsr = 0;
  std::uint16_t control_word = 0;
  bool operator==(const State&) const = default;
};

State state() {
  State now;
  asm volatile("stmxcsr %0" : "=m"(now.mxcsr));
  asm volatile("fnstcw %0" : "=m"(now.control_word));
  now.mxcsr &= ~0x3fu;  // without the exceptions that happened
  return now;
}

void set(const State& state) {
  asm volatile("ldmxcsr %0" : : "m"(state.mxcsr));
  asm volatile("fnclex; fldcw %0" : : "m"(state.control_word));
}

constexpr State kDefault{0x1f80, 0x37f};
const State kStates[] = {
    {0x1f80 | 0x8040, 0x37f},            // -ffast-math: denormal results and operands are zero
    {0x1f80 | 0x2000, 0x37f | 0x400},    // fesetround(FE_DOWNWARD)
    {0x1f80 | 0x4000, 0x37f | 0x800},    // fesetround(FE_UPWARD)
    {0x1f80 | 0x6000, 0x37f | 0xc00},    // fesetround(FE_TOWARDZERO)
    {0x1f80 & ~0x0e80u, 0x37f & ~0x1d},  // feenableexcept: all but "inexact" and "denormal"
    {0x1f80, 0x007f},                    // x87 in single precision
};

/// Nothing of the host's own may compute under its state.
void check_kernels(const quern::Session& session, const quern::Module& module, const State& host) {
  for (const unsigned grid : {1u, 4096u}) {  // on this thread, and on others
    const quern::DeviceArray<std::uint64_t> out =
        session.to_device(std::vector<std::uint64_t>(kExpected.size(), 7));
    const quern::Kernel compute = module.kernel("compute");
    compute({.grid = grid, .block = 64})(out, 1.0f, 2.0, 0.1);
    session.synchronize();
    EXPECT(state() == host);
    EXPECT(out.copy_to_host() == kExpected);
  }
  const quern::DeviceArray<double> out = session.to_device(std::vector<double>(2));
  session.load_python(kPython).kernel("constants")({.grid = 1, .block = 1})(out);
  const std::vector<double> constants = out.copy_to_host();
  EXPECT(state() == host);
  set(kDefault);
  EXPECT(constants[0] == 0x1.5555555555555p-2 && constants[1] == 0x1p-1061);
}

void check_fault(const State& host) {
  const quern::Session session("cpu");
  const quern::Module module = session.load_cuda(kSource);
  set(host);
  bool told = false;
  try {
    module.kernel("wild")({.grid = 1, .block = 1})(reinterpret_cast<int*>(64));
    session.synchronize();
  } catch (const quern::DriverError& error) {
    told = error.code() == quern::ErrorCode::device_fault;
  }
  EXPECT(told);
  EXPECT(state() == host);
  set(kDefault);
}

}  // namespace

int main() {
  for (const State& host : kStates) {
    {
      const quern::Session session("cpu");
      const quern::Module module = session.load_cuda(kSource);
      set(host);  // after the kernels were compiled by NVRTC, before they are for this processor
      check_kernels(session, module, host);
    }
    {
      set(host);
      const quern::Session session("cpu");
      const std::string other = "\n// compiled under state " + std::to_string(&host - kStates);
      check_kernels(session, session.load_cuda(kSource + other), host);
    }
    check_fault(host);
  }
  std::puts("ok");
}
