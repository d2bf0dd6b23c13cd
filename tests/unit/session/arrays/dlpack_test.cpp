// SPDX-License-Identifier: Apache-2.0
// DLPack with libquern only. The expected numbers are those of dlpack.h, version 1.3.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <cstring>
#include <string>
#include <vector>

#include "../../support/arrays.hpp"
#include "../../support/messages.hpp"

using namespace quern;
using quern::test::counting;
using quern::test::holds;
using quern::test::message;

namespace {

/// Code and bits, as in dlpack.h.
struct Coded {
  Dtype dtype;
  int code;
  int bits;
};
constexpr Coded kCoded[] = {
    {Dtype::int8, 0, 8},       {Dtype::int16, 0, 16},       {Dtype::int32, 0, 32},   {Dtype::int64, 0, 64},
    {Dtype::uint8, 1, 8},      {Dtype::uint16, 1, 16},      {Dtype::uint32, 1, 32},  {Dtype::uint64, 1, 64},
    {Dtype::float16, 2, 16},   {Dtype::float32, 2, 32},     {Dtype::float64, 2, 64}, {Dtype::bfloat16, 4, 16},
    {Dtype::complex64, 5, 64}, {Dtype::complex128, 5, 128}, {Dtype::bool_, 6, 8},
};

/// A producer's tensor with two elements. It counts the calls of its deleter.
struct Foreign {
  static inline int given_back = 0;
  std::int64_t shape[1] = {2};
  std::int64_t strides[1] = {1};
  double memory[4] = {};
  dlpack::ManagedTensorVersioned managed;
  dlpack::ManagedTensor legacy;

  Foreign(int code, int bits, int lanes = 1, int device = 1) {
    dlpack::Tensor& tensor = managed.tensor;
    tensor.data = memory;
    tensor.ndim = 1;
    tensor.shape = shape;
    tensor.strides = strides;
    tensor.dtype = {static_cast<dlpack::TypeCode>(code), static_cast<std::uint8_t>(bits),
                    static_cast<std::uint16_t>(lanes)};
    tensor.device = {static_cast<dlpack::DeviceType>(device), 0};
    managed.deleter = [](dlpack::ManagedTensorVersioned*) { ++given_back; };
    legacy.tensor = tensor;
    legacy.deleter = [](dlpack::ManagedTensor*) { ++given_back; };
  }
  /// The reason why no host array can be made from it. Both ABIs must give the same reason.
  std::string refusal() {
    const std::string text = message([&] { (void)from_dlpack(&managed); });
    CHECK(message([&] { (void)from_dlpack(&legacy); }) == text);
    return text;
  }
};

}  // namespace

TEST_CASE("an array goes out by DLPack and comes back as a view of the same memory, which it keeps alive") {
  const Session session("cpu");
  DeviceNDArray array = session.to_device(counting({4, 6}))(Slice{}, Slice{{}, {}, -2});
  dlpack::ManagedTensorVersioned* tensor = to_dlpack(array);
  CHECK(tensor->version.major == 1);
  CHECK(tensor->version.minor == 3);
  CHECK(tensor->flags == 0);
  CHECK(static_cast<int>(tensor->tensor.device.type) == 2);
  CHECK(tensor->tensor.byte_offset == 0);
  CHECK(tensor->tensor.ndim == 2);
  CHECK(tensor->tensor.strides[1] == -2);
  CHECK(tensor->tensor.dtype.bits == 32);
  const void* const address = array.data();
  array = {};
  DeviceNDArray back = from_dlpack(session, tensor);
  CHECK(back.data() == address);
  CHECK(back.copy_to_host().identical(counting({4, 6})(Slice{}, Slice{{}, {}, -2}).copy()));
  const std::size_t live = session.memory_stats()[ResourceKind::device].live_count;
  back = {};
  CHECK(session.memory_stats()[ResourceKind::device].live_count == live - 1);
}

TEST_CASE("host arrays go by DLPack in both ABIs; what cannot be said is refused and gives the tensor back") {
  const NDArray host = counting({3, 4});
  const NDArray back = from_dlpack(to_dlpack(host));
  CHECK(back.data() == host.data());
  CHECK(from_dlpack(to_dlpack_unversioned(host.transpose())).identical(host.transpose().copy(Order::f)));
  struct Pair {
    int a, b;
  };
  CHECK(holds(message([] { (void)to_dlpack(NDArray::scalar(Pair{1, 2})); }), "single fields"));
  static int given_back = 0;
  dlpack::ManagedTensorVersioned strange;
  strange.deleter = [](dlpack::ManagedTensorVersioned*) { ++given_back; };
  strange.version.major = 2;
  CHECK(holds(message([&] { (void)from_dlpack(&strange); }), "version 2"));
  strange.version.major = 1;
  strange.tensor.dtype.lanes = 4;
  CHECK(holds(message([&] { (void)from_dlpack(&strange); }), "4 lanes"));
  strange.tensor.dtype.lanes = 1;
  strange.tensor.device.type = dlpack::DeviceType::cuda;
  CHECK(holds(message([&] { (void)from_dlpack(&strange); }), "host memory"));
  CHECK(given_back == 3);
  const Session session("cpu");
  CHECK(holds(message([&] { (void)from_dlpack(session, to_dlpack(host)); }), "ordinary host memory"));
}

TEST_CASE(
    "every element type has DLPack's code, both ways, in both ABIs, from the host and from the device") {
  const Session session("cpu");
  for (const Coded& row : kCoded) {
    CAPTURE(name(row.dtype));
    for (dlpack::ManagedTensorVersioned* tensor :
         {to_dlpack(NDArray({2}, row.dtype)), to_dlpack(session.device_array({2}, row.dtype))}) {
      CHECK(static_cast<int>(tensor->tensor.dtype.code) == row.code);
      CHECK(int{tensor->tensor.dtype.bits} == row.bits);
      CHECK(int{tensor->tensor.dtype.lanes} == 1);
      tensor->deleter(tensor);
    }
    Foreign foreign(row.code, row.bits);
    CHECK(from_dlpack(&foreign.managed).dtype() == row.dtype);
    CHECK(from_dlpack(&foreign.legacy).dtype() == row.dtype);
    CHECK(from_dlpack(session, to_dlpack(session.device_array({2}, row.dtype))).dtype() == row.dtype);
  }
}

TEST_CASE("element types that quern lacks are refused by their names, and the tensor is given back") {
  Foreign::given_back = 0;
  CHECK(holds(Foreign(7, 8).refusal(), "float8_e3m4,"));
  CHECK(holds(Foreign(10, 8).refusal(), "float8_e4m3fn,"));
  CHECK(holds(Foreign(12, 8).refusal(), "float8_e5m2,"));
  CHECK(holds(Foreign(14, 8).refusal(), "float8_e8m0fnu,"));
  CHECK(holds(Foreign(15, 6).refusal(), "float6_e2m3fn,"));
  CHECK(holds(Foreign(17, 4).refusal(), "float4_e2m1fn,"));
  CHECK(holds(Foreign(2, 128).refusal(), "float128,"));
  CHECK(holds(Foreign(5, 32).refusal(), "complex32,"));
  CHECK(holds(Foreign(0, 4).refusal(), "int4,"));
  CHECK(holds(Foreign(3, 64).refusal(), "opaque handles,"));
  CHECK(holds(Foreign(2, 32, 4).refusal(), "vectors of 4 lanes of float32"));
  CHECK(holds(Foreign(99, 24).refusal(), "24-bit elements of the unknown type code 99"));
  CHECK(holds(Foreign(10, 8).refusal(), "as uint8"));  // the advice
  CHECK(Foreign::given_back == 26);
}

TEST_CASE("any minor version of the ABI is taken; of another major one only the deleter is touched") {
  Foreign foreign(2, 64);
  for (const std::uint32_t minor : {0u, 1u, 3u, 77u}) {
    foreign.managed.version = {1, minor};
    CHECK(from_dlpack(&foreign.managed).size() == 2);
  }
  foreign.managed.tensor.strides = nullptr;  // before 1.2
  CHECK(from_dlpack(&foreign.managed).is_c_contiguous());
  Foreign::given_back = 0;
  // In another major version, the fields after the flags may be anywhere. Here they are invalid.
  std::memset(static_cast<void*>(&foreign.managed.tensor), 0x5a, sizeof foreign.managed.tensor);
  const Session session("cpu");
  for (const std::uint32_t major : {0u, 2u}) {
    foreign.managed.version = {major, 5};
    CHECK(holds(message([&] { (void)from_dlpack(&foreign.managed); }), std::to_string(major) + ".5"));
    CHECK(
        holds(message([&] { (void)from_dlpack(session, &foreign.managed); }), std::to_string(major) + ".5"));
  }
  CHECK(Foreign::given_back == 4);
}

TEST_CASE("memory that neither host nor kernels reach is refused by its device's name") {
  const Session session("cpu");
  Foreign::given_back = 0;
  CHECK(holds(Foreign(2, 64, 1, 2).refusal(), "CUDA device memory, not in host memory; give a session"));
  CHECK(holds(Foreign(2, 64, 1, 10).refusal(), "ROCm memory"));
  CHECK(holds(Foreign(2, 64, 1, 99).refusal(), "unknown type 99"));
  Foreign metal(2, 64, 1, 8);
  CHECK(holds(message([&] { (void)from_dlpack(session, &metal.managed); }), "Metal memory, which kernels"));
  Foreign nowhere(2, 64, 1, 1);
  nowhere.managed.tensor.data = nullptr;
  CHECK(holds(message([&] { (void)from_dlpack(&nowhere.managed); }), "address is null"));
  Foreign host(2, 64, 1, 2);  // it only says that it is a device's
  CHECK(holds(message([&] { (void)from_dlpack(session, &host.managed); }), "does not know its address"));
  CHECK(Foreign::given_back == 9);
  for (const int device : {1, 3, 13}) {
    Foreign reachable(2, 64, 1, device);
    CHECK(from_dlpack(&reachable.managed).size() == 2);
  }
  CHECK(holds(message([] { (void)from_dlpack(static_cast<dlpack::ManagedTensor*>(nullptr)); }), "is null"));
}

TEST_CASE("read-only and copied arrays say so, in both directions; the ABI before 1.0 cannot") {
  const Session session("cpu");
  Foreign foreign(2, 64);
  foreign.managed.flags = 1;
  const NDArray locked = from_dlpack(&foreign.managed);
  CHECK(locked.is_read_only());
  foreign.managed.flags = 2;
  CHECK_FALSE(from_dlpack(&foreign.managed).is_read_only());
  const auto flags = [](dlpack::ManagedTensorVersioned* tensor) {
    const std::uint64_t value = tensor->flags;
    tensor->deleter(tensor);
    return value;
  };
  CHECK(flags(to_dlpack(locked)) == 1);
  CHECK(flags(to_dlpack(locked.copy(), true)) == 2);
  CHECK(holds(message([&] { (void)to_dlpack_unversioned(locked); }), "before 1.0"));
  const DeviceNDArray device = session.to_device(counting({3}));
  CHECK(flags(to_dlpack(device)) == 0);
  CHECK(flags(to_dlpack(device.copy(), {.copied = true})) == 2);
  dlpack::ManagedTensorVersioned* tensor = to_dlpack(device);
  tensor->flags |= dlpack::kReadOnly;
  const DeviceNDArray view = from_dlpack(session, tensor);
  CHECK(flags(to_dlpack(view)) == 1);
  CHECK(holds(message([&] { (void)to_dlpack_unversioned(view); }), "before 1.0"));
}

TEST_CASE("consumers' streams are numbered as __dlpack__(stream=...) numbers them") {
  const Session session("cpu");
  CHECK_FALSE(dlpack_consumer(-1).has_value());
  CHECK(dlpack_consumer(1)->handle() == session.legacy_default_stream().handle());
  CHECK(dlpack_consumer(2)->handle() == session.per_thread_default_stream().handle());
  const Stream stream = session.stream();
  CHECK(dlpack_consumer(dlpack_stream(stream))->handle() == stream.handle());
  CHECK(dlpack_stream(session.default_stream()) == 1);
  CHECK(dlpack_stream(session.per_thread_default_stream()) == 2);
  CHECK(holds(message([] { (void)dlpack_consumer(0); }), "is 0, which the protocol forbids"));
  CHECK(holds(message([] { (void)dlpack_consumer(-2); }), "is -2"));
}

TEST_CASE("arrays without elements and without axes go by DLPack") {
  const Session session("cpu");
  dlpack::ManagedTensorVersioned* tensor = to_dlpack(session.device_array({3, 0, 2}));
  CHECK(tensor->tensor.data == nullptr);
  CHECK(tensor->tensor.strides != nullptr);
  CHECK(from_dlpack(session, tensor).shape().size() == 3);
  CHECK(from_dlpack(session, to_dlpack(session.to_device(NDArray::scalar(2.5)))).item<double>() == 2.5);
  CHECK(from_dlpack(to_dlpack(NDArray::scalar(2.5))).item<double>() == 2.5);
}
