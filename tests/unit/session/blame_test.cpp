// SPDX-License-Identifier: Apache-2.0
// The error for a kernel's fault names the launch, wherever the program receives the error.
#include <doctest/doctest.h>
#include <quern/quern.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <functional>
#include <string>
#include <vector>

#include "../support/messages.hpp"

using namespace quern;
using quern::test::holds;

namespace {

using Place = DeviceFault::Index;

constexpr const char* kSource = R"(extern "C" __global__ void fine(int* p) { p[threadIdx.x] = 1; }
template <class T> __global__ void reach(T* p, long long offset, int block) {
  if (blockIdx.x == block && threadIdx.x == 5)
    p[offset] = 1;
}
extern "C" __global__ void stop_here(int block) {
  if (blockIdx.x == block && threadIdx.x == 3) __trap();
}
)";

constexpr long long kFarOutside = 1ll << 45;

DriverError error_of(const std::function<void()>& call) {
  try {
    call();
  } catch (const DriverError& error) {
    return error;
  }
  FAIL("no DriverError came");
  throw 0;
}

bool ready() {
  static const bool found = [] { return Session::try_open({"cpu"}).has_value() && doctor().ready; }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

struct Program {
  Session session{"cpu"};
  Module module = session.load_cuda(kSource, {.name_expressions = {"reach<int>"}, .file_name = "blame.cu"});
  DeviceArray<int> array = session.to_device(std::vector<int>(64));
};

void check_reach(const DriverError& error) {
  INFO(error.what());
  CHECK(error.code() == ErrorCode::device_fault);
  const DeviceFault& fault = error.fault();
  CHECK(fault.known());
  CHECK(fault.kernel == "reach<int>");
  CHECK(fault.grid == Place{7, 1, 1});
  CHECK(fault.block_dim == Place{32, 1, 1});
  REQUIRE(fault.block.has_value());
  CHECK(*fault.block == Place{4, 0, 0});
  CHECK(holds(error.what(), "by kernel reach<int> (grid (7,1,1), block (32,1,1)) in block (4,0,0)"));
}

}  // namespace

TEST_CASE("whichever call meets a fault names the launch that met it, not its own") {
  if (!ready()) return;
  Program p;
  const Stream one = p.session.stream();
  const Kernel fine = p.module.kernel("fine");
  const Kernel reach = p.module.kernel("reach<int>");
  fine({.grid = 1, .block = 32, .stream = one})(p.array);
  reach({.grid = 7, .block = 32, .stream = one})(p.array, kFarOutside, 4);
  SUBCASE("the stream's synchronisation") {
    check_reach(error_of([&] { one.synchronize(); }));
  }
  SUBCASE("the session's") {
    check_reach(error_of([&] { p.session.synchronize(); }));
  }
  SUBCASE("a copy") {
    check_reach(error_of([&] { p.array.copy_to_host(); }));
  }
  SUBCASE("a launch of another kernel") {
    check_reach(error_of([&] {
      for (;;) fine({.grid = 2, .block = 64, .stream = one})(p.array);
    }));
  }
  SUBCASE("an allocation") {
    check_reach(error_of([&] {
      for (;;) p.session.allocate(256);
    }));
  }
  SUBCASE("and every later use of what the lost context held") {
    check_reach(error_of([&] { p.session.synchronize(); }));
    const Session another("cpu");
    const DriverError later = error_of([&] { p.array.copy_to_host(); });
    CHECK(later.call().empty());
    check_reach(later);
  }
}

TEST_CASE("a load that the processor does in the instruction of a store is the access that is reported") {
  if (!ready()) return;
  for (const unsigned block : {2u, 8u, 32u, 64u}) {
    Session session("cpu");
    const Module module = session.load_cuda(
        "extern \"C\" __global__ void k(int* p, int* o, long long off) {\n  int v = p[off];\n"
        "  o[threadIdx.x] = v;\n}\n");
    const DeviceArray<int> array = session.to_device(std::vector<int>(64));
    module.kernel("k")({.grid = 1, .block = block})(array, array, 1ll << 40);
    const DriverError error = error_of([&] { session.synchronize(); });
    INFO(block << ": " << error.what());
    CHECK(error.fault().access == MemoryAccess::load);
    CHECK(error.fault().access_bytes == 4);
  }
}

TEST_CASE("an error that is no fault blames nobody") {
  if (!ready()) return;
  const Session session("cpu");
  const DriverError error = error_of([&] { session.allocate(std::size_t{1} << 50); });
  CHECK_FALSE(error.fault().known());
  CHECK_FALSE(error.fault().block.has_value());
  CHECK(error.fault().line == 0);
}

TEST_CASE("a trap names its thread") {
  if (!ready()) return;
  Program p;
  p.module.kernel("stop_here")({.grid = 3, .block = 64})(2);
  const DriverError error = error_of([&] { p.session.synchronize(); });
  INFO(error.what());
  CHECK(error.fault().kernel == "stop_here");
  REQUIRE(error.fault().block.has_value());
  CHECK(*error.fault().block == Place{2, 0, 0});
  CHECK(error.fault().thread == Place{3, 0, 0});
  CHECK(error.fault().access == MemoryAccess::none);
}

namespace {

/// A kernel in which one thread of block 1 faults, in the line that ends in "// here".
struct Case {
  const char* name;
  const char* body;  ///< of a kernel (int* p, const int* __restrict__ index, long long off), `i` the thread
  unsigned block = 96;
  unsigned thread = 37;
  MemoryAccess access = MemoryAccess::load;
  unsigned bytes = 4;
  const char* space = "global";
  bool exact = true;  ///< true: the report names the thread; false: the thread's warp
};

constexpr Case kCases[] = {
    {"uniform", "if (blockIdx.x == 1 && i == 37)\n p[off] = 1; // here\n", 96, 37, MemoryAccess::store},
    {"consecutive", "int v = 0;\n if (blockIdx.x == 1 && i == 37)\n v = p[i + off]; // here\n p[i] = v;\n"},
    {"all of a warp", "if (blockIdx.x == 1 && i >= 64)\n p[i + off] = i; // here\n", 96, 64,
     MemoryAccess::store},
    {"strided", "int v = 0;\n if (blockIdx.x == 1 && i == 37)\n v = p[3 * i + off]; // here\n p[i] = v;\n"},
    {"backwards", "if (blockIdx.x == 1 && i == 37)\n p[off - i] = 2; // here\n", 96, 37, MemoryAccess::store},
    {"gather",
     "long long at = index[i] && blockIdx.x == 1 ? off : i;\n"
     "int v = p[at]; // here\n p[i] = v;\n"},
    {"scatter",
     "long long at = index[i] && blockIdx.x == 1 ? off : i;\n"
     "p[at] = 3; // here\n",
     96, 37, MemoryAccess::store},
    {"bytes",
     "long long at = index[i] && blockIdx.x == 1 ? off : i;\n"
     "char* q = (char*)p;\n q[at] = 3; // here\n",
     96, 37, MemoryAccess::store, 1},
    {"atomic",
     "long long at = index[i] && blockIdx.x == 1 ? off : i;\n"
     "int old = atomicAdd(p + at, 1); // here\n p[i] = old;\n",
     96, 37, MemoryAccess::atomic},
    {"compare and swap of 8 bytes",
     "auto* q = (unsigned long long*)p + (index[i] && blockIdx.x == 1 ? off : i);\n"
     "auto old = atomicCAS(q, 1ull, 2ull); // here\n p[i] = (int)old;\n",
     32, 11, MemoryAccess::atomic, 8},
    {"vector of 4",
     "float4 v = make_float4(0, 0, 0, 0);\n if (blockIdx.x == 1 && i == 37)\n"
     "v = ((float4*)p)[off]; // here\n p[i] = (int)(v.x + v.y + v.z + v.w);\n",
     96, 37, MemoryAccess::load, 16},
    {"8 bytes", "double* q = (double*)p;\n if (blockIdx.x == 1 && i == 5)\n q[i + off] = 1; // here\n", 32, 5,
     MemoryAccess::store, 8},
    {"shared memory",
     "extern __shared__ int tile[];\n tile[i] = i;\n __syncthreads();\n"
     "int at = index[i] && blockIdx.x == 1 ? (int)(off >> 20) : i;\n"
     "int v = tile[at]; // here\n p[i] = v;\n",
     96, 37, MemoryAccess::load, 4, "shared"},
    {"generic addresses",
     "__shared__ int tile[96];\n tile[i] = i;\n"
     "int* q = i & 1 ? tile + i : p + i;\n if (blockIdx.x == 1 && i == 37) q = p + off;\n"
     "int v = *(volatile int*)q; // here\n p[i] = v;\n",
     96, 37, MemoryAccess::load, 4, "generic"},
    {"behind a barrier",
     "p[i] = 1;\n __syncthreads();\n if (blockIdx.x == 1 && i == 70)\n"
     "p[i + off] = 4; // here\n __syncthreads();\n p[i] = 2;\n",
     96, 70, MemoryAccess::store},
    {"in a loop",
     "int sum = 0;\n for (int k = 0; k < 100; ++k)\n"
     "sum += p[k == 50 + i && i == 20 && blockIdx.x == 1 ? off : i]; // here\n p[i] = sum;\n",
     32, 20},
    {"as an operand",
     "float* q = (float*)p;\n float f = q[i];\n if (blockIdx.x == 1 && i == 37)\n"
     "f = f * 2 + q[i + off] * 3; // here\n q[i] = f;\n"},
    {"a block of two dimensions' thread", "if (blockIdx.x == 1 && i == 37)\n p[off + i] = 1; // here\n", 64,
     37, MemoryAccess::store},
    {"a condition that other lanes decide",
     "if (__ballot_sync(~0u, index[i]) && i % 32 == 5 && i > 32 && i < 64 && blockIdx.x == 1)\n"
     "p[off] = 1; // here\n",
     96, 37, MemoryAccess::store, 4, "global", false},
    {"a called function", "if (blockIdx.x == 1 && i == 37)\n p[i] = deep(p, off, index[0]);\n", 96, 37,
     MemoryAccess::load, 4, "global", false},
};

std::string source_of(const Case& each) {
  return std::string(
             "__device__ __noinline__ int deep(int* p, long long off, int n) {\n"
             "  if (n > 3) return deep(p, off, n - 1) + deep(p, off + 1, n - 2);\n"
             "  return p[off]; // ") +
         (std::string(each.name) == "a called function" ? "here" : "there") +
         "\n}\nextern \"C\" __global__ void one_wrong(int* p, const int* __restrict__ index, long long off) "
         "{\n"
         "int i = threadIdx.x;\n" +
         each.body + "}\n";
}

std::uint32_t line_of(const std::string& source, const std::string& mark) {
  return static_cast<std::uint32_t>(std::ranges::count(source.substr(0, source.find(mark)), '\n')) + 1;
}

}  // namespace

TEST_CASE("an access outside names its thread, its line, its address and what it was") {
  if (!ready()) return;
  for (const Case& each : kCases) {
    CAPTURE(std::string(each.name));
    const std::string source = source_of(each);
    const Session session("cpu");
    const Module module = session.load_cuda(source, {.options = {"-lineinfo"}, .file_name = "wrong.cu"});
    const auto p = session.to_device(std::vector<int>(4096));
    std::vector<int> index(each.block);
    index[each.thread] = 1;
    if (std::string(each.name) == "a called function") index[0] = 6;
    const auto marks = session.to_device(index);
    module.kernel("one_wrong")({.grid = 3, .block = each.block, .shared_bytes = 1024})(p, marks, kFarOutside);
    const DriverError error = error_of([&] { session.synchronize(); });
    INFO(error.what());
    const DeviceFault& fault = error.fault();
    CHECK(fault.kernel == "one_wrong");
    CHECK(fault.block == Place{1, 0, 0});
    CHECK(fault.line == line_of(source, "// here"));
    CHECK(fault.file.ends_with("wrong.cu"));
    CHECK(fault.access == each.access);
    CHECK(fault.access_bytes == each.bytes);
    CHECK(fault.space == each.space);
    if (each.exact) {
      CHECK(fault.thread == Place{each.thread, 0, 0});
      CHECK(fault.address.has_value());
    } else {
      if (fault.thread) CHECK(*fault.thread == Place{each.thread, 0, 0});
      if (fault.threads) {
        CHECK(fault.threads->first[0] <= each.thread);
        CHECK(fault.threads->second[0] >= each.thread);
      }
    }
  }
}

TEST_CASE("the address is the one that the kernel computed") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_cuda(
      "extern \"C\" __global__ void far(int* p, long long off) { if (threadIdx.x == 9) p[threadIdx.x + off] "
      "= 1; }");
  const auto p = session.to_device(std::vector<int>(64));
  module.kernel("far")({.grid = 1, .block = 64})(p, kFarOutside);
  const DriverError error = error_of([&] { session.synchronize(); });
  INFO(error.what());
  const auto base = reinterpret_cast<std::uint64_t>(p.data());
  CHECK(error.fault().address == base + 4 * (static_cast<std::uint64_t>(kFarOutside) + 9));
}

TEST_CASE("a misaligned access names its thread") {
  if (!ready()) return;
  const Session session("cpu");
  const std::string source =
      "extern \"C\" __global__ void odd(char* p, int which) {\n"
      "  int i = threadIdx.x;\n"
      "  *(long long*)(p + 8 * i + (i == which ? 4 : 0)) = i;  // here\n}\n";
  const Module module = session.load_cuda(source, {.options = {"-lineinfo"}, .file_name = "odd.cu"});
  const auto p = session.to_device(std::vector<signed char>(1024));
  module.kernel("odd")({.grid = 1, .block = 64})(p, 43);
  const DriverError error = error_of([&] { session.synchronize(); });
  INFO(error.what());
  CHECK(error.result_name() == "CUDA_ERROR_MISALIGNED_ADDRESS");
  CHECK(error.fault().thread == Place{43, 0, 0});
  CHECK(error.fault().line == 3);
  CHECK(error.fault().address == reinterpret_cast<std::uint64_t>(p.data()) + 8 * 43 + 4);
}

TEST_CASE("a thread whose index came from memory that its block wrote is not guessed") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_cuda(
      "extern \"C\" __global__ void moved(int* p, long long off) {\n"
      "  int i = threadIdx.x;\n"
      "  long long at = p[i] == 7 ? off : i;\n"
      "  p[i] = i;\n"
      "  p[at + 1] = 1;\n}\n",
      {.options = {"-lineinfo"}});
  std::vector<int> values(64);
  values[5] = 7;
  const auto p = session.to_device(values);
  module.kernel("moved")({.grid = 1, .block = 32})(p, kFarOutside);
  const DriverError error = error_of([&] { session.synchronize(); });
  INFO(error.what());
  CHECK_FALSE(error.fault().thread.has_value());
  REQUIRE(error.fault().threads.has_value());
  CHECK(error.fault().threads->first == Place{0, 0, 0});
  CHECK(error.fault().threads->second == Place{31, 0, 0});
  CHECK(error.fault().line == 5);
}

TEST_CASE("Kernel Python's faults name its own lines") {
  if (!ready()) return;
  const Session session("cpu");
  const Module module = session.load_python(R"(from numba import cuda

@cuda.jit
def shift(x, n):
    i = cuda.grid(1)
    y = x[i]
    if i == 45:
        x[i + n] = y + 1
)",
                                            {.file_name = "shift.py"});
  const auto x = session.to_device(std::vector<float>(64));
  module.kernel("shift")({.grid = 2, .block = 32})(x, kFarOutside);
  const DriverError error = error_of([&] { session.synchronize(); });
  INFO(error.what());
  const DeviceFault& fault = error.fault();
  CHECK(fault.kernel == "shift");
  CHECK(fault.block == Place{1, 0, 0});
  CHECK(fault.thread == Place{13, 0, 0});
  CHECK(fault.line == 8);
  CHECK(fault.file.ends_with("shift.py"));
  CHECK(fault.access == MemoryAccess::store);
}

TEST_CASE("C programs read the same fields") {
  if (!ready()) return;
  QuernFault fault{};
  fault.struct_bytes = sizeof fault;
  QuernSession session{};
  REQUIRE(quern_session_open("cpu", &session) == QUERN_OK);
  QuernModule module{};
  CHECK(quern_load_cuda(session, "nonsense", &module) == QUERN_COMPILE);
  CHECK(quern_last_fault(&fault) == QUERN_NOT_FOUND);
  REQUIRE(quern_load_cuda(session, kSource, &module) == QUERN_OK);
  QuernKernel kernel{};
  REQUIRE(quern_kernel(module, "stop_here", &kernel) == QUERN_OK);
  const QuernLaunch launch{sizeof launch, 0, {5, 1, 1}, {32, 1, 1}, 0, {}};
  const std::int32_t block = 3;
  const QuernArgument argument{QUERN_ARGUMENT_SCALAR, QUERN_INT32, {}, &block, 0};
  REQUIRE(quern_launch(kernel, &launch, &argument, 1) == QUERN_OK);
  REQUIRE(quern_session_synchronize(session) == QUERN_DEVICE_FAULT);
  REQUIRE(quern_last_fault(&fault) == QUERN_OK);
  CHECK(std::string(fault.kernel) == "stop_here");
  CHECK((fault.known & QUERN_FAULT_BLOCK) != 0);
  CHECK(fault.block[0] == 3);
  CHECK(fault.grid[0] == 5);
  CHECK(fault.block_dim[0] == 32);
  CHECK((fault.known & QUERN_FAULT_THREAD) != 0);
  CHECK(fault.first_thread[0] == 3);
  CHECK(fault.access == QUERN_ACCESS_NONE);
  CHECK(std::string(fault.space).empty());
  for (const std::uint64_t handle : {kernel.id, module.id, session.id}) quern_release(handle);
  fault.struct_bytes = 3;
  CHECK(quern_last_fault(&fault) == QUERN_USAGE);
  CHECK(quern_last_fault(nullptr) == QUERN_USAGE);
}
