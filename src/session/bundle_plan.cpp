// SPDX-License-Identifier: Apache-2.0
#include "session/bundle_plan.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>

#include "driver/cpu_plugin.h"
#include "frontend/translate.hpp"
#include "session/gate.hpp"
#include "session/state.hpp"

namespace quern::session {
namespace {

namespace fs = std::filesystem;

/// Sessions compile for it, and for older GPUs for theirs (session.cpp).
constexpr std::uint32_t kVirtualArchitecture = 89;

struct CpuWord {
  std::string_view word;
  std::uint32_t isas;
};
constexpr CpuWord kCpuWords[] = {
    {"cpu", QUERN_CPU_ISA_BASELINE | QUERN_CPU_ISA_AVX2 | QUERN_CPU_ISA_AVX512},
    {"cpu:baseline", QUERN_CPU_ISA_BASELINE},
    {"cpu:avx2", QUERN_CPU_ISA_AVX2},
    {"cpu:avx512", QUERN_CPU_ISA_AVX512},
};

std::optional<std::uint32_t> number_behind(std::string_view prefix, std::string_view word) {
  std::uint32_t number = 0;
  if (!word.starts_with(prefix)) return std::nullopt;
  const char* const end = word.data() + word.size();
  const auto read = std::from_chars(word.data() + prefix.size(), end, number);
  if (read.ec != std::errc() || read.ptr != end || number == 0) return std::nullopt;
  return number;
}

std::optional<abi::Target> gpu_target(std::string_view word) {
  abi::Target target;
  if (const auto compute = number_behind("compute_", word)) {
    target.compute = *compute;
    return target;
  }
  const auto sm = number_behind("sm_", word);
  if (!sm) return std::nullopt;
  target.compute = std::min(kVirtualArchitecture, *sm);
  target.sm = sm;
  return target;
}

Expected<std::vector<fs::path>> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code error;
  for (fs::recursive_directory_iterator at(folder, error), end; !error && at != end; at.increment(error)) {
    const fs::path extension = at->path().extension();
    std::error_code ignored;
    if ((extension == ".cu" || extension == ".py") && at->is_regular_file(ignored))
      files.push_back(at->path());
  }
  if (error)
    return make_diagnostic("io", fmt::format("cannot read folder {}: {}", folder.string(), error.message()),
                           "check its name and that it can be read");
  std::ranges::sort(files, {},
                    [&](const fs::path& file) { return file.lexically_relative(folder).generic_string(); });
  return files;
}

class Planner {
 public:
  Planner(const fs::path& folder, const BundleOptions& options, BundleNames names)
      : folder_(folder), options_(options), names_(names) {}

  Expected<BundlePlan> plan() {
    Expected<std::vector<fs::path>> files = files_below(folder_);
    if (!files) return std::move(files).errors();
    plan_.file_count = files->size();
    for (const fs::path& file : *files) add(file);
    return std::move(plan_);
  }

 private:
  void add(const fs::path& file) {
    const std::string name =
        names_ == BundleNames::paths ? file.string() : file.lexically_relative(folder_).generic_string();
    Expected<abi::KernelSource> source = read_kernel_file(file);
    if (!source) {
      plan_.failed.push_back({name, "", source.errors().front().message, source.errors()});
      return;
    }
    abi::KernelRequest request = make_request(*std::move(source), options_.load, {}, nullptr);
    request.source.file_name = file.string();
    if (request.source.language == abi::Language::cuda)
      plan_.units.push_back({name, std::move(request)});
    else
      add_python(name, request);
  }

  void add_python(const std::string& name, abi::KernelRequest& request) {
    request.source.file_name = name;  // the generated code contains it
    const Expected<std::vector<frontend::KernelOutline>> kernels =
        frontend::outline(request.source, request.constants);
    if (!kernels) {
      plan_.failed.push_back({name, "", "it is not valid Kernel Python", kernels.errors()});
      return;
    }
    if (kernels->empty()) plan_.skipped.push_back({name, "", "it has no kernel", {}});
    for (const frontend::KernelOutline& kernel : *kernels) add_kernel(name, request, kernel);
  }

  void add_kernel(const std::string& name, const abi::KernelRequest& request,
                  const frontend::KernelOutline& kernel) {
    std::vector<std::string> signatures;
    for (const BundleSignature& given : options_.signatures)
      if (given.kernel == kernel.name || given.kernel == name + "::" + kernel.name)
        signatures.push_back(given.types);
    // Empty: the decorator's, as a session asks for it.
    if (kernel.signatures.size() == 1 || kernel.parameters.empty()) signatures.emplace_back();
    if (kernel.signatures.size() > 1)
      signatures.insert(signatures.end(), kernel.signatures.begin(), kernel.signatures.end());
    if (signatures.empty())
      plan_.skipped.push_back(
          {name, kernel.name, "its decorator gives no argument types, and none are given", {}});
    for (std::string& types : signatures) {
      BundleUnit unit{name, request};
      unit.request.entry = kernel.name;
      unit.request.signature = std::move(types);
      plan_.units.push_back(std::move(unit));
    }
  }

  const fs::path& folder_;
  const BundleOptions& options_;
  const BundleNames names_;
  BundlePlan plan_;
};

}  // namespace

Expected<BundleTargets> read_bundle_targets(const std::vector<std::string>& words) {
  BundleTargets targets;
  const auto add = [&](const abi::Target& target) {
    if (std::ranges::find(targets.modules, target) == targets.modules.end())
      targets.modules.push_back(target);
  };
  for (const std::string& word : words) {
    const auto* const cpu = std::ranges::find(kCpuWords, word, &CpuWord::word);
    const std::optional<abi::Target> gpu = gpu_target(word);
    if (cpu == std::end(kCpuWords) && !gpu)
      return make_diagnostic(
          "usage", fmt::format("cannot make a bundle for '{}'", word),
          "targets are cpu, cpu:baseline, cpu:avx2, cpu:avx512, compute_89, sm_90 and the like");
    if (cpu != std::end(kCpuWords)) targets.cpu_isas |= cpu->isas;
    abi::Target target;
    target.compute = kVirtualArchitecture;
    add(gpu.value_or(target));
  }
  std::ranges::sort(targets.modules, {},
                    [](const abi::Target& each) { return std::pair(each.compute, each.sm.value_or(0)); });
  return targets;
}

Expected<BundlePlan> plan_bundle(const fs::path& folder, const BundleOptions& options, BundleNames names) {
  return Planner(folder, options, names).plan();
}

}  // namespace quern::session
