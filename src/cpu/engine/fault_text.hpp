// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "cpu/engine/fault.hpp"
#include "cpu/engine/fault_report.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {

/// The report of a fault of `job`. Its text is appended to the sentence for the fault: "by kernel saxpy (grid
/// (4,1,1), block (64,1,1)) in block (2,0,0), threads (32,0,0) to (63,0,0), line 12 of a.cu: threads wait at
/// ...".
FaultReport report(const Fault& fault, const LaunchJob& job);

}  // namespace quern::cpu::engine
