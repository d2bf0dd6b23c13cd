// SPDX-License-Identifier: Apache-2.0
// NumPy's descriptions of element types: '<f4', [('x', '<f4', (3,)), ('', '|V4')], ('<f4', (2, 2)).
#pragma once

#include <vector>

#include <quern/expected.hpp>

#include "tools/quern/host_array.hpp"
#include "tools/quern/python_literal.hpp"

namespace tool {

/// A run of equal values in an element whose bytes stand in the other order than this machine's.
struct Swap {
  std::size_t offset = 0;
  std::size_t value_bytes = 0;
  std::size_t count = 0;
};

struct Descr {
  ElementKind element;      ///< its descr in this machine's byte order
  std::vector<Swap> swaps;  ///< what must be turned round in each element
};

/// Reads a description. The diagnostics say which part is not understood or has no type in kernels.
quern::Expected<Descr> read_descr(const PythonLiteral& literal);

}  // namespace tool
