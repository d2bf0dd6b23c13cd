// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/warp/body_state.hpp"

#include "cpu/emit/llvm/sites.hpp"

namespace quern::cpu::emit {

BodyState::BodyState(const Plan& the_plan, const BodyInputs& the_inputs, const Gang& the_gang, Isa isa)
    : plan(the_plan),
      inputs(the_inputs),
      gang(the_gang),
      code(the_inputs.begin),
      sites(scope_of_sites(*the_inputs.begin->getModule())),
      masks(code, isa),
      warps(the_gang.width) {}

}  // namespace quern::cpu::emit
