// SPDX-License-Identifier: Apache-2.0
#include "quern/strided_array.hpp"

#include <fmt/format.h>

#include "abi/convert.hpp"
#include "quern/error.hpp"

namespace quern {
namespace {

const char* order_text(const Layout& layout) {
  if (layout.is_c_contiguous()) return "in C order";
  return layout.is_f_contiguous() ? "in Fortran order" : "with gaps";
}

/// If only one side describes its bytes, they are assumed to agree if the sizes do.
bool agree(const ElementType& a, const ElementType& b) {
  if (a == b) return true;
  const auto is_opaque = [](const ElementType& element) {
    return !element.dtype && element.record == nullptr;
  };
  return a.size_bytes == b.size_bytes && !a.dtype && !b.dtype && (is_opaque(a) || is_opaque(b));
}

}  // namespace

std::string describe(const StridedArray& array) {
  return fmt::format("{} with shape {} {}", to_string(array.element()), shape_text(array.shape()),
                     order_text(array.layout()));
}

namespace detail {

void require_element(const StridedArray& array, const ElementType& wanted, const char* action) {
  if (agree(array.element(), wanted)) return;
  throw Error(ErrorCode::usage, fmt::format("cannot {} an array of {} as {}; use its own element type",
                                            action, to_string(array.element()), to_string(wanted)));
}

void require_alike(const StridedArray& from, const char* from_what, const StridedArray& to,
                   const char* to_what) {
  if (agree(from.element(), to.element()) && from.layout().same_shape(to.layout())) return;
  throw Error(ErrorCode::usage,
              fmt::format("cannot copy {} of {} to {} of {}; give arrays of the same shape and "
                          "element type",
                          from_what, describe(from), to_what, describe(to)));
}

void require_rank(const StridedArray& array, std::size_t rank) {
  if (array.ndim() == rank) return;
  throw Error(ErrorCode::usage,
              fmt::format("cannot use {} as an array of {} dimensions; reshape() or index it first",
                          describe(array), rank));
}

void encode_scalar(const ElementType& element, Dtype from, const void* value, std::byte* out) {
  if (!element.dtype)
    throw Error(ErrorCode::usage,
                fmt::format("cannot assign a {} to elements that are a {}; assign a struct, or to one "
                            "field",
                            name(from), to_string(element)));
  if (const std::optional<std::string> problem = abi::convert_scalar(from, value, *element.dtype, false, out))
    throw Error(ErrorCode::usage,
                fmt::format("cannot assign {} to elements of {}: {}; give a value that fits",
                            abi::scalar_text(from, value), name(*element.dtype), *problem));
}

}  // namespace detail
}  // namespace quern
