// SPDX-License-Identifier: Apache-2.0
// Texts that come from outside and are read by hand-written scanners: CUDA C++ source, PTX, NVRTC's log. The
// first byte chooses the reader.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "compile/ptx/entries.hpp"
#include "compile/ptx/names.hpp"
#include "compile/ptx/ptx_text.hpp"
#include "compile/ptx/ptx_version.hpp"
#include "compile/source/hints.hpp"
#include "compile/source/log.hpp"
#include "compile/source/source_reader.hpp"
#include "compile/source/type_text.hpp"

using namespace quern;

namespace {

void read_log(std::string_view text) {
  Diagnostics diagnostics = compile::parse_log(text, "fuzz.cu");
  compile::add_hints(diagnostics, {true, compile::read_kernels(text), {"k<int>"}});
  (void)to_string(diagnostics);
}

void read_ptx(std::string_view text) {
  std::vector<abi::EntryInfo> entries = compile::read_entries(text);
  compile::name_entries(entries, {}, {});
  std::string ptx(text);
  (void)compile::fit_to_driver(ptx, 12020);
}

void read_source(std::string_view text) {
  std::vector<abi::EntryInfo> entries(1);
  entries[0].lowered_name = text.substr(0, text.find('\n'));
  entries[0].parameters.resize(2);
  compile::name_entries(entries, {}, compile::read_kernels(text));
  (void)compile::normal_type(text.substr(0, 200));
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view text(reinterpret_cast<const char*>(data) + 1, size - 1);
  switch (data[0] % 3) {
    case 0:
      read_source(text);
      break;
    case 1:
      read_ptx(text);
      break;
    default:
      read_log(text);
      break;
  }
  return 0;
}
