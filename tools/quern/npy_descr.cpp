// SPDX-License-Identifier: Apache-2.0
#include "tools/quern/npy_descr.hpp"

#include <fmt/format.h>

#include <charconv>
#include <optional>

namespace tool {
namespace {

constexpr std::size_t kMaxElementBytes = std::size_t{1} << 31;
constexpr std::size_t kMaxSwaps = std::size_t{1} << 16;

struct CodeRow {
  char kind;
  std::size_t size;
  quern::Dtype dtype;
};
constexpr CodeRow kCodes[] = {
    {'b', 1, quern::Dtype::bool_},     {'i', 1, quern::Dtype::int8},        {'i', 2, quern::Dtype::int16},
    {'i', 4, quern::Dtype::int32},     {'i', 8, quern::Dtype::int64},       {'u', 1, quern::Dtype::uint8},
    {'u', 2, quern::Dtype::uint16},    {'u', 4, quern::Dtype::uint32},      {'u', 8, quern::Dtype::uint64},
    {'f', 2, quern::Dtype::float16},   {'f', 4, quern::Dtype::float32},     {'f', 8, quern::Dtype::float64},
    {'c', 8, quern::Dtype::complex64}, {'c', 16, quern::Dtype::complex128}, {'V', 2, quern::Dtype::bfloat16},
};

quern::Diagnostic refused(std::string message) {
  quern::Diagnostic diagnostic;
  diagnostic.code = "npy";
  diagnostic.message = std::move(message);
  diagnostic.hint = "save the array with another dtype (array.astype(...))";
  return diagnostic;
}

/// '<f4' taken apart.
struct TypeString {
  char order = '|';
  char kind = 0;
  std::size_t size = 0;
  std::string rest;  ///< the unit of a time
};

std::optional<TypeString> read_type_string(const std::string& text) {
  TypeString type;
  std::size_t at = 0;
  if (!text.empty() && (text[0] == '<' || text[0] == '>' || text[0] == '|' || text[0] == '='))
    type.order = text[at++];
  if (at >= text.size()) return std::nullopt;
  type.kind = text[at++];
  const auto [end, error] = std::from_chars(text.data() + at, text.data() + text.size(), type.size);
  if (error != std::errc()) return std::nullopt;
  type.rest.assign(end, text.data() + text.size());
  const bool has_unit = type.rest.size() > 2 && type.rest.front() == '[' && type.rest.back() == ']';
  if (!type.rest.empty() && !(has_unit && (type.kind == 'M' || type.kind == 'm'))) return std::nullopt;
  return type;
}

/// Bytes of the values that a byte order applies to; 0: none.
std::size_t ordered_bytes(const TypeString& type) {
  switch (type.kind) {
    case 'c':
      return type.size / 2;
    case 'U':
      return 4;
    case 'S':
    case 'V':
      return 0;
    default:
      return type.size;
  }
}

quern::Expected<Descr> read_scalar(const std::string& text) {
  const std::optional<TypeString> type = read_type_string(text);
  if (!type) return refused(fmt::format("the element type '{}' is not understood", text));
  if (type->kind == 'O') return refused("its elements are Python objects");
  Descr descr;
  for (const CodeRow& row : kCodes)
    if (row.kind == type->kind && row.size == type->size) descr.element = ElementKind::of(row.dtype);
  const bool opaque =
      type->kind == 'V' || type->kind == 'S' || type->kind == 'U' || type->kind == 'M' || type->kind == 'm';
  const std::size_t unit = type->kind == 'U' ? 4 : 1;
  if (!descr.element.dtype) {
    if (!opaque) return refused(fmt::format("the element type '{}' has no counterpart in kernels", text));
    if (type->size > kMaxElementBytes / unit)
      return refused(fmt::format("elements of type '{}' are too large", text));
    descr.element.size_bytes = type->size * unit;
    const char order = type->kind == 'S' || type->kind == 'V' ? '|' : '<';
    descr.element.descr = python_string(fmt::format("{}{}{}{}", order, type->kind, type->size, type->rest));
  }
  const std::size_t ordered = ordered_bytes(*type);
  if (type->order == '>' && ordered > 1 && descr.element.size_bytes > 0)
    descr.swaps.push_back({0, ordered, descr.element.size_bytes / ordered});
  return descr;
}

std::optional<std::vector<std::int64_t>> read_extents(const PythonLiteral& literal) {
  if (const std::int64_t* one = literal.integer()) return std::vector<std::int64_t>{*one};
  const PythonLiteral::Sequence* sequence = literal.sequence();
  if (sequence == nullptr) return std::nullopt;
  std::vector<std::int64_t> extents;
  for (const PythonLiteral& item : sequence->items) {
    if (item.integer() == nullptr) return std::nullopt;
    extents.push_back(*item.integer());
  }
  return extents;
}

std::string extents_text(const std::vector<std::int64_t>& extents) {
  std::string text = "(";
  for (std::size_t i = 0; i < extents.size(); ++i)
    text += fmt::format("{}{}", i == 0 ? "" : ", ", extents[i]);
  return text + (extents.size() == 1 ? ",)" : ")");
}

/// `base` repeated: `shape` of them, one after the other.
quern::Expected<Descr> repeat(const Descr& base, const PythonLiteral& shape) {
  const std::optional<std::vector<std::int64_t>> extents = read_extents(shape);
  const std::optional<std::size_t> bytes =
      extents ? checked_bytes(*extents, base.element.size_bytes) : std::nullopt;
  if (!bytes || *bytes > kMaxElementBytes)
    return refused("the shape of a subarray is not understood, or too large");
  Descr descr;
  descr.element.size_bytes = *bytes;
  descr.element.descr = fmt::format("({}, {})", base.element.descr, extents_text(*extents));
  if (base.swaps.empty() || *bytes == 0) return descr;
  const Swap& first = base.swaps.front();
  if (base.swaps.size() == 1 && first.value_bytes * first.count == base.element.size_bytes) {
    descr.swaps.push_back({0, first.value_bytes, *bytes / first.value_bytes});
    return descr;
  }
  if (*bytes / base.element.size_bytes * base.swaps.size() > kMaxSwaps)
    return refused("a subarray of swapped records is too large");
  for (std::size_t offset = 0; offset < *bytes; offset += base.element.size_bytes)
    for (const Swap& swap : base.swaps)
      descr.swaps.push_back({offset + swap.offset, swap.value_bytes, swap.count});
  return descr;
}

/// A field's name, or its (title, name).
std::optional<std::string> read_field_name(const PythonLiteral& literal) {
  if (literal.string() != nullptr) return python_string(*literal.string());
  const PythonLiteral::Sequence* pair = literal.sequence();
  if (pair == nullptr || pair->items.size() != 2 || pair->items[0].string() == nullptr ||
      pair->items[1].string() == nullptr)
    return std::nullopt;
  return fmt::format("({}, {})", python_string(*pair->items[0].string()),
                     python_string(*pair->items[1].string()));
}

quern::Expected<Descr> read_record(const PythonLiteral::Sequence& fields) {
  Descr record;
  std::string text;
  for (const PythonLiteral& item : fields.items) {
    const PythonLiteral::Sequence* field = item.sequence();
    if (field == nullptr || field->items.size() < 2 || field->items.size() > 3)
      return refused("a record's field is not understood");
    const std::optional<std::string> name = read_field_name(field->items[0]);
    if (!name) return refused("the name of a record's field is not understood");
    quern::Expected<Descr> descr = read_descr(field->items[1]);
    if (!descr) return descr;
    std::string shown = fmt::format("({}, {}", *name, descr->element.descr);
    if (field->items.size() == 3) {
      descr = repeat(*descr, field->items[2]);
      if (!descr) return descr;
      shown += ", " + extents_text(*read_extents(field->items[2]));
    }
    for (const Swap& swap : descr->swaps)
      record.swaps.push_back({record.element.size_bytes + swap.offset, swap.value_bytes, swap.count});
    record.element.size_bytes += descr->element.size_bytes;
    if (record.element.size_bytes > kMaxElementBytes) return refused("its records are too large");
    text += (text.empty() ? "" : ", ") + shown + ")";
  }
  record.element.descr = "[" + text + "]";
  return record;
}

}  // namespace

quern::Expected<Descr> read_descr(const PythonLiteral& literal) {
  if (const std::string* text = literal.string()) return read_scalar(*text);
  const PythonLiteral::Sequence* sequence = literal.sequence();
  if (sequence == nullptr) return refused("its element type is not understood");
  if (!sequence->tuple) return read_record(*sequence);
  if (sequence->items.size() != 2) return refused("its element type is not understood");
  const quern::Expected<Descr> base = read_descr(sequence->items[0]);
  return base ? repeat(*base, sequence->items[1]) : base;
}

}  // namespace tool
