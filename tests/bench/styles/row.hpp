// SPDX-License-Identifier: Apache-2.0
// A row of the table: a kernel with its launch and its arguments, and the native functions that do the same.
#pragma once

#include <cstddef>
#include <functional>
#include <quern/quern.hpp>
#include <span>
#include <string>
#include <vector>

#include "native.hpp"

namespace quern::bench {

/// Writes the elements that an array begins with; null: zeros.
using Fill = std::function<void(std::byte*, std::size_t bytes)>;

/// Differences between two results that are no mistakes.
struct Tolerance {
  double error = 0;        ///< of an element, times 1 + its magnitude
  double fraction = 0;     ///< of the elements that may differ by more
  bool any_order = false;  ///< the elements may stand in any order
};

/// An argument of a kernel: an array or a number.
struct Slot {
  enum class Use : std::uint8_t {
    input,   ///< read only
    output,  ///< compared after the first call
    state,   ///< compared too, and given its first values again before every call
    number,
  };
  Use use;
  Dtype dtype = Dtype::float32;
  Shape shape = {};
  Fill fill = {};
  Tolerance tolerance = {};
  double value = 0;  ///< of a number
};

struct Row {
  const char* name;
  const char* what;  ///< a few words for the table
  const char* file;  ///< relative to kernels/; a sample of the project where one has the style
  const char* entry;
  Dim3 grid, block;
  std::size_t shared_bytes;
  std::vector<Slot> slots;
  std::size_t pieces;           ///< of work, as natives.def counts them
  std::vector<Native> natives;  ///< ways to do it; the fastest counts
  Native reference;             ///< null: the native function is plain enough
  std::size_t checked_pieces;   ///< that are compared with the reference
  double limit;                 ///< of quern / native that --check accepts, on one thread and on all
  Native better = nullptr;      ///< another algorithm that is faster, for information
};

std::vector<Row> sum_rows();
std::vector<Row> map_rows();
std::vector<Row> tile_rows();
std::vector<Row> counting_rows();
std::vector<Row> integer_rows();
std::vector<Row> atomic_rows();

std::vector<Row> third_rows();   ///< a set of its own
std::vector<Row> fourth_rows();  ///< another one

}  // namespace quern::bench
