// SPDX-License-Identifier: Apache-2.0
// Operations of a stream on single values in memory: cuStreamWaitValue, cuStreamWriteValue,
// cuStreamBatchMemOp.
#pragma once

#include <cuda.h>

#include <memory>
#include <span>
#include <vector>

#include "cpu/device/driver.hpp"
#include "cpu/engine/stream.hpp"

namespace quern::cpu::device {

/// Checks the operations but for their memory. Throws Failure.
void check_operations(std::span<const CUstreamBatchMemOpParams> operations, unsigned flags);

/// Appends a command for each operation. Throws Failure, also for an address that names no memory.
void append_commands(Driver& driver, std::span<const CUstreamBatchMemOpParams> operations,
                     std::vector<std::unique_ptr<engine::Command>>& commands);

}  // namespace quern::cpu::device
