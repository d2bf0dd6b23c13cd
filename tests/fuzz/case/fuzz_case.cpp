// SPDX-License-Identifier: Apache-2.0
// Any text as a case file: cases, or an error that names the file.
#include <quern/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "cases.hpp"

using namespace quern;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const auto cases = cli::parse_cases({reinterpret_cast<const char*>(data), size}, "folder/fuzz.case.toml");
    if (!cases.empty()) return 0;
    std::fputs("no cases and no error\n", stderr);
    std::abort();
  } catch (const Error& error) {
    if (std::string_view(error.what()).starts_with("folder/fuzz.case.toml:")) return 0;
    std::fprintf(stderr, "the error does not say where: %s\n", error.what());
    std::abort();
  }
}
