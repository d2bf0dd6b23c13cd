// SPDX-License-Identifier: Apache-2.0
#include "cpu/compiler/compiler.hpp"

#include <algorithm>
#include <chrono>
#include <optional>
#include <string_view>

#include "base/env.hpp"
#include "cpu/code/build_id.hpp"
#include "cpu/code/load.hpp"
#include "cpu/compiler/describe.hpp"
#include "cpu/compiler/hooks.hpp"
#include "cpu/compiler/lowering.hpp"
#include "cpu/compiler/passes.hpp"
#include "cpu/emit/emit.hpp"
#include "cpu/emit/helpers/helpers.hpp"

namespace quern::cpu {
namespace {

constexpr std::string_view kNoFile = "<ptx>";

/// True if `stage` shows the kernel after passes that produce `form`.
bool shows(Stage stage, Form form) {
  switch (form) {
    case Form::builder:
    case Form::simt:
    case Form::checked:
    case Form::cut:
      return stage == Stage::simt;
    case Form::llvm:
      return stage == Stage::llvm;
    case Form::object:
    case Form::image:
      break;
  }
  return false;
}

Diagnostic no_such_pass(const StageRequest& request) {
  std::string names;
  for (const Pass& pass : pass_list())
    if (shows(request.stage, pass.form)) (names += names.empty() ? "" : ", ") += pass.name;
  return Diagnostic{
      .code = "usage",
      .message = "this stage has no pass '" + std::string(request.pass) + "'",
      .hint = names.empty() ? "only simt and llvm show the kernel after a pass" : "its passes are: " + names};
}

/// The last form that is needed for the text of the stage.
Form last_form(Stage stage) { return stage == Stage::simt ? Form::simt : Form::llvm; }

/// This is not in the list of passes, since running a kernel does not need assembly.
Expected<std::string> assembly_of(Compilation& compilation, const StageRequest& request) {
  const auto start = std::chrono::steady_clock::now();
  Expected<std::string> text = emit::print_assembly(*compilation.llvm);
  if (request.times != nullptr)
    request.times->push_back({"print_assembly", 1, std::chrono::steady_clock::now() - start});
  return text;
}

Expected<std::string> text_of(Compilation& compilation, Form from, const StageRequest& request) {
  const std::span<const Pass> passes = pass_list();
  const auto shown = std::ranges::find(passes, request.pass, &Pass::name);
  if (!request.pass.empty() && (shown == passes.end() || !shows(request.stage, shown->form)))
    return no_such_pass(request);
  std::string text;
  std::vector<AfterPass> hooks;
  if (request.times != nullptr) hooks.push_back(record_times(*request.times));
  if (!request.pass.empty()) hooks.push_back(print_after(request.pass, text));
  // At least the form that the stage needs: choose_call_form may start the passes again.
  Form last = last_form(request.stage);
  if (!request.pass.empty() && shown->form != Form::builder) last = shown->form;
  if (Expected<void> done = run_passes(compilation, from, last, hooks); !done) return done.errors();
  if (!request.pass.empty()) return text;
  return request.stage == Stage::assembly ? assembly_of(compilation, request) : print(compilation, last);
}

}  // namespace

Expected<std::vector<KernelInfo>> inspect(const ptx::Module& module, std::string_view file_name) {
  if (Expected<void> checked = lower::check_parameters(module, file_name); !checked) return checked.errors();
  std::vector<KernelInfo> kernels;
  Diagnostics errors;
  for (const ptx::Function& entry : module.functions) {
    if (!entry.entry || !entry.defined) continue;
    Compilation compilation(module, entry, file_name, usual_specialisation(entry.performance, host_isa()));
    if (auto done = run_passes(compilation, Form::builder, Form::checked); !done)
      errors.insert(errors.end(), done.errors().begin(), done.errors().end());
    else
      kernels.push_back(describe_kernel(module, entry, compilation.module));
  }
  if (!errors.empty()) return errors;
  return kernels;
}

Expected<ir::Module> lower_kernel(const ptx::Module& module, std::string_view kernel,
                                  std::string_view file_name, lower::CallForm calls) {
  const Expected<const ptx::Function*> entry = lower::find_kernel(module, kernel, file_name);
  if (!entry) return entry.errors();
  if (Expected<void> checked = lower::check_parameters(module, file_name); !checked) return checked.errors();
  Compilation compilation(module, **entry, file_name, {});
  compilation.calls = calls;
  compilation.keeps_call_form = true;
  if (auto done = run_passes(compilation, Form::builder, Form::simt); !done) return done.errors();
  return std::move(compilation.module);
}

Expected<CodeImage> compile_image(const ptx::Module& module, std::string_view kernel,
                                  const Specialisation& specialisation) {
  const Expected<const ptx::Function*> entry = lower::find_kernel(module, kernel, kNoFile);
  if (!entry) return entry.errors();
  Compilation compilation(module, **entry, kNoFile, specialisation);
  if (auto done = run_passes(compilation, Form::builder, Form::image); !done) return done.errors();
  return std::move(compilation.image);
}

Expected<CodeImage> compile_image(ir::Module module, const Specialisation& specialisation) {
  Compilation compilation(std::move(module), specialisation);
  if (auto done = run_passes(compilation, Form::checked, Form::image); !done) return done.errors();
  return std::move(compilation.image);
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
  const Expected<const ptx::Function*> entry = lower::find_kernel(module, kernel, kNoFile);
  if (!entry) return entry.errors();
  Compilation compilation(module, **entry, kNoFile, specialisation);
  compilation.sites = emit::WithSites::yes;
  if (auto done = run_passes(compilation, Form::builder, Form::object); !done) return done.errors();
  Expected<CodeSites> sites = emit::read_sites(*compilation.llvm, compilation.module);
  if (sites) sites->module = std::move(compilation.module);
  return sites;
}

Expected<std::string> stage_text(const ptx::Module& module, std::string_view kernel,
                                 const Specialisation& specialisation, const StageRequest& request) {
  const Expected<const ptx::Function*> entry = lower::find_kernel(module, kernel, kNoFile);
  if (!entry) return entry.errors();
  Compilation compilation(module, **entry, kNoFile, specialisation);
  return text_of(compilation, Form::builder, request);
}

Expected<std::string> stage_text(ir::Module module, const Specialisation& specialisation, Stage stage) {
  Compilation compilation(std::move(module), specialisation);
  return text_of(compilation, Form::checked, {.stage = stage});
}

const std::string& generator_identity() {
  static const std::string identity = [] {
    const std::string build = own_build_id();
    return build.empty() ? build : "build " + build + ", " + emit::processor_identity();
  }();
  return identity;
}

bool runs_portable(Isa isa) { return emit::runs_portable(isa); }

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
