// SPDX-License-Identifier: Apache-2.0
#include "quern/element_type.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quern/error.hpp"

namespace quern {
namespace {

struct TypestrRow {
  Dtype dtype;
  std::string_view typestr;
  std::string_view cuda;  // the type's name in kernel source
};
constexpr TypestrRow kTypestrs[] = {
    {Dtype::bool_, "|b1", "bool"},
    {Dtype::int8, "|i1", "signed char"},
    {Dtype::int16, "<i2", "short"},
    {Dtype::int32, "<i4", "int"},
    {Dtype::int64, "<i8", "long long"},
    {Dtype::uint8, "|u1", "unsigned char"},
    {Dtype::uint16, "<u2", "unsigned short"},
    {Dtype::uint32, "<u4", "unsigned int"},
    {Dtype::uint64, "<u8", "unsigned long long"},
    {Dtype::float16, "<f2", "__half"},
    {Dtype::bfloat16, "<V2", "__nv_bfloat16"},
    {Dtype::float32, "<f4", "float"},
    {Dtype::float64, "<f8", "double"},
    {Dtype::complex64, "<c8", "cuda::std::complex<float>"},
    {Dtype::complex128, "<c16", "cuda::std::complex<double>"},
};

std::size_t round_up(std::size_t value, std::size_t multiple) {
  return (value + multiple - 1) / multiple * multiple;
}

std::vector<Field> placed(std::vector<Field> fields, bool aligned, std::size_t& size) {
  std::size_t at = 0;
  std::size_t widest = 1;
  for (Field& field : fields) {
    const std::size_t align = aligned ? align_bytes(field.element) : 1;
    widest = std::max(widest, align);
    field.offset_bytes = round_up(at, align);
    at = field.offset_bytes + field.size_bytes();
  }
  size = round_up(at, widest);
  return fields;
}

std::string names_of(std::span<const Field> fields) {
  std::string text;
  for (const Field& field : fields) text += (text.empty() ? "" : ", ") + field.name;
  return text.empty() ? "it has none" : "it has " + text;
}

void check_fields(std::span<const Field> fields, std::size_t size) {
  std::vector<const Field*> order;
  for (const Field& field : fields) {
    const auto same = [&](const Field& other) { return other.name == field.name; };
    if (field.name.empty() || std::count_if(fields.begin(), fields.end(), same) != 1)
      throw Error(
          ErrorCode::usage,
          fmt::format("cannot make a record type with a field named '{}': field names must be there and "
                      "differ; rename it",
                      field.name));
    order.push_back(&field);
  }
  std::sort(order.begin(), order.end(),
            [](const Field* a, const Field* b) { return a->offset_bytes < b->offset_bytes; });
  std::size_t end = 0;
  for (const Field* field : order) {
    if (field->offset_bytes < end || field->offset_bytes > size ||
        field->size_bytes() > size - field->offset_bytes)
      throw Error(
          ErrorCode::usage,
          fmt::format("cannot place field '{}' of {} bytes at offset {} of a record of {} bytes: fields "
                      "must not overlap and must lie inside; choose another offset",
                      field->name, field->size_bytes(), field->offset_bytes, size));
    end = field->offset_bytes + field->size_bytes();
  }
}

std::string cuda_type(const ElementType& element, std::string_view owner, std::string_view field) {
  if (element.record != nullptr) return fmt::format("{}_{}", owner, field);
  if (!element.dtype) return "";
  return std::string(kTypestrs[static_cast<std::size_t>(*element.dtype)].cuda);
}

std::string cuda_field(const Field& field, std::string_view owner) {
  const std::string type = cuda_type(field.element, owner, field.name);
  if (type.empty()) return fmt::format("unsigned char {}[{}];", field.name, field.size_bytes());
  std::string text = type + " " + field.name;
  for (const std::int64_t extent : field.shape) text += fmt::format("[{}]", extent);
  return text + ";";
}

}  // namespace

ElementType::ElementType(RecordType type)
    : size_bytes(type.size_bytes()), record(std::make_shared<const RecordType>(std::move(type))) {}

bool operator==(const ElementType& a, const ElementType& b) noexcept {
  if (a.dtype != b.dtype || a.size_bytes != b.size_bytes) return false;
  if (a.record == b.record) return true;
  return a.record != nullptr && b.record != nullptr && *a.record == *b.record;
}

std::size_t Field::size_bytes() const noexcept {
  std::size_t bytes = element.size_bytes;
  for (const std::int64_t extent : shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

RecordType::RecordType(std::vector<Field> fields, std::size_t size_bytes)
    : fields_(std::move(fields)), size_bytes_(size_bytes) {
  check_fields(fields_, size_bytes_);
}

RecordType RecordType::aligned(std::vector<Field> fields) {
  std::size_t size = 0;
  std::vector<Field> at = placed(std::move(fields), true, size);
  return RecordType(std::move(at), size);
}

RecordType RecordType::packed(std::vector<Field> fields) {
  std::size_t size = 0;
  std::vector<Field> at = placed(std::move(fields), false, size);
  return RecordType(std::move(at), size);
}

const Field* RecordType::find(std::string_view name) const noexcept {
  for (const Field& field : fields_)
    if (field.name == name) return &field;
  return nullptr;
}

const Field& RecordType::field(std::string_view name) const {
  if (const Field* found = find(name)) return *found;
  throw Error(ErrorCode::usage, fmt::format("the record has no field '{}'; {}", name, names_of(fields_)));
}

std::string RecordType::cuda_source(std::string_view name) const {
  std::string before;
  std::string body;
  std::size_t at = 0;
  std::size_t widest = 1;
  for (const Field& field : fields_) {
    const std::size_t align = align_bytes(field.element);
    widest = std::max(widest, align);
    if (field.offset_bytes < at || field.offset_bytes % align != 0)
      throw Error(
          ErrorCode::usage,
          fmt::format("cannot write the record as struct {}: field '{}' at offset {} is not where a C++ "
                      "compiler can put it; use RecordType::aligned()",
                      name, field.name, field.offset_bytes));
    if (field.element.record != nullptr)
      before += field.element.record->cuda_source(cuda_type(field.element, name, field.name)) + "\n";
    if (field.offset_bytes > round_up(at, align))
      body += fmt::format(" unsigned char padding_at_{}[{}];", at, field.offset_bytes - at);
    body += " " + cuda_field(field, name);
    at = field.offset_bytes + field.size_bytes();
  }
  if (size_bytes_ > round_up(at, widest))
    body += fmt::format(" unsigned char padding_at_{}[{}];", at, size_bytes_ - at);
  if (size_bytes_ % widest != 0)
    throw Error(ErrorCode::usage,
                fmt::format("cannot write the record as struct {}: its {} bytes are no multiple of "
                            "its alignment {}; use RecordType::aligned()",
                            name, size_bytes_, widest));
  return fmt::format("{}struct {} {{{} }};", before, name, body);
}

std::size_t align_bytes(const ElementType& element) noexcept {
  if (element.dtype == Dtype::complex64) return 8;    // cuda::std::complex<float> is aligned as float2
  if (element.dtype == Dtype::complex128) return 16;  // and complex<double> as double2
  if (element.dtype) return element.size_bytes;
  std::size_t widest = 1;
  if (element.record != nullptr)
    for (const Field& field : element.record->fields()) widest = std::max(widest, align_bytes(field.element));
  return widest;
}

std::string to_string(const ElementType& element) {
  if (element.dtype) return std::string(name(*element.dtype));
  if (element.record == nullptr) return fmt::format("{}-byte record", element.size_bytes);
  std::string fields;
  for (const Field& field : element.record->fields()) {
    fields += fmt::format("{}{}: {}", fields.empty() ? "" : ", ", field.name, to_string(field.element));
    if (!field.shape.empty()) fields += shape_text(field.shape);
  }
  return fmt::format("{}-byte record {{{}}}", element.size_bytes, fields);
}

std::string typestr(const ElementType& element) {
  if (element.dtype) return std::string(kTypestrs[static_cast<std::size_t>(*element.dtype)].typestr);
  return fmt::format("|V{}", element.size_bytes);
}

std::optional<ElementType> element_of_typestr(std::string_view typestr) {
  if (typestr.size() < 3) return std::nullopt;
  for (const TypestrRow& row : kTypestrs) {
    if (row.typestr.substr(1) != typestr.substr(1)) continue;
    const bool one_byte = size_bytes(row.dtype) == 1;
    if (typestr[0] == '<' || typestr[0] == '=' || (one_byte && (typestr[0] == '|' || typestr[0] == '>')))
      return ElementType(row.dtype);
  }
  if (typestr[1] != 'V') return std::nullopt;
  std::size_t bytes = 0;
  for (const char digit : typestr.substr(2)) {
    if (digit < '0' || digit > '9' || bytes > (std::size_t{1} << 40)) return std::nullopt;
    bytes = bytes * 10 + static_cast<std::size_t>(digit - '0');
  }
  return ElementType::opaque(bytes);
}

std::string shape_text(std::span<const std::int64_t> shape) {
  std::string text = "(";
  for (std::size_t axis = 0; axis < shape.size(); ++axis)
    text += fmt::format("{}{}", axis == 0 ? "" : ", ", shape[axis]);
  return text + (shape.size() == 1 ? ",)" : ")");
}

}  // namespace quern
