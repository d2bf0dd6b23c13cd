// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {

/// Which threads of the launch met the fault and in which line, as far as known, to stand behind the sentence
/// that the fault has: "in block (2,0,0), threads (32,0,0) to (63,0,0), line 12 of a.cu: threads wait at
/// ...". Empty where nothing is known.
std::string describe(const Fault& fault, const LaunchJob& job);

}  // namespace quern::cpu::engine
