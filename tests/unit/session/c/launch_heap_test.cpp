// SPDX-License-Identifier: Apache-2.0
// A launch through the C functions needs no heap memory after the first one. The kernels do run; only the
// device's own allocations inside the driver's call are not counted.
#include <atomic>
#include <cstdlib>
#include <functional>
#include <new>

#include "runtime/device/driver.hpp"
#include "session/backends.hpp"
#include "session/state.hpp"
#include "support.hpp"

namespace {

thread_local bool counted = false;
thread_local std::uint64_t allocations = 0;

void* allocate(std::size_t bytes, std::size_t alignment) noexcept {
  if (counted) ++allocations;
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  return std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
}
void* allocate_or_throw(std::size_t bytes, std::size_t alignment) {
  void* const memory = allocate(bytes, alignment);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) { return allocate_or_throw(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__); }
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return allocate_or_throw(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

using namespace c;

namespace {

quern::driver::DriverTable real;
std::atomic<int> launches;

CUresult launch_uncounted(CUfunction function, unsigned gx, unsigned gy, unsigned gz, unsigned bx,
                          unsigned by, unsigned bz, unsigned shared, CUstream stream, void** parameters,
                          void** extra) {
  const bool before = std::exchange(counted, false);
  const CUresult result =
      real.cuLaunchKernel(function, gx, gy, gz, bx, by, bz, shared, stream, parameters, extra);
  counted = before;
  ++launches;
  return result;
}

/// A session on the CPU device whose launches do not count allocations.
Session watched_session() {
  const auto driver = quern::session::open_cpu_driver();
  REQUIRE(driver);
  auto watched = std::make_shared<quern::runtime::Driver>(**driver);
  real = watched->api;
  watched->api.cuLaunchKernel = launch_uncounted;
  Session session;
  *session.place() = {quern::session::c_handle(
      quern::session::SessionAccess::open(quern::runtime::open_device(std::move(watched), 0)))};
  return session;
}

/// The allocations of this thread in the second and third of three calls.
std::uint64_t allocations_of(const std::function<void()>& action) {
  action();
  allocations = 0;
  counted = true;
  action();
  action();
  counted = false;
  return allocations;
}

constexpr const char* kPtx = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry add(.param .u64 x, .param .u32 n, .param .f32 by)
{
  .reg .b32 %r<3>; .reg .f32 %f<3>; .reg .b64 %d<3>; .reg .pred %p;
  mov.u32 %r1, %tid.x; ld.param.u32 %r2, [n]; setp.ge.u32 %p, %r1, %r2;
  @%p bra done;
  ld.param.u64 %d1, [x]; ld.param.f32 %f2, [by]; mul.wide.u32 %d2, %r1, 4; add.u64 %d1, %d1, %d2;
  ld.global.f32 %f1, [%d1]; add.f32 %f1, %f1, %f2; st.global.f32 [%d1], %f1;
done:
  ret;
}
.visible .entry corner(.param .align 8 .b8 a[40], .param .align 8 .b8 pair[16], .param .u64 out)
{
  .reg .f32 %f<4>; .reg .b64 %d<3>;
  ld.param.u64 %d1, [a]; ld.global.f32 %f1, [%d1]; ld.param.f32 %f2, [pair+8]; add.f32 %f3, %f1, %f2;
  ld.param.u64 %d2, [out]; st.global.f32 [%d2], %f3; ret;
}
)";

}  // namespace

TEST_CASE("a launch after the first takes no heap memory, whatever kinds of arguments it has") {
  const Session session = watched_session();
  const Kernel add = kernel_of(session, kPtx, "add"), corner = kernel_of(session, kPtx, "corner");
  const Array x = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2, 3});
  const Array matrix = new_array(session, QUERN_FLOAT32, {2, 3});
  const float six[] = {6, 0, 0, 0, 0, 0};
  QUERN_GOOD(quern_array_from_host(matrix, six, sizeof six));
  Stream stream, legacy;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  QUERN_GOOD(quern_stream_legacy_default(session, legacy.place()));
  const std::int64_t n = 3;
  const double by = 1;  // converted to the parameter's types
  const QuernArgument array = array_argument(x), count = scalar_argument(QUERN_INT64, &n),
                      amount = scalar_argument(QUERN_FLOAT64, &by);
  QuernArgument address{};
  address.kind = QUERN_ARGUMENT_ADDRESS;
  address.data = description_of(x).data;
  launches = 0;
  QuernStatus status = QUERN_OK;
  for (const QuernStream on : {QuernStream{0}, QuernStream(stream), QuernStream(legacy)}) {
    const QuernLaunch config = launch_of(1, 32, on);
    const QuernArgument by_array[] = {array, count, amount}, by_address[] = {address, count, amount};
    CHECK(allocations_of([&] { status = quern_launch(add, &config, by_array, 3); }) == 0);
    CHECK(status == QUERN_OK);
    CHECK(allocations_of([&] { status = quern_launch(add, &config, by_address, 3); }) == 0);
    CHECK(status == QUERN_OK);
    CHECK(allocations_of([&] { status = quern_launch_for_all(add, 3, &config, by_array, 3); }) == 0);
    CHECK(status == QUERN_OK);
    QUERN_GOOD(quern_session_synchronize(session));
  }
  CHECK(launches == 27);
  CHECK(values_of<float>(x, 3) == std::vector<float>{28, 29, 30});

  struct {
    std::uint64_t first = 0;
    float second = 4;
  } pair;
  QuernArgument value{};
  value.kind = QUERN_ARGUMENT_STRUCT;
  value.data = &pair;
  value.bytes = sizeof pair;
  const QuernArgument arguments[] = {array_argument(matrix), value, array};
  const QuernLaunch config = launch_of(1, 1);
  CHECK(allocations_of([&] { status = quern_launch(corner, &config, arguments, 3); }) == 0);
  CHECK(status == QUERN_OK);
  CHECK(values_of<float>(x, 1 + 2)[0] == 10);
}

TEST_CASE("a launch with a smart array that is on the device takes no heap memory") {
  const Session session = watched_session();
  const Kernel add = kernel_of(session, kPtx, "add");
  float values[] = {1, 2, 3};
  const Host host(values, QUERN_FLOAT32, {3});
  SmartArray smart;
  QUERN_GOOD(quern_smart_from_host(session, &host.array, 1, smart.place()));
  const std::int64_t n = 3;
  const double by = 1;
  QuernArgument argument{};
  argument.kind = QUERN_ARGUMENT_SMART;
  argument.array.id = smart.id();
  const QuernArgument arguments[] = {argument, scalar_argument(QUERN_INT64, &n),
                                     scalar_argument(QUERN_FLOAT64, &by)};
  const QuernLaunch config = launch_of(1, 32);
  QuernStatus status = QUERN_OK;
  CHECK(allocations_of([&] { status = quern_launch(add, &config, arguments, 3); }) == 0);
  CHECK(status == QUERN_OK);
  void* data = nullptr;
  QUERN_GOOD(quern_smart_host(smart, &data));
  CHECK(static_cast<const float*>(data)[2] == 6);
}

TEST_CASE("a launch of Kernel Python after the first of its types takes no heap memory") {
  const Session session = watched_session();
  const Kernel kernel = python_kernel(session, R"(
from numba import cuda

@cuda.jit
def mix(a, b, c, d, e, by, count):
    i = cuda.grid(1)
    if i < count:
        a[i] += (b[i] + c[i] + d[i] + e[0, i]) * by
)",
                                      "mix");
  const Array x = to_device(session, QUERN_FLOAT64, std::vector<double>{1, 1});
  const Array flat = to_device(session, QUERN_FLOAT32, std::vector<float>{2, 3});
  const std::int64_t row[] = {1, 2};
  Array matrix;
  QUERN_GOOD(quern_array_reshape(flat, 2, row, QUERN_ORDER_C, matrix.place()));
  const std::int64_t by = 2, count = 2;
  const QuernArgument arguments[] = {array_argument(x),
                                     array_argument(flat),
                                     array_argument(flat),
                                     array_argument(flat),
                                     array_argument(matrix),
                                     scalar_argument(QUERN_INT64, &by),
                                     scalar_argument(QUERN_INT64, &count)};
  const QuernLaunch config = launch_of(1, 32);
  QuernStatus status = QUERN_OK;
  CHECK(allocations_of([&] { status = quern_launch(kernel, &config, arguments, 7); }) == 0);
  CHECK(status == QUERN_OK);
  CHECK(values_of<double>(x, 2) == std::vector<double>{1 + 3 * 16, 1 + 3 * 24});
}

TEST_CASE("a launch with as many arguments as go on the stack takes no heap memory") {
  const Session session = watched_session();
  constexpr int kCount = 48;
  std::string ptx = ".version 6.0\n.target sm_50\n.address_size 64\n.visible .entry many(.param .u64 p0";
  for (int i = 1; i < kCount; ++i) ptx += ", .param .u64 p" + std::to_string(i);
  ptx += ")\n{\n.reg .b64 %d; .reg .b32 %r;\nld.param.u64 %d, [p" + std::to_string(kCount - 1) +
         "]; mov.u32 %r, 9; st.global.u32 [%d], %r; ret;\n}\n";
  const Kernel many = kernel_of(session, ptx.c_str(), "many");
  const Array out = to_device(session, QUERN_INT32, std::vector<int>{0});
  const std::vector<QuernArgument> arguments(kCount, array_argument(out));
  const QuernLaunch config = launch_of(1, 1);
  QuernStatus status = QUERN_OK;
  CHECK(allocations_of([&] { status = quern_launch(many, &config, arguments.data(), kCount); }) == 0);
  CHECK(status == QUERN_OK);
  CHECK(values_of<int>(out, 1)[0] == 9);
}
