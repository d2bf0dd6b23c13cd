// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module/bundled.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/byte_stream.hpp"
#include "base/log.hpp"
#include "cache/bundle.hpp"
#include "cpu/code/build_id.hpp"
#include "cpu/device/module/read_ptx.hpp"
#include "cpu/device/module/stored.hpp"

namespace quern::cpu::device {
namespace {

using Block = std::array<std::uint32_t, 3>;

const std::string& build() {
  static const std::string id = own_build_id();
  return id;
}

CodeKey with_build(CodeKey key, std::string_view kind) {
  key.digest = base::DigestBuilder().add(kind).add(key.digest.hex()).add(build()).finish();
  key.components.emplace_back("CPU device", "build " + build() + ", any processor");
  return key;
}
CodeKey code_key_in_bundle(const base::Digest& ptx, std::string_view kernel, const Specialisation& of) {
  return with_build(code_key(ptx, kernel, of), "quern bundle code");
}
CodeKey kernels_key_in_bundle(const base::Digest& ptx) {
  return with_build({ptx, {{"ptx", ptx.hex()}}}, "quern bundle kernels");
}

Specialisation portable(const Block& block, Isa isa) {
  Specialisation result;
  result.block = block;
  result.isa = isa;
  result.portable = true;
  return result;
}

/// True if code of bundles may run in place of the code that is asked for. Portable code makes no use of
/// there being one worker; it does not check every address, and bounds of large grids may wrap in it.
bool may_stand_for(const Specialisation& wanted) {
  Specialisation plain = portable(wanted.block, wanted.isa);
  plain.portable = wanted.portable;
  plain.alone = wanted.alone;
  return wanted == plain;
}

cache::BundleEntry entry(cache::EntryKind kind, const CodeKey& key, std::string content) {
  return {kind, key.digest, components_bytes(key), std::move(content)};
}

std::uint64_t threads_of(const Block& block) { return std::uint64_t{block[0]} * block[1] * block[2]; }

/// The shapes to make code for, each once.
std::vector<Block> shapes_of(const ptx::PerformanceDirectives& directives, const KernelInfo& info,
                             const std::vector<Block>& wished) {
  std::vector<Block> shapes;
  const auto add = [&](Block block) {
    for (std::uint32_t& extent : block) extent = std::max(extent, 1u);
    if (threads_of(block) > info.max_threads || std::ranges::find(shapes, block) != shapes.end()) return;
    shapes.push_back(block);
  };
  if (directives.reqntid[0] != 0) {
    add(directives.reqntid);
    return shapes;
  }
  if (directives.maxntid[0] != 0) add(directives.maxntid);
  for (const Block& block : wished) add(block);
  return shapes;
}

class Maker {
 public:
  Maker(const SharedPtx& ptx, const BundleWish& wish) : ptx_(ptx), wish_(wish) {}

  Expected<BundledCode> make() {
    made_.entries.push_back(entry(cache::EntryKind::kernel_facts, kernels_key_in_bundle(ptx_.digest),
                                  write_kernels(ptx_.kernels)));
    for (const KernelInfo& kernel : ptx_.kernels)
      if (Expected<void> done = add(kernel); !done) return std::move(done).errors();
    return std::move(made_);
  }

 private:
  Expected<void> add(const KernelInfo& kernel) {
    const auto found = ptx_.ptx_by_name.find(kernel.name);
    if (found == ptx_.ptx_by_name.end()) return {};
    const std::vector<Block> shapes = shapes_of(found->second->performance, kernel, wish_.blocks);
    if (shapes.empty() && !wish_.isas.empty()) made_.without_code.push_back(kernel.name);
    for (const Block& block : shapes)
      for (const Isa isa : wish_.isas) {
        const Specialisation of = portable(block, isa);
        const Expected<CodeImage> image = compile_image(ptx_.module, kernel.name, of);
        if (!image) return image.errors();
        made_.entries.push_back(entry(cache::EntryKind::machine_code,
                                      code_key_in_bundle(ptx_.digest, kernel.name, of), write_image(*image)));
      }
    return {};
  }

  const SharedPtx& ptx_;
  const BundleWish& wish_;
  BundledCode made_;
};

}  // namespace

std::optional<BundledImage> bundled_image(const base::Digest& ptx, std::string_view kernel,
                                          const Specialisation& wanted) {
  if (cache::process_bundles().empty() || build().empty() || !may_stand_for(wanted)) return std::nullopt;
  for (auto isa = static_cast<int>(wanted.isa); isa >= 0; --isa) {
    const Specialisation of = portable(wanted.block, static_cast<Isa>(isa));
    if (!runs_portable(of.isa)) continue;
    const auto content =
        cache::find_in_bundles(cache::EntryKind::machine_code, code_key_in_bundle(ptx, kernel, of).digest);
    if (!content) continue;
    Expected<CodeImage> image = read_image(*content);
    if (image) return BundledImage{*std::move(image), of};
    base::log({LogLevel::warning, image.errors().front().message, {}});
  }
  return std::nullopt;
}

std::optional<std::vector<KernelInfo>> bundled_kernels(const base::Digest& ptx) {
  if (cache::process_bundles().empty() || build().empty()) return std::nullopt;
  const auto content =
      cache::find_in_bundles(cache::EntryKind::kernel_facts, kernels_key_in_bundle(ptx).digest);
  if (!content) return std::nullopt;
  Expected<std::vector<KernelInfo>> kernels = read_kernels(*content);
  if (!kernels) return std::nullopt;
  return *std::move(kernels);
}

Expected<BundledCode> make_bundled_code(std::string_view text, const BundleWish& wish) {
  Diagnostic unknown;
  unknown.code = "bundle";
  unknown.message = "cannot make machine code for a bundle: this build of the CPU device has no build-id";
  unknown.hint = "link it so that it has one";
  if (build().empty()) return unknown;
  const auto read = shared_ptx(text);
  if (const auto* refusal = std::get_if<Refusal>(&read)) return refusal->diagnostics;
  return Maker(*std::get<ReadPtx>(read).ptx, wish).make();
}

}  // namespace quern::cpu::device
