// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/code_cache.hpp"

#include <algorithm>
#include <atomic>

#include "cache/memory_cache.hpp"
#include "cpu/device/module/bundled.hpp"

namespace quern::cpu::device {
namespace {

constexpr std::uint64_t kMaxCodeBytes = std::uint64_t{128} << 20;
/// The least that code counts for: beside its memory it takes a mapping, whose number the system limits.
constexpr std::size_t kMinCodeBytes = std::size_t{8} << 10;

std::size_t size_of(const KernelCode& code) {
  std::size_t bytes = code.mapped_bytes;
  for (const ir::Location& location : code.locations) bytes += sizeof location + location.file.capacity();
  for (const SymbolUse& use : code.symbols) bytes += sizeof use + use.name.capacity();
  return std::max(bytes, kMinCodeBytes);
}

using Codes = cache::MemoryCache<KernelCode>;
/// Never destroyed, as the driver itself is not.
Codes& codes() {
  static auto* const all = new Codes(kMaxCodeBytes, size_of);
  return *all;
}

struct Counters {
  std::atomic<std::uint64_t> generated{0};
  std::atomic<std::uint64_t> from_disk{0};
  std::atomic<std::uint64_t> from_bundles{0};
};
constinit Counters counters;

Expected<Codes::Value> load(const CodeImage& image) {
  Expected<Codes::Value> code = load_image(image);
  if (code || code.errors().front().code != kNoMappingCode) return code;
  codes().clear();
  return load_image(image);
}

/// Code of a bundle, which says what it was made for; null: there is none that loads.
Codes::Value obtain_bundled(const base::Digest& ptx, std::string_view kernel, const Specialisation& wanted) {
  const std::optional<BundledImage> found = bundled_image(ptx, kernel, wanted);
  if (!found) return nullptr;
  const Expected<Codes::Value> loaded = load(found->image);
  if (!loaded) return nullptr;
  auto code = std::make_shared<KernelCode>(**loaded);
  code->made_for = found->made_for;
  ++counters.from_bundles;
  return code;
}

/// Calls `make`, and counts what it makes.
Expected<CodeImage> generate_image(const MakeImage& make, Maker maker) {
  Expected<CodeImage> image = make();
  if (image && maker == Maker::launch) ++counters.generated;
  return image;
}

/// Code that the store has; null: none that loads.
Codes::Value obtain_stored(const CodeKey& key) {
  const std::optional<CodeImage> image = find_stored(key);
  if (!image) return nullptr;
  const Expected<Codes::Value> loaded = load(*image);
  if (!loaded) return nullptr;
  ++counters.from_disk;
  return *loaded;
}

/// Code that the store has, or new code.
Expected<Codes::Value> obtain(const CodeKey& key, const MakeImage& make, Maker maker) {
  const auto generate = [&] { return generate_image(make, maker); };
  bool was_stored = false;
  const Expected<CodeImage> image = stored_image(key, generate, was_stored);
  if (!image) return image.errors();
  Expected<Codes::Value> code = load(*image);
  if (!was_stored) return code;
  ++counters.from_disk;
  if (code || code.errors().front().code == kNoMappingCode) return code;
  // This build cannot load the image, although it wrote it.
  const Expected<CodeImage> fresh = generate();
  if (!fresh) return fresh.errors();
  replace_image(key, *fresh);
  return load(*fresh);
}

}  // namespace

Expected<std::shared_ptr<const KernelCode>> shared_code(const base::Digest& ptx, std::string_view kernel,
                                                        const Specialisation& specialisation,
                                                        const MakeImage& make, Maker maker) {
  const CodeKey key = code_key(ptx, kernel, specialisation);
  return codes().get_or_compute(key.digest, [&]() -> Expected<Codes::Value> {
    if (specialisation.opt_level == kQuickLevel) {
      const Expected<CodeImage> image = generate_image(make, maker);
      if (!image) return image.errors();
      return load(*image);
    }
    if (Codes::Value bundled = obtain_bundled(ptx, kernel, specialisation)) return bundled;
    return obtain(key, make, maker);
  });
}

std::shared_ptr<const KernelCode> known_code(const base::Digest& ptx, std::string_view kernel,
                                             const Specialisation& specialisation) {
  const CodeKey key = code_key(ptx, kernel, specialisation);
  if (Codes::Value found = codes().find(key.digest)) return found;
  Codes::Value found = obtain_bundled(ptx, kernel, specialisation);
  if (found == nullptr) found = obtain_stored(key);
  if (found == nullptr) return nullptr;
  const auto kept = codes().get_or_compute(key.digest, [&]() -> Expected<Codes::Value> { return found; });
  return kept ? *kept : found;
}

CodeStats code_stats() {
  const cache::CacheStats memory = codes().stats();
  return {counters.generated, memory.hits + memory.waits, counters.from_disk, counters.from_bundles};
}

}  // namespace quern::cpu::device
