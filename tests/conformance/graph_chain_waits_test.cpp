// SPDX-License-Identifier: Apache-2.0
// Rows of small kernels, in graphs and on streams: faults, threads, waiting, and what ends meanwhile.
#include <atomic>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "chain_fixture.hpp"

using namespace quern::conformance;

TEST_CASE("a fault ends a row of kernels: those before it have run, none after it") {
  constexpr Word kAll = 100, kBad = 40;
  bool in_graph = false;
  const char* faulty = "store_to";
  CUresult expected = CUDA_ERROR_ILLEGAL_ADDRESS;
  unsigned blocks = 1;
  SUBCASE("in a graph") { in_graph = true; }
  SUBCASE("in a graph, in one of several blocks") {
    in_graph = true;
    blocks = 4;
  }
  SUBCASE("in a graph, by a trap") {
    in_graph = true;
    faulty = "trap_here";
    expected = CUDA_ERROR_LAUNCH_FAILED;
  }
  SUBCASE("on a stream") {}
  SUBCASE("on a stream, by a trap") {
    faulty = "trap_here";
    expected = CUDA_ERROR_LAUNCH_FAILED;
  }
  {
    ChainFixture fixture;
    const Mapped marks(4 * kAll);
    const CUstream on = fixture.stream();
    const CUdeviceptr nowhere = 8;
    const CUfunction bad = fixture.function(faulty);
    if (in_graph) {
      for (Word at = 0; at < kAll; ++at) {
        if (at == kBad)
          fixture.then_in(fixture.graph, bad, blocks, 1, nowhere);
        else
          fixture.then("step", marks.device + 4 * at, at + 1);
      }
      const CUgraphExec exec = fixture.instantiate();
      REQUIRE(CU(cuGraphLaunch)(exec, on) == CUDA_SUCCESS);
      const CUresult again = CU(cuGraphLaunch)(exec, on);  // the fault may be known already
      CHECK((again == CUDA_SUCCESS || again == expected));
      CHECK(cu().cuStreamSynchronize(on) == expected);
      CHECK(CU(cuGraphLaunch)(exec, on) == expected);
    } else {
      for (Word at = 0; at < kAll; ++at) {
        const CUresult launched =
            at == kBad ? fixture.start(on, bad, blocks, 1, nowhere)
                       : fixture.start(on, fixture.step_function, 1, 1, marks.device + 4 * at, at + 1);
        CHECK((launched == CUDA_SUCCESS || (at > kBad && launched == expected)));
      }
      CHECK(cu().cuStreamSynchronize(on) == expected);
    }
    CHECK(cu().cuStreamSynchronize(on) == expected);
    CHECK(cu().cuCtxSynchronize() == expected);
    CHECK(cu().cuStreamQuery(on) == expected);
    CUdeviceptr pointer = 0;
    CHECK(cu().cuMemAlloc_v2(&pointer, 16) == expected);
    CHECK(fixture.start(on, fixture.step_function, 1, 1, marks.device, Word{1}) == expected);
    for (Word at = 0; at < kAll; ++at) {
      CAPTURE(at);
      CHECK(marks[at] == (at < kBad ? at + 1 : 0));
    }
  }
  ChainFixture fresh;
  const CUdeviceptr x = fresh.zeros(1);
  for (Word i = 0; i < 3; ++i) fresh.then("step", x, i);
  fresh.run(fresh.instantiate(), fresh.stream());
  CHECK(fresh.word(x) == (0 * 3 + 1) * 3 + 2);
}

TEST_CASE_FIXTURE(ChainFixture, "a loop's body of small kernels runs as often as its condition says") {
  const CUmodule loop = load(kCountDownModule);
  const CUdeviceptr x = zeros(64), left = zeros(1), counter = zeros(1), snapshots = zeros(8),
                    unused = zeros(1);
  constexpr std::size_t kRuns = 4 + 1 + 3 + 2 + 6;  // of the body, by all launches
  const CUdeviceptr ids = upload(std::vector<std::uint64_t>(2 * kRuns, ~std::uint64_t{0}));
  const CUgraphNode before = then("step", x, Word{1});
  CUgraphNodeParams params{};
  params.type = CU_GRAPH_NODE_TYPE_CONDITIONAL;
  params.conditional.handle = condition(1);
  params.conditional.type = CU_GRAPH_COND_TYPE_WHILE;
  params.conditional.size = 1;
  params.conditional.ctx = context;
  CUgraphNode node = nullptr;
  REQUIRE(CU(cuGraphAddNode)(&node, graph, &before, 1, &params) == CUDA_SUCCESS);
  const CUgraph body = params.conditional.phGraph_out[0];
  then_in(body, "step", 1, 1, x, Word{10});
  then_in(body, "note_grid", 1, 1, counter, ids);
  then_in(body, "step", 2, 32, x, Word{20});
  then_in(body, "note_grid", 1, 1, counter, ids);
  then_in(body, function_of(loop, "count_down"), 1, 1, params.conditional.handle, left);
  last_in(graph, node);
  then("step", x, Word{30});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  Model model{Words(64, 0)};
  Words expected;
  Word first = 1;
  const auto launch_with = [&](Word runs) {
    REQUIRE(cu().cuMemsetD32Async(left, runs, 1, on) == CUDA_SUCCESS);
    replay(exec, on);
    const CUdeviceptr to = snapshots + 4 * expected.size();
    REQUIRE(cu().cuMemcpyDtoDAsync_v2(to, x, 4, on) == CUDA_SUCCESS);
    model.step(first);
    for (Word run = 0; run < runs; ++run) {
      model.step(10);
      model.step(20, 64);
    }
    model.step(30);
    expected.push_back(model.words[0]);
  };
  launch_with(4);
  launch_with(1);
  synchronize(on);
  hold(on, unused);
  launch_with(3);
  set_step(exec, before, x, first = 77);  // while a launch is queued that has not begun its loop
  launch_with(2);
  launch_with(6);
  synchronize(on);
  CHECK(download<Word>(snapshots, expected.size()) == expected);
  CHECK(download<Word>(x, 64) == model.words);
  CHECK(word(counter) == 2 * kRuns);
  const auto found = download<std::uint64_t>(ids, 2 * kRuns);
  if (is_cpu()) CHECK(std::set(found.begin(), found.end()).size() == 2 * kRuns);
}

TEST_CASE_FIXTURE(ChainFixture, "the host sees what a graph writes to memory mapped after its first launch") {
  const CUdeviceptr x = upload<Word>({1}), place = upload<CUdeviceptr>({x});
  then("step", x, Word{5});
  then("step_at", place, Word{1});
  then("step_at", place, Word{2});
  then("step", x, Word{6});
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  run(exec, on);
  Model own{{1}};
  own.steps({5, 1, 2, 6});
  CHECK(word(x) == own.words[0]);
  const auto at = [&](CUdeviceptr pointer) {
    REQUIRE(cu().cuMemcpyHtoDAsync_v2(place, &pointer, 8, on) == CUDA_SUCCESS);
    synchronize(on);
  };

  const Mapped allocated(64);
  at(allocated.device);
  for (Word i = 0; i < 3; ++i) {
    allocated[0] = 1000 + i;
    run(exec, on);
    CHECK(allocated[0] == ((1000 + i) * 3 + 1) * 3 + 2);
    own.steps({5, 6});
  }
  alignas(4096) static std::atomic<Word> mine[2048];
  for (int round = 0; round < 2; ++round) {
    REQUIRE(cu().cuMemHostRegister_v2(mine, sizeof mine, CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS);
    CUdeviceptr device = 0;
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, mine, 0) == CUDA_SUCCESS);
    at(device + 4 * 1500);
    for (Word i = 0; i < 3; ++i) {
      mine[1500] = 2000 + i;
      run(exec, on);
      CHECK(mine[1500] == ((2000 + i) * 3 + 1) * 3 + 2);
      own.steps({5, 6});
    }
    // The same by launches on the stream, with others before and after them.
    mine[1] = 9;
    for (Word i = 0; i < 20; ++i) step(on, i % 2 == 0 ? x : device + 4, i);
    synchronize(on);
    Model registered{{9}};
    for (Word i = 0; i < 20; ++i) (i % 2 == 0 ? own : registered).step(i);
    CHECK(mine[1] == registered.words[0]);
    at(x);
    REQUIRE(cu().cuMemHostUnregister(mine) == CUDA_SUCCESS);
    run(exec, on);
    own.steps({5, 1, 2, 6});
  }
  CHECK(word(x) == own.words[0]);
}

TEST_CASE_FIXTURE(ChainFixture, "threads run rows of kernels on streams of one context at once") {
  constexpr Word kLaunches = 200, kRow = 40;
  struct Part {
    CUstream on = nullptr;
    CUdeviceptr x = 0;
    CUgraphExec exec = nullptr;  // null: launches on the stream
    CUresult failure = CUDA_SUCCESS;
  };
  std::vector<Part> parts(4);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    Part& part = parts[at];
    part.on = stream();
    part.x = zeros(1);
    if (at >= 2) continue;
    // One from nodes, one captured.
    CUgraph its = graph;
    if (at == 0) {
      for (Word i = 0; i < kRow; ++i) then("step", part.x, i);
    } else {
      REQUIRE(CU(cuStreamBeginCapture_v2)(part.on, CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
      for (Word i = 0; i < kRow; ++i) step(part.on, part.x, i);
      REQUIRE(CU(cuStreamEndCapture)(part.on, &its) == CUDA_SUCCESS);
    }
    REQUIRE(CU(cuGraphInstantiateWithFlags)(&part.exec, its, 0) == CUDA_SUCCESS);
  }
  const auto graph_launch = CU(cuGraphLaunch);
  const auto work = [&](Part& part) {
    const auto good = [&](CUresult result) {
      if (result != CUDA_SUCCESS) part.failure = result;
      return result == CUDA_SUCCESS;
    };
    if (!good(cu().cuCtxSetCurrent(context))) return;
    for (Word launch = 0; launch < kLaunches; ++launch) {
      if (part.exec != nullptr && !good(graph_launch(part.exec, part.on))) return;
      for (Word i = 0; part.exec == nullptr && i < kRow; ++i)
        if (!good(start(part.on, step_function, 1, 1, part.x, i))) return;
      if (launch % 16 == 7 && !good(cu().cuStreamSynchronize(part.on))) return;
    }
    good(cu().cuStreamSynchronize(part.on));
  };
  std::vector<std::thread> threads;
  threads.reserve(parts.size());
  for (Part& part : parts) threads.emplace_back(work, std::ref(part));
  for (std::thread& thread : threads) thread.join();
  Model model{Words(1, 0)};
  for (Word launch = 0; launch < kLaunches; ++launch)
    for (Word i = 0; i < kRow; ++i) model.step(i);
  for (std::size_t at = 0; at < parts.size(); ++at) {
    CAPTURE(at);
    CHECK(parts[at].failure == CUDA_SUCCESS);
    CHECK(word(parts[at].x) == model.words[0]);
  }
}

TEST_CASE_FIXTURE(ChainFixture,
                  "events between rows of kernels come while a later kernel waits for the host") {
  const CUdeviceptr x = zeros(1);
  const CUstream on = stream();
  Model model{Words(1, 0)};
  const auto row = [&] {
    for (Word i = 0; i < 100; ++i) {
      step(on, x, i);
      model.step(i);
    }
  };
  for (const char* const waiting : {"spin_volatile", "spin_acquire", "spin_exchange"}) {
    CAPTURE(std::string(waiting));
    const Mapped flag(64);
    const CUfunction spin = function_of(steps, waiting);
    const CUevent first = event(), second = event(CU_EVENT_BLOCKING_SYNC), last_event = event();
    row();
    REQUIRE(cu().cuEventRecord(first, on) == CUDA_SUCCESS);
    row();
    REQUIRE(cu().cuEventRecord(second, on) == CUDA_SUCCESS);
    step(on, x, 5);
    model.step(5);
    REQUIRE(start(on, spin, 1, 1, flag.device) == CUDA_SUCCESS);
    row();
    REQUIRE(cu().cuEventRecord(last_event, on) == CUDA_SUCCESS);
    CHECK(within_20_s([&] { return cu().cuEventQuery(first) == CUDA_SUCCESS; }));
    CHECK(cu().cuEventSynchronize(first) == CUDA_SUCCESS);
    CHECK(cu().cuEventSynchronize(second) == CUDA_SUCCESS);
    CHECK(cu().cuEventQuery(last_event) == CUDA_ERROR_NOT_READY);
    CHECK(cu().cuStreamQuery(on) == CUDA_ERROR_NOT_READY);
    flag[0] = 1;
    CHECK(cu().cuEventSynchronize(last_event) == CUDA_SUCCESS);
    synchronize(on);
    CHECK(word(x) == model.words[0]);
  }
}

TEST_CASE_FIXTURE(ChainFixture, "a graph's events and writes come while its next kernel waits for the host") {
  const CUdeviceptr x = zeros(1);
  const Mapped flag(64), told(64);
  const CUevent first = event(), second = event();
  for (Word i = 0; i < 20; ++i) then("step", x, i);
  then_record(first);
  for (Word i = 0; i < 20; ++i) then("step", x, i);
  then("publish", told.device, Word{3});
  then("spin_volatile", flag.device);
  for (Word i = 0; i < 20; ++i) then("step", x, i);
  then("publish", told.device, Word{4});
  then_record(second);
  const CUgraphExec exec = instantiate();
  const CUstream on = stream();
  Model model{Words(1, 0)};
  for (int launch = 0; launch < 5; ++launch) {
    flag[0] = told[0] = 0;
    replay(exec, on);
    CHECK(within_20_s([&] { return told[0] != 0; }));
    CHECK(told[0] == 3);
    CHECK(cu().cuEventSynchronize(first) == CUDA_SUCCESS);
    CHECK(cu().cuStreamQuery(on) == CUDA_ERROR_NOT_READY);
    flag[0] = 1;
    CHECK(cu().cuEventSynchronize(second) == CUDA_SUCCESS);
    CHECK(told[0] == 4);
    for (int part = 0; part < 3; ++part)
      for (Word i = 0; i < 20; ++i) model.step(i);
  }
  synchronize(on);
  CHECK(word(x) == model.words[0]);
}

namespace {

/// Of `poll`: enough for the host to come meanwhile, about a second. A GPU asks the host over its bus.
Word many_tries() { return is_cpu() ? Word{1} << 28 : Word{1} << 20; }

}  // namespace

TEST_CASE_FIXTURE(ChainFixture, "an event of the context comes while a later kernel asks the host") {
  const CUdeviceptr x = zeros(1), unused = zeros(1), seen = zeros(1);
  const Mapped flag(64);
  const CUstream on = stream();
  const CUfunction poll = function_of(steps, "poll");
  REQUIRE(start(on, poll, 1, 1, flag.device, seen, Word{1}) == CUDA_SUCCESS);  // so that it is there
  synchronize(on);
  const CUevent all = event();
  hold(on, unused);
  for (Word i = 0; i < 10; ++i) step(on, x, i);
  REQUIRE(CU(cuCtxRecordEvent)(context, all) == CUDA_SUCCESS);
  REQUIRE(start(on, poll, 1, 1, flag.device, seen, many_tries()) == CUDA_SUCCESS);
  CHECK(within_20_s([&] { return cu().cuEventQuery(all) == CUDA_SUCCESS; }));
  flag[0] = 7;
  synchronize(on);
  CHECK(word(seen) == 7);
}

TEST_CASE_FIXTURE(ChainFixture, "a thread that waits for the context does not wait for a later kernel") {
  const CUdeviceptr x = zeros(1), unused = zeros(2), seen = zeros(1);
  const Mapped flag(64);
  const CUstream first = stream(), second = stream();
  const CUfunction poll = function_of(steps, "poll");
  REQUIRE(start(second, poll, 1, 1, flag.device, seen, Word{1}) == CUDA_SUCCESS);
  synchronize(second);
  for (int i = 0; i < 4; ++i) hold(first, unused);
  for (int i = 0; i < 2; ++i) hold(second, unused + 4);
  for (Word i = 0; i < 10; ++i) step(second, x, i);
  std::atomic<CUresult> waited{CUDA_ERROR_UNKNOWN};
  std::atomic<bool> begun{false};
  std::thread waiter([&] {
    const CUresult current = cu().cuCtxSetCurrent(context);
    begun = true;
    waited = current == CUDA_SUCCESS ? cu().cuCtxSynchronize() : current;
    flag[0] = 7;
  });
  while (!begun) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(10));  // it waits now
  const CUresult launched = start(second, poll, 1, 1, flag.device, seen, many_tries());
  waiter.join();
  REQUIRE(launched == CUDA_SUCCESS);
  CHECK(waited == CUDA_SUCCESS);
  synchronize(second);
  CHECK(word(seen) == 7);
}

TEST_CASE_FIXTURE(ChainFixture, "what was launched runs though its graph, stream and module are gone") {
  const CUdeviceptr x = zeros(1);
  Model model{Words(1, 0)};
  for (int round = 0; round < 5; ++round) {
    const CUmodule own = load(kSteps);
    const CUfunction kernel = function_of(own, "step");
    const CUstream on = stream();
    REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
    last_graph = nullptr;
    for (Word i = 0; i < 100; ++i) then_in(graph, kernel, 1, 1, x, i);
    const CUgraphExec exec = instantiate();
    CHECK(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    for (int launch = 0; launch < 10; ++launch) {
      replay(exec, on);
      for (Word i = 0; i < 100; ++i) model.step(i);
      for (Word i = 0; i < 10; ++i) {
        REQUIRE(start(on, kernel, 1, 1, x, i) == CUDA_SUCCESS);
        model.step(i);
      }
    }
    CHECK(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
    CHECK(cu().cuStreamDestroy_v2(on) == CUDA_SUCCESS);
    CHECK(cu().cuModuleUnload(own) == CUDA_SUCCESS);
    REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
    CHECK(word(x) == model.words[0]);
  }
}

TEST_CASE("a context with rows of kernels queued is destroyed, and the next one works") {
  for (int round = 0; round < 20; ++round) {
    ChainFixture fixture;
    const CUdeviceptr x = fixture.zeros(2);
    for (Word i = 0; i < 100; ++i) fixture.then("step", x, i);
    const CUgraphExec exec = fixture.instantiate();
    const CUstream on = fixture.stream(), other = fixture.stream();
    fixture.run(exec, on);
    Model model{Words(1, 0)};
    for (Word i = 0; i < 100; ++i) model.step(i);
    CHECK(fixture.word(x) == model.words[0]);
    for (int launch = 0; launch < 20; ++launch) {
      fixture.replay(exec, on);
      for (Word i = 0; i < 30; ++i) fixture.step(other, x + 4, i);
    }
  }
}

TEST_CASE_FIXTURE(ChainFixture, "launches in a row have their own parameters, few and many") {
  // fold<n>(out, n words): out = the words as digits to the base 3
  const auto kernel_of = [](unsigned count) {
    std::string text = ".visible .entry fold" + std::to_string(count) + "(.param .u64 out, .param .b32 w[" +
                       std::to_string(count) + "])\n{ .reg .b32 %r<3>; .reg .b64 %rd; mov.u32 %r1, 0;\n";
    for (unsigned at = 0; at < count; ++at)
      text += "ld.param.u32 %r2, [w+" + std::to_string(4 * at) + "]; mad.lo.u32 %r1, %r1, 3, %r2;\n";
    return text + "ld.param.u64 %rd, [out]; st.u32 [%rd], %r1; ret; }\n";
  };
  std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n";
  std::vector<unsigned> counts{1, 2, 1000};  // 1000: 4008 bytes
  for (unsigned count = 25; count <= 50; ++count) counts.push_back(count);
  for (const unsigned count : counts) text += kernel_of(count);
  const CUmodule folds = load(text);
  constexpr unsigned kRounds = 6;
  const CUdeviceptr out = zeros(kRounds * counts.size());
  const CUstream on = stream();
  Words expected, words(1000);
  for (unsigned round = 0; round < kRounds; ++round)
    for (const unsigned count : counts) {
      const CUfunction fold = function_of(folds, ("fold" + std::to_string(count)).c_str());
      Word folded = 0;
      for (unsigned at = 0; at < count; ++at)
        folded = folded * 3 + (words[at] = (round + 1) * 1'000'003 * (at + count));
      CUdeviceptr to = out + 4 * expected.size();
      void* parameters[] = {&to, words.data()};
      REQUIRE(cu().cuLaunchKernel(fold, 1, 1, 1, 1, 1, 1, 0, on, parameters, nullptr) == CUDA_SUCCESS);
      expected.push_back(folded);
      std::fill(words.begin(), words.end(), 99);  // the launch has its copy
    }
  synchronize(on);
  CHECK(download<Word>(out, expected.size()) == expected);
}
