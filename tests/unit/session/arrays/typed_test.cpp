// SPDX-License-Identifier: Apache-2.0
// Arrays with static element type and number of dimensions, structs that describe themselves, and the
// functions that do not throw. Uses libquern only.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <array>
#include <complex>
#include <numeric>
#include <string>
#include <type_traits>
#include <vector>

#include "../../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::message;

namespace {

constexpr const char* kScale = R"(
#include <quern/device.cuh>
extern "C" __global__ void scale(quern::array<float, 2> a, float by) {
  long long i = threadIdx.y, j = threadIdx.x;
  if (i < a.extents[0] && j < a.extents[1]) a(i, j) *= by;
}
extern "C" __global__ void first(const float* in, float* out) { out[0] = in[0]; })";

std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.0f);
  return values;
}

/// An mdspan of a library, as used in C++20 programs.
struct ForeignSpan {
  using element_type = const float;
  const float* data;
  static constexpr std::size_t rank() { return 2; }
  std::size_t extent(std::size_t axis) const { return axis == 0 ? 2u : 3u; }
  std::size_t stride(std::size_t axis) const { return axis == 0 ? 1u : 2u; }
  const float* data_handle() const { return data; }
};

struct Base {
  int a;
};
struct Derived : Base {
  int b;
};
struct Large {
  float values[4096];
  int count;
};
enum class Colour : short { red };
struct Mixed {
  Base base[2][3];
  std::complex<float> z = {1, 2};
  Colour colour = Colour::red;
  bool flag = true;
  std::array<double, 2> pair{};
  const float* pointer = nullptr;
};
struct Twenty {
  int f01, f02, f03, f04, f05, f06, f07, f08, f09, f10, f11, f12, f13, f14, f15, f16, f17, f18, f19;
  double last;
};
struct Bits {
  unsigned low : 3, high : 29;
};

}  // namespace

template <>
struct quern::RecordOf<Bits> {
  static RecordType record() { return RecordType({{"bits", Dtype::uint32, 0, {}}}, 4); }
};

TEST_CASE("an array view has std::mdspan's shape and reaches strided memory") {
  std::vector<float> values = counting(24);
  const NDArray host = NDArray::view(values).reshape({4, 6});
  const ArrayView<float, 2> view = host(Slice{}, Slice{{}, {}, -2}).view_as<float, 2>();
  CHECK(view.rank() == 2);
  CHECK(view.extent(1) == 3);
  CHECK(view.stride(0) == 6);
  CHECK(view.stride(1) == -2);
  CHECK(view.size() == 12);
  CHECK_FALSE(view.is_c_contiguous());
  CHECK(view(2, 1) == 15);
  view[{3, 2}] = -1;
  CHECK(values[19] == -1);
  CHECK(host.view_as<const float, 2>()(3, 1) == -1);
  CHECK(NDArray::view(view).identical(host(Slice{}, Slice{{}, {}, -2}).copy()));
  const ArrayView<const float, 2> constant = view;
  CHECK(NDArray::view(constant).is_read_only());
  const ArrayView<float, 1> line(values.data(), {24});
  CHECK(line[5] == 5);
  CHECK(holds(message([&] { (void)host.view_as<float, 3>(); }), "3 dimensions"));
  CHECK(holds(message([&] { (void)host.view_as<int, 2>(); }), "int32"));
  struct Point {
    float x, y;
  };
  std::vector<Point> points = {{1, 2}, {3, 4}};
  CHECK(NDArray::view(points).field("y").view_as<float, 1>()(1) == 4);
}

TEST_CASE("device arrays of a known rank keep it through views, and come from and go to mdspans") {
  const Session session("cpu");
  std::vector<float> values = counting(12);
  const ArrayView<float, 2> matrix(values.data(), {3, 4});
  const auto device = session.to_device(matrix);
  static_assert(std::is_same_v<decltype(device), const DeviceArray<float, 2>>);
  CHECK(device.extents() == std::array<std::int64_t, 2>{3, 4});
  const DeviceArray<float, 1> row = device(1);
  CHECK(row.copy_to_host() == std::vector<float>{4, 5, 6, 7});
  const DeviceArray<float, 2> columns = device(Slice{}, Slice{0, 2});
  CHECK(columns.copy_to_host() == std::vector<float>{0, 1, 4, 5, 8, 9});
  CHECK(device(2, 3).item() == 11);
  CHECK(device[0][1].item() == 1);
  CHECK(device.transpose().extent(0) == 4);
  static_assert(std::is_same_v<decltype(device(kEllipsis, 1)), DeviceArray<float>>);
  const float* const data = values.data();
  CHECK(session.to_device(ForeignSpan{data}).copy_to_host() == std::vector<float>{0, 2, 4, 1, 3, 5});
  CHECK(holds(message([&] { (void)DeviceArray<float, 3>(device); }), "3 dimensions"));

  const Kernel scale = session.load_cuda(kScale).kernel("scale");
  const LaunchConfig config = {.grid = 1, .block = {8, 8}};
  scale(config)(device, 10.0f);
  device.copy_to_host(NDArray::view(matrix));
  CHECK(matrix(2, 3) == 110);
  scale(config)(matrix, 0.1f);  // a host array: there and back
  CHECK(matrix(1, 0) == doctest::Approx(4));
  const DeviceArray<float, 2> made = session.device_array<float, 2>({2, 3});
  CHECK(made.size() == 6);
}

TEST_CASE("const data and temporaries are copied to a launch and never written") {
  const Session session("cpu");
  const Kernel first = session.load_cuda(kScale).kernel("first");
  const std::vector<float> constant = {5};
  std::vector<float> out(1);
  const Stream stream = session.stream();
  const LaunchConfig config = {.grid = 1, .block = 1, .stream = stream};
  first(config)(std::vector<float>{7}, out);  // gone before the stream gets there
  stream.synchronize();
  CHECK(out[0] == 7);
  first(config)(NDArray::view(constant), Out(out));
  stream.synchronize();
  CHECK(out[0] == 5);
  CHECK(holds(message([&] { first(config)(constant, HostArgument{NDArray::view(constant), Transfer::out}); }),
              "read-only"));
  CHECK(holds(message([&] { session.to_device(out).copy_to_host(NDArray::view(constant)); }), "read-only"));
  CHECK(holds(message([&] { NDArray::view(constant).assign(1.0f); }), "const data"));
  const NDArray shared = from_dlpack(to_dlpack(NDArray::view(constant)));
  CHECK(shared.is_read_only());
  CHECK(shared.at<float>(0) == 5);
}

TEST_CASE("structs of any plain kind describe themselves; what cannot is opaque or described by hand") {
  const RecordType mixed = record_type_of<Mixed>();
  CHECK(mixed.fields().size() == 6);
  CHECK(mixed.field("base").shape == std::vector<std::int64_t>{2, 3});
  CHECK(mixed.field("z").element == ElementType(Dtype::complex64));
  CHECK(mixed.field("colour").element == ElementType(Dtype::int16));
  CHECK(mixed.field("flag").offset_bytes == offsetof(Mixed, flag));
  CHECK(mixed.field("pair").shape == std::vector<std::int64_t>{2});
  CHECK(mixed.field("pointer").element == ElementType::opaque(8));
  CHECK(record_type_of<Large>().field("count").offset_bytes == 16384);
  CHECK(record_type_of<Twenty>().field("last").offset_bytes == offsetof(Twenty, last));
  CHECK(element_type_of<Derived>() == ElementType::opaque(8));
  CHECK(element_type_of<Bits>().record->field("bits").element == ElementType(Dtype::uint32));
  const Session session("cpu");
  const DeviceRecord record = session.to_device(Mixed{});
  CHECK(record.get<Mixed>().z == std::complex<float>(1, 2));
}

TEST_CASE("the twins of throwing functions say what went wrong without an exception") {
  const Session session("cpu");
  const Expected<DeviceNDArray> large = session.try_device_array({std::int64_t{1} << 40});
  REQUIRE_FALSE(large.has_value());
  CHECK(large.errors()[0].code == "out_of_memory");
  CHECK(holds(large.errors()[0].message, "8796093022208 bytes"));
  CHECK(session.try_allocate(100).has_value());
  CHECK(session.try_to_device(NDArray::of({1.f, 2.f})).value()(1).item<float>() == 2);
  CHECK(session.try_pinned_array({-1}).errors()[0].code == "usage");
  CHECK(session.try_mapped_array({3}).value().host().size() == 3);
  const DeviceNDArray array = session.device_array({4, 6});
  CHECK(array.try_reshape(std::array<std::int64_t, 1>{24}).has_value());
  CHECK_FALSE(array(Slice{0, 4, 2}).try_reshape(std::array<std::int64_t, 1>{12}).has_value());
  CHECK(NDArray::try_load_npy("/nonexistent/array.npy").errors()[0].code == "io");
  CHECK(attempt([&] { session.synchronize(); }).has_value());
  const auto refused = attempt([&] { return array(7); });
  CHECK(holds(to_string(refused.errors()), "outside axis 0"));
}

TEST_CASE("elements are seen as another type where their bytes allow it") {
  const NDArray host = NDArray::of({1.0f, 2.0f, 3.0f, 4.0f}, {2, 2});
  CHECK(host.as_element(Dtype::int32).at<int>(0, 0) == 0x3f800000);
  CHECK(host.as_element(Dtype::uint8).shape()[1] == 8);
  CHECK(host.as_element(Dtype::float64).shape()[1] == 1);
  CHECK(host.as_element(Dtype::uint8).as_element(Dtype::float32).identical(host));
  CHECK(holds(message([&] { (void)host.as_element(Dtype::complex128); }), "do not divide"));
  CHECK(holds(message([&] { (void)host.transpose().as_element(Dtype::uint8); }), "not contiguous"));
  CHECK(holds(message([&] { (void)NDArray::scalar(1.0f).as_element(Dtype::uint8); }), "no axis"));
  const Session session("cpu");
  const DeviceNDArray device = session.to_device(host);
  CHECK(device.as_element(Dtype::uint16).copy_to_host().at<std::uint16_t>(0, 1) == 0x3f80);
  CHECK(device.reshape({1, 2, 1, 2}).squeeze().shape().size() == 2);
}
