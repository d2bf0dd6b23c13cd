// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <stdexcept>
#include <string>

namespace quern::cpu::emit {

/// Reports a state that earlier passes exclude. Thrown inside cpu/emit only. LlvmCode::defect makes a
/// diagnostic (code "internal") of it, so that a defect here never ends the host's process.
class Defect : public std::logic_error {
 public:
  explicit Defect(const std::string& message) : std::logic_error(message) {}
};

}  // namespace quern::cpu::emit
