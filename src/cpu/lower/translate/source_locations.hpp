// SPDX-License-Identifier: Apache-2.0
// Source locations of instructions, and messages about rejected instructions.
#pragma once

#include <string_view>

#include "cpu/lower/translate/frame.hpp"
#include "quern/diagnostic.hpp"

namespace quern::cpu::lower {

/// Adds the locations of instructions to the function under construction.
class SourceLocations {
 public:
  SourceLocations(const Program& program, FunctionBuilder& builder) : program_(program), builder_(builder) {}

  /// Adds a new location for `instruction` of `frame`'s function. Returns its index in
  /// ir::Function::locations.
  std::uint32_t locate(Frame& frame, const ptx::Instruction& instruction);

 private:
  std::uint32_t add_location(const Frame& frame, std::uint32_t index, std::uint32_t ptx_line,
                             std::uint32_t inlined_at);
  std::uint32_t scope_location(Frame& frame, std::uint32_t index, std::uint32_t ptx_line);

  const Program& program_;
  FunctionBuilder& builder_;
};

/// Creates a diagnostic for each unsupported instruction, once however often its function is inlined.
class Refusals {
 public:
  Refusals(Program& program, std::string_view file_name, Diagnostics& diagnostics)
      : program_(program), file_name_(file_name), diagnostics_(diagnostics) {}

  bool any() const { return !diagnostics_.empty(); }
  /// `location`: index into `locations`.
  void add(const ptx::Function& function, const ptx::Instruction& instruction,
           const std::vector<ir::Location>& locations, std::uint32_t location, std::string_view reason);

 private:
  Program& program_;
  std::string_view file_name_;
  Diagnostics& diagnostics_;
};

}  // namespace quern::cpu::lower
