// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/nvrtc_environment.hpp"

#include <cstdint>
#include <cstdlib>

namespace quern::compile {
namespace {

enum class VariableEffect : std::uint8_t { none, result, files };
struct Variable {
  const char* name;
  VariableEffect effect;
};
constexpr Variable kVariables[] = {
#define QUERN_NVRTC_VARIABLE(name, effect) {#name, VariableEffect::effect},
#include "compile/toolkit/nvrtc_environment.def"
};

}  // namespace

NvrtcEnvironment nvrtc_environment() {
  NvrtcEnvironment environment;
  for (const Variable& variable : kVariables) {
    if (variable.effect == VariableEffect::none) continue;
    const char* const value = std::getenv(variable.name);
    if (value == nullptr) continue;
    if (variable.effect == VariableEffect::files && environment.uncached.empty())
      environment.uncached = variable.name;
    if (variable.effect == VariableEffect::result)
      environment.values.append(variable.name).append("=").append(value).append(1, '\0');
  }
  return environment;
}

}  // namespace quern::compile
