// SPDX-License-Identifier: Apache-2.0
// The second of several kernels on several streams faults, and calls that have nothing to do with it meet the
// error: each of them names the kernel, the block, the thread, the line and the address.
#include <cstdint>
#include <cstdio>
#include <functional>
#include <quern/quern.hpp>
#include <string>
#include <vector>

#include "check.hpp"

namespace {

constexpr const char* kSource = R"(extern "C" __global__ void first(int* p) { p[threadIdx.x] = 1; }
template <class T> __global__ void second(T* p, long long far, int block, int thread) {
  int i = threadIdx.x;
  if (blockIdx.x == block && i == thread)
    p[i + far] = 1;
}
extern "C" __global__ void third(int* p) { p[threadIdx.x] = 3; }
)";
constexpr std::uint32_t kLine = 5;  // of the store
constexpr long long kFar = 1ll << 44;

using Index = quern::DeviceFault::Index;

quern::LoadOptions options() {
  quern::LoadOptions made;
  made.options = {"-lineinfo"};
  made.file_name = "blame.cu";
  return made;
}

struct Program {
  quern::Session session{"cpu"};
  quern::Module module = session.load_cuda(kSource, options());
  quern::DeviceArray<int> array = session.to_device(std::vector<int>(256));
  quern::Stream one = session.stream();
  quern::Stream two = session.stream();

  void launch() {
    module.kernel("first")({.grid = 4, .block = 64, .stream = one})(array);
    module.kernel("second<int>")({.grid = 6, .block = 64, .stream = one})(array, kFar, 4, 41);
    module.kernel("third")({.grid = 2, .block = 32, .stream = one})(array);
    module.kernel("first")({.grid = 1, .block = 32, .stream = two})(array);
  }
};

void check(const quern::DriverError& error, std::uint64_t base) {
  const quern::DeviceFault& fault = error.fault();
  EXPECT(error.code() == quern::ErrorCode::device_fault);
  EXPECT(fault.kernel == "second<int>");
  EXPECT((fault.grid == Index{6, 1, 1}) && (fault.block_dim == Index{64, 1, 1}));
  EXPECT((fault.block == Index{4, 0, 0}));
  EXPECT((fault.thread == Index{41, 0, 0}));
  EXPECT(fault.file.ends_with("blame.cu") && fault.line == kLine);
  EXPECT(fault.access == quern::MemoryAccess::store && fault.access_bytes == sizeof(int));
  EXPECT(fault.address == base + (static_cast<std::uint64_t>(kFar) + 41) * sizeof(int));
  EXPECT(std::string(error.what()).find("second<int>") != std::string::npos);
}

/// `later` meets the error, once or after some calls.
void meets(const std::function<void(Program&)>& later) {
  Program program;
  const auto base = reinterpret_cast<std::uint64_t>(program.array.data());
  bool met = false;
  try {
    program.launch();
    later(program);
  } catch (const quern::DriverError& error) {
    met = true;
    check(error, base);
  }
  EXPECT(met);
  // Objects of the lost context are refused in the same words.
  met = false;
  try {
    program.array.copy_to_host();
  } catch (const quern::DriverError& error) {
    met = true;
    check(error, base);
  }
  EXPECT(met);
}

}  // namespace

int main() {
  meets([](Program& p) { p.one.synchronize(); });
  meets([](Program& p) { p.session.synchronize(); });
  meets([](Program& p) { p.array.copy_to_host(); });
  meets([](Program& p) {
    for (;;) p.module.kernel("third")({.grid = 1, .block = 32, .stream = p.two})(p.array);
  });
  meets([](Program& p) {
    for (;;) p.session.to_device(std::vector<int>(16));
  });
  std::puts("ok");
}
