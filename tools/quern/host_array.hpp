// SPDX-License-Identifier: Apache-2.0
// Arrays on the host, as .npy files and arguments hold them: any layout, elements of a Dtype or records.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include <quern/dtype.hpp>

namespace tool {

/// What an element is. `descr` is NumPy's description of it as it stands in a .npy header, in this machine's
/// byte order:
/// "'<f4'", "[('x', '<f4'), ('', '|V4')]".
struct ElementKind {
  std::optional<quern::Dtype> dtype;
  std::size_t size_bytes = 0;
  std::string descr;

  static ElementKind of(quern::Dtype dtype);
  /// "float32", or the record's description.
  std::string name() const;
};

/// A strided view of shared bytes. Shape in elements, strides in bytes. Copies share the bytes.
struct HostArray {
  ElementKind element;
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides_bytes;
  std::shared_ptr<std::vector<std::byte>> data;
  std::int64_t offset_bytes = 0;
  bool written = true;  ///< false: made by empty(...), its values mean nothing

  std::size_t size() const noexcept;
  std::size_t size_bytes() const noexcept { return size() * element.size_bytes; }
  bool is_c_contiguous() const noexcept;
  /// The elements in C order, one after the other: the array's own bytes where it is so already, else a copy.
  HostArray contiguous() const;
  /// The bytes of a C-contiguous array.
  std::span<std::byte> bytes() const;
  /// The axes in reverse order.
  HostArray transposed() const;
  /// The bytes of the element at flat C-order position `index` below size().
  const std::byte* element_at(std::size_t index) const;
};

/// An array of zero bytes in C order. Throws quern::Error(usage) for shapes that cannot be.
HostArray make_array(ElementKind element, std::vector<std::int64_t> shape);

/// Product of extents times `element_bytes`; nothing for negative extents or a size beyond the address space.
std::optional<std::size_t> checked_bytes(std::span<const std::int64_t> shape, std::size_t element_bytes);

}  // namespace tool
