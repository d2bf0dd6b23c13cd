// SPDX-License-Identifier: Apache-2.0
// All sessions of a process compile with one compiler.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <atomic>
#include <string>
#include <thread>
#include <vector>

using namespace quern;

namespace {

bool ready() {
  static const bool found = [] { return Session::try_open({"cpu"}).has_value() && doctor().ready; }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

/// A source that this process has not compiled.
std::string fresh_source() {
  static std::atomic<int> count{0};
  return "extern \"C\" __global__ void fresh(int* x) { x[threadIdx.x] += " + std::to_string(++count) + "; }";
}

int run(const Module& module, const Session& session) {
  const DeviceArray<int> x = session.to_device(std::vector<int>(32, 0));
  module.kernel("fresh")({.grid = 1, .block = 32})(x);
  return x.copy_to_host()[31];
}

}  // namespace

TEST_CASE("two sessions that load one source compile it once, and each counts its own requests") {
  if (!ready()) return;
  const std::string source = fresh_source();
  const Session one("cpu"), other({.device = "cpu", .isolated = true});
  const int first = run(one.load_cuda(source), one);
  CHECK(run(other.load_cuda(source), other) == first);
  CHECK(one.compile_stats().nvrtc_runs == 1);
  CHECK(one.compile_stats().cache_hits == 0);
  CHECK(other.compile_stats().nvrtc_runs == 0);
  CHECK(other.compile_stats().cache_hits == 1);
}

TEST_CASE("eight threads with a session each compile one source once") {
  if (!ready()) return;
  const std::string source = fresh_source();
  std::vector<std::thread> threads;
  std::vector<CompileStats> stats(8);
  std::vector<std::string> ptx(8);
  for (std::size_t i = 0; i < 8; ++i)
    threads.emplace_back([&, i] {
      const Session session("cpu");
      ptx[i] = session.load_cuda(source).ptx();
      stats[i] = session.compile_stats();
    });
  for (std::thread& thread : threads) thread.join();
  std::uint64_t runs = 0, hits = 0;
  for (std::size_t i = 0; i < 8; ++i) {
    CHECK(ptx[i] == ptx[0]);
    runs += stats[i].nvrtc_runs;
    hits += stats[i].cache_hits;
  }
  CHECK(runs == 1);
  CHECK(hits == 7);
}

TEST_CASE("a source stays compiled when the session that compiled it has been closed") {
  if (!ready()) return;
  const std::string source = fresh_source();
  CHECK(Session("cpu").load_cuda(source).compile_ms() > 0);
  CHECK(Session("cpu").load_cuda(source).compile_ms() == 0);
}

TEST_CASE("a session that cancels a compilation does not cancel another one's of the same source") {
  if (!ready()) return;
  const std::string source = fresh_source();
  const Session cancels({.device = "cpu", .isolated = true}), waits({.device = "cpu", .isolated = true});
  std::atomic<bool> begun{false};
  std::atomic<int> signs{0};
  cancels.set_progress([&](const Progress& progress) {
    begun = begun || progress.stage == ProgressStage::compile;
    // Held until the other session has requested the same source.
    for (int i = 0; i < 200 && signs == 0; ++i) std::this_thread::sleep_for(std::chrono::milliseconds(1));
    return progress.done < 2;
  });
  std::thread waiting([&] {
    while (!begun) std::this_thread::yield();
    signs = 1;
    CHECK(waits.try_load_cuda(source).has_value());
  });
  CHECK_FALSE(cancels.try_load_cuda(source).has_value());
  waiting.join();
  cancels.set_progress({});
}

TEST_CASE("the process's cache is bounded for all sessions, counted, and cleared") {
  if (!ready()) return;
  const std::string source = fresh_source();
  const Session one("cpu");
  const CompileCacheStats before = compile_cache_stats();
  one.load_cuda(source);
  one.load_cuda(source);
  const CompileCacheStats after = compile_cache_stats();
  CHECK(after.memory.misses == before.memory.misses + 1);
  CHECK(after.memory.hits == before.memory.hits + 1);
  CHECK(after.memory.entry_count == before.memory.entry_count + 1);
  CHECK(after.memory.size_bytes > before.memory.size_bytes);
  CHECK(after.memory.max_bytes == std::uint64_t{256} << 20);
  CHECK(after.compiles.nvrtc_runs == before.compiles.nvrtc_runs + 1);
  clear_compile_cache();
  CHECK(compile_cache_stats().memory.entry_count == 0);
  one.load_cuda(source);
  CHECK(one.compile_stats().nvrtc_runs == 2);
  const Session bounds({.device = "cpu", .compile_cache_bytes = 0});
  CHECK(compile_cache_stats().memory.entry_count == 0);
  CHECK(compile_cache_stats().memory.evictions == after.memory.evictions + 1);
  one.load_cuda(source);
  CHECK(one.compile_stats().nvrtc_runs == 3);
  set_compile_cache_bytes(std::uint64_t{256} << 20);
  one.load_cuda(source);
  bounds.load_cuda(source);
  CHECK(one.compile_stats().nvrtc_runs == 4);
  CHECK(bounds.compile_stats().nvrtc_runs == 0);
}
