// SPDX-License-Identifier: Apache-2.0
// component: abi
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/dtype.hpp"
#include "quern/export.hpp"
#include "quern/half.hpp"

namespace quern {

template <>
struct DtypeOf<std::complex<float>> {
  static constexpr Dtype value = Dtype::complex64;
};
template <>
struct DtypeOf<std::complex<double>> {
  static constexpr Dtype value = Dtype::complex128;
};

class RecordType;

/// The type of one array element: a scalar (dtype), a record with named fields, or the bytes of a struct
/// without a description (neither). A value; compares by structure.
struct QUERN_API ElementType {
  std::optional<Dtype> dtype;
  std::size_t size_bytes = 0;
  std::shared_ptr<const RecordType> record;

  ElementType() = default;
  ElementType(Dtype type)  // NOLINT(google-explicit-constructor)
      : dtype(type), size_bytes(quern::size_bytes(type)) {}
  ElementType(RecordType type);  // NOLINT(google-explicit-constructor)
  static ElementType opaque(std::size_t bytes) {
    ElementType element;
    element.size_bytes = bytes;
    return element;
  }
  friend QUERN_API bool operator==(const ElementType& a, const ElementType& b) noexcept;
};

/// A field of a record: a scalar, a record of its own, or an array of either if `shape` is not empty.
struct QUERN_API Field {
  std::string name;
  ElementType element;
  std::size_t offset_bytes = 0;
  std::vector<std::int64_t> shape;

  /// Bytes of the whole field.
  std::size_t size_bytes() const noexcept;
  friend bool operator==(const Field&, const Field&) = default;
};

/// A structured dtype, NumPy's `dtype([...])`: named fields at offsets, padding between and behind them.
/// Immutable.
class QUERN_API RecordType {
 public:
  /// Fields at given offsets in a record of `size_bytes`. Throws Error(usage) for fields that overlap, that
  /// reach outside the record, and for names that are empty or repeated.
  RecordType(std::vector<Field> fields, std::size_t size_bytes);
  /// Fields in order, each aligned as a C compiler aligns it (NumPy: align=True); their offsets are ignored.
  static RecordType aligned(std::vector<Field> fields);
  /// Fields in order without padding (NumPy's default).
  static RecordType packed(std::vector<Field> fields);

  std::span<const Field> fields() const noexcept { return fields_; }
  std::size_t size_bytes() const noexcept { return size_bytes_; }
  /// Null if no field has that name.
  const Field* find(std::string_view name) const noexcept;
  /// The field of that name. Throws Error(usage) that lists the names.
  const Field& field(std::string_view name) const;
  /// The record as a C++ struct for kernel source, padding written out: `struct Particle { ... };`. Throws
  /// Error(usage) for a layout that a C++ compiler would not give it.
  std::string cuda_source(std::string_view name) const;

  friend bool operator==(const RecordType&, const RecordType&) = default;

 private:
  std::vector<Field> fields_;
  std::size_t size_bytes_;
};

/// The alignment a C++ compiler gives the element in device code, bytes.
QUERN_API std::size_t align_bytes(const ElementType& element) noexcept;

/// "float32", "record of 24 bytes {x: float32, ...}", "24 opaque bytes".
QUERN_API std::string to_string(const ElementType& element);

/// NumPy's type string: "<f4", "|b1", "<c8"; bfloat16, which NumPy lacks, is "<V2", as the package ml_dtypes
/// spells it and with it CuPy and PyTorch; a record is "|V24". (Two bytes of NumPy's own are "|V2".)
QUERN_API std::string typestr(const ElementType& element);
/// The reverse; nothing for types without a counterpart in quern (big-endian data, strings, objects).
QUERN_API std::optional<ElementType> element_of_typestr(std::string_view typestr);

/// "(3, 4)", "(5,)", "()": a shape as NumPy prints it.
QUERN_API std::string shape_text(std::span<const std::int64_t> shape);

}  // namespace quern
