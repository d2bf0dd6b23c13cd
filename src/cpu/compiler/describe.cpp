// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiler/describe.hpp"

#include "cpu/compiler/registers.hpp"

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
