// SPDX-License-Identifier: Apache-2.0
// Random programs (kernels, copies, fills and host functions on several streams, ordered by events) are run
// once on streams, once captured and replayed, and once as a graph that is built node by node. A model of
// their memory says what each must leave.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

constexpr std::size_t kWords = 64;
constexpr std::size_t kDeviceBuffers = 4;
constexpr std::size_t kBuffers = kDeviceBuffers + 2;  // the last two are the host's
constexpr std::size_t kStreams = 3;

using Buffer = std::array<std::uint32_t, kWords>;
using Memory = std::array<Buffer, kBuffers>;

enum class Kind { count, fill_kernel, fill_words, fill_bytes, copy, host };

struct Operation {
  Kind kind{};
  std::size_t stream = 0;
  std::size_t target = 0;
  std::size_t source = 0;  ///< of copies; else the target
  std::size_t first = 0;   ///< words [first, first + words) of the target
  std::size_t words = 0;
  std::uint32_t value = 0;
};

bool is_host(std::size_t buffer) { return buffer >= kDeviceBuffers; }

std::vector<Operation> random_program(unsigned seed) {
  std::mt19937 random(seed);
  const auto below = [&](std::size_t end) { return random() % end; };
  std::vector<Operation> program(10 + below(60));
  for (Operation& each : program) {
    each.kind = static_cast<Kind>(below(6));
    each.stream = below(kStreams);
    each.target = each.kind == Kind::copy   ? below(kBuffers)
                  : each.kind == Kind::host ? kDeviceBuffers + below(2)
                                            : below(kDeviceBuffers);
    each.source = each.kind == Kind::copy ? below(kBuffers) : each.target;
    if (each.kind == Kind::copy && each.source == each.target) each.source = (each.target + 1) % kBuffers;
    each.first = below(kWords);
    each.words = 1 + below(kWords - each.first);
    each.value = static_cast<std::uint32_t>(below(1000));
  }
  return program;
}

/// What a host function does; no two of them commute.
void step(std::uint32_t* words) {
  for (std::size_t i = 0; i < kWords; ++i) words[i] = words[i] * 3 + 1;
}

void apply(const std::vector<Operation>& program, Memory& memory) {
  for (const Operation& each : program) {
    Buffer& target = memory[each.target];
    const auto begin = target.begin() + static_cast<std::ptrdiff_t>(each.first);
    switch (each.kind) {
      case Kind::count:
        *begin += each.value % 64 + 1;
        break;
      case Kind::fill_kernel:
      case Kind::fill_words:
        std::fill_n(begin, each.words, each.value);
        break;
      case Kind::fill_bytes:
        std::fill_n(begin, each.words, (each.value & 0xff) * 0x01010101u);
        break;
      case Kind::copy:
        std::copy_n(memory[each.source].begin() + static_cast<std::ptrdiff_t>(each.first), each.words, begin);
        break;
      case Kind::host:
        step(target.data());
        break;
    }
  }
}

struct ReplayFixture : Fixture {
  ReplayFixture() {
    for (std::size_t i = 0; i < kBuffers; ++i) {
      if (!is_host(i)) {
        buffers[i] = allocate(sizeof(Buffer));
        continue;
      }
      void* memory = nullptr;
      REQUIRE(cu().cuMemHostAlloc(&memory, sizeof(Buffer), CU_MEMHOSTALLOC_DEVICEMAP) == CUDA_SUCCESS);
      REQUIRE(cu().cuMemHostGetDevicePointer_v2(&buffers[i], memory, 0) == CUDA_SUCCESS);
      host[i] = static_cast<std::uint32_t*>(memory);
    }
    for (CUstream& each : streams) each = stream();
  }

  void reset() const {
    for (std::size_t i = 0; i < kBuffers; ++i) {
      Buffer start;
      start.fill(static_cast<std::uint32_t>(i + 1));
      REQUIRE(CU(cuMemcpy)(buffers[i], reinterpret_cast<CUdeviceptr>(start.data()), sizeof start) ==
              CUDA_SUCCESS);
    }
    REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  }
  static Memory start() {
    Memory memory;
    for (std::size_t i = 0; i < kBuffers; ++i) memory[i].fill(static_cast<std::uint32_t>(i + 1));
    return memory;
  }
  Memory contents() const {
    Memory memory;
    REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
    for (std::size_t i = 0; i < kBuffers; ++i)
      REQUIRE(CU(cuMemcpy)(reinterpret_cast<CUdeviceptr>(memory[i].data()), buffers[i], sizeof(Buffer)) ==
              CUDA_SUCCESS);
    return memory;
  }

  CUdeviceptr at(std::size_t buffer, std::size_t word) const { return buffers[buffer] + 4 * word; }

  void queue(const Operation& each) const {
    const CUstream on = streams[each.stream];
    const CUdeviceptr target = at(each.target, each.first);
    const auto words = static_cast<unsigned>(each.words);
    switch (each.kind) {
      case Kind::count:
        REQUIRE(launch("count", 1, each.value % 64 + 1, on, target) == CUDA_SUCCESS);
        break;
      case Kind::fill_kernel:
        REQUIRE(launch("fill", 2, 32, on, target, words, each.value) == CUDA_SUCCESS);
        break;
      case Kind::fill_words:
        REQUIRE(cu().cuMemsetD32Async(target, each.value, words, on) == CUDA_SUCCESS);
        break;
      case Kind::fill_bytes:
        REQUIRE(cu().cuMemsetD8Async(target, static_cast<unsigned char>(each.value), 4 * words, on) ==
                CUDA_SUCCESS);
        break;
      case Kind::copy:
        REQUIRE(CU(cuMemcpyAsync)(target, at(each.source, each.first), 4 * words, on) == CUDA_SUCCESS);
        break;
      case Kind::host:
        REQUIRE(cu().cuLaunchHostFunc(
                    on, [](void* user) { step(static_cast<std::uint32_t*>(user)); }, host[each.target]) ==
                CUDA_SUCCESS);
        break;
    }
  }

  /// Queues the program; an operation waits for the last ones on its buffers by events.
  void queue(const std::vector<Operation>& program, bool fork) {
    if (fork) {
      const CUevent begun = mark(0);
      for (std::size_t s = 1; s < kStreams; ++s)
        REQUIRE(cu().cuStreamWaitEvent(streams[s], begun, 0) == CUDA_SUCCESS);
    }
    std::array<CUevent, kBuffers> last{};
    std::array<std::size_t, kBuffers> last_stream{};
    for (const Operation& each : program) {
      for (const std::size_t buffer : {each.target, each.source})
        if (last[buffer] != nullptr && last_stream[buffer] != each.stream)
          REQUIRE(cu().cuStreamWaitEvent(streams[each.stream], last[buffer], 0) == CUDA_SUCCESS);
      queue(each);
      const CUevent done = mark(each.stream);
      for (const std::size_t buffer : {each.target, each.source}) {
        last[buffer] = done;
        last_stream[buffer] = each.stream;
      }
    }
    for (std::size_t s = 1; s < kStreams; ++s)
      REQUIRE(cu().cuStreamWaitEvent(streams[0], mark(s), 0) == CUDA_SUCCESS);
  }
  CUevent mark(std::size_t on) {
    events.push_back(event(CU_EVENT_DISABLE_TIMING));
    REQUIRE(cu().cuEventRecord(events.back(), streams[on]) == CUDA_SUCCESS);
    return events.back();
  }
  void forget_events() {
    for (const CUevent each : events) REQUIRE(cu().cuEventDestroy_v2(each) == CUDA_SUCCESS);
    events.clear();
  }

  CUgraph capture(const std::vector<Operation>& program) {
    REQUIRE(CU(cuStreamBeginCapture_v2)(streams[0], CU_STREAM_CAPTURE_MODE_RELAXED) == CUDA_SUCCESS);
    queue(program, true);
    CUgraph graph = nullptr;
    REQUIRE(CU(cuStreamEndCapture)(streams[0], &graph) == CUDA_SUCCESS);
    return graph;
  }

  CUgraphNode add(CUgraph graph, const Operation& each, const std::vector<CUgraphNode>& after) const {
    CUdeviceptr target = at(each.target, each.first);
    auto words = static_cast<unsigned>(each.words);
    unsigned value = each.value;
    CUgraphNode node = nullptr;
    const auto kernel = [&](const char* name, unsigned grid, unsigned block, void** parameters) {
      CUDA_KERNEL_NODE_PARAMS params{};
      params.func = function(name);
      params.gridDimX = grid;
      params.blockDimX = block;
      params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
      params.kernelParams = parameters;
      REQUIRE(CU(cuGraphAddKernelNode_v2)(&node, graph, after.data(), after.size(), &params) == CUDA_SUCCESS);
    };
    const auto fill = [&](unsigned element, std::size_t width) {
      const CUDA_MEMSET_NODE_PARAMS_v1 params{target, 0, value, element, width, 1};
      REQUIRE(CU(cuGraphAddMemsetNode)(&node, graph, after.data(), after.size(), &params, context) ==
              CUDA_SUCCESS);
    };
    void* counted[] = {&target};
    void* filled[] = {&target, &words, &value};
    CUDA_MEMCPY3D box{};
    CUDA_HOST_NODE_PARAMS_v1 called{[](void* user) { step(static_cast<std::uint32_t*>(user)); },
                                    host[each.target]};
    switch (each.kind) {
      case Kind::count:
        kernel("count", 1, value % 64 + 1, counted);
        break;
      case Kind::fill_kernel:
        kernel("fill", 2, 32, filled);
        break;
      case Kind::fill_words:
        fill(4, words);
        break;
      case Kind::fill_bytes:
        value &= 0xff;
        fill(1, 4 * std::size_t{words});
        break;
      case Kind::copy:
        box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_UNIFIED;
        box.srcDevice = at(each.source, each.first);
        box.dstDevice = target;
        box.WidthInBytes = 4 * std::size_t{words};
        box.Height = box.Depth = 1;
        REQUIRE(CU(cuGraphAddMemcpyNode)(&node, graph, after.data(), after.size(), &box, context) ==
                CUDA_SUCCESS);
        break;
      case Kind::host:
        REQUIRE(CU(cuGraphAddHostNode)(&node, graph, after.data(), after.size(), &called) == CUDA_SUCCESS);
        break;
    }
    return node;
  }

  CUgraph build(const std::vector<Operation>& program) const {
    CUgraph graph = nullptr;
    REQUIRE(CU(cuGraphCreate)(&graph, 0) == CUDA_SUCCESS);
    std::array<CUgraphNode, kBuffers> last{};
    for (const Operation& each : program) {
      std::set<CUgraphNode> after{last[each.target], last[each.source]};
      after.erase(nullptr);
      last[each.target] = last[each.source] = add(graph, each, {after.begin(), after.end()});
    }
    return graph;
  }

  void replay(CUgraph graph, int times) const {
    CUgraphExec exec = nullptr;
    REQUIRE(CU(cuGraphInstantiateWithFlags)(&exec, graph, 0) == CUDA_SUCCESS);
    REQUIRE(CU(cuGraphDestroy)(graph) == CUDA_SUCCESS);
    for (int i = 0; i < times; ++i)
      REQUIRE(CU(cuGraphLaunch)(exec, streams[static_cast<std::size_t>(i) % kStreams]) == CUDA_SUCCESS);
    REQUIRE(CU(cuGraphExecDestroy)(exec) == CUDA_SUCCESS);
  }

  std::array<CUdeviceptr, kBuffers> buffers{};
  std::array<std::uint32_t*, kBuffers> host{};
  std::array<CUstream, kStreams> streams{};
  std::vector<CUevent> events;
};

}  // namespace

TEST_CASE_FIXTURE(ReplayFixture, "a program leaves the same on streams, captured, and as a graph") {
  for (unsigned seed = 0; seed < 60; ++seed) {
    CAPTURE(seed);
    const std::vector<Operation> program = random_program(seed);
    constexpr int kTimes = 3;
    Memory once = start(), often = start();
    apply(program, once);
    for (int i = 0; i < kTimes; ++i) apply(program, often);
    reset();
    queue(program, false);
    CHECK(contents() == once);
    forget_events();
    reset();
    replay(capture(program), kTimes);
    CHECK(contents() == often);
    forget_events();
    reset();
    replay(build(program), kTimes);
    CHECK(contents() == often);
  }
}
