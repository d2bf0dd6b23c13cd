// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <functional>
#include <span>
#include <thread>

#include "cache/bundle.hpp"
#include "compile/bundle_image.hpp"
#include "compile/compiler.hpp"
#include "quern/bundle.hpp"
#include "quern/file.hpp"
#include "session/backends.hpp"
#include "session/bundle_plan.hpp"
#include "session/gate.hpp"
#include "session/remote.hpp"

namespace quern {
namespace session {
namespace {

/// The outcome of a unit, for one target.
struct Made {
  std::vector<cache::BundleEntry> entries;
  bool is_compiled = false;
  std::vector<BundleProblem> failed;
  std::vector<BundleProblem> skipped;
};

/// The data that the CPU device returns.
struct FromDevice {
  std::vector<cache::BundleEntry> entries;
  std::vector<std::string> without_code;
  Diagnostics errors;

  static void take_entry(void* user, const QuernCpuEntry* entry) {
    cache::BundleEntry taken;
    taken.kind = static_cast<cache::EntryKind>(entry->kind);
    std::copy_n(static_cast<const std::uint8_t*>(entry->key), taken.key.bytes.size(),
                taken.key.bytes.begin());
    taken.components.assign(static_cast<const char*>(entry->components), entry->components_bytes);
    taken.content.assign(static_cast<const char*>(entry->content), entry->content_bytes);
    static_cast<FromDevice*>(user)->entries.push_back(std::move(taken));
  }
  static void take_kernel(void* user, const char* name, std::size_t size) {
    static_cast<FromDevice*>(user)->without_code.emplace_back(name, size);
  }
  static void take_error(void* user, const char* code, const char*, std::uint32_t, std::uint32_t,
                         const char* message, const char*, const char* hint) {
    static_cast<FromDevice*>(user)->errors.push_back(make_diagnostic(code, message, hint));
  }
};

compile::CompilerOptions compiler_options() {
  compile::CompilerOptions options;
  options.bundles = {};  // names of files in other bundles are not those of this one
  return options;
}

class Maker {
 public:
  Maker(const BundleTargets& targets, const BundleOptions& options, const QuernCpuPlugin* plugin)
      : targets_(targets), plugin_(plugin), compiler_(compiler_options()) {
    for (const Dim3& block : options.blocks) blocks_.push_back({block.x, block.y, block.z});
  }

  Expected<cache::BundleEntry> toolkit() {
    const Expected<compile::ToolkitContents> here = compiler_.toolkit_contents();
    if (!here) return here.errors();
    return compile::toolkit_entry(*here);
  }

  Made make(const BundleUnit& unit, const abi::Target& target) try {
    Made made;
    abi::KernelRequest request = unit.request;
    request.target = target;
    Expected<compile::BundledImage> image = compiler_.compile_for_bundle(std::move(request), unit.name);
    if (!image) {
      const bool is_odd = image.errors().front().code == "not-remote";
      (is_odd ? made.skipped : made.failed).push_back(problem(unit, image.errors()));
      return made;
    }
    if (target.sm && image->image->machine_code.empty()) {
      made.failed.push_back(problem(unit, image->image->log));
      made.failed.back().reason = fmt::format("no machine code for sm_{}", *target.sm);
      return made;
    }
    made.is_compiled = true;
    made.entries.push_back(std::move(image->entry));
    if (targets_.cpu_isas != 0 && !target.sm && target.compute == kCpuCompute)
      add_code(unit, *image->image, made);
    return made;
  } catch (const std::exception& error) {
    Made made;
    made.failed.push_back({unit.name, unit.request.entry, error.what(), {}});
    return made;
  }

 private:
  void add_code(const BundleUnit& unit, const abi::PtxImage& image, Made& made) const {
    FromDevice taken;
    const QuernCpuBundleRequest request{sizeof request,
                                        targets_.cpu_isas,
                                        image.ptx.data(),
                                        image.ptx.size(),
                                        reinterpret_cast<const std::uint32_t(*)[3]>(blocks_.data()),
                                        blocks_.size()};
    if (plugin_->bundle_code(&request, &FromDevice::take_entry, &FromDevice::take_kernel,
                             &FromDevice::take_error, &taken) != 0)
      made.failed.push_back(problem(unit, taken.errors));
    std::ranges::move(taken.entries, std::back_inserter(made.entries));
    for (std::string& kernel : taken.without_code)
      made.skipped.push_back({unit.name,
                              std::move(kernel),
                              "no machine code: it fixes no block shape, and none that it allows is given",
                              {}});
  }

  static BundleProblem problem(const BundleUnit& unit, const Diagnostics& errors) {
    return {unit.name, unit.request.entry, errors.empty() ? "" : errors.front().message, errors};
  }

  static constexpr std::uint32_t kCpuCompute = 89;

  const BundleTargets& targets_;
  const QuernCpuPlugin* const plugin_;
  std::vector<std::array<std::uint32_t, 3>> blocks_;
  compile::Compiler compiler_;
};

cache::BundleKeys read_keys(const std::filesystem::path& file) {
  if (file.empty()) return nullptr;
  return std::make_shared<const base::SigningKeys>(value_or_throw(base::SigningKeys::read(file.string())));
}

/// Also where the umask lets the group write: a bundle that others may write to is refused.
void keep_to_owner(const std::filesystem::path& file) {
  using std::filesystem::perms;
  std::error_code ignored;
  if (std::filesystem::is_regular_file(file, ignored))
    std::filesystem::permissions(file, perms::group_write | perms::others_write,
                                 std::filesystem::perm_options::remove, ignored);
}

/// Calls `work` with each number below `count`, on several threads.
void for_each_number(std::size_t count, unsigned thread_count, const std::function<void(std::size_t)>& work) {
  std::atomic<std::size_t> next{0};
  const auto run = [&] {
    for (std::size_t i = next++; i < count; i = next++) work(i);
  };
  std::vector<std::jthread> threads;
  const unsigned processors = std::max(1u, std::thread::hardware_concurrency());
  for (unsigned i = 1; i < (thread_count != 0 ? thread_count : processors); ++i) threads.emplace_back(run);
  run();
}

using MakeUnit = std::function<Made(const BundleUnit&, const abi::Target&)>;

/// Makes each unit for each target. Everything is in the order of units and targets, however many threads
/// make them.
BundleReport make_all(const BundlePlan& plan, const BundleTargets& targets, const BundleOptions& options,
                      std::vector<cache::BundleEntry>& entries, const MakeUnit& make) {
  const std::size_t target_count = targets.modules.size();
  std::vector<Made> all(plan.units.size() * target_count);
  for_each_number(all.size(), options.thread_count, [&](std::size_t i) {
    all[i] = make(plan.units[i / target_count], targets.modules[i % target_count]);
  });
  BundleReport report{plan.file_count, 0, plan.failed, plan.skipped, 0, 0};
  for (Made& made : all) {
    report.compiled_count += made.is_compiled ? 1 : 0;
    std::ranges::move(made.entries, std::back_inserter(entries));
    std::ranges::move(made.failed, std::back_inserter(report.failed));
    std::ranges::move(made.skipped, std::back_inserter(report.skipped));
  }
  return report;
}

/// Compiles a unit as a program would that finds the file at its path.
Made compile_unit(compile::Compiler& compiler, const BundleUnit& unit, const abi::Target& target) try {
  Made made;
  abi::KernelRequest request = unit.request;
  request.target = target;
  const auto image = compiler.compile(request);
  made.is_compiled = bool(image);
  if (!image)
    made.failed.push_back({unit.name, unit.request.entry, image.errors().front().message, image.errors()});
  return made;
} catch (const std::exception& error) {
  Made made;
  made.failed.push_back({unit.name, unit.request.entry, error.what(), {}});
  return made;
}

}  // namespace
}  // namespace session

BundleReport warm_disk_cache(const std::filesystem::path& folder, const BundleOptions& options) {
  using namespace session;
  const BundleTargets targets = value_or_throw(read_bundle_targets(options.targets));
  const BundlePlan plan = value_or_throw(plan_bundle(folder, options, BundleNames::paths));
  const std::shared_ptr<compile::Compiler> compiler = value_or_throw(shared_compiler());
  std::vector<cache::BundleEntry> none;
  return make_all(plan, targets, options, none, [&](const BundleUnit& unit, const abi::Target& target) {
    return compile_unit(*compiler, unit, target);
  });
}

BundleReport make_bundle(const std::filesystem::path& folder, const std::filesystem::path& file,
                         const BundleOptions& options) {
  using namespace session;
  const cache::BundleKeys keys = read_keys(options.key_file);
  const BundleTargets targets = value_or_throw(read_bundle_targets(options.targets));
  const BundlePlan plan = value_or_throw(plan_bundle(folder, options, BundleNames::below_folder));
  const QuernCpuPlugin* const plugin = targets.cpu_isas != 0 ? value_or_throw(open_plugin()) : nullptr;
  Maker maker(targets, options, plugin);
  std::vector<cache::BundleEntry> entries{value_or_throw(maker.toolkit())};
  BundleReport report =
      make_all(plan, targets, options, entries,
               [&](const BundleUnit& unit, const abi::Target& target) { return maker.make(unit, target); });
  const std::string bytes = value_or_throw(cache::write_bundle(std::move(entries), keys.get()));
  if (Expected<void> written = write_file_atomically(file, std::as_bytes(std::span(bytes))); !written)
    throw_diagnostics(std::move(written).errors());
  keep_to_owner(file);
  report.entry_count = value_or_throw(cache::open_bundle(file.string(), keys)).index.rows.size();
  report.size_bytes = bytes.size();
  return report;
}

}  // namespace quern
