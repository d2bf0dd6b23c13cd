// SPDX-License-Identifier: Apache-2.0
#include "serve/compile_runner.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/clock.hpp"
#include "remote/messages.hpp"
#include "serve/log.hpp"

namespace quern::serve {
namespace {

constexpr std::uint64_t kCrashesOfNursery = 16;  // before a new one is started

/// The source may be correct: with more memory, or at another time, it may compile.
bool is_failure_of_compiler(const Diagnostic& diagnostic) {
  return diagnostic.severity == Severity::error && diagnostic.code == "nvrtc-failed";
}

}  // namespace

CompileOutcome CompileRunner::run(WorkerSlot& slot, const CompileJob& job,
                                  const std::function<bool()>& is_wanted) {
  WorkerProcess& worker = *slot.worker;
  if (slot.nursery->toolkit().identity.digest != job.facts->toolkit.digest)
    return {error_result(503, "starting", "the toolkit of this server has changed"), false, true};
  const std::int64_t begin = base::now_ns();
  const auto deadline = begin + static_cast<std::int64_t>(settings_.compile_timeout_s * 1e9);
  ++metrics_.nvrtc_runs;
  Frame answer;
  const Receive got =
      worker.ask({0, job.text, ""}, [&] { return base::now_ns() < deadline && is_wanted(); }, answer);
  const double seconds = static_cast<double>(base::now_ns() - begin) * 1e-9;
  metrics_.compile_seconds.add(seconds);
  const CompileOutcome outcome =
      got == Receive::frame ? finished(answer, job) : failed(worker, got, job, base::now_ns() >= deadline);
  metrics_.slowest.add(
      {seconds * 1e3, outcome.result->status, unix_time_s(), job.source_name, job.language, job.request_id});
  if (got == Receive::frame) note_speed(answer, job, seconds);
  return outcome;
}

void CompileRunner::note_speed(const Frame& answer, const CompileJob& job, double seconds) {
  if (answer.status == kFastImageFrame) ++metrics_.precompiled_uses;
  if (answer.status != kImageFrame || settings_.precompiled_bytes == 0) return;
  const Expected<remote::CompileMessage> message = remote::read_compile_message(job.text);
  if (!message || !message->headers.empty()) return;
  workers_.note_compile(message->request, seconds);
}

CompileOutcome CompileRunner::finished(const Frame& frame, const CompileJob& job) {
  ResultPointer result = read_result(frame, job);
  const bool trusted = result->status != 500;
  return {std::move(result), trusted, trusted};
}

ResultPointer CompileRunner::read_result(const Frame& frame, const CompileJob& job) {
  if (frame.status == kErrorFrame) {
    remote::ErrorAnswer error = remote::read_error(frame.text);
    if (std::ranges::any_of(error.diagnostics, is_failure_of_compiler)) {
      ++metrics_.compiles_crashed;
      log_event(Level::error, "worker-failed", {{"request_id", job.request_id}, {"ended", error.message}});
      return error_result(
          500, "worker-failed", "the compiler failed: " + error.diagnostics.front().message,
          fmt::format("a worker may use {} MiB of memory", settings_.worker_memory_bytes >> 20));
    }
    if (!error.code.empty()) {
      ++metrics_.compiles_error;
      error.code = "compile";
      error.request_id.clear();
      return std::make_shared<const Result>(Result{422, remote::write_error(error), nullptr});
    }
  } else if (Expected<remote::CompileAnswer> answer = remote::read_answer(frame.text)) {
    answer->key = job.key.hex();
    answer->toolkit = job.facts->toolkit;
    if (!frame.bytes.empty()) {
      const base::Digest digest = base::sha256(std::as_bytes(std::span(frame.bytes)));
      answer->machine_code_digest = digest.hex();
      answer->machine_code_bytes = frame.bytes.size();
    }
    ++metrics_.compiles_ok;
    Result result{200, remote::write_answer(*answer), nullptr};
    if (!frame.bytes.empty()) result.machine_code = std::make_shared<const std::string>(frame.bytes);
    offer_machine_code(artifacts_, result);
    return std::make_shared<const Result>(std::move(result));
  }
  ++metrics_.compiles_crashed;
  log_event(Level::error, "worker-nonsense", {{"request_id", job.request_id}});
  return error_result(500, "worker-failed", "the compiler's answer cannot be read");
}

CompileOutcome CompileRunner::failed(WorkerProcess& worker, Receive got, const CompileJob& job, bool late) {
  const std::string how = worker.end();
  if (got == Receive::stopped && !late) {
    ++metrics_.compiles_abandoned;
    log_event(Level::info, "compile-abandoned", {{"request_id", job.request_id}});
    return {error_result(503, "draining", "the compile was ended: no client waited for it"), false, false};
  }
  if (got == Receive::stopped) {
    ++metrics_.compiles_timeout;
    log_event(Level::warning, "compile-timeout", {{"request_id", job.request_id}});
    return {error_result(504, "compile-timeout",
                         fmt::format("the compile took longer than {} s, this server's limit",
                                     settings_.compile_timeout_s),
                         "make the source smaller, or ask the operator for a higher --compile-timeout"),
            false, false};
  }
  // All workers of a nursery have the same memory layout, and each crash may reveal something about it.
  const bool renew_all = ++metrics_.compiles_crashed % kCrashesOfNursery == 0;
  log_event(Level::error, "worker-failed", {{"request_id", job.request_id}, {"ended", how}});
  return {error_result(500, "worker-failed", fmt::format("the compiler ended without an answer: {}", how),
                       fmt::format("it may have exhausted its {} MiB of memory, or crashed on this source",
                                   settings_.worker_memory_bytes >> 20)),
          false, false, renew_all};
}

}  // namespace quern::serve
