// SPDX-License-Identifier: Apache-2.0
// Host arrays as the command line uses them: bytes, an element type that may be a record, a shape and
// strides.
#pragma once

#include <quern/dtype.hpp>
#include <quern/element_type.hpp>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

namespace quern::cli {

/// The type of one element. A saved file has the type of the file that was read.
struct Element {
  std::optional<Dtype> dtype;  ///< nothing: a record or another type that kernels take as bytes
  ElementType type;
  std::size_t size_bytes = 0;
  friend bool operator==(const Element&, const Element&) = default;
};

/// The element type of a Dtype. bfloat16, which NumPy lacks, is written as "<V2".
Element element_of(Dtype dtype);
/// "float32", or the fields of a record.
std::string name(const Element& element);

/// A view of shared bytes: shape in elements, strides and offset in bytes.
struct Array {
  Element element;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  std::int64_t offset = 0;
  std::shared_ptr<std::vector<std::byte>> bytes;

  std::int64_t count() const noexcept;
  bool c_contiguous() const noexcept;
  bool f_contiguous() const noexcept;
  std::byte* data() const noexcept { return bytes->data() + offset; }
};

/// A zero-filled array in C order. Throws quern::Error (usage) for negative extents and sizes beyond 2^47
/// bytes.
Array make_array(const Element& element, std::vector<std::int64_t> shape);

/// Returns `array` itself if it is contiguous in C or Fortran order and starts at offset 0 of its own bytes;
/// otherwise a copy in C order.
Array contiguous(const Array& array);

/// The address of element `index` in C order (the order in which NumPy prints), for any strides.
const std::byte* element_at(const Array& array, std::int64_t index);

/// One element as NumPy prints it: "1.5", "True", "(1+2j)"; a record as its bytes in hex.
std::string format_element(const Element& element, const std::byte* bytes);

}  // namespace quern::cli
