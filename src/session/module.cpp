// SPDX-License-Identifier: Apache-2.0
#include "quern/module.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "frontend/translate.hpp"
#include "launch/global.hpp"
#include "launch/loaded_kernel.hpp"
#include "quern/attempt.hpp"
#include "quern/error.hpp"
#include "quern/file.hpp"
#include "session/backends.hpp"
#include "session/gate.hpp"
#include "session/python_kernel.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

/// True for results that mean the device does not accept the code, as opposed to other failures.
bool is_refusal(CUresult result) {
  switch (result) {
    case CUDA_ERROR_INVALID_IMAGE:
    case CUDA_ERROR_NO_BINARY_FOR_GPU:
    case CUDA_ERROR_INVALID_PTX:
    case CUDA_ERROR_UNSUPPORTED_PTX_VERSION:
    case CUDA_ERROR_INVALID_SOURCE:
    case CUDA_ERROR_JIT_COMPILER_NOT_FOUND:
    case CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND:
      return true;
    default:
      return false;
  }
}

Diagnostics refusal(const SessionState& session, const abi::PtxImage& image, const abi::KernelSource& source,
                    const runtime::LoadOutcome& outcome) {
  const runtime::Driver& driver = session.context()->driver();
  if (driver.plugin != nullptr)
    if (Diagnostics found = check_ptx(*driver.plugin, image.ptx, source); has_error(found)) {
      if (found.back().hint.empty())
        found.back().hint = found.back().code == "ptx-unsupported"
                                ? "docs/ptx-coverage.md says what the CPU device runs; a GPU runs the rest"
                                : kWrongPtxHint;
      return found;
    }
  Diagnostic diagnostic =
      make_diagnostic("ptx-refused",
                      fmt::format("{} refused the PTX of {}: {}", session.device().name(), source.file_name,
                                  driver::result_name(driver.api, outcome.result)),
                      std::string(driver::advice(outcome.result)));
  if (diagnostic.hint.empty()) diagnostic.hint = "check the PTX with ptxas; stage_text() gives it";
  if (!outcome.log.empty()) diagnostic.notes.push_back({{}, outcome.log});
  return {std::move(diagnostic)};
}

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

/// The first kernel of that name with parameter types.
std::string overload_of(const abi::PtxImage& image, const std::string& name) {
  for (const abi::EntryInfo& entry : image.entries)
    if (entry.name.starts_with(name + "(")) return entry.name;
  return {};
}

/// The hint for a variable of which a module's kernels and a template's instance have one each.
std::string sharing_hint(const std::string& kernel, std::string_view variable) {
  return fmt::format(
      "name {} in name_expressions when loading, so that it shares the module's variables; or select one "
      "with kernel.global(\"{}\")",
      kernel, variable);
}

bool mentions(const std::string& text, std::string_view word) { return text.find(word) != std::string::npos; }

}  // namespace

std::string kernel_form(abi::Language language) {
  switch (language) {
    case abi::Language::python:
      return "a kernel is a function with @cuda.jit above it";
    case abi::Language::ptx:
      return "a kernel is declared .visible .entry name(...)";
    case abi::Language::cuda:
      break;
  }
  return "a kernel is declared extern \"C\" __global__ void name(...)";
}

std::string kernels_text(const abi::PtxImage& image) {
  if (image.entries.empty()) return "it has none";
  std::string text = "it has ";
  for (const abi::EntryInfo& entry : image.entries)
    text += (&entry == &image.entries.front() ? "" : ", ") + entry.name;
  return text;
}

Expected<std::shared_ptr<runtime::Module>> load_image(const SessionState& session, const abi::PtxImage& image,
                                                      const abi::KernelSource& source) {
  base::Work work(session.progress(), ProgressStage::load, source.file_name, 1);
  if (!work.begin()) return base::cancelled("load " + source.file_name);
  runtime::LoadOutcome outcome;
  outcome.result = CUDA_ERROR_NO_BINARY_FOR_GPU;
  if (!image.machine_code.empty())
    outcome = runtime::load_image(session.context(), image.machine_code.data(), session.launch_timeout());
  if (outcome.module == nullptr && is_refusal(outcome.result))
    outcome = runtime::load_image(session.context(), image.ptx.c_str(), session.launch_timeout());
  if (outcome.module != nullptr) {
    work.finish(1);
    return std::move(outcome.module);
  }
  if (is_refusal(outcome.result)) return refusal(session, image, source, outcome);
  session.context()->fail(outcome.result, "cuModuleLoadDataEx", "load the code of " + source.file_name);
}

Expected<std::shared_ptr<const abi::PtxImage>> outline_image(const abi::KernelRequest& request) {
  Expected<std::vector<frontend::KernelOutline>> kernels =
      frontend::outline(request.source, request.constants);
  if (!kernels) return std::move(kernels).errors();
  auto image = std::make_shared<abi::PtxImage>();
  for (const frontend::KernelOutline& kernel : *kernels) {
    abi::EntryInfo& entry = image->entries.emplace_back();
    entry.name = kernel.name;
    for (const std::string& parameter : kernel.parameters) entry.parameters.emplace_back().name = parameter;
    // Types that the decorator settles make the kernel one like those of CUDA C++.
    if (kernel.signatures.size() == 1 || kernel.parameters.empty()) entry.lowered_name = kernel.name;
  }
  return std::shared_ptr<const abi::PtxImage>(std::move(image));
}

Expected<std::shared_ptr<ModuleState>> load_module(const std::shared_ptr<SessionState>& session,
                                                   abi::KernelRequest request) {
  if (request.source.language == abi::Language::python) {
    Expected<ModuleState::Image> image = outline_image(request);
    if (!image) return std::move(image).errors();
    return std::make_shared<ModuleState>(session, ModuleOrigin{std::move(request)}, *std::move(image),
                                         nullptr);
  }
  if (!request.constants.empty())
    return cannot_bind(request.constants.front().name, request.source.file_name);
  Expected<ModuleState::Image> image = session->compile(request);
  if (!image) return std::move(image).errors();
  Expected<std::shared_ptr<runtime::Module>> module = load_image(*session, **image, request.source);
  if (!module) return std::move(module).errors();
  return std::make_shared<ModuleState>(session, ModuleOrigin{std::move(request)}, *std::move(image),
                                       *std::move(module));
}

ModuleState::ModuleState(std::shared_ptr<SessionState> session, ModuleOrigin origin, Image image,
                         std::shared_ptr<runtime::Module> module)
    : session_(std::move(session)),
      origin_(std::make_shared<const ModuleOrigin>(std::move(origin))),
      request_(origin_->request),
      cuda_source_(request_.source.language == abi::Language::cuda
                       ? std::make_shared<const std::string>(request_.source.text)
                       : nullptr),
      image_(std::move(image)),
      entries_(*image_),
      module_(std::move(module)) {}

Expected<std::shared_ptr<ModuleState>> ModuleState::with_constant(const Constant& constant) const {
  if (!origin_->has_source)
    return make_diagnostic("unsupported",
                           fmt::format("cannot bind '{}' in {}: the module was loaded without its source",
                                       constant.name, file_name()),
                           "bind it before Module::save, or load the source");
  abi::KernelRequest request = request_;
  std::erase_if(request.constants, [&](const abi::Constant& known) { return known.name == constant.name; });
  request.constants.push_back(plain_constant(constant, session_->context().get()));
  return load_module(session_, std::move(request));
}

Expected<Kernel> ModuleState::kernel(std::string_view name) {
  session_->context()->require_alive();
  name = trimmed(name);
  {
    const base::LockGuard lock(mutex_);
    if (const auto found = kernels_.find(name); found != kernels_.end()) return found->second;
  }
  Expected<Kernel> made = make_kernel(std::string(name));
  if (!made) return made;
  const base::LockGuard lock(mutex_);
  return kernels_.emplace(std::string(name), *made)
      .first->second;  // all threads share the kernel of the first one
}

Expected<Kernel> ModuleState::make_kernel(const std::string& name) {
  if (request_.source.language == abi::Language::python) return python_kernel(name);
  if (const abi::EntryInfo* entry = entries_.find(name)) return bind(module_, image_, *entry);
  const bool expression = mentions(name, "<") || mentions(name, "::");
  if (expression && request_.source.language == abi::Language::cuda) return instantiate(name);
  return unknown_kernel(name);
}

Expected<Kernel> ModuleState::python_kernel(const std::string& name) {
  const abi::EntryInfo* entry = entries_.find(name);
  if (entry == nullptr) return unknown_kernel(name);
  if (entry->lowered_name.empty())
    return Kernel(std::make_shared<const PythonKernel>(session_, origin_, *entry));
  auto kernel = load_specialisation(*session_, *origin_, name, {});
  if (!kernel) return std::move(kernel).errors();
  return Kernel(*std::move(kernel));
}

Expected<ModuleState::Image> ModuleState::instance_image(const std::string& name) const {
  if (Image known = origin_->code->find(name, {})) return known;
  if (!origin_->has_source)
    return origin_->not_saved(fmt::format("compile {} of {}", name, file_name()), name);
  abi::KernelRequest request = request_;
  request.name_expressions.push_back(name);
  return session_->compile(request);
}

Expected<Kernel> ModuleState::instantiate(const std::string& name) {
  const Expected<Image> image = instance_image(name);
  if (!image) return image.errors();
  const abi::EntryInfo* entry = EntryIndex(**image).find(name);
  if (entry == nullptr) return unknown_kernel(name);
  // Another spelling of a kernel that the module has, such as "::k".
  if (const abi::EntryInfo* own = entries_.find(entry->lowered_name)) return bind(module_, image_, *own);
  Expected<std::shared_ptr<runtime::Module>> module = load_image(*session_, **image, request_.source);
  if (!module) return std::move(module).errors();
  const base::LockGuard lock(mutex_);
  for (const std::string& variable : given_variables_)
    if (launch::has_global(**image, variable))
      return make_diagnostic(
          "usage",
          fmt::format("cannot take {} from {}: compiled on its own it has another copy of variable '{}', "
                      "which global() returned",
                      name, request_.source.file_name, variable),
          sharing_hint(name, variable));
  instances_.push_back({name, *image});
  origin_->code->add(name, {}, *image);
  return bind(*module, *image, *entry);
}

GlobalVariable ModuleState::global(std::string_view name) {
  if (request_.source.language == abi::Language::python)
    throw Error(ErrorCode::unsupported,
                fmt::format("{} is Kernel Python, which has no variables in device memory\nhint: pass an "
                            "array, or bind() a constant",
                            request_.source.file_name));
  GlobalVariable found = launch::find_global(module_, *image_, name, request_.source.file_name);
  const base::LockGuard lock(mutex_);
  for (const Instance& instance : instances_)
    if (launch::has_global(*instance.image, name))
      throw Error(
          ErrorCode::usage,
          fmt::format("variable '{}' of {} is ambiguous: {} was compiled on its own "
                      "and has another copy\nhint: {}",
                      name, request_.source.file_name, instance.kernel, sharing_hint(instance.kernel, name)));
  given_variables_.insert(found.name());
  return found;
}

Kernel ModuleState::bind(const std::shared_ptr<runtime::Module>& module, const Image& image,
                         const abi::EntryInfo& entry) const {
  return Kernel(std::make_shared<const launch::LoadedKernel>(module, image, entry, cuda_source_));
}

Diagnostic ModuleState::unknown_kernel(const std::string& name) const {
  std::string hint = kernels_text(*image_);
  const bool is_template = request_.source.language == abi::Language::cuda &&
                           mentions(request_.source.text, name) && mentions(request_.source.text, "template");
  const std::string overload = overload_of(*image_, name);
  if (!overload.empty())
    hint += fmt::format("; {} is overloaded: name it with its parameters' types, as in '{}'", name, overload);
  else if (is_template)
    hint += fmt::format("; if {} is a template, ask for an instance of it, such as {}<float>", name, name);
  else if (image_->entries.empty())
    hint += "; " + kernel_form(request_.source.language);
  else
    hint += "; choose one of these";
  return make_diagnostic("unknown-kernel",
                         fmt::format("{} has no kernel '{}'", request_.source.file_name, name), hint);
}

Expected<Kernel> ModuleState::only_kernel() {
  session_->context()->require_alive();
  if (image_->entries.size() == 1) return kernel(image_->entries.front().name);
  if (image_->entries.empty())
    return make_diagnostic("unknown-kernel", fmt::format("{} has no kernel", request_.source.file_name),
                           kernel_form(request_.source.language));
  return make_diagnostic(
      "kernel-choice",
      fmt::format("{} has {} kernels, and none was named", request_.source.file_name, image_->entries.size()),
      kernels_text(*image_) + "; name one with Module::kernel");
}

}  // namespace session

Kernel Module::kernel(std::string_view name) const { return session::value_or_throw(state_->kernel(name)); }
Expected<Kernel> Module::try_kernel(std::string_view name) const { return state_->kernel(name); }
Module Module::bind(Constant constant) const {
  return Module(session::value_or_throw(state_->with_constant(constant)));
}
Kernel Module::kernel() const { return session::value_or_throw(state_->only_kernel()); }

GlobalVariable Module::global(std::string_view name) const { return state_->global(name); }
Expected<GlobalVariable> Module::try_global(std::string_view name) const {
  return attempt([&] { return state_->global(name); });
}
std::vector<std::string> Module::global_names() const { return launch::global_names(state_->image()); }

std::vector<std::string> Module::kernel_names() const {
  std::vector<std::string> names;
  for (const abi::EntryInfo& entry : state_->image().entries) names.push_back(entry.name);
  return names;
}

const std::string& Module::ptx() const noexcept { return state_->image().ptx; }
void* Module::handle() const noexcept { return state_->handle(); }
const Diagnostics& Module::log() const noexcept { return state_->image().log; }
void Module::save(const std::filesystem::path& path) const {
  const std::string bytes = session::value_or_throw(state_->save());
  const Expected<void> written = write_file_atomically(path, std::as_bytes(std::span(bytes)));
  if (!written) session::throw_diagnostics(written.errors());
}
std::vector<std::byte> Module::saved() const {
  const std::string bytes = session::value_or_throw(state_->save());
  const std::span<const std::byte> view = std::as_bytes(std::span(bytes));
  return {view.begin(), view.end()};
}
double Module::compile_ms() const noexcept { return state_->image().compile_ms; }

}  // namespace quern
