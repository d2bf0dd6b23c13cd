// SPDX-License-Identifier: Apache-2.0
// float16 and bfloat16 from host array to device, kernel and back, in files, and in other libraries.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::message;

namespace {

constexpr const char* kSource = R"(
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <quern/device.cuh>
extern "C" __global__ void scale_half(__half* x, __half by) { x[threadIdx.x] = __hmul(x[threadIdx.x], by); }
extern "C" __global__ void scale_brain(__nv_bfloat16* x, __nv_bfloat16 by) { x[threadIdx.x] = __hmul(x[threadIdx.x], by); }
extern "C" __global__ void turn_half(quern::array<__half, 2> a) {
  if (threadIdx.x == 0) { __half first = a(0, 0); a(0, 0) = a(1, 1); a(1, 1) = first; }
}
struct Pair { __half h; __nv_bfloat16 b; };
extern "C" __global__ void swap_pair(Pair* p) {
  float h = __half2float(p->h), b = __bfloat162float(p->b);
  p->h = __float2half(b);
  p->b = __float2bfloat16(h);
})";

/// The bits of 1, -2.5, 0.1 and 1000 and of their doubles, according to IEEE 754 and as the upper half of
/// binary32.
struct Bits {
  const char* kernel;
  const char* typestr;
  int dlpack_code;
  std::vector<std::uint16_t> values;
  std::vector<std::uint16_t> doubled;
};
const Bits kHalf{"scale_half", "<f2", 2, {0x3c00, 0xc100, 0x2e66, 0x63d0}, {0x4000, 0xc500, 0x3266, 0x67d0}};
const Bits kBrain{
    "scale_brain", "<V2", 4, {0x3f80, 0xc020, 0x3dcd, 0x447a}, {0x4000, 0xc0a0, 0x3e4d, 0x44fa}};

struct Pair {
  float16 h;
  bfloat16 b;
};

struct Foreign {
  CudaArrayInterface description;
  CudaArrayInterface cuda_array_interface() const { return description; }
};

const Session& on_cpu() {
  static const Session instance("cpu");
  return instance;
}
const Module& kernels() {
  static const Module module = on_cpu().load_cuda(kSource);
  return module;
}

std::vector<std::uint16_t> bits(const NDArray& array) {
  const NDArray words = array.as_element(Dtype::uint16);
  const std::span<std::uint16_t> values = words.values<std::uint16_t>();
  return {values.begin(), values.end()};
}

template <class T>
NDArray four() {
  return NDArray::of({T(1.0f), T(-2.5f), T(0.1f), T(1000.0f)});
}

template <class T>
void goes_to_the_kernel_and_back(const Bits& wanted) {
  const NDArray host = four<T>();
  CHECK(bits(host) == wanted.values);
  CHECK(static_cast<float>(host.at<T>(1)) == -2.5f);
  const DeviceNDArray device = on_cpu().to_device(host);
  const Kernel scale = kernels().kernel(wanted.kernel);
  scale({.grid = 1, .block = 4})(device, T(2.0f));
  CHECK(bits(device.copy_to_host()) == wanted.doubled);
  CHECK(device(1).item<T>().bits() == wanted.doubled[1]);
  std::vector<T> values = {T(1.0f), T(-2.5f), T(0.1f), T(1000.0f)};
  scale({.grid = 1, .block = 4})(values, 2.0f);  // a host array there and back, a float that fits
  CHECK(values[3].bits() == wanted.doubled[3]);
  const DeviceArray<T> typed = on_cpu().to_device(values);
  typed(Slice{{}, {}, 2}).assign(T(-2.5f));
  CHECK(typed.copy_to_host()[2].bits() == wanted.values[1]);
  typed.assign(0.1f);
  CHECK(typed.copy_to_host()[0].bits() == wanted.values[2]);
  const Stream stream = on_cpu().stream();
  const DeviceNDArray queued = on_cpu().to_device(host, {.stream = stream.view()});
  const NDArray back = queued.copy_to_host(stream);
  stream.synchronize();
  CHECK(back.identical(host));
}

template <class T>
void goes_to_other_libraries_and_back(const Bits& wanted) {
  const DeviceNDArray device = on_cpu().to_device(four<T>());
  const CudaArrayInterface description = device.cuda_array_interface();
  CHECK(description.typestr == wanted.typestr);
  CHECK_FALSE(description.descr.has_value());
  const DeviceNDArray view = on_cpu().as_cuda_array(Foreign{description});
  CHECK(view.dtype() == DtypeOf<T>::value);
  CHECK(bits(view.copy_to_host()) == wanted.values);
  dlpack::ManagedTensorVersioned* tensor = to_dlpack(device);
  CHECK(static_cast<int>(tensor->tensor.dtype.code) == wanted.dlpack_code);
  CHECK(bits(from_dlpack(on_cpu(), tensor).copy_to_host()) == wanted.values);
  CHECK(bits(from_dlpack(to_dlpack(four<T>()))) == wanted.values);
}

}  // namespace

TEST_CASE("float16 goes from the host to a kernel and back, and to other libraries, bit for bit") {
  goes_to_the_kernel_and_back<float16>(kHalf);
  goes_to_other_libraries_and_back<float16>(kHalf);
}

TEST_CASE("bfloat16 goes from the host to a kernel and back, and to other libraries, bit for bit") {
  goes_to_the_kernel_and_back<bfloat16>(kBrain);
  goes_to_other_libraries_and_back<bfloat16>(kBrain);
}

TEST_CASE("16-bit floats are not taken for each other, for integers or for bytes that nobody describes") {
  const Kernel scale = kernels().kernel("scale_half");
  const LaunchConfig config = {.grid = 1, .block = 4};
  CHECK(holds(message([&] { scale(config)(on_cpu().to_device(four<bfloat16>()), 2.0f); }), "bfloat16"));
  CHECK(holds(message([&] { scale(config)(on_cpu().device_array({4}, Dtype::uint16), 2.0f); }), "uint16"));
  CHECK(holds(message([&] { (void)four<bfloat16>().at<float16>(0); }), "bfloat16"));
  CHECK(holds(message([&] { four<float16>().assign(1e6f); }), "float16"));
  CudaArrayInterface bytes = on_cpu().to_device(four<bfloat16>()).cuda_array_interface();
  bytes.typestr = "|V2";  // NumPy's two bytes of anything
  CHECK(on_cpu().adopt(bytes, nullptr).element() == ElementType::opaque(2));
}

TEST_CASE("arrays of more axes and records hold 16-bit floats") {
  const NDArray square = four<float16>().reshape({2, 2});
  const DeviceNDArray device = on_cpu().to_device(square);
  kernels().kernel("turn_half")({.grid = 1, .block = 1})(device);
  CHECK(bits(device.ravel().copy_to_host()) == std::vector<std::uint16_t>{0x63d0, 0xc100, 0x2e66, 0x3c00});
  CHECK(record_type_of<Pair>().field("h").element == ElementType(Dtype::float16));
  CHECK(record_type_of<Pair>().field("b").element == ElementType(Dtype::bfloat16));
  const DeviceRecord pair = on_cpu().to_device(Pair{float16(3.0f), bfloat16(-7.0f)});
  kernels().kernel("swap_pair")({.grid = 1, .block = 1})(pair);
  CHECK(static_cast<float>(pair.get<Pair>().h) == -7.0f);
  CHECK(static_cast<float>(pair.get<Pair>().b) == 3.0f);
  pair.field("b").assign(bfloat16(-2.5f));
  CHECK(pair.get<Pair>().b.bits() == 0xc020);
}
