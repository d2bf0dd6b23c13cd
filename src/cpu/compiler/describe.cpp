// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiler/describe.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

namespace quern::cpu {
namespace {

constexpr std::array<std::uint32_t, 3> kUsualBlock{256, 1, 1};

std::uint64_t product(const std::array<std::uint32_t, 3>& extents) {
  std::uint64_t result = 1;
  for (const std::uint32_t extent : extents) result *= std::max(extent, 1u);
  return result;
}

bool given(const std::array<std::uint32_t, 3>& extents) { return extents[0] != 0; }

std::uint32_t max_threads(const ptx::PerformanceDirectives& directives) {
  const auto& extents = given(directives.reqntid) ? directives.reqntid : directives.maxntid;
  return given(extents) ? static_cast<std::uint32_t>(std::min<std::uint64_t>(product(extents), 1024)) : 1024;
}

/// 32-bit registers that the values alive at one time would take on a GPU, roughly: most values die in their
/// block, so the fullest block's count of values that later ones of it or other blocks read is a fair bound.
std::uint32_t estimate_registers(const ir::Function& function) {
  std::vector<std::uint32_t> last_use(function.insts.size(), 0);
  std::uint32_t most = 0;
  for (const ir::Block& block : function.blocks) {
    std::fill(last_use.begin(), last_use.end(), 0u);
    for (std::uint32_t i = 0; i < block.insts.size(); ++i)
      for (const ir::Value arg : function[block.insts[i]].args) last_use[arg] = i;
    std::vector<std::int64_t> change(block.insts.size() + 1, 0);
    for (std::uint32_t i = 0; i < block.insts.size(); ++i) {
      const ir::Value value = block.insts[i];
      const auto words = static_cast<std::int64_t>((ir::bit_size(function[value].type) + 31) / 32);
      if (function[value].op == ir::Op::constant || last_use[value] <= i) continue;
      change[i] += words;
      change[last_use[value]] -= words;
    }
    std::int64_t alive = 0;
    for (const std::int64_t delta : change) {
      alive += delta;
      most = std::max(most, static_cast<std::uint32_t>(std::max<std::int64_t>(alive, 0)));
    }
  }
  return std::clamp<std::uint32_t>(most + 10, 16, 255);
}

std::uint64_t const_bytes(const ptx::Module& module) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : module.variables)
    if (variable.space == ptx::Space::const_) bytes += variable.size_bytes();
  return bytes;
}

}  // namespace

KernelInfo describe_kernel(const ptx::Module& module, const ptx::Function& entry, const ir::Module& lowered) {
  const ir::Function& kernel = lowered.functions[0];
  KernelInfo info;
  info.name = entry.name;
  info.params = kernel.params;
  for (const ir::Parameter& parameter : kernel.params)
    info.param_bytes =
        std::max<std::uint64_t>(info.param_bytes, std::uint64_t{parameter.offset} + parameter.size);
  info.static_shared_bytes = lowered.static_shared_bytes;
  info.local_bytes = kernel.local_bytes - kernel.stack_bytes;
  info.const_bytes = const_bytes(module);
  info.max_threads = max_threads(entry.performance);
  info.register_count = estimate_registers(kernel);
  return info;
}

Specialisation usual_specialisation(const ptx::PerformanceDirectives& directives, Isa isa) {
  Specialisation result;
  result.block = kUsualBlock;
  result.isa = isa;
  if (given(directives.reqntid))
    for (std::size_t d = 0; d < 3; ++d) result.block[d] = std::max(directives.reqntid[d], 1u);
  else if (given(directives.maxntid) && product(directives.maxntid) < result.threads())
    result.block = {static_cast<std::uint32_t>(product(directives.maxntid)), 1, 1};
  return result;
}

}  // namespace quern::cpu
