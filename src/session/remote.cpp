// SPDX-License-Identifier: Apache-2.0
#include "session/remote.hpp"

#include <fmt/format.h>

#include <atomic>

#include "base/log.hpp"
#include "compile/own_headers.hpp"
#include "compile/ptx/ptx_text.hpp"
#include "compile/shared_compiler.hpp"
#include "remote/client.hpp"

namespace quern::session {
namespace {

using compile::RemoteOutcome;

class Servers final : public compile::RemoteCompiler {
 public:
  explicit Servers(remote::ClientOptions options) : client_(std::move(options)) {}

  std::optional<RemoteOutcome> compile(const abi::KernelRequest& request,
                                       const std::vector<std::string>& toolkit_directories,
                                       base::ProgressSlot* progress) override {
    const std::string& file = request.source.file_name;
    const Expected<compile::WholeRequest> whole = compile::with_own_headers(request, toolkit_directories);
    if (!whole) return decline(file, whole.errors());
    base::Work work(progress, ProgressStage::compile, file, 0);
    if (!work.begin()) return RemoteOutcome{base::cancelled("compile " + file), {}};
    std::uint64_t ticks = 0;
    remote::Client::Outcome outcome = client_.compile(
        whole->request, [&] { return work.advance(++ticks); },
        [&](const abi::PtxImage& image) { return compile::why_not_for(request.target, image); });
    work.finish(ticks);
    if (!outcome.answer) return unanswered(file, outcome.reasons);
    is_told_ = false;
    if (!*outcome.answer) {
      Diagnostics errors = std::move(*outcome.answer).errors();
      compile::rename_files(errors, whole->files);
      return RemoteOutcome{std::move(errors), {}};
    }
    remote::CompileAnswer& answer = **outcome.answer;
    compile::rename_files(answer.image, whole->files);
    base::log({LogLevel::debug,
               fmt::format("{} compiled {}, request {}", outcome.server, file, outcome.request_id),
               {{"file", file}, {"server", outcome.server}, {"request_id", outcome.request_id}}});
    return RemoteOutcome{answer.image, toolkit_of(answer.toolkit)};
  }

  std::optional<compile::RemoteToolkit> toolkit() override {
    const std::optional<remote::ToolkitIdentity> identity = client_.toolkit();
    if (!identity) return std::nullopt;
    return toolkit_of(*identity);
  }

  std::string name() const override { return remote::identity_of(client_.options()); }

 private:
  static compile::RemoteToolkit toolkit_of(const remote::ToolkitIdentity& identity) {
    return {{identity.libraries, identity.header_contents}, identity.quern};
  }

  /// Servers do not take such requests; they are compiled here, and that is not a failure.
  std::optional<RemoteOutcome> decline(const std::string& file, const Diagnostics& reasons) const {
    if (client_.options().only) return refused(file, reasons);
    base::log({LogLevel::debug,
               fmt::format("{} is compiled here: {}", file, reasons.front().message),
               {{"file", file}}});
    return std::nullopt;
  }

  std::optional<RemoteOutcome> unanswered(const std::string& file, const Diagnostics& reasons) {
    if (!reasons.empty() && reasons.back().code == "cancelled")
      return RemoteOutcome{base::cancelled("compile " + file), {}};
    if (!reasons.empty() && reasons.back().code == remote::kWorkerFailed)
      return crashed(file, reasons.back());
    if (!reasons.empty() && reasons.back().code == "not-remote") return decline(file, {reasons.back()});
    if (!reasons.empty() && reasons.back().code == remote::kTooLarge) return too_large(file, reasons.back());
    if (client_.options().only) return refused(file, reasons);
    // Logged once, until a server answers again.
    if (!reasons.empty() && !is_told_.exchange(true)) {
      std::string text = "no compile server answers, so kernels are compiled here";
      for (const Diagnostic& reason : reasons) text += "\n  " + reason.message;
      base::log({LogLevel::warning, text, {{"file", file}}});
    }
    return std::nullopt;
  }

  /// Logged once: the operator can raise the server's limit.
  std::optional<RemoteOutcome> too_large(const std::string& file, const Diagnostic& reason) {
    if (!client_.options().only && !is_told_size_.exchange(true))
      base::log({LogLevel::warning,
                 fmt::format("kernels that are too large for the compile server are compiled here: {}\n  {}",
                             file, reason.message),
                 {{"file", file}}});
    return decline(file, {reason});
  }

  /// Compiled here, the source would end this process instead of a worker.
  static RemoteOutcome crashed(const std::string& file, const Diagnostic& reason) {
    Diagnostic error;
    error.code = compile::kNoServer;
    error.message = fmt::format("cannot compile {}: {}", file, reason.message);
    error.hint = "divide the source, or unset QUERN_REMOTE to compile it in this process, which it may end";
    return {std::move(error), {}};
  }

  static RemoteOutcome refused(const std::string& file, const Diagnostics& reasons) {
    Diagnostic error;
    error.code = compile::kNoServer;
    error.message = fmt::format(
        "cannot compile {}: no server did, and QUERN_REMOTE_ONLY forbids compiling it here", file);
    for (const Diagnostic& reason : reasons) error.notes.push_back({{}, reason.message});
    error.hint = "check that a server of QUERN_REMOTE is up and reachable, or unset QUERN_REMOTE_ONLY";
    return {std::move(error), {}};
  }

  remote::Client client_;
  std::atomic<bool> is_told_{false};
  std::atomic<bool> is_told_size_{false};
};

}  // namespace

Expected<std::shared_ptr<compile::Compiler>> shared_compiler() {
  Expected<std::optional<remote::ClientOptions>> options = remote::client_options_of_environment();
  if (!options) return std::move(options).errors();
  if (!*options) return compile::shared_compiler();
  const std::string name = remote::identity_of(**options);
  return compile::shared_compiler(compile::search_environment(),
                                  {name, [&] { return std::make_shared<Servers>(**std::move(options)); }});
}

Expected<compile::Compiler::Image> compile_without_session(const abi::KernelRequest& request,
                                                           const ProgressHandler& progress) {
  base::ProgressSlot slot;
  slot.exchange(progress);
  const Expected<std::shared_ptr<compile::Compiler>> compiler = shared_compiler();
  if (!compiler) return compiler.errors();
  return (*compiler)->compile(request, {&slot, nullptr});
}

}  // namespace quern::session
