// SPDX-License-Identifier: Apache-2.0
#include "quern/global.hpp"

#include <fmt/format.h>

#include "quern/error.hpp"

namespace quern {

DeviceNDArray GlobalVariable::array(const ElementType& element, const Shape& shape) const {
  Layout layout(shape, element.size_bytes);
  if (layout.size_bytes() != size_bytes())
    throw Error(ErrorCode::usage,
                fmt::format("cannot view variable {} as an array of shape {} with elements of {} bytes: that "
                            "is {} bytes, and it has {}\nhint: give the shape and type that its source "
                            "declares",
                            name_, shape_text(shape), element.size_bytes, layout.size_bytes(), size_bytes()));
  return DeviceNDArray(memory_, element, std::move(layout), 0);
}

namespace detail {

void require_global(const GlobalVariable& variable, std::size_t element_bytes, std::size_t count) {
  const std::size_t bytes = variable.size_bytes();
  const bool fits = count == 0 ? bytes % element_bytes == 0 : bytes == count * element_bytes;
  if (fits) return;
  const std::string asked = count == 0   ? fmt::format("elements of {} bytes", element_bytes)
                            : count == 1 ? fmt::format("a value of {} bytes", element_bytes)
                                         : fmt::format("{} elements of {} bytes", count, element_bytes);
  throw Error(ErrorCode::usage,
              fmt::format("cannot take variable {} as {}: it has {} bytes\nhint: give the type that its "
                          "source declares, as in global<double>(\"{}\"), and T[] for an array",
                          variable.name(), asked, bytes, variable.name()));
}

void require_count(const GlobalVariable& variable, std::size_t count, std::size_t given) {
  if (count == given) return;
  throw Error(ErrorCode::usage,
              fmt::format("cannot copy {} elements from or to variable {}: it has {}; give exactly as many",
                          given, variable.name(), count));
}

}  // namespace detail
}  // namespace quern
