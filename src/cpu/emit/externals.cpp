// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/externals.hpp"

#include <cstring>
#include <vector>

#include "cpu/engine/abi.hpp"

namespace quern::cpu::emit {
namespace {

template <class Function>
void* address_of(Function* function) {
  return reinterpret_cast<void*>(function);
}

std::vector<ExternalSymbol> make_table() {
  using Copy = void*(void*, const void*, std::size_t);
  using Fill = void*(void*, int, std::size_t);
  return {
      {"quern_cpu_trap", address_of(&engine::quern_cpu_trap)},
      {"quern_cpu_host_call", address_of(&engine::quern_cpu_host_call)},
      // What the code generator asks for by itself.
      {"memcpy", address_of<Copy>(&std::memcpy)},
      {"memmove", address_of<Copy>(&std::memmove)},
      {"memset", address_of<Fill>(&std::memset)},
  };
}

}  // namespace

std::span<const ExternalSymbol> external_symbols() {
  static const std::vector<ExternalSymbol> table = make_table();
  return table;
}

}  // namespace quern::cpu::emit
