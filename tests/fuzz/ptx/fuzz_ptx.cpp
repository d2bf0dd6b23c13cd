// SPDX-License-Identifier: Apache-2.0
// Any bytes: parsing and verifying must not crash, and a parsed module is equal after printing and parsing
// again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "ptx/ptx.hpp"

namespace {

[[noreturn]] void broken(const char* what, const std::string& text, const quern::Diagnostics& errors) {
  std::fprintf(stderr, "%s\n%s%s\n", what, quern::to_string(errors).c_str(), text.c_str());
  std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  quern::ptx::Limits limits;
  limits.max_registers = 100000;
  quern::Expected<quern::ptx::Module> module = quern::ptx::parse(text, "fuzz.ptx", limits);
  if (!module) {
    (void)quern::to_string(module.errors());
    return 0;
  }
  const bool valid = quern::ptx::verify(*module, "fuzz.ptx", limits).has_value();
  const std::string printed = quern::ptx::print(*module);
  quern::Expected<quern::ptx::Module> again = quern::ptx::parse(printed, "printed.ptx");
  if (!again) broken("what was printed does not parse", printed, again.errors());
  const quern::Expected<void> still_valid = quern::ptx::verify(*again, "printed.ptx", limits);
  if (still_valid.has_value() != valid)
    broken("printing changed the verdict", printed, valid ? still_valid.errors() : quern::Diagnostics{});
  if (!quern::ptx::equal_ignoring_positions(*module, *again)) broken("what was printed differs", printed, {});
  return 0;
}
