// SPDX-License-Identifier: Apache-2.0
// The passes, in order: lower -> analyse -> emit. (The analysis runs once more inside emit, on the blocks as
// it cuts them; here only its errors are used.)
#include "cpu/compiler.hpp"

#include <algorithm>
#include <mutex>
#include <optional>
#include <string_view>

#include "base/env.hpp"
#include "cpu/analysis/analysis.hpp"
#include "cpu/code/build_id.hpp"
#include "cpu/code/load.hpp"
#include "cpu/emit/emit.hpp"
#include "cpu/emit/operations/helpers.hpp"
#include "cpu/lower/lower.hpp"

namespace quern::cpu {
namespace {

/// The block shape for load-time checks if the kernel does not require one. The shape affects the errors only
/// by which branches are known to be uniform, and this is the common case.
constexpr std::array<std::uint32_t, 3> kUsualBlock{256, 1, 1};
constexpr std::string_view kNoFile = "<ptx>";

std::uint64_t product(const std::array<std::uint32_t, 3>& extents) {
  std::uint64_t result = 1;
  for (const std::uint32_t extent : extents) result *= std::max(extent, 1u);
  return result;
}

bool given(const std::array<std::uint32_t, 3>& extents) { return extents[0] != 0; }

Specialisation usual_specialisation(const ptx::PerformanceDirectives& directives) {
  Specialisation result;
  result.block = kUsualBlock;
  result.isa = host_isa();
  if (given(directives.reqntid))
    for (std::size_t d = 0; d < 3; ++d) result.block[d] = std::max(directives.reqntid[d], 1u);
  else if (given(directives.maxntid) && product(directives.maxntid) < result.threads())
    result.block = {static_cast<std::uint32_t>(product(directives.maxntid)), 1, 1};
  return result;
}

std::uint32_t max_threads(const ptx::PerformanceDirectives& directives) {
  const auto& extents = given(directives.reqntid) ? directives.reqntid : directives.maxntid;
  return given(extents) ? static_cast<std::uint32_t>(std::min<std::uint64_t>(product(extents), 1024)) : 1024;
}

/// The refusals of the passes behind lower.
Expected<void> check(const ir::Module& module, const Specialisation& specialisation) {
  if (auto done = emit::check_emittable(module); !done) return done.errors();
  for (const ir::Function& function : module.functions) {
    if (auto done = analysis::needs_dispatcher(module, function, specialisation); !done) return done.errors();
  }
  return {};
}

/// Functions that are not inlined are called, unless threads wait for others in them, or (in tests) the
/// dispatcher is requested.
Expected<ir::Module> lower_calls(const ptx::Module& module, const ptx::Function& entry,
                                 std::string_view file_name, const Specialisation& specialisation) {
  auto lowered = lower::lower(module, entry, file_name);
  if (!lowered || lowered->functions.size() == 1) return lowered;
  if (!specialisation.dispatch && !analysis::waits_in_calls(*lowered, specialisation)) return lowered;
  return lower::lower(module, entry, file_name, lower::CallForm::activations);
}

Expected<ir::Module> lower_calls(const ptx::Module& module, std::string_view kernel,
                                 std::string_view file_name, const Specialisation& specialisation) {
  const ptx::Function* entry = module.find_function(kernel);
  if (entry == nullptr || !entry->entry || !entry->defined) return lower::lower(module, kernel, file_name);
  return lower_calls(module, *entry, file_name, specialisation);
}

/// 32-bit registers that the values alive at one time would take on a GPU, roughly: most values die in their
/// block, so the fullest block's count of values that later ones of it or other blocks read is a fair bound.
std::uint32_t estimate_registers(const ir::Function& function) {
  std::vector<std::uint32_t> last_use(function.insts.size(), 0);
  std::uint32_t most = 0;
  for (const ir::Block& block : function.blocks) {
    std::fill(last_use.begin(), last_use.end(), 0u);
    for (std::uint32_t i = 0; i < block.insts.size(); ++i)
      for (const ir::Value arg : function[block.insts[i]].args) last_use[arg] = i;
    std::vector<std::int64_t> change(block.insts.size() + 1, 0);
    for (std::uint32_t i = 0; i < block.insts.size(); ++i) {
      const ir::Value value = block.insts[i];
      const auto words = static_cast<std::int64_t>((ir::bit_size(function[value].type) + 31) / 32);
      if (function[value].op == ir::Op::constant || last_use[value] <= i) continue;
      change[i] += words;
      change[last_use[value]] -= words;
    }
    std::int64_t alive = 0;
    for (const std::int64_t delta : change) {
      alive += delta;
      most = std::max(most, static_cast<std::uint32_t>(std::max<std::int64_t>(alive, 0)));
    }
  }
  return std::clamp<std::uint32_t>(most + 10, 16, 255);
}

std::uint64_t const_bytes(const ptx::Module& module) {
  std::uint64_t bytes = 0;
  for (const ptx::Variable& variable : module.variables)
    if (variable.space == ptx::Space::const_) bytes += variable.size_bytes();
  return bytes;
}

KernelInfo describe(const ptx::Module& module, const ptx::Function& entry, const ir::Module& lowered) {
  const ir::Function& kernel = lowered.functions[0];
  KernelInfo info;
  info.name = entry.name;
  info.params = kernel.params;
  for (const ir::Parameter& parameter : kernel.params)
    info.param_bytes =
        std::max<std::uint64_t>(info.param_bytes, std::uint64_t{parameter.offset} + parameter.size);
  info.static_shared_bytes = lowered.static_shared_bytes;
  info.local_bytes = kernel.local_bytes - kernel.stack_bytes;
  info.const_bytes = const_bytes(module);
  info.max_threads = max_threads(entry.performance);
  info.register_count = estimate_registers(kernel);
  return info;
}

}  // namespace

Expected<std::vector<KernelInfo>> inspect(const ptx::Module& module, std::string_view file_name) {
  if (Expected<void> checked = lower::check_parameters(module, file_name); !checked) return checked.errors();
  std::vector<KernelInfo> kernels;
  Diagnostics errors;
  for (const ptx::Function& entry : module.functions) {
    if (!entry.entry || !entry.defined) continue;
    const Specialisation usual = usual_specialisation(entry.performance);
    auto lowered = lower_calls(module, entry, file_name, usual);
    if (!lowered) {
      errors.insert(errors.end(), lowered.errors().begin(), lowered.errors().end());
      continue;
    }
    if (auto done = check(*lowered, usual); !done)
      errors.insert(errors.end(), done.errors().begin(), done.errors().end());
    else
      kernels.push_back(describe(module, entry, *lowered));
  }
  if (!errors.empty()) return errors;
  return kernels;
}

Expected<CodeImage> compile_image(const ptx::Module& module, std::string_view kernel,
                                  const Specialisation& specialisation) {
  auto lowered = lower_calls(module, kernel, kNoFile, specialisation);
  if (!lowered) return lowered.errors();
  return emit::emit_image(std::move(*lowered), specialisation);
}

Expected<std::shared_ptr<const KernelCode>> load_image(const CodeImage& image) {
  Expected<LoadedImage> loaded = map_code(image.code, emit::helpers());
  if (!loaded) return std::move(loaded).errors();
  auto code = std::make_shared<KernelCode>(KernelCode{image.facts});
  code->run = reinterpret_cast<engine::RunBlocks>(loaded->entry);
  code->text_begin = loaded->text_begin;
  code->text_end = loaded->text_end;
  code->memory = std::move(loaded->memory);
  code->mapped_bytes = image.code.bytes.size();
  return std::shared_ptr<const KernelCode>(std::move(code));
}

Expected<std::shared_ptr<const KernelCode>> compile(const ptx::Module& module, std::string_view kernel,
                                                    const Specialisation& specialisation) {
  const Expected<CodeImage> image = compile_image(module, kernel, specialisation);
  if (!image) return image.errors();
  return load_image(*image);
}

Expected<CodeSites> find_sites(const ptx::Module& module, std::string_view kernel,
                               const Specialisation& specialisation) {
  auto lowered = lower_calls(module, kernel, kNoFile, specialisation);
  if (!lowered) return lowered.errors();
  return emit::emit_sites(std::move(*lowered), specialisation);
}

Expected<std::string> stage_text(const ptx::Module& module, std::string_view kernel,
                                 const Specialisation& specialisation, Stage stage) {
  auto lowered = lower_calls(module, kernel, kNoFile, specialisation);
  if (!lowered) return lowered.errors();
  if (stage == Stage::simt) return ir::print(*lowered);
  return emit::emit_text(std::move(*lowered), specialisation, stage);
}

const std::string& generator_identity() {
  static const std::string identity = [] {
    const std::string build = own_build_id();
    return build.empty() ? build : "build " + build + ", " + emit::processor_identity();
  }();
  return identity;
}

Isa host_isa() {
  static const Isa isa = [] {
    constexpr std::string_view kWords[] = {"baseline", "avx2", "avx512"};
    constexpr Isa kMost[] = {Isa::baseline, Isa::avx2, Isa::avx512};
    const Isa processor = emit::processor_isa();
    const std::optional<std::size_t> wanted = base::env_word("QUERN_CPU_ISA", kWords, &base::warn_of_env);
    return wanted ? std::min(processor, kMost[*wanted]) : processor;
  }();
  return isa;
}

}  // namespace quern::cpu
