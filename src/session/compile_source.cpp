// SPDX-License-Identifier: Apache-2.0
#include "quern/compile_source.hpp"

#include <fmt/format.h>

#include "compile/shared_compiler.hpp"
#include "launch/loaded_kernel.hpp"
#include "quern/attempt.hpp"
#include "session/gate.hpp"
#include "session/remote.hpp"
#include "session/state.hpp"

namespace quern {
namespace session {
namespace {

Diagnostics check(const CompileRequest& request) {
  if (request.language == SourceLanguage::python) return {};
  const std::string file = request.load.file_name.empty() ? "the source" : request.load.file_name;
  if (!request.signature.empty() || !request.kernel.empty())
    return {make_diagnostic(
        "usage",
        fmt::format("cannot compile {} for one kernel or for argument types: only Kernel Python takes them",
                    file),
        "leave CompileRequest::kernel and ::signature empty; instances of templates are named in "
        "LoadOptions::name_expressions")};
  if (!request.load.constants.empty()) return {cannot_bind(request.load.constants.front().name, file)};
  return {};
}

CompiledSource result_of(const abi::PtxImage& image) {
  CompiledSource result;
  result.ptx = image.ptx;
  result.machine_code = image.machine_code;
  for (const abi::EntryInfo& entry : image.entries)
    result.kernels.push_back({entry.name, entry.lowered_name, launch::public_parameters(entry),
                              entry.static_shared_bytes, entry.max_threads});
  for (const abi::VariableInfo& variable : image.variables)
    result.variables.push_back({variable.name, variable.lowered_name});
  result.cuda_source = image.cuda_source;
  result.log = image.log;
  result.compile_ms = image.compile_ms;
  return result;
}

Expected<CompiledSource> compile_without_device(const CompileRequest& request) {
  if (Diagnostics wrong = check(request); !wrong.empty()) return wrong;
  abi::Target target;
  target.compute = request.compute_capability;
  target.sm = request.machine;
  target.driver_version = request.driver_version;
  abi::KernelRequest known =
      make_request(text_source(language_of(request.language), request.source), request.load, target, nullptr);
  known.entry = request.kernel;
  known.signature = request.signature;
  Expected<compile::Compiler::Image> image = compile_without_session(known, request.progress);
  if (!image) return std::move(image).errors();
  return result_of(**image);
}

}  // namespace
}  // namespace session

Expected<CompiledSource> try_compile_source(const CompileRequest& request) {
  // Invalid constants throw.
  Expected<Expected<CompiledSource>> result =
      attempt([&] { return session::compile_without_device(request); });
  if (!result) return std::move(result).errors();
  return *std::move(result);
}
CompiledSource compile_source(const CompileRequest& request) {
  return session::value_or_throw(session::compile_without_device(request));
}

}  // namespace quern
