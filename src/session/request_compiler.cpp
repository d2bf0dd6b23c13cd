// SPDX-License-Identifier: Apache-2.0
#include "session/request_compiler.hpp"

#include "compile/compiler.hpp"

namespace quern::session {

struct RequestCompiler::State {
  static compile::CompilerOptions options() {
    compile::CompilerOptions options;
    options.store = nullptr;
    options.images = compile::make_image_cache(0);
    return options;
  }
  compile::Compiler compiler{options()};
};

RequestCompiler::RequestCompiler() : state_(std::make_unique<State>()) {}
RequestCompiler::~RequestCompiler() = default;

Expected<std::shared_ptr<const abi::PtxImage>> RequestCompiler::compile(const abi::KernelRequest& request) {
  return state_->compiler.compile(request);
}

CompilerFacts RequestCompiler::facts() {
  compile::ToolkitReport report = state_->compiler.toolkit();
  return {std::move(report.nvrtc_path), std::move(report.nvrtc_version), std::move(report.headers_version),
          std::move(report.include_directories), std::move(report.missing)};
}

}  // namespace quern::session
