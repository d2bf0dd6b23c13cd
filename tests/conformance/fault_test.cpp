// SPDX-License-Identifier: Apache-2.0
// A fault of a kernel ends its context, nothing else.
#include <cstdlib>

#include "kernels.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

/// The fault is seen at the synchronisation and stays; afterwards a fresh context works.
template <class... Args>
void check_fault(CUresult expected, const char* kernel, unsigned grid, unsigned block, Args... args) {
  {
    Fixture fixture;
    const CUfunction empty = fixture.function("empty");
    REQUIRE(fixture.launch(kernel, grid, block, nullptr, args...) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == expected);
    CHECK(cu().cuCtxSynchronize() == expected);
    CUdeviceptr pointer = 0;
    CHECK(cu().cuMemAlloc_v2(&pointer, 16) == expected);
    CHECK(cu().cuLaunchKernel(empty, 1, 1, 1, 1, 1, 1, 0, nullptr, nullptr, nullptr) == expected);
  }
  Fixture fresh;
  CHECK(fresh.launch("empty", 1, 32, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE("a trap is LAUNCH_FAILED") { check_fault(CUDA_ERROR_LAUNCH_FAILED, "trap_here", 100, 64); }

TEST_CASE("a trap ends blocks that wait for the one that trapped") {
  Fixture fixture;
  CUmodule waiting = nullptr;
  CUfunction abandoned = nullptr;
  REQUIRE(cu().cuModuleLoadData(&waiting, kWaitingModule) == CUDA_SUCCESS);
  REQUIRE(cu().cuModuleGetFunction(&abandoned, waiting, "abandoned") == CUDA_SUCCESS);
  CUdeviceptr words = fixture.allocate(4);
  REQUIRE(cu().cuMemsetD32_v2(words, 0, 1) == CUDA_SUCCESS);
  void* parameters[] = {&words};
  REQUIRE(cu().cuLaunchKernel(abandoned, 8, 1, 1, 96, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
}

TEST_CASE("a call through a pointer to nothing is an invalid program counter") {
  check_fault(CUDA_ERROR_INVALID_PC, "call_pointer", 1, 32, std::uint32_t{1});
  Fixture fixture;
  CHECK(fixture.launch("call_pointer", 1, 32, nullptr, std::uint32_t{0}) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

TEST_CASE("a store to null is an illegal address") {
  check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, "store_to", 1, 1, CUdeviceptr{0});
}

TEST_CASE("a store to host memory is an illegal address and leaves it alone") {
  if (!is_cpu()) return;  // with pageable memory access a GPU may reach it
  std::uint32_t mine = 99;
  check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, "store_to", 4, 32, reinterpret_cast<CUdeviceptr>(&mine));
  CHECK(mine == 99);
}

TEST_CASE("stores far outside are illegal addresses") {
  for (const CUdeviceptr address : {CUdeviceptr{0x123456789000}, ~CUdeviceptr{4095}, CUdeviceptr{1} << 47}) {
    CAPTURE(address);
    check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, "store_to", 1, 32, address);
  }
}

TEST_CASE("an access whose address is no multiple of its size is a misaligned address") {
  for (const char* const kernel : {"at_uniform", "at_lanes", "at_loaded", "at_gathered", "at_vector",
                                   "at_atomic", "at_shared", "at_local", "at_rounds"})
    for (const unsigned block : {7u, 64u})
      for (const std::uint64_t offset : {8u, 16u, 1u, 4u}) {
        CAPTURE(std::string(kernel));
        CAPTURE(block);
        CAPTURE(offset);
        Fixture fixture;
        const CUdeviceptr base = fixture.upload(std::vector<std::uint64_t>(128));
        const CUresult expected = offset % 8 == 0 ? CUDA_SUCCESS : CUDA_ERROR_MISALIGNED_ADDRESS;
        REQUIRE(fixture.launch(kernel, 2, block, nullptr, base, offset) == CUDA_SUCCESS);
        CHECK(cu().cuCtxSynchronize() == expected);
        CHECK(cu().cuCtxSynchronize() == expected);
      }
}

TEST_CASE("a kernel's pointer that is misaligned is as good as its accesses") {
  Fixture fixture;
  const CUdeviceptr base = fixture.allocate(1024);
  const std::uint64_t offset = 8;
  // 8 bytes from 4 on are not, 8 bytes from 4 + 4 are.
  REQUIRE(fixture.launch("at_vector", 1, 32, nullptr, base + 4, offset - 4) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(fixture.launch("at_vector", 1, 32, nullptr, base + 4, offset) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_MISALIGNED_ADDRESS);
}

TEST_CASE("the displacement of an access counts for its alignment") {
  for (const std::uint64_t offset : {0u, 4u, 8u, 12u}) {
    CAPTURE(offset);
    Fixture fixture;
    const CUdeviceptr base = fixture.allocate(1024);
    REQUIRE(fixture.launch("at_displacement", 1, 32, nullptr, base + offset) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == (offset % 8 == 4 ? CUDA_SUCCESS : CUDA_ERROR_MISALIGNED_ADDRESS));
  }
}

TEST_CASE("one thread whose address is misaligned is enough") {
  SUBCASE("where every second one's is") {
    for (const unsigned block : {1u, 2u, 64u})
      for (const std::uint64_t offset : {8u, 4u}) {
        CAPTURE(block);
        CAPTURE(offset);
        Fixture fixture;
        const CUdeviceptr base = fixture.allocate(1024);
        REQUIRE(fixture.launch("at_half_steps", 1, block, nullptr, base, offset) == CUDA_SUCCESS);
        CHECK(cu().cuCtxSynchronize() ==
              (block == 1 && offset == 8 ? CUDA_SUCCESS : CUDA_ERROR_MISALIGNED_ADDRESS));
      }
  }
  SUBCASE("where only memory tells") {
    for (const std::uint32_t last : {62u, 61u}) {
      CAPTURE(last);
      Fixture fixture;
      std::vector<std::uint32_t> indices(32);
      for (std::uint32_t i = 0; i < 31; ++i) indices[i] = 2 * i;
      indices[31] = last;
      const CUdeviceptr base = fixture.upload(indices);
      const CUdeviceptr target = fixture.allocate(1024);
      REQUIRE(fixture.launch("at_indices", 1, 32, nullptr, base, std::uint64_t{target - base}) ==
              CUDA_SUCCESS);
      CHECK(cu().cuCtxSynchronize() == (last % 2 == 0 ? CUDA_SUCCESS : CUDA_ERROR_MISALIGNED_ADDRESS));
    }
  }
}

TEST_CASE("what lanes that do not run would access need not be aligned, and parameters neither") {
  Fixture fixture;
  const CUdeviceptr base = fixture.allocate(1024);
  REQUIRE(fixture.launch("at_idle_lanes", 1, 64, nullptr, base, std::uint64_t{0}) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  struct __attribute__((packed)) Packed {
    char first;
    std::uint64_t word;
  } packed{'x', 1234567890123};
  CUdeviceptr pointer = base;
  void* parameters[] = {&pointer, &packed};
  REQUIRE(cu().cuLaunchKernel(fixture.function("at_packed"), 1, 1, 1, 32, 1, 1, 0, nullptr, parameters,
                              nullptr) == CUDA_SUCCESS);
  CHECK(fixture.download<std::uint64_t>(base, 1)[0] == 1234567890123);
}

TEST_CASE("the text of a fault says which threads met it") {
  if (!is_cpu()) return;
  const auto text_of = [](CUresult error) {
    const char* text = nullptr;
    REQUIRE(cu().cuGetErrorString(error, &text) == CUDA_SUCCESS);
    return std::string(text);
  };
  const auto holds = [](const std::string& text, const char* part) {
    INFO(text);
    return text.find(part) != std::string::npos;
  };
  Fixture fixture;
  const CUdeviceptr base = fixture.allocate(1024);
  CHECK(text_of(CUDA_ERROR_MISALIGNED_ADDRESS).find("block") == std::string::npos);
  SUBCASE("an address") {
    REQUIRE(fixture.launch("at_uniform", 1, 32, nullptr, base, std::uint64_t{1}) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_MISALIGNED_ADDRESS);
    CHECK(text_of(CUDA_ERROR_ILLEGAL_ADDRESS).find("block") == std::string::npos);
  }
  SUBCASE("an address that only the second warp of the third block has") {
    REQUIRE(fixture.launch("at_one_thread", 5, 48, nullptr, base, 2u, 40u) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(holds(text_of(CUDA_ERROR_ILLEGAL_ADDRESS), "in block (2,0,0)"));
  }
  SUBCASE("a trap knows its thread and its line") {
    REQUIRE(fixture.launch("trap_of_one", 3, 32, nullptr, 1u, 7u) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(holds(text_of(CUDA_ERROR_LAUNCH_FAILED),
                "in block (1,0,0), thread (7,0,0), line 77 of here.cu: a trap"));
  }
  SUBCASE("a barrier that there is not") {
    REQUIRE(fixture.launch("meet_at", 1, 64, nullptr, 16u, 64u) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(holds(text_of(CUDA_ERROR_LAUNCH_FAILED), "there is no such barrier"));
  }
  SUBCASE("a barrier for a part of a warp") {
    REQUIRE(fixture.launch("meet_at", 1, 64, nullptr, 1u, 33u) == CUDA_SUCCESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_LAUNCH_FAILED);
    CHECK(holds(text_of(CUDA_ERROR_LAUNCH_FAILED), "must be a multiple of 32"));
  }
}

TEST_CASE("freed memory is inaccessible") {
  if (!is_cpu()) return;  // a GPU keeps pages for reuse
  CUdeviceptr freed = 0;
  {
    Fixture fixture;
    freed = fixture.allocate(1 << 20);
    REQUIRE(cu().cuMemFree_v2(freed) == CUDA_SUCCESS);
  }
  check_fault(CUDA_ERROR_ILLEGAL_ADDRESS, "store_to", 1, 1, freed);
}

TEST_CASE("a failed assertion is ASSERT") { check_fault(CUDA_ERROR_ASSERT, "assert_here", 1, 1); }

TEST_CASE("recursion that fills its local memory overflows the stack") {
  if (!is_cpu()) return;  // a GPU reports it as an illegal address, a stack error, or a failed launch
  CUdeviceptr out = 0;
  check_fault(CUDA_ERROR_HARDWARE_STACK_ERROR, "recurse_local", 2, 64, out, std::uint32_t{1'000'000});
}

TEST_CASE("recursion may go as deep as the context's limit of the stack says") {
  // For functions in which threads wait, and for all with the dispatcher, the stack's size is compiled in.
  const char* const dispatched = std::getenv("QUERN_CPU_DISPATCH");
  if (is_cpu() && dispatched != nullptr && *dispatched == '1') return;
  Fixture fixture;
  CUdeviceptr out = fixture.allocate(4);
  REQUIRE(cu().cuCtxSetLimit(CU_LIMIT_STACK_SIZE, std::size_t{400} << 10) == CUDA_SUCCESS);
  // A GPU needs more than the 16 bytes a call. With few addresses, a block has a quarter of the host's stack,
  // of which a call takes more than 800 bytes where masks are vectors (AVX2, baseline).
  const char* const addresses = std::getenv("QUERN_CPU_ADDRESSES");
  const bool few = addresses != nullptr && std::string_view(addresses) == "compact";
  const std::uint32_t depth = is_cpu() && !few ? 20'000 : 5'000;
  REQUIRE(fixture.launch("recurse_local", 1, 32, nullptr, out, depth) == CUDA_SUCCESS);
  std::uint32_t sum = 0;
  REQUIRE(cu().cuMemcpyDtoH_v2(&sum, out, 4) == CUDA_SUCCESS);
  CHECK(sum == depth * (depth + 1) / 2);
}

TEST_CASE("endless recursion overflows the stack") {
  if (!is_cpu()) return;  // a GPU reports it as an illegal address, a stack error, or a failed launch
  Fixture fixture;
  const CUdeviceptr out = fixture.allocate(4);
  REQUIRE(fixture.launch("recurse", 2, 32, nullptr, out, 0xffffffffu) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_HARDWARE_STACK_ERROR);
}

TEST_CASE("the primary context is whole again after a reset") {
  CUcontext primary = nullptr;
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxPushCurrent_v2(primary) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
  CUcontext popped = nullptr;
  CHECK(cu().cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
}
