// SPDX-License-Identifier: Apache-2.0
// Arrays that are copied when needed, through the C functions.
#include "native.hpp"

using namespace c;

namespace {

bool is_current(QuernSmartArray smart, QuernWhere where) {
  std::int32_t answer = -1;
  QUERN_GOOD(quern_smart_is_current(smart, where, &answer));
  return answer == 1;
}
float* host_of(QuernSmartArray smart) {
  void* data = nullptr;
  QUERN_GOOD(quern_smart_host(smart, &data));
  return static_cast<float*>(data);
}
QuernArgument argument_of(QuernSmartArray smart) {
  QuernArgument argument{};
  argument.kind = QUERN_ARGUMENT_SMART;
  argument.array.id = smart.id;
  return argument;
}

}  // namespace

TEST_CASE("launches move a smart array to the device once; the host's side follows when it is asked for") {
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  std::vector<float> values = {1, 2, 3, 4};
  const Host host(values.data(), QUERN_FLOAT32, {4});
  const float by = 3;
  SmartArray smart;
  QUERN_GOOD(quern_smart_from_host(session, &host.array, 1, smart.place()));
  CHECK(is_current(smart, QUERN_WHERE_HOST));
  CHECK_FALSE(is_current(smart, QUERN_WHERE_DEVICE));
  const std::vector<QuernArgument> arguments = {argument_of(smart), scalar_argument(QUERN_FLOAT32, &by)};
  for (int i = 0; i < 2; ++i) {
    QUERN_GOOD(launch(scale, launch_of(1, 4), arguments));
    CHECK(is_current(smart, QUERN_WHERE_DEVICE));
    CHECK_FALSE(is_current(smart, QUERN_WHERE_HOST));
  }
  float* const data = host_of(smart);
  CHECK(data[3] == 36);
  CHECK(values[3] == 4);  // a copy was made
  CHECK(is_current(smart, QUERN_WHERE_HOST));
  data[3] = 100;
  QUERN_GOOD(quern_smart_mark_changed(smart, QUERN_WHERE_HOST, {}));
  CHECK_FALSE(is_current(smart, QUERN_WHERE_DEVICE));
  Array device;
  QUERN_GOOD(quern_smart_device(smart, device.place()));
  CHECK(values_of<float>(device, 4) == std::vector<float>{9, 18, 27, 100});
  // A side that is written to without a new request is nevertheless the newest.
  device.reset();
  QUERN_GOOD(launch(scale, launch_of(1, 4), arguments));
  data[0] = 50;
  QUERN_GOOD(quern_smart_mark_changed(smart, QUERN_WHERE_HOST, {}));
  QUERN_GOOD(quern_smart_device(smart, device.place()));
  CHECK(values_of<float>(device, 4) == std::vector<float>{50, 18, 27, 100});
}

TEST_CASE("a smart array is new, or has a program's array or a device array as its side") {
  const Session session = open_cpu();
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  const Host fortran(nullptr, QUERN_FLOAT32, {2, 3}, {}, QUERN_ORDER_FORTRAN);
  const Host strided(nullptr, QUERN_FLOAT32, {2, 3}, {16, 4});
  SmartArray smart, none;
  QUERN_GOOD(quern_smart_new(session, &fortran.type, QUERN_WHERE_HOST, smart.place()));
  std::copy(values.begin(), values.end(), host_of(smart));
  QUERN_GOOD(quern_smart_mark_changed(smart, QUERN_WHERE_HOST, {}));
  Array device;
  QUERN_GOOD(quern_smart_device(smart, device.place()));
  CHECK(values_of<float>(device, 6) == std::vector<float>{1, 3, 5, 2, 4, 6});
  QUERN_FAILS(QUERN_USAGE, "no strides",
              quern_smart_new(session, &strided.type, QUERN_WHERE_HOST, none.place()));
  QUERN_FAILS(QUERN_USAGE, "QuernWhere",
              quern_smart_new(session, &fortran.type, static_cast<QuernWhere>(7), none.place()));

  Host mine(values.data(), QUERN_FLOAT32, {6});
  QUERN_GOOD(quern_smart_from_host(session, &mine.array, 0, smart.place()));
  CHECK(host_of(smart) == values.data());
  mine.array.read_only = 1;
  QUERN_FAILS(QUERN_USAGE, "read-only", quern_smart_from_host(session, &mine.array, 0, none.place()));

  const Array array = to_device(session, QUERN_FLOAT32, values);
  QUERN_GOOD(quern_smart_from_array(session, array, 0, smart.place()));
  QUERN_GOOD(quern_smart_device(smart, device.place()));
  CHECK(description_of(device).data == description_of(array).data);
  CHECK(host_of(smart)[5] == 6);
}

TEST_CASE("smart arrays that are null, of another kind or without a place are refused") {
  const Session session = open_cpu();
  const Host type(nullptr, QUERN_FLOAT32, {2});
  SmartArray smart;
  Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1});
  void* data = nullptr;
  std::int32_t current = 0;
  QUERN_GOOD(quern_smart_new(session, &type.type, QUERN_WHERE_DEVICE, smart.place()));
  for (const std::uint64_t id : {std::uint64_t{0}, array.id(), session.id(), ~std::uint64_t{0}}) {
    QuernArray out{};
    CHECK(quern_smart_host({id}, &data) == QUERN_BAD_HANDLE);
    CHECK(quern_smart_device({id}, &out) == QUERN_BAD_HANDLE);
    CHECK(quern_smart_mark_changed({id}, QUERN_WHERE_HOST, {}) == QUERN_BAD_HANDLE);
    CHECK(quern_smart_is_current({id}, QUERN_WHERE_HOST, &current) == QUERN_BAD_HANDLE);
  }
  CHECK(quern_smart_host(smart, nullptr) == QUERN_USAGE);
  CHECK(quern_smart_device(smart, nullptr) == QUERN_USAGE);
  CHECK(quern_smart_is_current(smart, QUERN_WHERE_HOST, nullptr) == QUERN_USAGE);
  CHECK(quern_smart_mark_changed(smart, static_cast<QuernWhere>(-3), {}) == QUERN_USAGE);
  CHECK(quern_smart_new(session, nullptr, QUERN_WHERE_HOST, smart.place()) == QUERN_USAGE);
  CHECK(quern_smart_new(session, &type.type, QUERN_WHERE_HOST, nullptr) == QUERN_USAGE);
  CHECK(quern_smart_from_host(session, nullptr, 0, smart.place()) == QUERN_USAGE);
  CHECK(quern_smart_from_host(session, &type.array, 1, smart.place()) == QUERN_USAGE);  // no data
  CHECK(quern_smart_from_array(session, {0}, 0, smart.place()) == QUERN_BAD_HANDLE);
}
