// SPDX-License-Identifier: Apache-2.0
#include "compile/image_store.hpp"

#include <algorithm>

#include "base/log.hpp"
#include "compile/image_format.hpp"
#include "compile/remote_compiler.hpp"

namespace quern::compile {
namespace {

using cache::EntryKind;

/// Another attempt could end in another way.
bool may_pass(const Diagnostic& error) {
  const bool is_of_moment =
      error.code == "cancelled" || error.code == "nvrtc-failed" || error.code == kNoServer;
  return is_of_moment || error.message.find("open source file") != std::string::npos;
}

}  // namespace

std::optional<Expected<abi::PtxImage>> recall_image(cache::DiskStore& store, const CudaKey& key) {
  if (!key.not_for_disk.empty()) return std::nullopt;
  if (const std::optional<std::string> bytes = store.get(EntryKind::ptx_image, key.digest))
    if (Expected<abi::PtxImage> image = read_image(*bytes)) return image;
  if (const std::optional<std::string> bytes = store.get(EntryKind::failed_compile, key.digest)) {
    base::ByteReader reader(*bytes);
    Diagnostics errors = read_diagnostics(reader);
    if (reader.good() && reader.at_end() && has_error(errors))
      return Expected<abi::PtxImage>(std::move(errors));
  }
  return std::nullopt;
}

void remember_image(cache::DiskStore& store, const CudaKey& key, const Expected<abi::PtxImage>& outcome) {
  if (!key.not_for_disk.empty()) {
    base::log({LogLevel::debug, "a compilation is not kept on disk: " + key.not_for_disk, {}});
    return;
  }
  if (outcome) {
    store.put(EntryKind::ptx_image, key.digest, write_image(*outcome), components_bytes(key));
  } else if (std::ranges::none_of(outcome.errors(), may_pass)) {
    base::ByteWriter writer;
    write_diagnostics(writer, outcome.errors());
    store.put(EntryKind::failed_compile, key.digest, writer.take(), components_bytes(key));
  }
}

}  // namespace quern::compile
