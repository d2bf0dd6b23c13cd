// SPDX-License-Identifier: Apache-2.0
#include "session/request_compiler.hpp"

#include <algorithm>

#include "compile/compiler.hpp"
#include "compile/precompiled.hpp"

namespace quern::session {

namespace {

/// Options with text of the author, which must reach no other process than the author's worker.
bool has_free_text(const std::string& option) {
  const std::string_view word = std::string_view(option).substr(option.starts_with("--") ? 2 : 1);
  return !option.starts_with('-') || word.starts_with("D") || word.starts_with("U") ||
         word.starts_with("define") || word.starts_with("undefine");
}

}  // namespace

struct RequestCompiler::State {
  compile::CompilerOptions options() {
    compile::CompilerOptions options;
    options.store = nullptr;
    options.bundles = {};
    options.images = compile::make_image_cache(0);
    options.precompiled = precompiled;
    return options;
  }
  std::shared_ptr<compile::PrecompiledHeaders> precompiled = std::make_shared<compile::PrecompiledHeaders>();
  compile::Compiler compiler{options()};
};

RequestCompiler::RequestCompiler() : state_(std::make_unique<State>()) {}
RequestCompiler::~RequestCompiler() = default;

Expected<std::shared_ptr<const abi::PtxImage>> RequestCompiler::compile(const abi::KernelRequest& request) {
  return state_->compiler.compile(request);
}

CompilerFacts RequestCompiler::facts() {
  compile::ToolkitReport report = state_->compiler.toolkit();
  CompilerFacts facts{std::move(report.nvrtc_path),
                      std::move(report.nvrtc_version),
                      std::move(report.headers_version),
                      std::move(report.include_directories),
                      std::move(report.missing),
                      "",
                      "",
                      compile::own_contents()};
  if (Expected<compile::ToolkitContents> contents = state_->compiler.toolkit_contents()) {
    facts.libraries = std::move(contents->nvrtc);
    facts.header_contents = std::move(contents->headers);
  }
  return facts;
}

Expected<base::Digest> RequestCompiler::precompile(const abi::KernelRequest& lines, const std::string& file) {
  return state_->compiler.precompile(lines, file);
}

void RequestCompiler::add_precompiled(const base::Digest& key, std::string path) {
  state_->precompiled->add(key, std::move(path));
}

std::uint64_t RequestCompiler::precompiled_use_count() const { return state_->precompiled->use_count(); }

std::optional<abi::KernelRequest> precompilable(const abi::KernelRequest& request) {
  if (request.source.language != abi::Language::cuda || !request.headers.empty() ||
      std::ranges::any_of(request.options, has_free_text))
    return std::nullopt;
  const std::vector<std::string> includes = compile::leading_includes(request.source.text);
  if (includes.empty()) return std::nullopt;
  abi::KernelRequest lines;
  lines.source.text = compile::include_lines(includes);
  lines.source.file_name = "<precompiled>";
  lines.options = request.options;
  lines.target = request.target;
  return lines;
}

}  // namespace quern::session
