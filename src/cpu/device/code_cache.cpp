// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/code_cache.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "cache/memory_cache.hpp"

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

std::string flags_text(const Specialisation& of) {
  return fmt::format("{}{}{}optimisation {}, gang {}{}", of.small_grid ? "small grid, " : "",
                     of.alone ? "one worker, " : "", of.compact ? "compact addresses, " : "", of.opt_level,
                     of.gang, of.dispatch ? ", dispatched" : "");
}

CodeKey key_of(const base::Digest& ptx, std::string_view kernel, const Specialisation& specialisation) {
  const auto& [block, small_grid, isa, alone, compact, opt_level, gang, dispatch] = specialisation;
  base::DigestBuilder builder;
  builder.add(std::string_view(reinterpret_cast<const char*>(ptx.bytes.data()), ptx.bytes.size()));
  builder.add(kernel);
  for (const std::uint32_t extent : block) builder.add(std::uint64_t{extent});
  for (const unsigned field : {unsigned{small_grid}, static_cast<unsigned>(isa), unsigned{alone},
                               unsigned{compact}, unsigned{opt_level}, unsigned{gang}, unsigned{dispatch}})
    builder.add(std::uint64_t{field});
  constexpr const char* kIsas[] = {"baseline", "avx2", "avx512"};
  return {builder.finish(),
          {{"kernel", std::string(kernel)},
           {"ptx", ptx.hex()},
           {"block", fmt::format("{} x {} x {}", block[0], block[1], block[2])},
           {"instruction set", kIsas[static_cast<std::size_t>(isa)]},
           {"code generation", flags_text(specialisation)}}};
}

struct Counters {
  std::atomic<std::uint64_t> generated{0};
  std::atomic<std::uint64_t> from_disk{0};
};
constinit Counters counters;

Expected<Codes::Value> load(const CodeImage& image) {
  Expected<Codes::Value> code = load_image(image);
  if (code || code.errors().front().code != kNoMappingCode) return code;
  codes().clear();
  return load_image(image);
}

/// Code that the store has, or new code.
Expected<Codes::Value> obtain(const CodeKey& key, const MakeImage& make) {
  const auto generate = [&] {
    Expected<CodeImage> image = make();
    if (image) ++counters.generated;
    return image;
  };
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
                                                        const MakeImage& make) {
  const CodeKey key = key_of(ptx, kernel, specialisation);
  return codes().get_or_compute(key.digest, [&] { return obtain(key, make); });
}

CodeStats code_stats() {
  const cache::CacheStats memory = codes().stats();
  return {counters.generated, memory.hits + memory.waits, counters.from_disk};
}

}  // namespace quern::cpu::device
