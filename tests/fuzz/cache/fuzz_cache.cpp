// SPDX-License-Identifier: Apache-2.0
// The readers of the compile cache: entries, and what stands in them. The first byte chooses the reader.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string_view>

#include "base/byte_stream.hpp"
#include "cache/entry_format.hpp"
#include "compile/image_format.hpp"
#include "compile/key.hpp"

using namespace quern;

namespace {

/// An entry that was read is written as it was read.
void read_image(std::string_view bytes) {
  const Expected<abi::PtxImage> image = compile::read_image(bytes);
  if (image && compile::write_image(*image) != bytes) std::abort();
}

void read_failure(std::string_view bytes) {
  base::ByteReader reader(bytes);
  (void)to_string(compile::read_diagnostics(reader));
}

/// The input as an entry's content, with one byte changed: never taken for whole.
void read_changed(std::string_view bytes) {
  if (bytes.size() < 4) return;
  const std::size_t at = static_cast<unsigned char>(bytes[0]) * 256U + static_cast<unsigned char>(bytes[1]);
  const char change = bytes[2] != 0 ? bytes[2] : '\1';
  const std::string_view content = bytes.substr(3);
  const std::string_view components = content.substr(0, content.size() / 3);
  std::string entry = cache::entry_header(cache::EntryKind::ptx_image, {}, components, content);
  entry.append(components).append(content);
  if (!cache::read_entry(entry)) std::abort();
  char& changed = entry[at % entry.size()];
  changed = static_cast<char>(changed ^ change);
  if (cache::read_entry(entry)) std::abort();
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes(reinterpret_cast<const char*>(data + 1), size - 1);
  switch (data[0] % 5) {
    case 0:
      (void)cache::read_entry(bytes);
      break;
    case 1:
      read_image(bytes);
      break;
    case 2:
      read_failure(bytes);
      break;
    case 3:
      (void)compile::read_components(bytes);
      break;
    default:
      read_changed(bytes);
      break;
  }
  return 0;
}
