// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/stored.hpp"

#include <fmt/format.h>

#include "base/byte_stream.hpp"
#include "base/log.hpp"
#include "cache/disk_store.hpp"

namespace quern::cpu::device {
namespace {

using cache::EntryKind;

/// Null: nothing is kept.
cache::DiskStore* store() { return generator_identity().empty() ? nullptr : cache::process_store(); }

std::string flags_text(const Specialisation& of) {
  return fmt::format("{}{}{}{}optimisation {}, gang {}{}{}{}", of.portable ? "portable, " : "",
                     of.small_grid ? "small grid, " : "", of.alone ? "one worker, " : "",
                     of.compact ? "compact addresses, " : "", of.opt_level, of.gang,
                     of.lanes_in_turn ? ", lanes in turn" : "", of.eager_loops ? ", eager loops" : "",
                     of.dispatch ? ", dispatched" : "");
}

/// The key of an entry: `key` is of what was asked for, and the generator decides the rest.
CodeKey with_generator(CodeKey key) {
  base::DigestBuilder builder;
  builder.add(std::string_view(reinterpret_cast<const char*>(key.digest.bytes.data()), sizeof key.digest));
  builder.add(generator_identity());
  builder.add(static_cast<std::uint64_t>(host_isa()));
  key.components.emplace_back("CPU device", generator_identity());
  return {builder.finish(), std::move(key.components)};
}

CodeKey key_of_kernels(const base::Digest& ptx) { return with_generator({ptx, {{"ptx", ptx.hex()}}}); }

/// An entry whose checksum is right and whose fields are not: a defect, since this build wrote it.
void tell(const Diagnostics& errors) {
  base::log({LogLevel::warning, errors.front().message + "; " + errors.front().hint, {}});
}

std::optional<CodeImage> find_image(cache::DiskStore& disk, const base::Digest& key) {
  const std::optional<std::string> bytes = disk.get(EntryKind::machine_code, key);
  if (!bytes) return std::nullopt;
  Expected<CodeImage> read = read_image(*bytes);
  if (read) return *std::move(read);
  tell(read.errors());
  return std::nullopt;
}

void put_image(cache::DiskStore& disk, const CodeKey& key, const CodeImage& image) {
  disk.put(EntryKind::machine_code, key.digest, write_image(image), components_bytes(key));
}

}  // namespace

CodeKey code_key(const base::Digest& ptx, std::string_view kernel, const Specialisation& specialisation) {
  const auto& [block, small_grid, isa, alone, compact, opt_level, gang, portable, lanes_in_turn, eager_loops,
               dispatch] = specialisation;
  base::DigestBuilder builder;
  builder.add(std::string_view(reinterpret_cast<const char*>(ptx.bytes.data()), ptx.bytes.size()));
  builder.add(kernel);
  for (const std::uint32_t extent : block) builder.add(std::uint64_t{extent});
  for (const unsigned field : {unsigned{small_grid}, static_cast<unsigned>(isa), unsigned{alone},
                               unsigned{compact}, unsigned{opt_level}, unsigned{gang}, unsigned{portable},
                               unsigned{lanes_in_turn}, unsigned{eager_loops}, unsigned{dispatch}})
    builder.add(std::uint64_t{field});
  constexpr const char* kIsas[] = {"baseline", "avx2", "avx512"};
  return {builder.finish(),
          {{"kernel", std::string(kernel)},
           {"ptx", ptx.hex()},
           {"block", fmt::format("{} x {} x {}", block[0], block[1], block[2])},
           {"instruction set", kIsas[static_cast<std::size_t>(isa)]},
           {"code generation", flags_text(specialisation)}}};
}

std::string components_bytes(const CodeKey& key) {
  base::ByteWriter to;
  to.count(key.components.size());
  for (const auto& [name, value] : key.components) to.text(name).text(value);
  return to.take();
}

Expected<CodeImage> stored_image(const CodeKey& key, const MakeImage& make, bool& was_stored) {
  was_stored = false;
  cache::DiskStore* const disk = store();
  if (disk == nullptr) return make();
  const CodeKey own_key = with_generator(key);
  std::optional<CodeImage> found = find_image(*disk, own_key.digest);
  cache::DiskStore::Claim claim;
  if (!found) {
    claim = disk->claim(own_key.digest);
    found = find_image(*disk, own_key.digest);  // another's, meanwhile
  }
  was_stored = found.has_value();
  if (found) return *std::move(found);
  Expected<CodeImage> image = make();
  if (image) put_image(*disk, own_key, *image);
  return image;
}

std::optional<CodeImage> find_stored(const CodeKey& key) {
  cache::DiskStore* const disk = store();
  return disk == nullptr ? std::nullopt : find_image(*disk, with_generator(key).digest);
}

void replace_image(const CodeKey& key, const CodeImage& image) {
  if (cache::DiskStore* const disk = store()) put_image(*disk, with_generator(key), image);
}

std::optional<std::vector<KernelInfo>> stored_kernels(const base::Digest& ptx) {
  cache::DiskStore* const disk = store();
  if (disk == nullptr) return std::nullopt;
  const std::optional<std::string> bytes = disk->get(EntryKind::kernel_facts, key_of_kernels(ptx).digest);
  if (!bytes) return std::nullopt;
  Expected<std::vector<KernelInfo>> read = read_kernels(*bytes);
  if (read) return *std::move(read);
  tell(read.errors());
  return std::nullopt;
}

void store_kernels(const base::Digest& ptx, const std::vector<KernelInfo>& kernels) {
  cache::DiskStore* const disk = store();
  if (disk == nullptr) return;
  const CodeKey key = key_of_kernels(ptx);
  disk->put(EntryKind::kernel_facts, key.digest, write_kernels(kernels), components_bytes(key));
}

}  // namespace quern::cpu::device
