// SPDX-License-Identifier: Apache-2.0
#include "session/c_abi/structs.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <limits>

#include "session/c_abi/handles.hpp"

namespace quern::session::c_abi {
namespace {

// Structs of the ABI may only grow at their end: a caller that was compiled against an older header has these
// offsets in it.
static_assert(sizeof(void*) == 8, "the numbers below are those of 64-bit machines");
static_assert(sizeof(QuernStatus) == 4 && sizeof(QuernDtype) == 4 && sizeof(QuernArgumentKind) == 4);
static_assert(sizeof(QuernSession) == 8 && sizeof(QuernArgument) == 32);
static_assert(offsetof(QuernArgument, array) == 8 && offsetof(QuernArgument, bytes) == 24);
static_assert(Versioned<QuernLaunch>::kFirstBytes == 48 && offsetof(QuernLaunch, stream) == 40);
static_assert(Versioned<QuernSessionOptions>::kFirstBytes == 16 && sizeof(QuernSessionOptions) == 32);
static_assert(sizeof(QuernCompileOptions) == 32 && sizeof(QuernCompileStats) == 40 &&
              sizeof(QuernCacheStats) == 96);
static_assert(Versioned<QuernCudaArray>::kFirstBytes == 72 && offsetof(QuernCudaArray, stream) == 64);
static_assert(Versioned<QuernAllocator>::kFirstBytes == 40 && offsetof(QuernAllocator, release) == 32);
static_assert(Versioned<QuernSource>::kFirstBytes == 40 && offsetof(QuernSource, option_count) == 32);
static_assert(sizeof(QuernElement) == 24 && sizeof(QuernField) == 56 && sizeof(QuernRecord) == 32);
static_assert(sizeof(QuernArrayType) == 56 && sizeof(QuernHostArray) == 32 && sizeof(QuernIndex) == 32);
static_assert(Versioned<QuernKernelInfo>::kFirstBytes == 48 && sizeof(QuernParameter) == 48 &&
              sizeof(QuernMemoryStats) == 56);
static_assert(sizeof(QuernDeviceInfo) == 376 && offsetof(QuernDeviceInfo, name) == 120);

// A larger struct_bytes is invalid: the caller forgot to set it.
constexpr std::size_t kMostStructBytes = 4096;
constexpr std::int32_t kMostDimensions = 64;  // NumPy's
constexpr std::size_t kMostFields = 4096;
constexpr const char* kReserved = "the reserved fields of a struct must be 0";
constexpr int kMostNesting = 16;  // a record that contains itself has no end

ElementType element_of(const QuernElement& given, int depth);

std::vector<std::int64_t> numbers(std::int32_t count, const std::int64_t* values) {
  return count == 0 ? std::vector<std::int64_t>() : std::vector<std::int64_t>(values, values + count);
}

Field field_of(const QuernField& given, int depth) {
  require(given.name != nullptr, "a field of a record needs a name");
  require(given.reserved == 0, kReserved);
  Field field;
  field.name = given.name;
  field.element = element_of(given.element, depth);
  field.offset_bytes = given.offset_bytes;
  field.shape = shape_of(given.ndim, given.shape);
  // As an array of its own it must have a size; the record's own checks add it up.
  static_cast<void>(Layout(field.shape, field.element.size_bytes));
  return field;
}

ElementType record_of(const QuernRecord* given, int depth) {
  require(depth < kMostNesting, "a record is nested more than 16 deep, or holds itself; flatten it");
  const QuernRecord record = read_struct(given);
  require(record.field_count > 0 && record.field_count <= kMostFields && record.fields != nullptr,
          "a record needs from 1 to 4096 fields");
  require(record.size_bytes > 0 && record.size_bytes <= static_cast<std::size_t>(INT64_MAX),
          "a record needs its size in bytes");
  std::vector<Field> fields;
  const auto* at = reinterpret_cast<const std::byte*>(record.fields);
  for (std::size_t i = 0; i < record.field_count; ++i, at += record.field_bytes) {
    QuernField field{};
    read_known(&field, sizeof field, at, record.field_bytes, sizeof(QuernField), "QuernField");
    fields.push_back(field_of(field, depth + 1));
  }
  return RecordType(std::move(fields), record.size_bytes);
}

ElementType element_of(const QuernElement& given, int depth) {
  require(given.reserved == 0, kReserved);
  require(given.record == nullptr || given.opaque_bytes == 0,
          "an element is a record or opaque bytes, not both");
  if (given.record != nullptr) return record_of(given.record, depth);
  if (given.opaque_bytes != 0) return ElementType::opaque(given.opaque_bytes);
  return dtype_of(given.dtype);
}

/// Owned if quern knows the owner of the lock on the memory: then queued copies access it directly.
NDArray lock_in(const NDArray& array, QuernPin handle) {
  const PinObject pin = find<PinObject>(handle.id);
  const Layout::Reach reach = array.layout().reach();
  const std::byte* const begin = array.data() + reach.lowest;
  const std::byte* const pinned = pin.memory.data();
  const bool inside = begin >= pinned && begin + reach.size_bytes() <= pinned + pin.memory.size_bytes();
  require(array.size() == 0 || inside, "the host array does not lie in the page-locked memory that it names");
  if (pin.lock == nullptr)
    return NDArray(pin.memory.owner(), array.data(), array.element(), array.layout(), true);
  // The lock's end waits for the copies that use it; the memory itself is the program's.
  const std::shared_ptr<const void> unowned(std::shared_ptr<const void>(), array.data());
  return NDArray(unowned, array.data(), array.element(), array.layout());
}

}  // namespace

void read_known(void* known, std::size_t known_bytes, const void* given, std::size_t given_bytes,
                std::size_t first_bytes, const char* name) {
  if (given_bytes < first_bytes || given_bytes > kMostStructBytes)
    throw Error(ErrorCode::usage, fmt::format("a {} of {} bytes was given; set its size to sizeof({})", name,
                                              given_bytes, name));
  std::memcpy(known, given, std::min(known_bytes, given_bytes));
  const auto* const bytes = static_cast<const std::byte*>(given);
  if (given_bytes > known_bytes && std::any_of(bytes + known_bytes, bytes + given_bytes,
                                               [](std::byte byte) { return byte != std::byte{0}; }))
    throw Error(ErrorCode::unsupported,
                fmt::format("{} has fields after its first {} bytes that are not 0, and this libquern "
                            "(version {} of the C ABI) "
                            "does not know them; use the libquern that the program was compiled for",
                            name, known_bytes, QUERN_ABI_VERSION));
}

void check_target(const void* target, std::size_t first_bytes, const char* name) {
  if (target == nullptr) throw Error(ErrorCode::usage, fmt::format("a pointer for a {} is needed", name));
  std::uint32_t bytes = 0;
  std::memcpy(&bytes, target, sizeof bytes);
  if (bytes < first_bytes || bytes > kMostStructBytes)
    throw Error(ErrorCode::usage,
                fmt::format("a pointer for a {} of {} bytes was given; set its struct_bytes to "
                            "sizeof({})",
                            name, bytes, name));
}

QuernElement CElement::describe(const ElementType& element) {
  QuernElement result{};
  if (element.record != nullptr)
    result.record = describe(*element.record);
  else if (element.dtype)
    result.dtype = static_cast<QuernDtype>(*element.dtype);
  else
    result.opaque_bytes = element.size_bytes;
  return result;
}

QuernField CElement::describe(const Field& field) {
  QuernField result{};
  result.name = names_.emplace_back(field.name).c_str();
  result.element = describe(field.element);
  result.offset_bytes = field.offset_bytes;
  result.ndim = static_cast<std::int32_t>(field.shape.size());
  result.shape = shapes_.emplace_back(field.shape).data();
  return result;
}

const QuernRecord* CElement::describe(const RecordType& record) {
  std::vector<QuernField> fields;
  for (const Field& field : record.fields()) fields.push_back(describe(field));
  const std::vector<QuernField>& kept = fields_.emplace_back(std::move(fields));
  return &records_.emplace_back(
      QuernRecord{sizeof(QuernRecord), sizeof(QuernField), kept.data(), kept.size(), record.size_bytes()});
}

Dtype dtype_of(QuernDtype dtype) {
  require(dtype >= QUERN_BOOL && dtype <= QUERN_COMPLEX128, "the dtype is not a value of QuernDtype");
  return static_cast<Dtype>(dtype);
}

Where where_of(QuernWhere where) {
  require(where == QUERN_WHERE_HOST || where == QUERN_WHERE_DEVICE, "the side is not a value of QuernWhere");
  return where == QUERN_WHERE_HOST ? Where::host : Where::device;
}

Order order_of(QuernOrder order) {
  require(order == QUERN_ORDER_C || order == QUERN_ORDER_FORTRAN, "the order is not a value of QuernOrder");
  return order == QUERN_ORDER_C ? Order::c : Order::f;
}

ElementType element_of(const QuernElement& given) { return element_of(given, 0); }

Shape shape_of(std::int32_t ndim, const std::int64_t* values) {
  require(ndim >= 0 && ndim <= kMostDimensions, "an array has from 0 to 64 dimensions");
  require(ndim == 0 || values != nullptr, "an array needs its shape");
  return numbers(ndim, values);
}

Layout ArrayType::layout() const {
  return strides_bytes ? Layout(shape, element.size_bytes, *strides_bytes)
                       : Layout(shape, element.size_bytes, order);
}

ArrayType array_type_of(const QuernArrayType* given) {
  require(given != nullptr, "an array needs a QuernArrayType");
  const QuernArrayType type = read_struct(given);
  require(type.reserved == 0, kReserved);
  ArrayType result{element_of(type.element), order_of(type.order), shape_of(type.ndim, type.shape), {}};
  if (type.strides != nullptr) result.strides_bytes = numbers(type.ndim, type.strides);
  return result;
}

NDArray host_array_of(const QuernHostArray* given) {
  require(given != nullptr, "a QuernHostArray is needed");
  const QuernHostArray host = read_struct(given);
  const ArrayType type = array_type_of(host.type);
  NDArray array(nullptr, host.data, type.element, type.layout());
  require(array.size_bytes() == 0 || host.data != nullptr,
          "a host array with elements needs its data's address");
  if (host.pin.id != 0) array = lock_in(array, host.pin);
  return host.read_only != 0 ? array.as_read_only() : array;
}

CudaArrayInterface interface_of(const QuernCudaArray& given) {
  require(given.typestr != nullptr, "the array's description needs a typestr");
  CudaArrayInterface array;
  array.version = static_cast<int>(given.version);
  array.shape = shape_of(given.ndim, given.shape);
  if (given.strides != nullptr) array.strides_bytes = numbers(given.ndim, given.strides);
  array.typestr = given.typestr;
  if (given.descr != nullptr) array.descr = element_of(*given.descr);
  array.data = given.data;
  array.read_only = given.read_only != 0;
  array.mask = given.mask;
  if (given.has_stream != 0) array.stream = given.stream;
  return array;
}

Index index_of(const QuernIndex& given) {
  switch (given.kind) {
    case QUERN_INDEX_AT:
      return Index(given.start);
    case QUERN_INDEX_SLICE: {
      constexpr std::uint32_t kBounds = QUERN_INDEX_HAS_START | QUERN_INDEX_HAS_STOP;
      require((given.bounds & ~kBounds) == 0, "a slice's bounds are QUERN_INDEX_HAS_START and _STOP");
      Slice slice{{}, {}, given.step};
      if ((given.bounds & QUERN_INDEX_HAS_START) != 0) slice.start = given.start;
      if ((given.bounds & QUERN_INDEX_HAS_STOP) != 0) slice.stop = given.stop;
      return Index(slice);
    }
    case QUERN_INDEX_ELLIPSIS:
      return kEllipsis;
    case QUERN_INDEX_NEW_AXIS:
      return kNewAxis;
  }
  throw Error(ErrorCode::usage, "the index's kind is not a value of QuernIndexKind");
}

std::chrono::nanoseconds nanoseconds_of(std::uint64_t count) {
  return std::chrono::nanoseconds(
      static_cast<std::int64_t>(std::min<std::uint64_t>(count, std::numeric_limits<std::int64_t>::max())));
}

LaunchConfig config_of(const QuernLaunch& launch, StreamView stream) {
  LaunchConfig config;
  config.grid = {launch.grid[0], launch.grid[1], launch.grid[2]};
  config.block = {launch.block[0], launch.block[1], launch.block[2]};
  config.shared_bytes = launch.shared_bytes;
  config.stream = stream;
  config.cooperative = launch.cooperative != 0;
  config.timeout = nanoseconds_of(launch.timeout_ns);
  return config;
}

}  // namespace quern::session::c_abi
