// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/code_cache.hpp"

#include <algorithm>

#include "cache/memory_cache.hpp"

namespace quern::cpu::device {
namespace {

constexpr std::uint64_t kMaxCodeBytes = std::uint64_t{128} << 20;
/// The least that code counts for: beside its memory it takes a mapping, whose number the system limits.
constexpr std::size_t kMinCodeBytes = std::size_t{8} << 10;

std::size_t size_of(const KernelCode& code) {
  std::size_t bytes = static_cast<std::size_t>(code.text_end - code.text_begin);
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

base::Digest key_of(const base::Digest& ptx, std::string_view kernel, const Specialisation& specialisation) {
  const auto& [block, small_grid, isa, alone, compact, opt_level, gang, dispatch] = specialisation;
  base::DigestBuilder builder;
  builder.add(std::string_view(reinterpret_cast<const char*>(ptx.bytes.data()), ptx.bytes.size()));
  builder.add(kernel);
  for (const std::uint32_t extent : block) builder.add(std::uint64_t{extent});
  for (const unsigned field : {unsigned{small_grid}, static_cast<unsigned>(isa), unsigned{alone},
                               unsigned{compact}, unsigned{opt_level}, unsigned{gang}, unsigned{dispatch}})
    builder.add(std::uint64_t{field});
  return builder.finish();
}

Expected<Codes::Value> load(const CodeImage& image) {
  Expected<Codes::Value> code = load_image(image);
  if (code || code.errors().front().code != kNoMappingCode) return code;
  codes().clear();
  return load_image(image);
}

}  // namespace

Expected<std::shared_ptr<const KernelCode>> shared_code(const base::Digest& ptx, std::string_view kernel,
                                                        const Specialisation& specialisation,
                                                        const MakeImage& make) {
  return codes().get_or_compute(key_of(ptx, kernel, specialisation), [&]() -> Expected<Codes::Value> {
    const Expected<CodeImage> image = make();
    return image ? load(*image) : image.errors();
  });
}

}  // namespace quern::cpu::device
