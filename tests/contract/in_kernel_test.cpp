// SPDX-License-Identifier: Apache-2.0
// Section D: memory and barriers inside kernels, in Kernel Python and, where it says so, in CUDA C++ too.
#include "suite.hpp"

using namespace quern;
using namespace quern::contract;

namespace {

constexpr const char* kImports =
    "import numpy as np\nfrom numba import cuda, roc, float32, float64, int32, int64\n";

Module python(const std::string& text) { return shared().load_python(kImports + text); }

std::vector<std::int32_t> run(const Module& module, std::string_view name, std::size_t count,
                              LaunchConfig config = {}) {
  const auto out = shared().to_device(std::vector<std::int32_t>(count));
  if (config.block == Dim3(1)) config.block = static_cast<std::uint32_t>(count);
  module.kernel(name)(config)(out);
  return out.copy_to_host();
}

std::vector<std::int32_t> numbers(std::initializer_list<std::int32_t> list) { return list; }

}  // namespace

TEST_CASE("D1: shared.array is the block's, of one or more dimensions; a shape of 0 is sized by the launch") {
  const Module module = python(R"(
@cuda.jit
def lines(out):
    s = cuda.shared.array(8, int32)
    t = cuda.threadIdx.x
    s[t] = 10 * t + cuda.blockIdx.x
    cuda.syncthreads()
    out[cuda.grid(1)] = s[7 - t]

@cuda.jit
def square(out):
    s = cuda.shared.array((2, 4), dtype=int32)
    t = cuda.threadIdx.x
    s[t // 4, t % 4] = t
    cuda.syncthreads()
    out[t] = s[t % 2, t // 2]

@cuda.jit
def dynamic(out):
    s = cuda.shared.array(0, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    out[t] = s[cuda.blockDim.x - 1 - t]
)");
  const auto two_blocks = shared().to_device(std::vector<std::int32_t>(16));
  module.kernel("lines")({.grid = 2, .block = 8})(two_blocks);
  CHECK(two_blocks.copy_to_host() == numbers({70, 60, 50, 40, 30, 20, 10, 0, 71, 61, 51, 41, 31, 21, 11, 1}));
  CHECK(run(module, "square", 8) == numbers({0, 4, 1, 5, 2, 6, 3, 7}));
  CHECK(run(module, "dynamic", 4, {.shared_bytes = 16}) == numbers({3, 2, 1, 0}));
  CHECK(module.kernel("square").specialise("(int32[::1],)").info().shared_bytes >= 8 * sizeof(std::int32_t));
  CHECK(holds(
      message([] {
        run(python("@cuda.jit\ndef k(out):\n    s = cuda.shared.array(out.size, int32)\n    out[0] = s[0]\n"),
            "k", 4);
      }),
      "shape"));
  const Module cuda = shared().load_cuda(R"(
#include <quern/device.cuh>
extern "C" __global__ void square(quern::array<int, 1> out) {
  auto s = quern::shared::array<int, 2, 4>();
  int t = threadIdx.x;
  s(t / 4, t % 4) = t;
  quern::syncthreads();
  out[t] = s(t % 2, t / 2);
})");
  CHECK(run(cuda, "square", 8) == numbers({0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST_CASE("D2: syncthreads is the block's barrier; _count, _and and _or tell what all its threads said") {
  const Module module = python(R"(
@cuda.jit
def votes(out):
    t = cuda.threadIdx.x
    count = cuda.syncthreads_count(int32(t % 3 == 0))
    every = cuda.syncthreads_and(int32(t < 64))
    not_every = cuda.syncthreads_and(int32(t < 63))
    some = cuda.syncthreads_or(int32(t == 40))
    none = cuda.syncthreads_or(int32(t > 63))
    if t == 5:
        out[0] = count
        out[1] = 1 if every else 0
        out[2] = 1 if not_every else 0
        out[3] = 1 if some else 0
        out[4] = 1 if none else 0

@cuda.jit
def rounds(out):
    s = cuda.shared.array(64, int32)
    t = cuda.threadIdx.x
    s[t] = t
    cuda.syncthreads()
    for step in range(64):
        value = s[(t + 1) % 64]
        cuda.syncthreads()
        s[t] = value
        cuda.syncthreads()
    out[t] = s[t] - t
)");
  const auto out = shared().to_device(std::vector<std::int32_t>(5, -1));
  module.kernel("votes")({.grid = 1, .block = 64})(out);
  CHECK(out.copy_to_host() == numbers({22, 1, 0, 1, 0}));
  CHECK(run(module, "rounds", 64) == std::vector<std::int32_t>(64, 0));
}

TEST_CASE("D3: local.array is the thread's own") {
  const Module module = python(R"(
@cuda.jit
def own(out):
    mine = cuda.local.array((2, 3), int32)
    t = cuda.threadIdx.x
    for k in range(6):
        mine[k // 3, k % 3] = t * k
    cuda.syncthreads()
    total = 0
    for row in mine:
        for value in row:
            total += value
    out[t] = total
)");
  const std::vector<std::int32_t> sums = run(module, "own", 64);
  for (std::int32_t t = 0; t < 64; ++t) CHECK(sums[static_cast<std::size_t>(t)] == 15 * t);
}

TEST_CASE("D4: const.array_like holds a host array in constant memory; more than 64 KiB is a clear error") {
  const std::string text = R"(
TABLE = np.array([[1, 2, 3], [4, 5, 6]], dtype=np.int32)

@cuda.jit
def look(out):
    table = cuda.const.array_like(TABLE)
    t = cuda.threadIdx.x
    out[t] = table[t // table.shape[1], t % table.shape[1]] * table.shape[0]
)";
  const Module module = python(text);
  CHECK(run(module, "look", 6) == numbers({2, 4, 6, 8, 10, 12}));
  CHECK(module.kernel("look").specialise("(int32[::1],)").info().ptx.find(".const") != std::string::npos);
  const std::vector<std::int32_t> host = {9, 8, 7, 6, 5, 4};
  CHECK(run(module.bind("TABLE", NDArray::of(host, {3, 2})), "look", 6) == numbers({27, 24, 21, 18, 15, 12}));
  CHECK(run(module, "look", 6) == numbers({2, 4, 6, 8, 10, 12}));  // the file's own is as it was
  const NDArray large({20000}, Dtype::int32);
  const std::string one = "@cuda.jit\ndef k(out):\n    out[0] = cuda.const.array_like(HOSTS)[0]\n";
  CHECK(holds(message([&] { run(python(one).bind("HOSTS", large), "k", 1); }), "65536"));
}

TEST_CASE(
    "D5: ROC's shared arrays, barriers with fences, wave barrier and places are those of the same device") {
  const Module module = python(R"(
@roc.jit
def turn(out):
    part = roc.shared.array(shape=32, dtype=int32)
    here = roc.get_local_id(0)
    at = roc.get_global_id(0)
    part[here] = at
    roc.barrier(roc.CLK_LOCAL_MEM_FENCE)
    out[at] = part[roc.get_local_size(0) - 1 - here]

@roc.jit
def fences(out):
    at = roc.get_global_id(0)
    out[at] = roc.get_group_id(0) * 1000 + roc.get_num_groups(0) * 100 + roc.get_work_dim()
    roc.barrier(roc.CLK_GLOBAL_MEM_FENCE)
    group = roc.get_group_id(0) * roc.get_local_size(0)
    value = out[group + (roc.get_local_id(0) + 1) % roc.get_local_size(0)]
    roc.barrier()
    out[at] = value

@roc.jit
def waves(out):
    part = roc.shared.array(64, int32)
    here = roc.get_local_id(0)
    part[here] = here
    roc.wavebarrier()
    value = part[here ^ 31]
    roc.mem_fence(roc.CLK_LOCAL_MEM_FENCE)
    out[here] = value + roc.get_global_size(0)
)");
  const auto out = shared().to_device(std::vector<std::int32_t>(64));
  module.kernel("turn")({.grid = 2, .block = 32})(out);
  std::vector<std::int32_t> turned = out.copy_to_host();
  for (std::int32_t i = 0; i < 64; ++i)
    CHECK(turned[static_cast<std::size_t>(i)] == i / 32 * 32 + 31 - i % 32);
  module.kernel("fences")({.grid = 2, .block = 32})(out);
  turned = out.copy_to_host();
  CHECK(turned[0] == 201);
  CHECK(turned[63] == 1201);
  module.kernel("waves")({.grid = 1, .block = 64})(out);
  turned = out.copy_to_host();
  for (std::int32_t i = 0; i < 64; ++i)
    CHECK(turned[static_cast<std::size_t>(i)] == (i ^ 31) + 64);  // 32 lanes a wave
  CHECK(module.kernel("turn").specialise("(int32[::1],)").info().ptx.find("bar") != std::string::npos);
}
