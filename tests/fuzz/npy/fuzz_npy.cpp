// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .npy file: an array or an error, and what was read is the same after it was written and read
// again.
#include <quern/error.hpp>

#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "npy.hpp"

using namespace quern;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  try {
    const cli::Array array = cli::parse_npy({reinterpret_cast<const char*>(data), size}, "fuzz.npy");
    const std::string written = cli::format_npy(array);
    const cli::Array again = cli::parse_npy(written, "written.npy");
    if (again.shape == array.shape && again.element == array.element && cli::format_npy(again) == written)
      return 0;
    std::fprintf(stderr, "reading back changed the array:\n%s\n", written.c_str());
    std::abort();
  } catch (const Error& error) {
    if (std::string_view(error.what()).find("fuzz.npy") != std::string_view::npos) return 0;
    std::fprintf(stderr, "%s\n", error.what());
    std::abort();
  }
}
