// SPDX-License-Identifier: Apache-2.0
// Functions that compute what the kernels of this set compute, with the same algorithm and as fast as this
// processor can. clang compiles the native*.cpp twice, with and without -ffast-math; the faster result of a
// row counts. `reference` holds plain scalar functions, which the native ones are checked against.
#pragma once

#include <cstddef>

namespace quern::bench {

/// The arrays of a row in the kernel's order, without its numbers.
using Arrays = void* const*;

/// The pieces of a row's work, `begin` to `end`, that one thread does; natives.def says what a piece is.
struct Part {
  std::size_t begin, end;
};

using Native = void (*)(Arrays, Part);

#define QUERN_NATIVE(name) void name(Arrays arrays, Part part);
#define QUERN_REFERENCE(name)
namespace strict {
#include "natives.def"
#include "natives_fourth.def"
#include "natives_third.def"
}  // namespace strict
namespace fast {
#include "natives.def"
#include "natives_fourth.def"
#include "natives_third.def"
}  // namespace fast
#undef QUERN_NATIVE
#undef QUERN_REFERENCE
#define QUERN_NATIVE(name)
#define QUERN_REFERENCE(name) void name(Arrays arrays, Part part);
namespace reference {
#include "natives.def"
#include "natives_fourth.def"
#include "natives_third.def"
}  // namespace reference
#undef QUERN_NATIVE
#undef QUERN_REFERENCE

}  // namespace quern::bench
