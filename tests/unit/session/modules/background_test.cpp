// SPDX-License-Identifier: Apache-2.0
// Compiling before the first launch, and on quern's threads.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <functional>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "../../support/messages.hpp"

using namespace quern;
using namespace std::chrono_literals;
using quern::test::holds;

namespace {

bool ready() {
  static const bool found = [] { return Session::try_open({"cpu"}).has_value() && doctor().ready; }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

Session isolated() { return Session({.device = "cpu", .isolated = true}); }

/// A source that this process has not compiled.
std::string fresh_source() {
  static std::atomic<int> count{0};
  return "extern \"C\" __global__ void fresh(int* x) { x[threadIdx.x] += 2000 + " + std::to_string(++count) +
         "; }";
}

int run(const Session& session, const Module& module) {
  const DeviceArray<int> x = session.to_device(std::vector<int>(32, 0));
  module.kernel("fresh")({.grid = 1, .block = 32})(x);
  return x.copy_to_host()[31];
}

/// Kernel Python that this process has not compiled.
std::string fresh_python() {
  static std::atomic<int> count{0};
  return "from numba import cuda\n@cuda.jit\ndef scale(x, factor):\n    i = cuda.grid(1)\n    if i < x.size "
         "- " +
         std::to_string(++count) + ":\n        x[i] = x[i] * factor\n";
}

/// Counts how often machine code is generated.
class Generations {
 public:
  explicit Generations(const Session& session) : session_(session) {
    session_.set_progress([this](const Progress& progress) {
      if (progress.stage == ProgressStage::generate && progress.finished) ++count_;
      return true;
    });
  }
  ~Generations() { session_.set_progress({}); }
  Generations(const Generations&) = delete;
  Generations& operator=(const Generations&) = delete;
  int count() const { return count_; }

 private:
  const Session& session_;
  std::atomic<int> count_{0};
};

/// Delays all compilations of a session until it is released.
class Hold {
 public:
  explicit Hold(const Session& session) : session_(session) {
    session_.set_progress([this](const Progress& progress) {
      if (progress.stage != ProgressStage::compile) return true;
      const int now = ++inside_;
      for (int most = most_; now > most && !most_.compare_exchange_weak(most, now);) continue;
      while (!open_) std::this_thread::sleep_for(1ms);
      --inside_;
      return true;
    });
  }
  ~Hold() {
    open_ = true;
    session_.set_progress({});
  }
  Hold(const Hold&) = delete;
  Hold& operator=(const Hold&) = delete;

  void let_go() { open_ = true; }
  void wait_for(int held) const {
    while (inside_ < held) std::this_thread::sleep_for(1ms);
  }
  int most() const { return most_; }

 private:
  const Session& session_;
  std::atomic<bool> open_{false};
  std::atomic<int> inside_{0};
  std::atomic<int> most_{0};
};

ErrorCode code_of(const std::function<void()>& call, std::string* text = nullptr) {
  try {
    call();
  } catch (const Error& error) {
    if (text != nullptr) *text = error.what();
    return error.code();
  }
  FAIL("nothing was thrown");
  return ErrorCode::internal;
}

}  // namespace

TEST_CASE("a prepared kernel generates no machine code at its launches with that block shape") {
  if (!ready()) return;
  const Session session = isolated();
  const Module module = session.load_cuda(fresh_source());
  const Generations generations(session);
  module.kernel().prepare({32});
  CHECK(generations.count() == 1);
  module.kernel().prepare({32});
  CHECK(run(session, module) > 2000);
  CHECK(generations.count() == 1);
  module.kernel().prepare({8, 4, 2});
  CHECK(generations.count() == 2);
}

TEST_CASE("Kernel Python is prepared for types, given as text or by arguments") {
  if (!ready()) return;
  const Session session = isolated();
  const Kernel scale = session.load_python(fresh_python()).kernel();
  const Generations generations(session);
  scale.prepare({32}, "float64[::1], float64");
  const auto x = session.to_device(std::vector<float>(32, 2.0f));
  const Argument arguments[] = {detail::argument_of(x), detail::argument_of(0.5f)};
  scale.prepare({32}, arguments);
  CHECK(scale.specialisations().size() == 2);
  const CompileStats before = session.compile_stats();
  CHECK(generations.count() == 2);
  scale({.grid = 1, .block = 32})(x, 0.5f);
  CHECK(x.copy_to_host()[0] == 1.0f);
  CHECK(session.compile_stats().nvrtc_runs == before.nvrtc_runs);
  CHECK(session.compile_stats().translations == before.translations);
  CHECK(generations.count() == 2);
}

TEST_CASE("a kernel's compile time is NVRTC's, that of its PTX and that of its machine code, each once") {
  if (!ready()) return;
  const std::string source = fresh_source();
  const Session session = isolated();
  const Kernel kernel = session.load_cuda(source).kernel();
  const KernelInfo loaded = kernel.info();
  CHECK(loaded.nvrtc_ms > 0);
  CHECK(loaded.load_ms > 0);
  CHECK(loaded.machine_code_ms == 0);
  kernel.prepare({32});
  const KernelInfo ready_info = kernel.info();
  CHECK(ready_info.nvrtc_ms == loaded.nvrtc_ms);
  CHECK(ready_info.load_ms == loaded.load_ms);
  CHECK(ready_info.machine_code_ms > 0);
  CHECK(ready_info.compile_ms == ready_info.nvrtc_ms + ready_info.load_ms + ready_info.machine_code_ms);
  kernel.prepare({32});
  CHECK(kernel.info().compile_ms == ready_info.compile_ms);
  kernel.prepare({64});
  CHECK(kernel.info().machine_code_ms > ready_info.machine_code_ms);

  const Kernel known = isolated().load_cuda(source).kernel();
  known.prepare({32});
  CHECK(known.info().compile_ms == 0);
}

TEST_CASE("kernels that are prepared at once are compiled at once") {
  if (!ready()) return;
  const Session session = isolated();
  const Module module =
      session.load_cuda(fresh_source() + "extern \"C\" __global__ void other(int* x) { x[0] = 1; }\n");
  std::atomic<int> begun{0};
  session.set_progress([&](const Progress& progress) {
    if (progress.stage != ProgressStage::generate || progress.finished) return true;
    ++begun;
    const auto end = std::chrono::steady_clock::now() + 20s;
    while (begun < 2 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(1ms);
    return true;
  });
  const Preparation first = module.kernel("fresh").prepare_async({32});
  const Preparation second = module.kernel("other").prepare_async({32});
  const auto begin = std::chrono::steady_clock::now();
  first.get();
  second.get();
  CHECK(begun == 2);
  CHECK(std::chrono::steady_clock::now() - begin < 20s);  // neither had to end before the other began
  session.set_progress({});
}

TEST_CASE("what cannot be prepared is refused") {
  if (!ready()) return;
  const Session session = isolated();
  const Kernel fresh = session.load_cuda(fresh_source()).kernel();
  CHECK(code_of([&] { fresh.prepare({2048}); }) == ErrorCode::unsupported);
  CHECK(code_of([&] { fresh.prepare({0}); }) == ErrorCode::unsupported);
  CHECK(code_of([&] { fresh.prepare({32}, "int32[:]"); }) == ErrorCode::unsupported);
  const Kernel scale = session.load_python(fresh_python()).kernel();
  std::string text;
  CHECK(code_of([&] { scale.prepare({32}); }, &text) == ErrorCode::usage);
  CHECK(holds(text, "cannot prepare kernel scale: it is compiled for the types of its arguments"));
  CHECK(code_of([&] { scale.prepare({32}, "float32[::1], no_such_type"); }) == ErrorCode::compile);
}

TEST_CASE("kernels are prepared in the background, and errors come with the handle") {
  if (!ready()) return;
  const Session session = isolated();
  const Kernel scale = session.load_python(fresh_python()).kernel();
  const Generations generations(session);
  Preparation good = scale.prepare_async({32}, "float32[::1], float32");
  const Preparation wrong = scale.prepare_async({32}, "float32[::1], no_such_type");
  const Preparation large = scale.prepare_async({2048}, "float32[::1], float32");
  good.get();
  CHECK(good.ready());
  CHECK(good.wait_for(0s));
  CHECK_THROWS_AS(wrong.get(), CompileError);
  CHECK_THROWS_AS(wrong.get(), CompileError);  // each time
  wrong.wait();
  CHECK(code_of([&] { large.get(); }) == ErrorCode::unsupported);
  CHECK(generations.count() == 1);
  const Preparation moved = std::move(good);
  CHECK(moved.ready());
  CHECK(code_of([&] { static_cast<void>(good.ready()); }) == ErrorCode::usage);
}

TEST_CASE("modules are loaded in the background: source text, files, and their errors") {
  if (!ready()) return;
  const Session session = isolated();
  const std::string source = fresh_source();
  const PendingModule good = session.load_async(SourceLanguage::cuda, source);
  const PendingModule python = session.load_async(SourceLanguage::python, fresh_python());
  const PendingModule wrong =
      session.load_async(SourceLanguage::cuda, "int x = missing;", {.file_name = "w.cu"});
  const PendingModule file = session.load_file_async("/nonexistent/k.cu");
  CHECK(run(session, good.get()) == run(session, session.load_cuda(source)));
  CHECK(python.get().kernel_names() == std::vector<std::string>{"scale"});
  const Expected<Module> refused = wrong.try_get();
  REQUIRE_FALSE(refused.has_value());
  CHECK(refused.errors().front().span.file == "w.cu");
  CHECK_THROWS_AS(static_cast<void>(wrong.get()), CompileError);
  CHECK(code_of([&] { static_cast<void>(file.get()); }) == ErrorCode::not_found);
}

TEST_CASE("at most four threads work in the background, and all work is done") {
  if (!ready()) return;
  const Session session = isolated();
  std::vector<PendingModule> pending;
  {
    Hold hold(session);
    for (int i = 0; i < 24; ++i) pending.push_back(session.load_async(SourceLanguage::cuda, fresh_source()));
    hold.wait_for(4);
    CHECK(std::none_of(pending.begin(), pending.end(), [](const auto& each) { return each.ready(); }));
    CHECK_FALSE(pending.back().wait_for(1ms));
    hold.let_go();
    for (const PendingModule& each : pending) each.wait();
    CHECK(hold.most() == 4);
  }
  std::vector<int> results;
  for (const PendingModule& each : pending) results.push_back(run(session, each.get()));
  std::sort(results.begin(), results.end());
  CHECK(std::adjacent_find(results.begin(), results.end()) == results.end());  // 24 different sources
}

TEST_CASE("cancelling ends work that waits at once, and work in progress when NVRTC asks") {
  if (!ready()) return;
  const Session session = isolated();
  Hold hold(session);
  std::vector<PendingModule> running;
  for (int i = 0; i < 4; ++i) running.push_back(session.load_async(SourceLanguage::cuda, fresh_source()));
  hold.wait_for(4);
  const PendingModule waiting =
      session.load_async(SourceLanguage::cuda, fresh_source(), {.file_name = "late.cu"});
  waiting.cancel();
  CHECK(waiting.ready());
  std::string text;
  CHECK(code_of([&] { static_cast<void>(waiting.get()); }, &text) == ErrorCode::cancelled);
  CHECK(text == "cannot load late.cu: it was cancelled by its handle");
  running[0].cancel();
  CHECK_FALSE(running[0].ready());
  hold.let_go();
  CHECK(code_of([&] { static_cast<void>(running[0].get()); }) == ErrorCode::cancelled);
  for (int i = 1; i < 4; ++i) CHECK(run(session, running[static_cast<std::size_t>(i)].get()) > 2000);
}

TEST_CASE("a handle that goes cancels its work, a detached one does not") {
  if (!ready()) return;
  const Session session = isolated();
  const std::string dropped = fresh_source(), detached = fresh_source();
  {
    Hold hold(session);
    std::vector<PendingModule> running;
    for (int i = 0; i < 4; ++i) running.push_back(session.load_async(SourceLanguage::cuda, fresh_source()));
    hold.wait_for(4);
    static_cast<void>(session.load_async(SourceLanguage::cuda, dropped));
    session.load_async(SourceLanguage::cuda, detached).detach();
    const PendingModule last = session.load_async(SourceLanguage::cuda, fresh_source());
    hold.let_go();
    last.wait();
  }
  // Both were queued before the last one, and up to four are compiled at the same time.
  for (int i = 0; i < 5000 && session.compile_stats().nvrtc_runs < 6; ++i) std::this_thread::sleep_for(1ms);
  const CompileStats before = session.compile_stats();
  CHECK(before.nvrtc_runs == 6);
  session.load_cuda(detached);
  CHECK(session.compile_stats().nvrtc_runs == before.nvrtc_runs);
  session.load_cuda(dropped);
  CHECK(session.compile_stats().nvrtc_runs == before.nvrtc_runs + 1);
}

TEST_CASE("a session that is closed stays open for its work") {
  if (!ready()) return;
  std::optional<Session> session = isolated();
  const PendingModule pending = session->load_async(SourceLanguage::cuda, fresh_source());
  session.reset();
  CHECK(pending.get().kernel_names() == std::vector<std::string>{"fresh"});
}

TEST_CASE("a launch while the kernel is being prepared takes its code") {
  if (!ready()) return;
  const Session session = isolated();
  const Module module = session.load_cuda(fresh_source());
  const Generations generations(session);
  const Preparation preparation = module.kernel().prepare_async({32});
  CHECK(run(session, module) > 2000);
  preparation.get();
  CHECK(generations.count() == 1);
}

TEST_CASE("a forked child is told that work in progress is not done there, and can compile anew") {
  if (!ready()) return;
  const Session session = isolated();
  Hold hold(session);
  const PendingModule pending = session.load_async(SourceLanguage::cuda, fresh_source());
  hold.wait_for(1);
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);  // a deadlock ends the child, and the test fails
    int status = 1;
    try {
      static_cast<void>(pending.get());
    } catch (const Error& error) {
      const bool told = error.code() == ErrorCode::driver && holds(error.what(), "this process was forked");
      status = told && !pending.ready() ? 0 : 2;
    }
    // While the parent's thread is inside NVRTC, the library cannot be used in the child. This must be an
    // error and not a deadlock.
    CompileRequest request;
    request.source = fresh_source();
    if (status == 0 && try_compile_source(request).errors().front().code != "process-forked") status = 3;
    if (status == 0 && compile_cache_stats().memory.hits != 0) status = 4;
    pending.cancel();
    ::_exit(status);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
  hold.let_go();
  CHECK(run(session, pending.get()) > 2000);
}
