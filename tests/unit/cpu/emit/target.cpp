// SPDX-License-Identifier: Apache-2.0
// The processors that code is generated for.
#include <doctest/doctest.h>
#include <llvm/MC/MCSubtargetInfo.h>
#include <llvm/TargetParser/Host.h>

#include "cpu/emit/llvm/llvm_target.hpp"

namespace quern::cpu::emit {
namespace {

constexpr Isa kAll[] = {Isa::baseline, Isa::avx2, Isa::avx512};

bool has(const llvm::TargetMachine& machine, const char* feature) {
  return machine.getMCSubtargetInfo()->checkFeatures(feature);
}

TEST_CASE("a target has the registers of its instruction set and no wider ones") {
  for (const Isa isa : kAll)
    for (const bool portable : {false, true}) {
      if (isa > widest_isa() && !portable) continue;
      const auto machine = make_target_machine(isa, kGoodLevel, portable);
      CHECK(has(*machine, "+avx2") == (isa >= Isa::avx2));
      CHECK(has(*machine, "+avx512f") == (isa == Isa::avx512));
      CHECK(has(*machine, "+avx512vl") == (isa == Isa::avx512));
    }
}

TEST_CASE("code for AVX2 and AVX-512 is for this processor, unless others run it too") {
  for (const Isa isa : {Isa::avx2, Isa::avx512}) {
    if (isa > widest_isa()) continue;
    CHECK(make_target_machine(isa, kGoodLevel)->getTargetCPU() == llvm::sys::getHostCPUName());
    CHECK(make_target_machine(isa, kGoodLevel, true)->getTargetCPU() ==
          (isa == Isa::avx2 ? "haswell" : "skylake-avx512"));
  }
}

}  // namespace
}  // namespace quern::cpu::emit
