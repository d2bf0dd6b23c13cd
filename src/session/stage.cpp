// SPDX-License-Identifier: Apache-2.0
#include "quern/stage.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/translate.hpp"
#include "session/backends.hpp"
#include "session/gate.hpp"
#include "session/remote.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

struct StageRow {
  Stage stage;
  std::string_view name;
};
constexpr StageRow kStages[] = {{Stage::cuda, "cuda"},
                                {Stage::ptx, "ptx"},
                                {Stage::simt, "simt"},
                                {Stage::llvm, "llvm"},
                                {Stage::assembly, "asm"}};

Expected<const abi::EntryInfo*> choose_entry(const abi::PtxImage& image, const std::string& kernel,
                                             const std::string& file) {
  if (kernel.empty() && image.entries.size() == 1) return &image.entries.front();
  if (kernel.empty() && image.entries.empty())
    return make_diagnostic(
        "unknown-kernel", fmt::format("{} has no kernel, and this stage shows one", file),
        "a kernel is declared extern \"C\" __global__ void name(...), in PTX .visible .entry name(...)");
  if (kernel.empty())
    return make_diagnostic(
        "kernel-choice",
        fmt::format("{} has {} kernels, and this stage shows one", file, image.entries.size()),
        kernels_text(image) + "; name one in StageOptions::kernel");
  if (const abi::EntryInfo* entry = EntryIndex(image).find(kernel)) return entry;
  return make_diagnostic("unknown-kernel", fmt::format("{} has no kernel '{}'", file, kernel),
                         kernels_text(image) + "; choose one of these");
}

Expected<std::string> device_stage(const abi::PtxImage& image, Stage stage, const StageOptions& options,
                                   const abi::KernelSource& source) {
  const Expected<const abi::EntryInfo*> entry = choose_entry(image, options.kernel, source.file_name);
  if (!entry) return entry.errors();
  const Expected<const QuernCpuPlugin*> plugin = open_plugin();
  if (!plugin) return plugin.errors();
  const std::uint32_t block[3] = {options.block.x, options.block.y, options.block.z};
  const std::string wanted = std::string(name(stage)) + (options.pass.empty() ? "" : "=") + options.pass;
  return plugin_stage(**plugin, image.ptx, source, (*entry)->lowered_name, block, wanted, options.pass_times);
}

/// Errors in PTX that an author wrote, if the CPU device is available to check it. PTX that is valid but not
/// supported there is accepted, since a GPU may run it.
Diagnostics wrong_ptx(const abi::KernelSource& source) {
  const Expected<const QuernCpuPlugin*> plugin = open_plugin();
  if (!plugin) return {};
  Diagnostics found = check_ptx(**plugin, source.text, source);
  const auto is_wrong = [](const Diagnostic& diagnostic) {
    return diagnostic.code == "ptx-syntax" || diagnostic.code == "ptx-name" || diagnostic.code == "ptx-form";
  };
  if (!std::all_of(found.begin(), found.end(), is_wrong)) return {};
  if (has_error(found) && found.back().hint.empty()) found.back().hint = kWrongPtxHint;
  return found;
}

/// The name in `kernel`, without template arguments, parameters and the namespaces around it.
std::string plain_name(const std::string& kernel) {
  const std::string head = kernel.substr(0, kernel.find_first_of("<( "));
  const std::size_t colon = head.rfind(':');
  return colon == std::string::npos ? head : head.substr(colon + 1);
}

/// CUDA C++ is shown without being compiled, so the kernel's name is searched in its text.
Expected<std::string> cuda_text(abi::KernelSource source, const std::string& kernel) {
  if (source.text.find(plain_name(kernel)) == std::string::npos)
    return make_diagnostic("unknown-kernel", fmt::format("{} has no kernel '{}'", source.file_name, kernel),
                           "correct the name; " + kernel_form(source.language));
  return std::move(source.text);
}

Expected<std::string> stage_of(Expected<abi::KernelSource> source, Stage stage, const StageOptions& options) {
  if (!source) return std::move(source).errors();
  if (!options.load.file_name.empty()) source->file_name = options.load.file_name;
  const std::string name = source->file_name;
  const abi::Language language = source->language;
  const bool is_device_stage = stage != Stage::cuda && stage != Stage::ptx;
  if (!is_device_stage && (!options.pass.empty() || options.pass_times != nullptr))
    return make_diagnostic(
        "usage",
        fmt::format("cannot show passes of the stage {}: it is not the CPU device's", quern::name(stage)),
        "passes belong to simt, llvm and asm");
  if (stage == Stage::cuda && language == abi::Language::ptx)
    return make_diagnostic("stage-missing", fmt::format("{} is PTX: no CUDA C++ precedes it", name),
                           "the stages of PTX are ptx, simt, llvm and asm");
  if (stage == Stage::cuda && language == abi::Language::python) {
    const abi::KernelRequest request = make_request(*std::move(source), options.load, {}, nullptr);
    Expected<frontend::CudaSource> cuda =
        frontend::translate(request.source, options.kernel, options.signature, request.constants);
    if (!cuda) return std::move(cuda).errors();
    return std::move(cuda->text);
  }
  if (!options.signature.empty() && language != abi::Language::python)
    return make_diagnostic("usage",
                           fmt::format("cannot give {} a signature: only Kernel Python takes one", name),
                           "leave StageOptions::signature empty; the source gives the types");
  if (stage == Stage::cuda) return cuda_text(*std::move(source), options.kernel);
  if (language == abi::Language::ptx)
    if (Diagnostics wrong = wrong_ptx(*source); has_error(wrong)) return wrong;
  abi::Target target;
  target.compute = options.compute_capability;
  abi::KernelRequest request = make_request(*std::move(source), options.load, target, nullptr);
  if (language == abi::Language::cuda && options.kernel.find_first_of("<:") != std::string::npos)
    request.name_expressions.push_back(options.kernel);
  request.entry = options.kernel;
  request.signature = options.signature;
  Expected<compile::Compiler::Image> image = compile_without_session(request, options.progress);
  if (!image) return std::move(image).errors();
  if (stage == Stage::ptx && !options.kernel.empty())
    if (const Expected<const abi::EntryInfo*> entry = choose_entry(**image, options.kernel, name); !entry)
      return entry.errors();
  if (stage == Stage::ptx) return (*image)->ptx;
  return device_stage(**image, stage, options, request.source);
}

}  // namespace
}  // namespace session

std::optional<Stage> stage_named(std::string_view text) noexcept {
  for (const session::StageRow& row : session::kStages)
    if (row.name == text) return row.stage;
  return std::nullopt;
}

std::string_view name(Stage stage) noexcept { return session::kStages[static_cast<std::size_t>(stage)].name; }

std::string stage_text(const std::filesystem::path& path, Stage stage, const StageOptions& options) {
  return session::value_or_throw(session::stage_of(session::read_kernel_file(path), stage, options));
}
std::string stage_text(std::string_view source, SourceLanguage language, Stage stage,
                       const StageOptions& options) {
  return session::value_or_throw(
      session::stage_of(session::text_source(session::language_of(language), source), stage, options));
}

}  // namespace quern
