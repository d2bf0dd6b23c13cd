// SPDX-License-Identifier: Apache-2.0
// Arrays are handles: const applies to elements in DeviceArray<const T> and in read-only arrays. Uses
// libquern only.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <span>
#include <type_traits>
#include <utility>
#include <vector>

#include "../../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::message;

namespace {

using Floats = DeviceArray<float>;
using ConstFloats = DeviceArray<const float>;
using Matrix = DeviceArray<float, 2>;
using ConstMatrix = DeviceArray<const float, 2>;

template <class A>
concept CanAssign = requires(const A& array) { array.assign(1.0f); };
template <class A>
concept CanCopyFromHost =
    requires(const A& array, std::span<const float> values) { array.copy_from_host(values); };
template <class A>
concept CanCopyToDevice = requires(const A& array, const NDArray& host, const DeviceNDArray& device) {
  array.copy_to_device(host);
  array.copy_to_device(device);
};
template <class A>
concept CanCopyBytes =
    requires(const A& array, std::span<const std::byte> bytes) { array.copy_bytes_from_host(bytes); };
template <class A>
concept CanWrite = CanAssign<A> && CanCopyFromHost<A> && CanCopyToDevice<A> && CanCopyBytes<A>;
template <class A>
concept CannotWrite = !CanAssign<A> && !CanCopyFromHost<A> && !CanCopyToDevice<A> && !CanCopyBytes<A>;

// A const handle does not make its elements const, as with std::span.
static_assert(CanWrite<Floats> && CanWrite<const Floats> && CanWrite<Matrix> && CanWrite<const Matrix>);
static_assert(CannotWrite<ConstFloats> && CannotWrite<const ConstFloats> && CannotWrite<ConstMatrix>);
static_assert(std::is_same_v<decltype(std::declval<const Floats&>().data()), float*>);
static_assert(std::is_same_v<decltype(std::declval<ConstFloats&>().data()), const float*>);
static_assert(std::is_same_v<decltype(std::declval<ConstFloats&>().item()), float>);

// Elements can become const, but not the reverse.
static_assert(std::is_convertible_v<Floats, ConstFloats> && std::is_convertible_v<Matrix, ConstMatrix>);
static_assert(std::is_convertible_v<Matrix, ConstFloats> && std::is_convertible_v<ConstMatrix, ConstFloats>);
static_assert(!std::is_constructible_v<Floats, ConstFloats> && !std::is_constructible_v<Floats, ConstMatrix>);
static_assert(!std::is_constructible_v<Matrix, ConstMatrix> && !std::is_constructible_v<Matrix, ConstFloats>);
static_assert(!std::is_assignable_v<Floats&, ConstFloats> && !std::is_assignable_v<Matrix&, ConstMatrix>);
static_assert(!std::is_convertible_v<ConstFloats, DeviceArray<const double>>);
static_assert(std::is_constructible_v<ConstMatrix, ConstFloats> &&
              !std::is_convertible_v<ConstFloats, ConstMatrix>);
static_assert(std::is_same_v<decltype(std::declval<ConstMatrix&>()(1)), DeviceArray<const float, 1>>);
static_assert(std::is_same_v<decltype(std::declval<ConstMatrix&>().transpose()), ConstMatrix>);

template <class G>
concept CanSet = requires(const G& global) { global.set(1.0f); };
static_assert(CanSet<Global<float>> && !CanSet<Global<const float>>);
static_assert(CanCopyFromHost<Global<float[4]>> && !CanCopyFromHost<Global<const float[4]>>);
static_assert(std::is_same_v<decltype(std::declval<Global<const float[4]>&>().array()), ConstFloats>);

constexpr const char* kKernels = R"(
extern "C" __global__ void read(const float* in, float* out) { out[0] = in[1]; }
extern "C" __global__ void write(float* out) { out[0] = 9; })";

}  // namespace

TEST_CASE("a const handle writes to its elements") {
  const Session session("cpu");
  const DeviceArray<float> array = session.to_device(std::vector<float>{1, 2, 3});
  array(1).assign(7.0f);
  CHECK(array.copy_to_host() == std::vector<float>{1, 7, 3});
}

TEST_CASE("const elements are read, viewed and passed to kernels that only read, and never written") {
  const Session session("cpu");
  const DeviceArray<float> array = session.to_device(std::vector<float>{1, 2, 3});
  const DeviceArray<const float> constant = array;
  CHECK(constant.is_read_only());
  CHECK_FALSE(array.is_read_only());
  CHECK(constant.copy_to_host() == std::vector<float>{1, 2, 3});
  CHECK(constant(2).item() == 3);
  array.assign(5.0f);  // the array refers to the same memory
  CHECK(constant(0).item() == 5);
  CHECK(constant.data() == array.data());
  CHECK(constant.cuda_array_interface().read_only);

  const Module module = session.load_cuda(kKernels);
  const LaunchConfig config = {.grid = 1, .block = 1};
  const DeviceArray<float> out = session.device_array<float>(1);
  module.kernel("read")(config)(constant, out);
  CHECK(out(0).item() == 5);
  CHECK(holds(message([&] { module.kernel("write")(config)(constant); }), "read-only"));
  CHECK(holds(message([&] { session.to_device(NDArray::of({1.f, 2.f, 3.f}), {.to = constant}); }),
              "read-only"));
  // An array of const elements without a static type is refused at run time.
  const DeviceNDArray& untyped = constant;
  CHECK(holds(message([&] { untyped.assign(1.0f); }), "cannot write to float32 with shape (3,)"));
  CHECK(array.copy_to_host() == std::vector<float>{5, 5, 5});
}

TEST_CASE("views and copies of a read-only array are read-only, and copy() is not") {
  const Session session("cpu");
  const DeviceNDArray array = session.to_device(NDArray::of({1.f, 2.f, 3.f, 4.f}, {2, 2}));
  const DeviceNDArray constant = array.as_read_only();
  const DeviceNDArray copied = constant;
  for (const DeviceNDArray& view :
       {copied, constant(0), constant.transpose(), constant.reshape({4}), constant.ravel(),
        constant.squeeze(), constant.as_element(Dtype::uint32), constant(Slice{0, 1})}) {
    CHECK(view.is_read_only());
    CHECK(holds(message([&] { view.assign(1); }), "the array is read-only; copy() it"));
  }
  CHECK(constant.ravel().split(3)[1].is_read_only());
  const DeviceNDArray mine = constant.copy();
  mine.assign(8.0f);
  CHECK(mine.copy_to_host().at<const float>(1, 1) == 8);
  CHECK(array.copy_to_host().at<const float>(1, 1) == 4);
  CHECK(holds(message([&] { session.smart_array(constant, false); }), "read-only"));

  const MappedNDArray mapped = session.mapped_array({2}, Dtype::float32);
  CHECK(mapped.as_read_only().host().is_read_only());
  CHECK(mapped.as_read_only()(1).is_read_only());
  CHECK_FALSE(mapped.host().is_read_only());
}

TEST_CASE("elements of a read-only host array are read as const") {
  const std::vector<float> values = {1, 2, 3};
  const NDArray host = NDArray::view(values);
  CHECK(host.values<const float>()[2] == 3);
  CHECK(host.at<const float>(1) == 2);
  static_assert(std::is_same_v<decltype(host.values<const float>()), std::span<const float>>);
  CHECK(host.view_as<const float, 1>()(0) == 1);
  CHECK(holds(message([&] { (void)host.view_as<float, 1>(); }), "const data"));
}
