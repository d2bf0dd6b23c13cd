// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "frontend/codegen/emitter_part.hpp"

namespace quern::frontend {

/// C++ for arrays, records and tuples: elements, views, shapes.
class ArrayCode : private EmitterPart {
 public:
  using EmitterPart::EmitterPart;

  Code subscript(const Expr& expr);
  Code element(const Expr& array, const Expr& index);
  Code element_of(const Expr& array, const std::vector<Code>& indices);
  Code record_part(const Expr& base, std::string_view field);
  Code field_view(const Expr& array, std::string_view field, Type result);
  Code part_view(const Expr& array, std::uint32_t offset, Type result);
  Code extent(const Expr& array, std::size_t axis);
  Code array_value(const Expr& array);
  Code item(const Code& tuple, std::size_t index, Type type);

 private:
  Code displayed_item(const Expr& tuple, std::size_t position, Type result);
  std::vector<Code> indices_of(const Expr& array, const Expr& index);
  Code wrapped(const Expr& array, const Expr& index, std::size_t axis);
  Code wrapped(const Expr& array, const Code& index, std::size_t axis, Place place);
  Code view_of(const Expr& array, const Expr& index, Type result);
  const std::vector<std::int64_t>* direct(const Expr& array) const;
  const std::vector<std::int64_t>* field_extents(const Expr& expr) const;
};

}  // namespace quern::frontend
