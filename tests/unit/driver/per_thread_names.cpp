// SPDX-License-Identifier: Apache-2.0
// cuda.h replaces each name by the symbol to call. This file stores the results as text. The macro must be
// defined before the first include of cuda.h.
#define CUDA_API_PER_THREAD_DEFAULT_STREAM
#include "per_thread_names.hpp"

#include <cuda.h>

namespace quern::test {
namespace {

struct PerThreadName {
  std::string_view name;
  std::string_view symbol;
};

#define QUERN_TEXT_OF(replaced) #replaced
#define QUERN_REPLACED(name) QUERN_TEXT_OF(name)
constexpr PerThreadName kNames[] = {
#define QUERN_DRIVER_FUNCTION(symbol, name, ...) {#name, QUERN_REPLACED(name)},
#define QUERN_DRIVER_CLIENT_FUNCTION(symbol, name, ...) {#name, QUERN_REPLACED(name)},
#define QUERN_DRIVER_UNSUPPORTED(symbol, name, ...) {#name, QUERN_REPLACED(name)},
#include "driver/functions.def"
};

}  // namespace

std::string_view per_thread_name(std::string_view name) {
  for (const PerThreadName& row : kNames)
    if (row.name == name) return row.symbol;
  return {};
}

}  // namespace quern::test
