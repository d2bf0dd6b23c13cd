// SPDX-License-Identifier: Apache-2.0
// Saving modules and loading saved ones.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/file.hpp"
#include "quern/attempt.hpp"
#include "quern/error.hpp"
#include "session/gate.hpp"
#include "session/python_kernel.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

Diagnostics check_target(const SessionState& session, const SavedModule& saved, const std::string& name) {
  const int capability = session.device().compute_capability();
  // The text of an author's PTX names its target; the driver reads it.
  if (saved.language == abi::Language::ptx || static_cast<int>(saved.target.compute) <= capability) return {};
  return {make_diagnostic(
      "saved-target",
      fmt::format("cannot load {}: it was compiled for compute capability {}.{}, and {} has {}.{}", name,
                  saved.target.compute / 10, saved.target.compute % 10, session.device().name(),
                  capability / 10, capability % 10),
      "save it from a session on this device, or on an older one")};
}

Expected<Module> load_bytes(const std::shared_ptr<SessionState>& session, std::string_view bytes,
                            const std::string& name) {
  Expected<SavedModule> saved = read_saved(bytes, name);
  if (!saved) return std::move(saved).errors();
  if (Diagnostics wrong = check_target(*session, *saved, name); !wrong.empty()) return wrong;
  Expected<std::shared_ptr<ModuleState>> module = load_saved(session, *std::move(saved));
  if (!module) return std::move(module).errors();
  return Module(*std::move(module));
}

}  // namespace

Diagnostic ModuleOrigin::not_saved(const std::string& attempted, const std::string& kernel) const {
  std::vector<std::string> known;
  for (const CodeTable::Piece& piece : code->pieces()) {
    if (language() != abi::Language::python)
      known.push_back(piece.kernel);
    else if (piece.kernel == kernel)
      known.push_back("(" + piece.types + ")");
  }
  return make_diagnostic(
      "not-saved",
      fmt::format("cannot {}: the module was loaded without its source, and it has code for {}", attempted,
                  known.empty() ? "none of them" : fmt::format("{}", fmt::join(known, ", "))),
      language() == abi::Language::python
          ? "specialise or prepare the kernel for these types before Module::save"
          : "request it with Module::kernel, or name it in LoadOptions::name_expressions, before "
            "Module::save");
}

/// Compiles the kernels of Kernel Python whose types are known without a launch and that are not compiled
/// yet.
Diagnostics ModuleState::compile_settled() const {
  if (!origin_->has_source || request_.source.language != abi::Language::python) return {};
  for (const abi::EntryInfo& entry : image_->entries) {
    if (entry.lowered_name.empty()) continue;
    if (Expected<Image> made = specialisation_image(*session_, *origin_, entry.name, {}); !made)
      return std::move(made).errors();
  }
  return {};
}

Expected<std::string> ModuleState::save() const {
  if (Diagnostics wrong = compile_settled(); has_error(wrong)) return wrong;
  SavedModule saved;
  saved.writer = version();
  saved.language = request_.source.language;
  saved.file_name = file_name();
  saved.target = request_.target;
  saved.options = request_.options;
  saved.name_expressions = request_.name_expressions;
  for (const abi::Constant& constant : request_.constants) saved.constants.push_back(constant.name);
  saved.parts = origin_->linked;
  if (saved.parts.empty()) saved.parts.push_back({file_name(), image_});
  saved.pieces = origin_->code->pieces();
  if (saved.language == abi::Language::python && saved.pieces.empty())
    return make_diagnostic("usage",
                           fmt::format("cannot save {}: none of its kernels is compiled", file_name()),
                           "launch, specialise or prepare its kernels for the types that they are to have");
  return write_saved(saved);
}

Expected<std::shared_ptr<ModuleState>> load_saved(const std::shared_ptr<SessionState>& session,
                                                  SavedModule saved) {
  ModuleOrigin origin;
  origin.has_source = false;
  origin.request.source = {saved.language, {}, std::move(saved.file_name)};
  origin.request.target = saved.target;
  origin.request.options = std::move(saved.options);
  origin.request.name_expressions = std::move(saved.name_expressions);
  for (std::string& name : saved.constants) origin.request.constants.emplace_back().name = std::move(name);
  origin.code = std::make_shared<CodeTable>(std::move(saved.pieces));
  if (saved.parts.size() > 1) {
    origin.linked = std::move(saved.parts);
    return link_parts(session, std::move(origin));
  }
  const ModuleState::Image image = saved.parts.front().image;
  if (saved.language == abi::Language::python)
    return std::make_shared<ModuleState>(session, std::move(origin), image, nullptr);
  Expected<std::shared_ptr<runtime::Module>> module = load_image(*session, *image, origin.request.source);
  if (!module) return std::move(module).errors();
  return std::make_shared<ModuleState>(session, std::move(origin), image, *std::move(module));
}

}  // namespace session

Expected<Module> Session::try_load_saved(const std::filesystem::path& path) const {
  const Expected<std::string> bytes = session::read_present_file(path, session::kMostSavedBytes);
  if (!bytes) return bytes.errors();
  return session::load_bytes(session::live(state_), *bytes, path.string());
}
Expected<Module> Session::try_load_saved(std::span<const std::byte> bytes) const {
  return session::load_bytes(session::live(state_),
                             {reinterpret_cast<const char*>(bytes.data()), bytes.size()}, "the saved module");
}
Module Session::load_saved(const std::filesystem::path& path) const {
  return session::value_or_throw(try_load_saved(path));
}
Module Session::load_saved(std::span<const std::byte> bytes) const {
  return session::value_or_throw(try_load_saved(bytes));
}

}  // namespace quern
