// SPDX-License-Identifier: Apache-2.0
// Interprets the SIMT IR of one thread, so that tests can check the results of a PTX kernel and not the form
// of its IR. Supports integers, control flow, memory and calls, but no floating-point arithmetic and no other
// lanes.
#pragma once

#include <array>
#include <cstdint>
#include <stdexcept>
#include <vector>

#include "cpu/ir/ir.hpp"

namespace quern::test {

class IrInterpreter {
 public:
  explicit IrInterpreter(const cpu::ir::Module& module) : module_(module) {}

  std::vector<std::uint8_t> params = std::vector<std::uint8_t>(64);
  std::vector<std::uint8_t> global = std::vector<std::uint8_t>(4096);
  std::vector<std::uint8_t> shared = std::vector<std::uint8_t>(4096);
  std::uint32_t tid_x = 0;
  std::uint64_t steps_left = 1'000'000;

  /// Runs the kernel. Throws if the IR uses anything else.
  void run();
  std::uint32_t word(std::size_t index) const;
  std::uint64_t double_word(std::size_t index) const;

 private:
  using Values = std::vector<std::vector<std::uint64_t>>;
  struct Activation;
  std::vector<std::uint64_t> call(std::uint32_t function, const std::vector<std::uint64_t>& arguments);
  void execute(Activation& frame, cpu::ir::Value value);
  std::vector<std::uint8_t>& memory(Activation& frame, cpu::ir::Space space);

  const cpu::ir::Module& module_;
  std::uint32_t depth_ = 0;
};

}  // namespace quern::test
