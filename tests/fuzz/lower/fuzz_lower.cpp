// SPDX-License-Identifier: Apache-2.0
// PTX that parses and verifies: every kernel of it is lowered or rejected, lowered IR is well formed, and
// analysis terminates for several block shapes.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cpu/analysis/analysis.hpp"
#include "cpu/compiler/lowering.hpp"
#include "cpu/lower/lower.hpp"
#include "cpu/lower/ssa/verify.hpp"
#include "ptx/ptx.hpp"

using namespace quern;

namespace {

[[noreturn]] void broken(const char* what, std::string_view text, const Diagnostics& errors) {
  std::fprintf(stderr, "%s\n%s%.*s\n", what, to_string(errors).c_str(), static_cast<int>(text.size()),
               text.data());
  std::abort();
}

// The length of the text chooses one of several block shapes.
cpu::Specialisation shape_for(std::size_t size) {
  constexpr std::array<std::uint32_t, 3> kBlocks[] = {{256, 1, 1}, {16, 16, 1}, {5, 3, 2}};
  cpu::Specialisation result;
  result.block = kBlocks[size % 3];
  result.small_grid = size % 2 == 0;
  return result;
}

void analyse(const cpu::ir::Module& module, const cpu::ir::Function& function,
             const cpu::Specialisation& shape) {
  for (const auto assumption : {cpu::analysis::Assumption::safe, cpu::analysis::Assumption::optimistic}) {
    const auto facts = cpu::analysis::analyse(module, function, shape, assumption);
    if (!facts) return;  // irreducible
    (void)cpu::analysis::check_lockstep(module, function, *facts);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  ptx::Limits limits;
  limits.max_registers = 10000;
  auto module = ptx::parse(text, "fuzz.ptx", limits);
  if (!module || !ptx::verify(*module, "fuzz.ptx", limits))
    return -1;  // not worth keeping: fuzz-ptx looks at those
  for (const ptx::Function& entry : module->functions) {
    if (!entry.entry || !entry.defined) continue;
    const auto lowered = cpu::lower_kernel(*module, entry.name, "fuzz.ptx");
    if (!lowered) continue;
    if (const auto good = cpu::lower::verify(*lowered); !good)
      broken("lowering made invalid IR", text, good.errors());
    for (const cpu::ir::Function& function : lowered->functions) analyse(*lowered, function, shape_for(size));
  }
  return 0;
}
