// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <doctest/doctest.h>

#include <string>
#include <string_view>

#include "ptx/ptx.hpp"

namespace quern::ptx::test {

/// The text of a module: version, target and `body`.
inline std::string module_text(std::string_view body, std::string_view target = "sm_90",
                               std::string_view version = "9.0") {
  return ".version " + std::string(version) + "\n.target " + std::string(target) + "\n.address_size 64\n" +
         std::string(body);
}

/// A kernel that contains `statements`, which begin in line 5. Registers: %p, %rs, %r, %rd, %f, %fd, with the
/// numbers 0 to 9.
inline std::string kernel_text(std::string_view statements, std::string_view target = "sm_90",
                               std::string_view version = "9.0") {
  return module_text(
      ".visible .entry k(.param .u64 p) { .reg .pred %p<10>; .reg .b16 %rs<10>; .reg .b32 %r<10>; .reg .b64 "
      "%rd<10>; "
      ".reg .f32 %f<10>; .reg .f64 %fd<10>;\n" +
          std::string(statements) + "\nret;\n}\n",
      target, version);
}

inline Module parsed(const std::string& text) {
  Expected<Module> module = parse(text, "test.ptx");
  if (!module) FAIL(to_string(module.errors()));
  return std::move(module).value();
}

inline Diagnostics errors_of(const std::string& text) {
  Expected<Module> module = parse(text, "test.ptx");
  if (!module) return module.errors();
  const Expected<void> verified = verify(*module, "test.ptx");
  return verified ? Diagnostics{} : verified.errors();
}

/// The first message about a kernel with `statements`; "" if there is none.
inline std::string first_error(std::string_view statements, std::string_view target = "sm_90",
                               std::string_view version = "9.0") {
  const Diagnostics errors = errors_of(kernel_text(statements, target, version));
  return errors.empty() ? std::string() : errors[0].message;
}

inline bool accepted(std::string_view statements, std::string_view target = "sm_90",
                     std::string_view version = "9.0") {
  return errors_of(kernel_text(statements, target, version)).empty();
}

/// The only instruction of a kernel except its ret.
inline Instruction instruction(std::string_view statement) {
  const Module module = parsed(kernel_text(statement));
  REQUIRE(module.functions[0].body.size() == 2);
  return module.functions[0].body[0];
}

inline bool contains(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

}  // namespace quern::ptx::test
