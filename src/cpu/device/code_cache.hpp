// SPDX-License-Identifier: Apache-2.0
// Machine code that all modules, contexts and devices of the process share
// (docs/decisions/0025-shared-machine-code.md).
#pragma once

#include <functional>
#include <memory>
#include <string_view>

#include "base/digest.hpp"
#include "cpu/compiler.hpp"

namespace quern::cpu::device {

using MakeImage = std::function<Expected<CodeImage>()>;

/// The machine code of kernel `kernel` of the PTX whose text has digest `ptx`; calls `make` if the process
/// has none. Threads that ask for the same code at once get that of one of them. Failures are not kept. Where
/// the system refuses a mapping, code that nobody uses is unmapped, and it is tried once more. Thread-safe.
Expected<std::shared_ptr<const KernelCode>> shared_code(const base::Digest& ptx, std::string_view kernel,
                                                        const Specialisation& specialisation,
                                                        const MakeImage& make);

}  // namespace quern::cpu::device
