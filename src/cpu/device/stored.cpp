// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/stored.hpp"

#include "base/log.hpp"
#include "cache/disk_store.hpp"

namespace quern::cpu::device {
namespace {

using cache::EntryKind;

/// Null: nothing is kept.
cache::DiskStore* store() { return generator_identity().empty() ? nullptr : cache::process_store(); }

base::Digest with_generator(const base::Digest& key) {
  base::DigestBuilder builder;
  builder.add(std::string_view(reinterpret_cast<const char*>(key.bytes.data()), key.bytes.size()));
  builder.add(generator_identity());
  builder.add(static_cast<std::uint64_t>(host_isa()));
  return builder.finish();
}

/// An entry whose checksum is right and whose fields are not: a defect, since this build wrote it.
void tell(const Diagnostics& errors) {
  base::log({LogLevel::warning, errors.front().message + "; " + errors.front().hint, {}});
}

}  // namespace

Expected<CodeImage> stored_image(const base::Digest& key, const MakeImage& make, bool& was_stored) {
  was_stored = false;
  cache::DiskStore* const disk = store();
  if (disk == nullptr) return make();
  std::optional<Expected<CodeImage>> made;
  const std::optional<std::string> bytes =
      disk->get_or_compute(EntryKind::machine_code, with_generator(key), [&]() -> std::optional<std::string> {
        made.emplace(make());
        return *made ? std::optional(write_image(**made)) : std::nullopt;
      });
  if (made) return *std::move(made);
  if (bytes) {
    Expected<CodeImage> read = read_image(*bytes);
    was_stored = read.has_value();
    if (read) return read;
    tell(read.errors());
  }
  Expected<CodeImage> image = make();  // also where another process failed to make it
  if (image) replace_image(key, *image);
  return image;
}

void replace_image(const base::Digest& key, const CodeImage& image) {
  if (cache::DiskStore* const disk = store())
    disk->put(EntryKind::machine_code, with_generator(key), write_image(image));
}

std::optional<std::vector<KernelInfo>> stored_kernels(const base::Digest& ptx) {
  cache::DiskStore* const disk = store();
  if (disk == nullptr) return std::nullopt;
  const std::optional<std::string> bytes = disk->get(EntryKind::kernel_facts, with_generator(ptx));
  if (!bytes) return std::nullopt;
  Expected<std::vector<KernelInfo>> read = read_kernels(*bytes);
  if (read) return *std::move(read);
  tell(read.errors());
  return std::nullopt;
}

void store_kernels(const base::Digest& ptx, const std::vector<KernelInfo>& kernels) {
  if (cache::DiskStore* const disk = store())
    disk->put(EntryKind::kernel_facts, with_generator(ptx), write_kernels(kernels));
}

}  // namespace quern::cpu::device
