// SPDX-License-Identifier: Apache-2.0
// Arrays through the C functions: strides and orders, records, views, copies, and other libraries' arrays.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <cstring>
#include <numeric>
#include <thread>

#include "support.hpp"

using namespace c;

namespace {

struct Particle {
  float position[3];
  double mass;
  struct {
    std::int16_t kind;
    std::uint8_t flags[2];
  } tag;
};
/// Particle as a record. Its parts are static objects, as a language binding would keep them.
QuernElement particle() {
  static const std::int64_t three[] = {3}, two[] = {2};
  static const QuernField tag_fields[] = {{"kind", {QUERN_INT16, 0, 0, nullptr}, 0, 0, 0, nullptr},
                                          {"flags", {QUERN_UINT8, 0, 0, nullptr}, 2, 1, 0, two}};
  static const QuernRecord tag = {sizeof(QuernRecord), sizeof(QuernField), tag_fields, 2, 4};
  static const QuernField fields[] = {
      {"position", {QUERN_FLOAT32, 0, 0, nullptr}, offsetof(Particle, position), 1, 0, three},
      {"mass", {QUERN_FLOAT64, 0, 0, nullptr}, offsetof(Particle, mass), 0, 0, nullptr},
      {"tag", {QUERN_BOOL, 0, 0, &tag}, offsetof(Particle, tag), 0, 0, nullptr}};
  static const QuernRecord record = {sizeof(QuernRecord), sizeof(QuernField), fields, 3, sizeof(Particle)};
  return {QUERN_BOOL, 0, 0, &record};
}
std::vector<Particle> particles(int count) {
  std::vector<Particle> all(static_cast<std::size_t>(count));
  for (int i = 0; i < count; ++i)
    all[static_cast<std::size_t>(i)] = {{1.f * static_cast<float>(i), 2, 3},
                                        10.0 * i,
                                        {static_cast<std::int16_t>(-i), {static_cast<std::uint8_t>(i), 9}}};
  return all;
}

Array make(QuernSession session, const Host& like) {
  Array array;
  QUERN_GOOD(quern_array_make(session, &like.type, {}, array.place()));
  return array;
}
Array index(QuernArray array, const std::vector<QuernIndex>& indices) {
  Array view;
  QUERN_GOOD(quern_array_index(array, indices.data(), indices.size(), view.place()));
  return view;
}
QuernIndex at(std::int64_t position) { return {QUERN_INDEX_AT, 0, position, 0, 0}; }
QuernIndex every(std::int64_t step) { return {QUERN_INDEX_SLICE, 0, 0, 0, step}; }
std::vector<float> counting(std::size_t count) {
  std::vector<float> values(count);
  std::iota(values.begin(), values.end(), 0.f);
  return values;
}

}  // namespace

TEST_CASE("arrays lie in C order, in Fortran order or by strides, and arrive whole from any host layout") {
  const Session session = open_cpu();
  std::vector<float> values = counting(24);
  const Host c_order(values.data(), QUERN_FLOAT32, {4, 6});
  const Host fortran(values.data(), QUERN_FLOAT32, {4, 6}, {}, QUERN_ORDER_FORTRAN);
  const Host padded(nullptr, QUERN_FLOAT32, {4, 6}, {32, 4});
  const std::vector<float> transposed = [&] {  // element (i, j) of the Fortran array is values[i + 4 j]
    std::vector<float> list;
    for (int i = 0; i < 4; ++i)
      for (int j = 0; j < 6; ++j) list.push_back(static_cast<float>(i + 4 * j));
    return list;
  }();
  const Array f = make(session, fortran);
  const QuernCudaArray description = description_of(f);
  REQUIRE(description.strides != nullptr);
  CHECK(description.strides[0] == 4);
  CHECK(description.strides[1] == 16);
  QUERN_GOOD(quern_array_from_host_array(f, &fortran.array));
  CHECK(values_of<float>(f, 24) == transposed);  // the bytes of the simple functions are always in C order

  const Array with_gaps = make(session, padded);
  CHECK(description_of(with_gaps).strides[0] == 32);
  QUERN_GOOD(quern_array_from_host_array(with_gaps, &c_order.array));
  CHECK(values_of<float>(with_gaps, 24) == values);

  // Every other row backwards, every other column.
  const Host strided(&values[18], QUERN_FLOAT32, {2, 3}, {-48, 8});
  const std::vector<float> picked = {18, 20, 22, 6, 8, 10};
  Array sent;
  QUERN_GOOD(quern_to_device(session, &strided.array, sent.place()));
  CHECK(values_of<float>(sent, 6) == picked);
  std::vector<float> target(24, -1);
  const Host back(&target[18], QUERN_FLOAT32, {2, 3}, {-48, 8});
  QUERN_GOOD(quern_array_to_host_array(sent, &back.array));
  CHECK(target[18] == 18);
  CHECK(target[22] == 22);
  CHECK(target[6] == 6);
  CHECK(target[19] == -1);
  CHECK(target[12] == -1);
}

TEST_CASE("layouts that cannot be, and host arrays that do not fit, are refused") {
  const Session session = open_cpu();
  std::vector<float> values = counting(24);
  Array array;
  const Host negative(values.data(), QUERN_FLOAT32, {4}, {-4});
  QUERN_FAILS(QUERN_USAGE, "positive strides", quern_array_make(session, &negative.type, {}, array.place()));
  const Host huge(values.data(), QUERN_FLOAT32, {INT64_MAX, INT64_MAX});
  CHECK(quern_array_make(session, &huge.type, {}, array.place()) == QUERN_USAGE);
  const Host minus(values.data(), QUERN_FLOAT32, {-4});
  QUERN_FAILS(QUERN_USAGE, "-4", quern_to_device(session, &minus.array, array.place()));
  const Host nowhere(nullptr, QUERN_FLOAT32, {4});
  QUERN_FAILS(QUERN_USAGE, "address", quern_to_device(session, &nowhere.array, array.place()));
  CHECK(array.id() == 0);
  const Host empty(nullptr, QUERN_FLOAT32, {0, 3});
  QUERN_GOOD(quern_to_device(session, &empty.array, array.place()));
  array = new_array(session, QUERN_FLOAT32, {4, 6});
  const Host other_shape(values.data(), QUERN_FLOAT32, {6, 4});
  QUERN_FAILS(QUERN_USAGE, "(6, 4)", quern_array_from_host_array(array, &other_shape.array));
  const Host other_type(values.data(), QUERN_INT32, {4, 6});
  QUERN_FAILS(QUERN_USAGE, "int32", quern_array_to_host_array(array, &other_type.array));
  Host read_only(values.data(), QUERN_FLOAT32, {4, 6});
  read_only.array.read_only = 1;
  QUERN_GOOD(quern_array_from_host_array(array, &read_only.array));
  QUERN_FAILS(QUERN_USAGE, "read-only", quern_array_to_host_array(array, &read_only.array));
}

TEST_CASE("arrays of records keep their fields, nested and array fields among them") {
  const Session session = open_cpu();
  std::vector<Particle> all = particles(5);
  const Host host(all.data(), particle(), {5});
  Array array;
  QUERN_GOOD(quern_to_device(session, &host.array, array.place()));
  const auto field = [&](QuernArray of, const char* name) {
    Array view;
    QUERN_GOOD(quern_array_field(of, name, view.place()));
    return view;
  };
  CHECK(values_of<double>(field(array, "mass"), 5) == std::vector<double>{0, 10, 20, 30, 40});
  CHECK(values_of<float>(field(array, "position"), 15)[12] == 4);
  CHECK(values_of<std::int16_t>(field(field(array, "tag"), "kind"), 5)[4] == -4);
  CHECK(values_of<std::uint8_t>(field(field(array, "tag"), "flags"), 10)[8] == 4);
  Array none;
  QUERN_FAILS(QUERN_USAGE, "it has position, mass, tag", quern_array_field(array, "speed", none.place()));

  double heavy = 7;
  const Host value(&heavy, QUERN_FLOAT64, {});
  QUERN_GOOD(quern_array_assign(field(array, "mass"), &value.array));
  QUERN_GOOD(quern_array_to_host_array(array, &host.array));
  CHECK(all[3].mass == 7);
  CHECK(all[3].position[0] == 3);
  CHECK(all[3].tag.kind == -3);
}

TEST_CASE("a description tells a record's fields, and an array adopted from it has them") {
  const Session session = open_cpu();
  std::vector<Particle> all = particles(3);
  const Host host(all.data(), particle(), {3});
  Array array;
  QUERN_GOOD(quern_to_device(session, &host.array, array.place()));
  QuernCudaArray description = description_of(array);
  CHECK(std::string(description.typestr) == "|V32");
  REQUIRE(description.descr != nullptr);
  const QuernRecord* record = description.descr->record;
  REQUIRE(record != nullptr);
  CHECK(record->size_bytes == sizeof(Particle));
  REQUIRE(record->field_count == 3);
  REQUIRE(record->field_bytes == sizeof(QuernField));
  CHECK(std::string(record->fields[0].name) == "position");
  CHECK(record->fields[0].ndim == 1);
  CHECK(record->fields[0].shape[0] == 3);
  CHECK(record->fields[1].element.dtype == QUERN_FLOAT64);
  CHECK(record->fields[1].offset_bytes == offsetof(Particle, mass));
  REQUIRE(record->fields[2].element.record != nullptr);
  CHECK(std::string(record->fields[2].element.record->fields[1].name) == "flags");

  Array view, mass;
  QUERN_GOOD(quern_array_adopt(session, &description, nullptr, nullptr, view.place()));
  QUERN_GOOD(quern_array_field(view, "mass", mass.place()));
  CHECK(values_of<double>(mass, 3) == std::vector<double>{0, 10, 20});
  description.descr = nullptr;  // then the bytes are all that is known
  QUERN_GOOD(quern_array_adopt(session, &description, nullptr, nullptr, view.place()));
  QUERN_FAILS(QUERN_USAGE, "", quern_array_field(view, "mass", mass.place()));
  const QuernCudaArray opaque = description_of(view);
  CHECK(opaque.descr->record == nullptr);
  CHECK(opaque.descr->opaque_bytes == 32);
  const QuernElement narrow{QUERN_FLOAT32, 0, 0, nullptr};
  description.descr = &narrow;
  QUERN_FAILS(QUERN_USAGE, "descr", quern_array_adopt(session, &description, nullptr, nullptr, view.place()));
}

TEST_CASE("bfloat16, for which typestr has no letter, keeps its type through a description") {
  const Session session = open_cpu();
  const Array array = new_array(session, QUERN_BFLOAT16, {4});
  const QuernCudaArray description = description_of(array);
  CHECK(description.descr->dtype == QUERN_BFLOAT16);
  Array view;
  QUERN_GOOD(quern_array_adopt(session, &description, nullptr, nullptr, view.place()));
  CHECK(description_of(view).descr->dtype == QUERN_BFLOAT16);
  CHECK(description_of(view).descr->opaque_bytes == 0);
}

TEST_CASE("records that cannot be are refused, those without an end as well") {
  const Session session = open_cpu();
  std::byte data[64] = {};
  QuernRecord record{sizeof(QuernRecord), sizeof(QuernField), nullptr, 0, 8};
  QuernField fields[] = {{"a", {QUERN_INT32, 0, 0, nullptr}, 0, 0, 0, nullptr},
                         {"b", {QUERN_INT32, 0, 0, nullptr}, 4, 0, 0, nullptr}};
  const Host host(data, QuernElement{QUERN_BOOL, 0, 0, &record}, {2});
  Array array;
  const auto refused = [&](const char* part) {
    QUERN_FAILS(QUERN_USAGE, part, quern_to_device(session, &host.array, array.place()));
  };
  refused("1 to 4096 fields");
  record.fields = fields;
  record.field_count = 2;
  QUERN_GOOD(quern_to_device(session, &host.array, array.place()));
  fields[1].offset_bytes = 2;
  refused("overlap");
  fields[1].offset_bytes = 6;
  refused("inside");
  fields[1].offset_bytes = 4;
  fields[1].name = "a";
  refused("differ");
  fields[1].name = nullptr;
  refused("needs a name");
  fields[1].name = "b";
  fields[1].element.dtype = static_cast<QuernDtype>(44);
  refused("QuernDtype");
  fields[1].element = {QUERN_BOOL, 0, 4, &record};
  refused("not both");
  fields[1].element = {QUERN_BOOL, 0, 0, &record};
  refused("holds itself");
  fields[1].element = {QUERN_INT32, 0, 0, nullptr};
  fields[1].reserved = 1;
  refused("reserved");
  fields[1].reserved = 0;
  fields[1].ndim = 1;
  refused("shape");
  const std::int64_t minus[] = {-1};
  fields[1].shape = minus;
  refused("-1");
  const std::int64_t huge[] = {INT64_MAX};
  fields[1].shape = huge;
  CHECK(quern_to_device(session, &host.array, array.place()) == QUERN_USAGE);
  record.field_bytes = 8;
  refused("sizeof(QuernField)");
  record.field_bytes = sizeof(QuernField);
  record.size_bytes = 0;
  refused("size in bytes");
}

TEST_CASE("views share the memory, and keep it when the array is gone") {
  const Session session = open_cpu();
  const std::vector<float> values = counting(24);
  Array array = new_array(session, QUERN_FLOAT32, {4, 6});
  QUERN_GOOD(quern_array_from_host(array, values.data(), 96));
  CHECK(values_of<float>(index(array, {at(-1)}), 6) == std::vector<float>{18, 19, 20, 21, 22, 23});
  CHECK(values_of<float>(index(array, {every(-2), at(1)}), 2) == std::vector<float>{19, 7});
  const QuernIndex middle{QUERN_INDEX_SLICE, QUERN_INDEX_HAS_START | QUERN_INDEX_HAS_STOP, 1, -1, 1};
  CHECK(values_of<float>(index(array, {{QUERN_INDEX_ELLIPSIS, 0, 0, 0, 0}, middle}), 16)[15] == 22);
  const Array column = index(array, {every(1), {QUERN_INDEX_NEW_AXIS, 0, 0, 0, 0}, at(0)});
  CHECK(description_of(column).ndim == 2);
  CHECK(description_of(column).shape[1] == 1);
  Array turned, flat, bits, copy, none;
  QUERN_GOOD(quern_array_transpose(array, turned.place()));
  CHECK(description_of(turned).shape[0] == 6);
  CHECK(values_of<float>(turned, 24)[1] == 6);
  const std::int64_t any[] = {-1, 8}, five[] = {5}, line[] = {-1};
  QUERN_GOOD(quern_array_reshape(array, 2, any, QUERN_ORDER_C, flat.place()));
  CHECK(description_of(flat).shape[0] == 3);
  QUERN_FAILS(QUERN_USAGE, "(5,)", quern_array_reshape(array, 1, five, QUERN_ORDER_C, none.place()));
  QUERN_FAILS(QUERN_USAGE, "without copying",
              quern_array_reshape(turned, 1, line, QUERN_ORDER_C, none.place()));
  QUERN_GOOD(quern_array_clone(turned, QUERN_ORDER_C, {}, copy.place()));
  QUERN_GOOD(quern_array_reshape(copy, 1, line, QUERN_ORDER_C, flat.place()));
  CHECK(values_of<float>(flat, 24)[1] == 6);
  const QuernElement integers{QUERN_UINT32, 0, 0, nullptr};
  QUERN_GOOD(quern_array_as(array, &integers, bits.place()));
  CHECK(values_of<std::uint32_t>(bits, 24)[1] == 0x3f800000u);
  QUERN_FAILS(QUERN_USAGE, "",
              quern_array_index(array, std::vector<QuernIndex>{at(4)}.data(), 1, none.place()));
  QUERN_FAILS(QUERN_USAGE, "",
              quern_array_index(array, std::vector<QuernIndex>{every(0)}.data(), 1, none.place()));

  const std::uint64_t live = stats_of(session, QUERN_MEMORY_DEVICE).live_count;
  array.reset();
  turned.reset();
  CHECK(stats_of(session, QUERN_MEMORY_DEVICE).live_count == live);
  const float nine = 9;
  const Host value(const_cast<float*>(&nine), QUERN_FLOAT32, {});
  QUERN_GOOD(quern_array_assign(column, &value.array));
  CHECK(values_of<std::uint32_t>(bits, 24)[6] == 0x41100000u);
}

TEST_CASE("host memory is page-locked, mapped and managed, and queued copies use it") {
  const Session session = open_cpu();
  Stream stream;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  Pin pin, own;
  void* memory = nullptr;
  QUERN_GOOD(quern_pinned_new(session, 4096, pin.place(), &memory));
  auto* const values = static_cast<std::int32_t*>(memory);
  std::iota(values, values + 1024, 0);
  Host pinned(values, QUERN_INT32, {512});
  pinned.array.pin = pin;
  Array array;
  QUERN_GOOD(quern_to_device_on(session, &pinned.array, stream, array.place()));
  Host back(values + 512, QUERN_INT32, {512});
  back.array.pin = pin;
  QUERN_GOOD(quern_array_to_host_array_on(array, &back.array, stream));
  const std::uint64_t address = pin.id();
  pin.reset();  // the copies keep it
  QUERN_GOOD(quern_stream_synchronize(stream));
  CHECK(values_of<std::int32_t>(array, 512)[511] == 511);
  pinned.array.pin = {address};
  QUERN_FAILS(QUERN_BAD_HANDLE, "page-locked", quern_array_from_host_array_on(array, &pinned.array, stream));

  std::vector<std::int32_t> mine(512, 3), more(512, 4);
  QUERN_GOOD(quern_pin(session, mine.data(), 2048, own.place()));
  Host locked(mine.data(), QUERN_INT32, {512});
  locked.array.pin = own;
  QUERN_GOOD(quern_array_from_host_array_on(array, &locked.array, stream));
  own.reset();  // waits for the copies from it
  std::fill(mine.begin(), mine.end(), -1);
  CHECK(values_of<std::int32_t>(array, 512)[100] == 3);
  QUERN_GOOD(quern_pin(session, mine.data(), 2048, own.place()));
  Host outside(more.data(), QUERN_INT32, {512});
  outside.array.pin = own;
  QUERN_FAILS(QUERN_USAGE, "does not lie", quern_array_from_host_array(array, &outside.array));
}

TEST_CASE("memory that does not exist is not page-locked") {
  const Session session = open_cpu();
  Pin pin;
  void* memory = nullptr;
  QUERN_FAILS(QUERN_USAGE, "18446744073709551615 bytes",
              quern_pinned_new(session, SIZE_MAX, pin.place(), &memory));
  QUERN_FAILS(QUERN_USAGE, "18446744073709551615 bytes", quern_pin(session, &memory, SIZE_MAX, pin.place()));
  auto* const low = reinterpret_cast<void*>(std::uintptr_t{16});
  QUERN_FAILS(QUERN_DRIVER, "no memory is mapped", quern_pin(session, low, 4096, pin.place()));
  const long page = sysconf(_SC_PAGESIZE);
  const auto bytes = static_cast<std::size_t>(page);
  void* const three = mmap(nullptr, 3 * bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  REQUIRE(three != MAP_FAILED);
  auto* const begin = static_cast<std::byte*>(three);
  REQUIRE(munmap(begin + bytes, bytes) == 0);
  QUERN_FAILS(QUERN_DRIVER, "no memory is mapped", quern_pin(session, begin, 3 * bytes, pin.place()));
  QUERN_FAILS(QUERN_DRIVER, "no memory is mapped", quern_pin(session, begin + 8, bytes, pin.place()));
  QUERN_GOOD(quern_pin(session, begin + 8, bytes - 8, pin.place()));
  pin.reset();
  munmap(begin, bytes);
  munmap(begin + 2 * bytes, bytes);
}

TEST_CASE("mapped and managed arrays have a host address, and existing memory is mapped while a view lives") {
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const float by = 2;
  const auto run = [&](QuernArray array) {
    QuernArgument address{};  // the arrays are in Fortran order, which a pointer cannot say
    address.kind = QUERN_ARGUMENT_ADDRESS;
    address.data = description_of(array).data;
    QUERN_GOOD(launch(scale, launch_of(1, 8), {address, scalar_argument(QUERN_FLOAT32, &by)}));
    QUERN_GOOD(quern_session_synchronize(session));
  };
  const Host eight(nullptr, QUERN_FLOAT32, {2, 4}, {}, QUERN_ORDER_FORTRAN);
  Array mapped, managed, view;
  void* memory = nullptr;
  QUERN_GOOD(quern_array_make_mapped(session, &eight.type, QUERN_MAPPED_PORTABLE, mapped.place(), &memory));
  std::fill_n(static_cast<float*>(memory), 8, 3.f);
  run(mapped);
  CHECK(static_cast<float*>(memory)[7] == 6);
  CHECK(description_of(mapped).strides[1] == 8);
  CHECK(stats_of(session, QUERN_MEMORY_MAPPED).live_count == 1);
  QUERN_GOOD(quern_array_make_managed(session, &eight.type, managed.place(), &memory));
  std::fill_n(static_cast<float*>(memory), 8, 4.f);
  run(managed);
  CHECK(static_cast<float*>(memory)[0] == 8);
  CHECK(stats_of(session, QUERN_MEMORY_MANAGED).live_count == 1);

  alignas(64) float mine[8] = {1, 2, 3, 4, 5, 6, 7, 8};
  const Host host(mine, QUERN_FLOAT32, {8});
  QUERN_GOOD(quern_map(session, &host.array, {}, view.place()));
  Array again, part;
  QUERN_FAILS(QUERN_USAGE, "page-locked already", quern_map(session, &host.array, {}, again.place()));
  part = index(view, {every(1)});
  view.reset();
  run(part);
  CHECK(stats_of(session, QUERN_MEMORY_REGISTERED).live_count == 1);
  part.reset();
  CHECK(mine[7] == 16);
  CHECK(stats_of(session, QUERN_MEMORY_REGISTERED).live_count == 0);
}

TEST_CASE("who adopts an array with a stream waits for that stream's work") {
  const Session session = open_cpu();
  const Kernel hold = kernel_of(session, kScalePtx, "hold");
  Stream stream;
  Event after;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  QUERN_GOOD(quern_event_new(session, after.place()));
  const Flag flag(session);
  QuernCudaArray description{};
  description.struct_bytes = sizeof description;
  QUERN_GOOD(quern_array_describe(flag.count, &description));
  CHECK(description.has_stream == 0);
  QUERN_GOOD(quern_array_describe_on(flag.count, {}, &description));
  CHECK(description.has_stream == 1);
  CHECK(description.stream == 1);  // the legacy default stream: 0 is not allowed
  void* native = nullptr;
  QUERN_GOOD(quern_array_describe_on(flag.count, stream, &description));
  QUERN_GOOD(quern_stream_native(stream, &native));
  CHECK(description.stream == reinterpret_cast<std::uint64_t>(native));

  QUERN_GOOD(launch(hold, launch_of(1, 1, stream), flag.arguments()));
  QUERN_GOOD(quern_event_record(after, stream));
  std::int32_t reached = 1;
  QUERN_GOOD(quern_event_query(after, &reached));
  CHECK(reached == 0);
  std::thread opener([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    flag.open();
  });
  Array view;
  const QuernStatus status = quern_array_adopt(session, &description, nullptr, nullptr, view.place());
  QUERN_GOOD(quern_event_query(after, &reached));
  opener.join();
  CHECK(status == QUERN_OK);
  CHECK(reached == 1);
  CHECK(values_of<std::uint32_t>(view, 1)[0] == 1);
}

TEST_CASE(
    "what an adopted array says of streams, versions and masks is checked; its owner is told each time") {
  const Session session = open_cpu();
  const Array array = to_device(session, QUERN_INT32, std::vector<int>{1, 2, 3});
  const QuernCudaArray good = description_of(array);
  int released = 0;
  const auto release = [](void* user) { ++*static_cast<int*>(user); };
  Array view;
  const auto refused = [&](const QuernCudaArray& description, const char* part) {
    const int before = released;
    QUERN_FAILS(QUERN_USAGE, part,
                quern_array_adopt(session, &description, release, &released, view.place()));
    CHECK(released == before + 1);
  };
  QuernCudaArray wrong = good;
  wrong.has_stream = 1;
  wrong.stream = 0;
  refused(wrong, "stream is 0");
  wrong = good;
  wrong.version = 0;
  refused(wrong, "version 0");
  wrong.version = 4;  // may say what this quern would not heed
  refused(wrong, "version 4");
  wrong = good;
  wrong.mask = &released;
  refused(wrong, "masked");
  wrong = good;
  wrong.typestr = ">i4";
  refused(wrong, ">i4");
  wrong.typestr = nullptr;
  refused(wrong, "typestr");
  wrong = good;
  wrong.ndim = -1;
  refused(wrong, "dimensions");
  wrong = good;
  wrong.data = &released;  // host memory
  refused(wrong, "does not know its address");
  for (const std::uint64_t stream : {1u, 2u}) {  // the legacy and the per-thread default stream
    QuernCudaArray said = good;
    said.has_stream = 1;
    said.stream = stream;
    QUERN_GOOD(quern_array_adopt(session, &said, nullptr, nullptr, view.place()));
    CHECK(values_of<int>(view, 3)[2] == 3);
  }
  QuernCudaArray read_only = good;
  read_only.read_only = 1;
  QUERN_GOOD(quern_array_adopt(session, &read_only, release, &released, view.place()));
  const int four[] = {4, 4, 4};
  QUERN_FAILS(QUERN_USAGE, "read-only", quern_array_from_host(view, four, sizeof four));
  CHECK(description_of(view).read_only == 1);
  released = 0;
  view.reset();
  CHECK(released == 1);
}

TEST_CASE("arrays go out by both ABIs of DLPack and come back") {
  const Session session = open_cpu();
  Array array = to_device(session, QUERN_INT32, std::vector<int>{1, 2, 3});
  void* const address = description_of(array).data;
  void* tensor = nullptr;
  Array back;
  QUERN_GOOD(quern_array_to_dlpack_unversioned(array, 0, &tensor));
  QUERN_GOOD(quern_array_from_dlpack_unversioned(session, tensor, back.place()));
  CHECK(description_of(back).data == address);
  QUERN_GOOD(quern_array_to_dlpack(array, 0, &tensor));
  QUERN_GOOD(quern_array_from_dlpack(session, tensor, back.place()));
  array.reset();
  CHECK(values_of<int>(back, 3)[2] == 3);
  QUERN_FAILS(QUERN_USAGE, "host does not see", quern_array_to_dlpack(back, 1, &tensor));
  std::vector<Particle> all = particles(1);
  const Host host(all.data(), particle(), {1});
  QUERN_GOOD(quern_to_device(session, &host.array, array.place()));
  QUERN_FAILS(QUERN_USAGE, "single fields", quern_array_to_dlpack(array, 0, &tensor));
}
