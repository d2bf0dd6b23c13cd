// SPDX-License-Identifier: Apache-2.0
// The fault of a kernel names its launch, wherever the program meets the error.
#include <doctest/doctest.h>
#include <quern/quern.h>
#include <quern/quern.hpp>

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
  p.module.kernel("stop_here")({.grid = {3, 2}, .block = 64})(2);
  const DriverError error = error_of([&] { p.session.synchronize(); });
  INFO(error.what());
  CHECK(error.fault().kernel == "stop_here");
  REQUIRE(error.fault().block.has_value());
  CHECK(*error.fault().block == Place{2, 0, 0});
  CHECK(error.fault().thread == Place{3, 0, 0});
  CHECK(error.fault().access == MemoryAccess::none);
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
