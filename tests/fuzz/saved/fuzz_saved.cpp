// SPDX-License-Identifier: Apache-2.0
// Any bytes as the payload of a saved module, behind a header with the right checksum: a module or an error.
// A module is unchanged after it is written and read again.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

#include "session/saved_module.hpp"

using namespace quern;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view payload(reinterpret_cast<const char*>(data), size);
  static_cast<void>(session::read_saved(payload, "fuzz"));  // without a header
  const std::string file = session::with_saved_header(payload, "save fuzz").value();
  const Expected<session::SavedModule> module = session::read_saved(file, "fuzz");
  if (!module) {
    if (module.errors().front().message.starts_with("cannot load fuzz: ")) return 0;
    std::fprintf(stderr, "%s\n", module.errors().front().message.c_str());
    std::abort();
  }
  const std::string written = session::write_saved(*module).value();
  const Expected<session::SavedModule> again = session::read_saved(written, "fuzz");
  if (again && session::write_saved(*again).value() == written) return 0;
  std::fprintf(stderr, "writing and reading changed the module\n");
  std::abort();
}
