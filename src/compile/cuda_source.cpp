// SPDX-License-Identifier: Apache-2.0
#include "compile/cuda_source.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <functional>

#include "compile/ptx/entries.hpp"
#include "compile/ptx/names.hpp"
#include "compile/ptx/ptx_text.hpp"
#include "compile/ptx/ptx_version.hpp"
#include "compile/source/cpp_tokens.hpp"
#include "compile/source/device_headers.hpp"
#include "compile/source/directives.hpp"
#include "compile/source/file_names.hpp"
#include "compile/source/hints.hpp"
#include "compile/source/log.hpp"
#include "compile/source/virtual_headers.hpp"

namespace quern::compile {
namespace {

Diagnostic failure(std::string code, std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

Diagnostic warning(std::string code, std::string message, std::string hint) {
  Diagnostic diagnostic = failure(std::move(code), std::move(message), std::move(hint));
  diagnostic.severity = Severity::warning;
  return diagnostic;
}

std::string version_of(const NvrtcFacts& nvrtc) { return fmt::format("{}.{}", nvrtc.major, nvrtc.minor); }

bool knows(const NvrtcFacts& nvrtc, std::uint32_t architecture) {
  const std::vector<std::uint32_t>& all = nvrtc.architectures;
  return std::find(all.begin(), all.end(), architecture) != all.end();
}

Expected<void> check_text(const abi::KernelSource& source) {
  const std::size_t zero = source.text.find('\0');
  if (zero == std::string::npos && source.file_name.find('\0') == std::string::npos) return {};
  Diagnostic diagnostic = failure("source-text", "cannot compile: the source holds a zero byte",
                                  "check that the file is CUDA C++ text (UTF-8), not a compiled one");
  diagnostic.span.file = source.file_name.c_str();
  const auto end = source.text.begin() + static_cast<std::ptrdiff_t>(std::min(zero, source.text.size()));
  diagnostic.span.line = 1 + static_cast<std::uint32_t>(std::count(source.text.begin(), end, '\n'));
  return diagnostic;
}

/// Lines with more open brackets than this are rejected: NVRTC's parser recurses for each, and a few thousand
/// end the process. (C++ requires a compiler to support 256, [implimits].)
constexpr std::size_t kMostOpenBrackets = 1000;

std::optional<std::uint32_t> find_deep_nesting(std::string_view text) {
  const auto opens = [](char c) { return c == '(' || c == '[' || c == '{'; };
  if (static_cast<std::size_t>(std::count_if(text.begin(), text.end(), opens)) <= kMostOpenBrackets)
    return std::nullopt;
  std::size_t depth = 0;
  for (const CppToken& token : cpp_tokens(text)) {
    if (token.kind != CppToken::Kind::punctuation) continue;
    const char c = token.text[0];
    if (opens(c) && ++depth > kMostOpenBrackets) return token.line;
    if ((c == ')' || c == ']' || c == '}') && depth > 0) --depth;
  }
  return std::nullopt;
}

Expected<void> check_nesting(const abi::KernelSource& source) {
  const std::optional<std::uint32_t> line = find_deep_nesting(source.text);
  if (!line) return {};
  Diagnostic diagnostic = failure(
      "source-text", fmt::format("cannot compile: more than {} brackets are open here", kMostOpenBrackets),
      "close some of them, or compute a part in a variable of its own");
  diagnostic.span.file = source.file_name.c_str();
  diagnostic.span.line = *line;
  return diagnostic;
}

Expected<void> check_expressions(const std::vector<std::string>& expressions) {
  for (const std::string& expression : expressions)
    if (expression.find_first_not_of(" \t") == std::string::npos ||
        expression.find_first_of(std::string_view("\0\n", 2)) != std::string::npos)
      return failure("unknown-kernel",
                     "cannot instantiate a kernel: its name expression is empty or holds a line break",
                     "write it as in C++: scale<float>, or ns::kernel");
  return {};
}

Expected<void> check_instances(const std::vector<std::string>& expressions,
                               const std::vector<std::string>& lowered_names,
                               const std::vector<KernelDeclaration>& kernels) {
  for (std::size_t i = 0; i < lowered_names.size(); ++i)
    if (has_needless_arguments(expressions[i], lowered_names[i]))
      return not_a_template(expressions[i], kernels);
  return {};
}

Expected<void> check_architecture(const NvrtcFacts& nvrtc, std::uint32_t compute) {
  if (knows(nvrtc, compute)) return {};
  return failure("target-unsupported",
                 fmt::format("cannot compile for compute_{}: NVRTC {} ({}) compiles for {}", compute,
                             version_of(nvrtc), nvrtc.path, fmt::join(nvrtc.architectures, ", ")),
                 "request one of these, or install an NVRTC that knows it and name it with QUERN_NVRTC");
}

/// True in a macro's value and in a template's argument.
bool is_named_int128(const std::vector<std::string>& texts) {
  return std::any_of(texts.begin(), texts.end(), [](const std::string& text) {
    return text.find("int128") != std::string::npos && names_int128(text.substr(text.find('=') + 1));
  });
}

// Machine code is optional: if it cannot be made, PTX suffices, and the log says so.
void choose_machine(CudaPlan& plan) {
  const std::optional<std::uint32_t> sm = plan.request->target.sm;
  if (!sm) return;
  if (!knows(*plan.toolkit->facts, *sm)) {
    plan.log.push_back(warning(
        "machine-code",
        fmt::format("no machine code for sm_{}: NVRTC {} does not know it; the driver compiles the PTX", *sm,
                    version_of(*plan.toolkit->facts)),
        "install a newer NVRTC for faster module loads"));
  } else if (plan.options.relocatable) {
    plan.log.push_back(warning("machine-code",
                               "no machine code: relocatable device code would need a link step; the driver "
                               "compiles the PTX",
                               "leave -rdc out"));
  } else {
    plan.machine = sm;
  }
}

// The PTX is complete, and the driver compiles it: NVRTC's messages about the machine code become a note.
Diagnostic without_machine_code(const CudaPlan& plan, const NvrtcOutput& machine) {
  Diagnostic diagnostic = warning(
      "machine-code",
      fmt::format("no machine code for sm_{}: NVRTC {} could not make it ({}); the driver compiles the PTX",
                  *plan.machine, version_of(*plan.toolkit->facts), machine.status),
      "try another NVRTC with QUERN_NVRTC for faster module loads");
  if (!machine.log.empty()) diagnostic.notes.push_back({{}, machine.log});
  return diagnostic;
}

std::vector<abi::HeaderText> memory_headers(const CudaPlan& plan) {
  std::vector<abi::HeaderText> headers = plan.headers;
  headers.insert(headers.end(), plan.standard_headers.begin(), plan.standard_headers.end());
  for (const base::EmbeddedText& header : device_headers())
    headers.push_back({std::string(header.name), std::string(header.text)});
  return headers;
}

/// NVRTC's callbacks, as progress of the whole compilation.
class Steps {
 public:
  Steps(base::ProgressSlot* progress, const std::string& file)
      : work_(progress, ProgressStage::compile, file, 0), told_(work_.told()) {}
  bool begin() { return work_.begin(); }
  void finish() { work_.finish(count_); }
  /// Empty if there is no progress handler.
  std::function<bool()> question() {
    if (!told_) return {};
    return [this] { return work_.advance(++count_); };
  }

 private:
  base::Work work_;
  const bool told_;
  std::atomic<std::uint64_t> count_{0};
};

NvrtcOutput run_once(const CudaPlan& plan, const std::string& architecture, Steps& steps,
                     PrecompiledHeaders* precompiled) {
  NvrtcInput input = nvrtc_input(plan, architecture);
  input.goes_on = steps.question();
  NvrtcOutput output;
  if (precompiled != nullptr && run_precompiled(plan, input, *precompiled, output)) return output;
  return plan.toolkit->nvrtc->compile(input);
}

Diagnostics diagnostics_of(const CudaPlan& plan, const NvrtcOutput& output,
                           const std::vector<KernelDeclaration>& kernels) {
  const abi::KernelSource& source = plan.request->source;
  Diagnostics diagnostics = parse_log(output.log, source.file_name);
  add_hints(diagnostics,
            {!plan.toolkit->include_directories.empty(), kernels, plan.request->name_expressions});
  if (!output.success && !has_error(diagnostics))
    diagnostics.push_back(
        failure("nvrtc-failed",
                fmt::format("cannot compile {}: NVRTC {} answers {}", source.file_name,
                            version_of(*plan.toolkit->facts), output.status),
                "this is NVRTC's own failure; try other options, or another NVRTC with QUERN_NVRTC"));
  return diagnostics;
}

/// The file names that the request writes as absolute paths.
std::vector<std::string> absolute_names(const CudaPlan& plan) {
  const abi::KernelSource& source = plan.request->source;
  std::vector<std::string> names = spelled_names(source.text);
  names.push_back(source.file_name);
  for (const std::vector<std::string>* more :
       {&plan.options.include_directories, &plan.options.pre_includes, &plan.toolkit->include_directories})
    names.insert(names.end(), more->begin(), more->end());
  std::erase_if(names, [](const std::string& name) { return !name.starts_with('/'); });
  return names;
}

Expected<abi::PtxImage> assemble(const CudaPlan& plan, NvrtcOutput output, Diagnostics log,
                                 const std::vector<KernelDeclaration>& kernels) {
  abi::PtxImage image;
  image.ptx = std::move(output.ptx);
  image.machine_code = std::move(output.machine_code);
  image.log = plan.log;
  image.log.insert(image.log.end(), std::make_move_iterator(log.begin()), std::make_move_iterator(log.end()));
  restore_file_names(image.ptx, absolute_names(plan));
  if (Expected<void> fits = fit_to_driver(image.ptx, plan.request->target.driver_version); !fits) {
    if (image.machine_code.empty()) return std::move(fits).errors();
    for (Diagnostic& diagnostic : std::move(fits).errors()) {
      diagnostic.severity = Severity::warning;
      image.log.push_back(std::move(diagnostic));
    }
  }
  PtxOutline outline = read_outline(image.ptx);
  image.entries = std::move(outline.entries);
  image.variables = std::move(outline.variables);
  std::vector<LoweredName> lowered;
  for (std::size_t i = 0; i < output.lowered_names.size(); ++i)
    lowered.emplace_back(plan.request->name_expressions[i], output.lowered_names[i]);
  name_entries(image.entries, lowered, kernels);
  name_variables(image.variables, lowered);
  return image;
}

}  // namespace

IncludeScan scan_plan(const CudaPlan& plan) {
  const abi::KernelSource& source = plan.request->source;
  return scan_includes(
      source.text, source.file_name,
      {plan.options.include_directories, plan.options.pre_includes, plan.options.macros,
       plan.options.raw_strings, plan.toolkit->include_directories, plan.headers, plan.standard_headers});
}

Expected<CudaPlan> plan_cuda(const abi::KernelRequest& request, const Toolkit& toolkit) {
  if (!toolkit.facts) return toolkit.missing;
  CudaPlan plan;
  plan.request = &request;
  plan.toolkit = &toolkit;
  Expected<UserOptions> options = read_options(request.options);
  if (!options) return std::move(options).errors();
  plan.options = *std::move(options);
  for (const abi::HeaderText& header : request.headers) {
    const abi::KernelSource source{abi::Language::cuda, header.text, header.name};
    for (Expected<void> check : {check_text(source), check_nesting(source)})
      if (!check) return std::move(check).errors();
  }
  Expected<std::vector<abi::HeaderText>> headers = resolve_headers(request.headers);
  if (!headers) return std::move(headers).errors();
  plan.headers = *std::move(headers);
  plan.standard_headers =
      without_replaced(toolkit.standard_headers, plan.headers, plan.options.include_directories);
  for (Expected<void> check : {check_text(request.source), check_nesting(request.source),
                               check_expressions(request.name_expressions),
                               check_architecture(*toolkit.facts, request.target.compute)})
    if (!check) return std::move(check).errors();
  plan.includes = scan_plan(plan);
  if (const std::string& special = plan.includes.special; !special.empty())
    return failure("io", fmt::format("cannot include {}: it is no regular file", special),
                   "copy what it gives to a file, and include that");
  plan.options.needs_int128 =
      plan.includes.int128 || is_named_int128(request.options) || is_named_int128(request.name_expressions);
  choose_machine(plan);
  return plan;
}

std::string first_architecture(const CudaPlan& plan) {
  const std::uint32_t compute = plan.request->target.compute;
  return fmt::format("{}_{}", plan.machine == compute ? "sm" : "compute", compute);
}

NvrtcInput nvrtc_input(const CudaPlan& plan, const std::string& architecture) {
  const abi::KernelRequest& request = *plan.request;
  NvrtcInput input;
  input.source = request.source.text;
  input.file_name = request.source.file_name.empty() ? "<string>" : request.source.file_name;
  input.headers = memory_headers(plan);
  input.options =
      nvrtc_options(architecture, request.options, plan.options, plan.toolkit->include_directories);
  input.name_expressions = request.name_expressions;
  return input;
}

Expected<abi::PtxImage> run_cuda(const CudaPlan& plan, base::ProgressSlot* progress,
                                 PrecompiledHeaders* precompiled) {
  const std::string& file = plan.request->source.file_name;
  Steps steps(progress, file);
  if (!steps.begin()) return base::cancelled("compile " + file);
  const auto begin = std::chrono::steady_clock::now();
  const bool one_run = plan.machine == plan.request->target.compute;
  const std::vector<KernelDeclaration> kernels = read_kernels(plan.request->source.text);
  NvrtcOutput output = run_once(plan, first_architecture(plan), steps, precompiled);
  if (output.cancelled) return base::cancelled("compile " + file);
  Diagnostics log = diagnostics_of(plan, output, kernels);
  if (!output.success) return log;
  if (Expected<void> named = check_instances(plan.request->name_expressions, output.lowered_names, kernels);
      !named)
    return std::move(named).errors();
  if (plan.machine && !one_run) {
    NvrtcOutput machine = run_once(plan, fmt::format("sm_{}", *plan.machine), steps, precompiled);
    if (machine.cancelled) return base::cancelled("compile " + file);
    if (machine.success)
      output.machine_code = std::move(machine.machine_code);
    else
      log.push_back(without_machine_code(plan, machine));
  }
  Expected<abi::PtxImage> image = assemble(plan, std::move(output), std::move(log), kernels);
  if (!image) return image;
  steps.finish();
  image->compile_ms =
      std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now() - begin).count();
  return image;
}

}  // namespace quern::compile
