// SPDX-License-Identifier: Apache-2.0
// Emits numbers, records and arrays of the file's level as C++ constant expressions. No CUDA function is
// constexpr, so infinities are written as quotients and halves as their bits.
#include <fmt/format.h>

#include <bit>
#include <cmath>

#include "frontend/codegen/emit.hpp"
#include "quern/half.hpp"

namespace quern::frontend {
namespace {

/// Rounds to float to odd: an inexact result has an odd last bit. A second rounding, to fewer bits, then
/// gives the same result as a single rounding.
float rounded_to_odd(double value) {
  const auto nearest = static_cast<float>(value);
  if (static_cast<double>(nearest) == value || !std::isfinite(nearest)) return nearest;
  const float inner =
      std::abs(static_cast<double>(nearest)) > std::abs(value) ? std::nextafter(nearest, 0.0F) : nearest;
  return std::bit_cast<float>(std::bit_cast<std::uint32_t>(inner) | 1U);
}

CppText real_initialiser(double value, CppType cpp_type) {
  if (cpp_type == CppType::f16)
    return cpp_text("{}{{0x{:04x}}}", device_name("__half_raw"),
                    quern::float16(rounded_to_odd(value)).bits());
  if (cpp_type == CppType::bf16)
    return cpp_text("{}{{0x{:04x}}}", device_name("__nv_bfloat16_raw"),
                    quern::bfloat16(rounded_to_odd(value)).bits());
  const bool single = cpp_type == CppType::f32;
  const std::string_view zero = single ? "0.0f" : "0.0";
  if (std::isnan(value)) return cpp_text("-({0} / {0})", zero);
  if (std::isinf(value) || (single && std::isinf(static_cast<float>(value))))
    return cpp_text("{}{} / {}", value < 0 ? "-" : "", single ? "1.0f" : "1.0", zero);
  return real_literal(value, single);
}

/// Emits an initialiser, including values for the padding members of the struct.
CppText record_initialiser(const Value& value, Type type) {
  CppText text = type_text(type) + "{";
  std::uint32_t at = 0;
  for (std::size_t i = 0; i < type->fields.size(); ++i) {
    const Field& field = type->fields[i];
    text += i == 0 ? "" : ", ";
    if (field.offset > at) text += "{}, ";
    text += initialiser(value.items[i], field.type);
    at = field.offset + size_of(field);
  }
  return text + (type->size_bytes > at ? ", {}}" : "}");
}

}  // namespace

/// Arrays of any number of dimensions are emitted flat. Compound values contain their type, so that C++ can
/// distinguish them.
CppText initialiser(const Value& value, Type type) {
  if (value.kind == Value::Kind::array) {
    CppText text;
    for (const Value& item : value.items) text += (text.empty() ? "" : ", ") + initialiser(item, type);
    return "{" + text + "}";
  }
  if (is_record(type)) return record_initialiser(value, type);
  const CppType cpp_type = cpp_type_of(type);
  if (is_complex(type)) {
    const CppType part = cpp_type == CppType::c64 ? CppType::f32 : CppType::f64;
    return cpp_text("{}{{{}, {}}}", cpp_of(cpp_type), real_initialiser(value.as_real(), part),
                    real_initialiser(value.imag, part));
  }
  if (is_real(cpp_type)) return real_initialiser(value.as_real(), cpp_type);
  if (cpp_type == CppType::boolean) return value.is_zero() ? "false" : "true";
  if (value.kind == Value::Kind::big) return cpp_text("{}ULL", *value.big.as_uint64());
  return integer_literal(value.integer);
}

CppText constant_array_declaration(std::string_view name, const Value& values, Type element) {
  CppText text = cpp_text("__constant__ const {} {}", type_text(element), name);
  for (const std::int64_t extent : values.shape) text += cpp_text("[{}]", extent);
  text += " = {";
  constexpr std::size_t kOnALine = 16;
  for (std::size_t i = 0; i < values.items.size(); ++i) {
    text += i == 0 ? "" : ", ";
    if (i > 0 && i % kOnALine == 0) text += "\n  ";
    text += initialiser(values.items[i], element);
  }
  return text + "};\n";
}

}  // namespace quern::frontend
