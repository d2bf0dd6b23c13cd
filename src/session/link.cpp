// SPDX-License-Identifier: Apache-2.0
// Several sources as one module.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cctype>
#include <set>
#include <string>

#include "compile/ptx/names.hpp"
#include "quern/error.hpp"
#include "session/gate.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

using Image = ModuleState::Image;

constexpr std::string_view kRelocatable = "--relocatable-device-code=true";

abi::KernelRequest request_of(const SessionState& session, const LinkSource& source, std::size_t index) {
  abi::KernelSource text;
  text.language = language_of(source.language);
  if (text.language == abi::Language::python)
    throw Error(ErrorCode::unsupported,
                fmt::format("cannot link source {}: it is Kernel Python\nhint: link CUDA C++ and PTX; "
                            "stage_text() gives the PTX of a kernel",
                            index + 1));
  text.text = source.text;
  text.file_name = fmt::format("<source {}>", index + 1);
  abi::KernelRequest request =
      make_request(std::move(text), source.options, session.target(), session.context().get());
  if (!request.constants.empty()) {
    const Diagnostic refusal = cannot_bind(request.constants.front().name, request.source.file_name);
    throw Error(ErrorCode::usage, refusal.message + "\nhint: " + refusal.hint);
  }
  request.target.sm.reset();  // the linker makes the machine code
  if (request.source.language == abi::Language::cuda) request.options.emplace_back(kRelocatable);
  return request;
}

/// All symbols of the images; a symbol in two of them (a weak kernel) once.
template <class Symbol>
void add_new(std::vector<Symbol>& all, const std::vector<Symbol>& more) {
  for (const Symbol& symbol : more)
    if (std::ranges::none_of(all,
                             [&](const Symbol& known) { return known.lowered_name == symbol.lowered_name; }))
      all.push_back(symbol);
}

std::shared_ptr<const abi::PtxImage> together(const std::vector<SavedModule::Part>& parts) {
  auto all = std::make_shared<abi::PtxImage>();
  for (const auto& [name, image] : parts) {
    all->ptx += (all->ptx.empty() ? "" : "\n") + image->ptx;
    add_new(all->entries, image->entries);
    add_new(all->variables, image->variables);
    all->log.insert(all->log.end(), image->log.begin(), image->log.end());
    all->compile_ms += image->compile_ms;
  }
  return all;
}

/// A note for each name that the log has in its lowered form: "_Z1ff is f(float)".
void explain_names(const std::string& log, Diagnostic& diagnostic) {
  const auto is_part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; };
  std::set<std::string> seen;
  for (auto at = log.begin(); at != log.end();) {
    at = std::find_if(at, log.end(), is_part);
    const auto end = std::find_if_not(at, log.end(), is_part);
    const std::string word(at, end);
    at = end;
    if (!word.starts_with("_Z") || !seen.insert(word).second) continue;
    const compile::DemangledName known = compile::demangle(word);
    if (!known.mangled) continue;
    const bool is_function = !known.parameter_types.empty();
    diagnostic.notes.push_back({{},
                                fmt::format("{} is {}{}{}{}", word, known.name, is_function ? "(" : "",
                                            fmt::join(known.parameter_types, ", "), is_function ? ")" : "")});
  }
}

Diagnostic refusal(const SessionState& session, const std::string& names, CUresult result,
                   const std::string& log) {
  Diagnostic diagnostic =
      make_diagnostic("link-failed",
                      fmt::format("cannot link {}: {} answers {}", names, session.device().name(),
                                  driver::result_name(session.context()->api(), result)),
                      "define each function and variable in one source, and declare it extern in the others");
  if (log.empty()) return diagnostic;
  diagnostic.notes.push_back({{}, log});
  explain_names(log, diagnostic);
  return diagnostic;
}

}  // namespace

Expected<std::shared_ptr<ModuleState>> link_parts(const std::shared_ptr<SessionState>& session,
                                                  ModuleOrigin origin) {
  std::vector<runtime::LinkText> texts;
  for (const auto& [name, image] : origin.linked) texts.push_back({name.c_str(), &image->ptx});
  const std::string& file_name = origin.file_name();
  base::Work work(session->progress(), ProgressStage::load, file_name, 1);
  if (!work.begin()) return base::cancelled("link " + file_name);
  const runtime::LinkOutcome linked = runtime::link_texts(session->context(), texts);
  if (linked.result != CUDA_SUCCESS) return refusal(*session, file_name, linked.result, linked.log);
  runtime::LoadOutcome loaded =
      runtime::load_image(session->context(), linked.image.data(), session->launch_timeout());
  if (loaded.module == nullptr) return refusal(*session, file_name, loaded.result, loaded.log);
  work.finish(1);
  Image all = together(origin.linked);
  return std::make_shared<ModuleState>(session, std::move(origin), std::move(all), std::move(loaded.module));
}

Expected<std::shared_ptr<ModuleState>> link_sources(const std::shared_ptr<SessionState>& session,
                                                    std::span<const LinkSource> sources) {
  if (sources.empty()) return make_diagnostic("usage", "cannot link nothing", "give at least one source");
  ModuleOrigin origin;
  std::vector<std::string> names;
  for (std::size_t i = 0; i < sources.size(); ++i) {
    const abi::KernelRequest request = request_of(*session, sources[i], i);
    names.push_back(request.source.file_name);
    Expected<Image> image = session->compile(request);
    if (!image) return std::move(image).errors();
    origin.linked.push_back({names.back(), *std::move(image)});
  }
  // Treated as PTX: templates were instantiated before linking.
  origin.request.source.language = abi::Language::ptx;
  origin.request.source.file_name = fmt::format("{}", fmt::join(names, " + "));
  origin.request.target = session->target();
  return link_parts(session, std::move(origin));
}

}  // namespace session

Expected<Module> Session::try_link(std::span<const LinkSource> sources) const {
  Expected<std::shared_ptr<session::ModuleState>> module = session::link_sources(state_, sources);
  if (!module) return std::move(module).errors();
  return Module(*std::move(module));
}
Module Session::link(std::span<const LinkSource> sources) const {
  return session::value_or_throw(try_link(sources));
}

}  // namespace quern
