// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <atomic>

#include "base/clock.hpp"
#include "base/thread.hpp"
#include "cpu/device/background_code.hpp"
#include "cpu/device/driver.hpp"
#include "cpu/device/failure.hpp"
#include "cpu/device/limits.hpp"
#include "cpu/device/module/code_cache.hpp"
#include "cpu/device/objects.hpp"
#include "cpu/device/tier_facts.hpp"
#include "cpu/engine/fault.hpp"
#include "cpu/engine/output.hpp"
#include "driver/cpu_plugin.h"

namespace quern::cpu::device {
namespace {

std::atomic<GenerateSink> generate_sink{nullptr};

void tell_generation(const FunctionObject& function, const std::string& kernel, bool finished) {
  const GenerateSink sink = generate_sink.load();
  if (sink == nullptr) return;
  const QuernCpuGeneration given{sizeof given, finished ? 1 : 0,
                                 Driver::get().contexts().handle_of(function.module().context->id),
                                 kernel.c_str(), function.ptx().body.size()};
  sink(&given);
}

/// Shorter kernels are compiled so quickly that two tiers gain little.
constexpr std::size_t kLeastQuickInsts = 48;

}  // namespace

void set_generate_sink(GenerateSink sink) noexcept { generate_sink.store(sink); }

FunctionSettings::FunctionSettings(const KernelInfo& info)
    : max_dynamic_shared_bytes(static_cast<std::uint32_t>(
          kStaticSharedBytes - std::min<std::uint64_t>(info.static_shared_bytes, kStaticSharedBytes))) {}

void FunctionSettings::follow(const FunctionSettings& kernel) noexcept {
  if (!has_own_dynamic.load()) max_dynamic_shared_bytes.store(kernel.max_dynamic_shared_bytes.load());
  if (!has_own_carveout.load()) carveout.store(kernel.carveout.load());
}

void FunctionSettings::keep(CUfunction_attribute attribute) noexcept {
  if (attribute == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) has_own_dynamic.store(true);
  if (attribute == CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT) has_own_carveout.store(true);
}

FunctionObject::FunctionObject(std::shared_ptr<ModuleObject> module, const KernelInfo& info)
    : settings(info), module_(std::move(module)), info_(&info), display_name_(&info.name) {
  const auto found = module_->shared->ptx_by_name.find(info.name);
  require(found != module_->shared->ptx_by_name.end(), CUDA_ERROR_NOT_FOUND);
  ptx_ = found->second;
}

void FunctionObject::set_display_name(std::string name) {
  const base::LockGuard lock(mutex_);
  if (name.empty()) return display_name_.store(&info_->name, std::memory_order_release);
  display_name_.store(&names_.emplace_front(std::move(name)), std::memory_order_release);
}

FunctionObject::Variant& FunctionObject::variant_for(const Specialisation& specialisation) {
  Variant* const recent = recent_.load(std::memory_order_acquire);
  if (recent != nullptr && recent->specialisation == specialisation) return *recent;
  const base::LockGuard lock(mutex_);
  const auto matches = [&](const auto& variant) { return variant->specialisation == specialisation; };
  auto found = std::ranges::find_if(variants_, matches);
  if (found == variants_.end()) {
    found = variants_.insert(found, std::make_unique<Variant>());
    (*found)->specialisation = specialisation;
  }
  recent_.store(found->get(), std::memory_order_release);
  return **found;
}

const LoadedCode& FunctionObject::code_for(const Specialisation& specialisation, Tier tier,
                                           std::optional<std::int64_t>* made_since_ns) {
  Variant& variant = variant_for(specialisation);
  if (!variant.made.load(std::memory_order_acquire)) {
    if (made_since_ns != nullptr) *made_since_ns = base::now_ns();
    make(variant, tier);
  }
  require(variant.result == CUDA_SUCCESS, variant.result);
  if (variant.awaits_good.load(std::memory_order_acquire)) {
    const bool waits = tier == Tier::good && !variant.background->done();
    if (waits && made_since_ns != nullptr && !*made_since_ns) *made_since_ns = base::now_ns();
    replace_quick(variant, tier);
  }
  return *variant.newest.load(std::memory_order_acquire);
}

void FunctionObject::make(Variant& variant, Tier tier) const {
  const base::LockGuard lock(variant.mutex);
  if (variant.made.load(std::memory_order_relaxed)) return;
  try {
    if (tier == Tier::good || !make_quick(variant)) variant.loaded = load(variant.specialisation);
  } catch (const Failure& failure) {
    if (failure.result == CUDA_ERROR_OUT_OF_MEMORY) throw;
    variant.result = failure.result;
  }
  variant.newest.store(&variant.loaded, std::memory_order_release);
  variant.made.store(true, std::memory_order_release);
}

/// Returns false if good code is known, or is worth waiting for.
bool FunctionObject::make_quick(Variant& variant) const {
  const TierFacts facts = find_tier_facts(module_->ptx, *ptx_);
  if (facts.shows_tier || facts.instruction_count < kLeastQuickInsts) return false;
  const base::Digest& digest = module_->shared->digest;
  if (known_code(digest, info_->name, variant.specialisation) != nullptr) return false;
  Specialisation quick = variant.specialisation;
  quick.opt_level = kQuickLevel;
  const auto code = known_or_new(quick);
  if (!code) return false;  // good code may still be possible; otherwise its errors are reported
  LoadedCode loaded = load(*code, quick);
  auto background = BackgroundCode::begin(module_->shared, info_->name, variant.specialisation);
  if (background == nullptr) return false;
  variant.loaded = std::move(loaded);
  variant.background = std::move(background);
  variant.awaits_good.store(true, std::memory_order_relaxed);
  return true;
}

/// Puts good code in the place of quick code if it is there, or is asked for.
void FunctionObject::replace_quick(Variant& variant, Tier tier) const {
  if (tier != Tier::good && !variant.background->done()) return;
  const base::LockGuard lock(variant.mutex);
  if (!variant.awaits_good.load(std::memory_order_relaxed)) return;
  // It may wait for its turn in the background: then it is made here.
  const std::shared_ptr<const KernelCode> code =
      variant.background->done() ? variant.background->code() : find_code(variant.specialisation);
  if (code != nullptr) {
    variant.good = load(code, variant.specialisation);
    variant.newest.store(&variant.good, std::memory_order_release);
    engine::report(LogLevel::debug,
                   fmt::format("good machine code of kernel {} replaces quick code", info_->name),
                   {{"kernel", display_name()}});
  }
  variant.awaits_good.store(false, std::memory_order_release);
}

Expected<CodeImage> FunctionObject::generate(const Specialisation& specialisation) const {
  const std::string& name = display_name();
  tell_generation(*this, name, false);
  const std::int64_t begin_ns = base::now_ns();
  Expected<CodeImage> image = compile_image(module_->ptx, info_->name, specialisation);
  if (!image) return image;
  const std::int64_t took_ns = base::now_ns() - begin_ns;
  machine_code_ns_ += static_cast<std::uint64_t>(took_ns);
  tell_generation(*this, name, true);
  engine::report(LogLevel::debug,
                 fmt::format("generated {}machine code of kernel {} for a block of {} x {} x {} in {:.1f} ms",
                             specialisation.opt_level == kQuickLevel ? "quick " : "", info_->name,
                             specialisation.block[0], specialisation.block[1], specialisation.block[2],
                             static_cast<double>(took_ns) / 1e6),
                 {{"kernel", name}});
  return image;
}

Expected<std::shared_ptr<const KernelCode>> FunctionObject::known_or_new(
    const Specialisation& specialisation) const {
  return base::secluded([&] {
    return shared_code(module_->shared->digest, info_->name, specialisation,
                       [&] { return generate(specialisation); });
  });
}

std::shared_ptr<const KernelCode> FunctionObject::find_code(const Specialisation& specialisation) const {
  Expected<std::shared_ptr<const KernelCode>> code = known_or_new(specialisation);
  if (code) return *std::move(code);
  if (const Diagnostic& first = code.errors().front(); first.code == kNoMappingCode)
    fail(CUDA_ERROR_OUT_OF_MEMORY, first.message + "; " + first.hint);
  // inspect() accepted the module, so a launch can only say that much; the reason goes where a person finds
  // it.
  engine::report(LogLevel::error,
                 fmt::format("cannot compile kernel {} for a block of {} x {} x {}:\n{}", info_->name,
                             specialisation.block[0], specialisation.block[1], specialisation.block[2],
                             to_string(code.errors())),
                 {{"kernel", display_name()}});
  fail(CUDA_ERROR_NOT_SUPPORTED);
}

LoadedCode FunctionObject::load(const Specialisation& specialisation) const {
  engine::install_fault_handlers();  // again: a host framework may have put its own in since
  return load(find_code(specialisation), specialisation);
}

LoadedCode FunctionObject::load(std::shared_ptr<const KernelCode> code,
                                const Specialisation& specialisation) const {
  LoadedCode loaded{std::move(code), {}, nullptr, std::make_unique<engine::Pace>()};
  loaded.explainer = std::make_unique<const Explainer>(
      module_->ptx, info_->name, loaded.code->made_for.value_or(specialisation), *loaded.code);
  for (const SymbolUse& use : loaded.code->symbols) {
    if (use.space == ir::Space::shared) {
      loaded.symbols.push_back(use.shared_offset);
      continue;
    }
    const auto found = module_->variables.find(use.name);
    if (found == module_->variables.end()) {
      engine::report(
          LogLevel::error,
          fmt::format("kernel {} uses '{}', which the module does not define", info_->name, use.name),
          {{"kernel", display_name()}});
      fail(CUDA_ERROR_NOT_FOUND);
    }
    loaded.symbols.push_back(reinterpret_cast<std::uint64_t>(found->second.address));
  }
  return loaded;
}

}  // namespace quern::cpu::device
