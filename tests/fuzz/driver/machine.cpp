// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <cstdlib>

#include "fake_compiler.hpp"

namespace quern::fuzz {
namespace {

/// Whole pages: it is registered with the driver too.
alignas(4096) std::array<std::byte, 16384> host_memory;

}  // namespace

void must(CUresult result) {
  if (result != CUDA_SUCCESS) std::abort();
}

Machine::Machine(std::span<const std::uint8_t> bytes) : input_(bytes) {
  must(cuCtxCreate_v4(&context_, nullptr, 0, 0));
  must(cuModuleLoadData(&module_, test::kKernels));
  must(cuModuleGetFunction(&fill_, module_, "fill"));
  must(cuMemAlloc_v2(&memory_, kBytes));
  must(cuMemsetD8_v2(memory_, 0, kBytes));
  pointer_ = memory_ + 1024;
  streams_.add(new_stream());
  CUgraph graph = nullptr;
  must(cuGraphCreate(&graph, 0));
  graphs_.add(graph);
}

Machine::~Machine() {
  CUstreamCaptureMode mode = CU_STREAM_CAPTURE_MODE_RELAXED;
  must(cuThreadExchangeStreamCaptureMode(&mode));
  must(cuCtxSetCurrent(context_));
  for (const CUstream stream : streams_.made) {
    CUgraph graph = nullptr;
    if (cuStreamEndCapture(stream, &graph) == CUDA_SUCCESS) graphs_.add(graph);
  }
  for (const CUstream stream : streams_.made) cuStreamDestroy_v2(stream);
  cuCtxSynchronize();
  for (const CUgraphExec exec : execs_.made) cuGraphExecDestroy(exec);
  for (const CUgraph graph : graphs_.made) cuGraphDestroy(graph);
  for (const CUuserObject object : objects_.made)
    while (cuUserObjectRelease(object, 1) == CUDA_SUCCESS) {
    }
  for (const CUlibrary library : libraries_.made) cuLibraryUnload(library);
  for (const CUlinkState link : links_.made) cuLinkDestroy(link);
  for (const CUdeviceptr pointer : pointers_.made) cuMemFree_v2(pointer);
  for (const CUdeviceptr range : ranges_.made)
    for (std::size_t bytes = std::size_t{2} << 20; bytes <= std::size_t{8} << 20;
         bytes += std::size_t{2} << 20) {
      cuMemUnmap(range, bytes);
      cuMemAddressFree(range, bytes);
    }
  for (const CUmemGenericAllocationHandle handle : physical_.made)
    while (cuMemRelease(handle) == CUDA_SUCCESS) {
    }
  CUmemoryPool pool = nullptr;
  must(cuDeviceGetDefaultMemPool(&pool, 0));
  must(cuDeviceSetMemPool(0, pool));
  for (const CUmemoryPool each : pools_.made) cuMemPoolDestroy(each);
  for (const CUcontext context : contexts_.made) cuCtxDestroy_v2(context);
  must(cuCtxDestroy_v2(context_));
  // Those into which a special stream captured until its context ended.
  for (const CUgraph graph : graphs_.made) cuGraphDestroy(graph);
  must(cuMemPoolTrimTo(pool, 0));
  for (CUcontext popped = nullptr; cuCtxPopCurrent_v2(&popped) == CUDA_SUCCESS;) {
  }
  mode = CU_STREAM_CAPTURE_MODE_GLOBAL;  // of this thread, for the next input
  must(cuThreadExchangeStreamCaptureMode(&mode));
}

void Machine::run() {
  constexpr int kMostCalls = 300;
  for (int i = 0; i < kMostCalls && !input_.at_end(); ++i) call();
}

void Machine::call() {
  switch (input_.below(24)) {
    case 0:
    case 1:
    case 2:
      return call_stream();
    case 3:
    case 4:
      return call_capture();
    case 5:
    case 6:
    case 7:
      return add_to_graph();
    case 8:
    case 9:
      return change_graph();
    case 10:
    case 11:
      return call_exec();
    case 12:
      return ask_graph();
    case 13:
      return call_object();
    case 14:
      return call_context();
    case 15:
      return call_memory();
    case 16:
      return copy_memory();
    case 17:
      return ask_memory();
    case 18:
      return call_virtual_memory();
    case 19:
      return call_pool();
    case 20:
      return call_module();
    case 21:
      return call_library();
    case 22:
      return call_link();
    default:
      return call_ipc();
  }
}

CUstream Machine::new_stream() {
  CUstream stream = nullptr;
  return cuStreamCreate(&stream, CU_STREAM_NON_BLOCKING) == CUDA_SUCCESS ? stream : nullptr;
}

CUstream Machine::stream() {
  const std::uint8_t choice = input_.byte();
  if (choice < 8) return choice < 3 ? nullptr : choice < 6 ? CU_STREAM_PER_THREAD : CU_STREAM_LEGACY;
  return any(streams_);
}

std::vector<CUgraphNode> Machine::nodes() {
  std::vector<CUgraphNode> chosen(input_.below(3));
  for (CUgraphNode& each : chosen) each = any(nodes_);
  return chosen;
}

CUfunction Machine::function() { return input_.below(4) == 0 ? any(functions_) : fill_; }

CUdeviceptr Machine::address() {
  const std::uint8_t choice = input_.byte();
  if (choice >= 0xf0) return choice == 0xff ? 0 : input_.word();
  if (choice >= 0xd0 && !ranges_.made.empty()) return ranges_.made[choice % ranges_.made.size()];
  if (choice >= 0xb0 && !pointers_.made.empty()) return pointers_.made[choice % pointers_.made.size()];
  return memory_ + 8 * std::size_t{choice};
}

std::byte* Machine::host(std::size_t needed) {
  const std::uint8_t choice = input_.byte();
  if (choice % 4 == 0 && !pinned_.made.empty())  // each is as large
    return reinterpret_cast<std::byte*>(pinned_.made[choice % pinned_.made.size()]);
  return host_memory.data() + choice % (kHostBytes - needed + 1);
}

std::size_t Machine::bytes() {
  const std::uint8_t choice = input_.byte();
  if (choice >= 0xf8) return std::size_t{input_.word()} << (choice % 8 * 4);
  return choice < 0xe0 ? choice : std::size_t{choice} << (choice % 16);
}

CUmemLocation Machine::location() {
  return {static_cast<CUmemLocationType>(input_.below(6)), static_cast<int>(input_.below(3)) - 1};
}

CUDA_KERNEL_NODE_PARAMS Machine::kernel() {
  CUDA_KERNEL_NODE_PARAMS params{};
  params.func = input_.rarely() ? any(functions_) : fill_;
  params.gridDimX = 1 + static_cast<unsigned>(input_.below(2));
  params.gridDimY = params.gridDimZ = params.blockDimY = params.blockDimZ = 1;
  params.blockDimX = static_cast<unsigned>(input_.below(33));
  params.sharedMemBytes = input_.rarely() ? input_.word() : 0;
  value_ = input_.byte() & 0x7f;
  params.kernelParams = input_.rarely() ? nullptr : parameters_.data();
  return params;
}

CUDA_MEMCPY3D Machine::box() {
  CUDA_MEMCPY3D made{};
  made.srcMemoryType = made.dstMemoryType = static_cast<CUmemorytype>(1 + input_.below(4));
  made.srcDevice = address();
  made.dstDevice = address();
  made.srcXInBytes = input_.rarely() ? bytes() : 0;
  made.dstY = input_.rarely() ? bytes() : 0;
  made.WidthInBytes = bytes();
  made.Height = input_.below(3);
  made.Depth = input_.below(3);
  made.srcPitch = bytes();
  made.dstPitch = bytes();
  made.srcHeight = made.dstHeight = input_.below(3);
  // A host's address that nobody gave would be followed, as on a GPU.
  if (made.srcMemoryType != CU_MEMORYTYPE_DEVICE) made.WidthInBytes = 0;
  return made;
}

CUDA_MEMSET_NODE_PARAMS_v1 Machine::filling() {
  const CUdeviceptr to = address();
  return {to,      bytes(),        input_.byte() & 0x7fu, static_cast<unsigned>(input_.below(6)),
          bytes(), input_.below(3)};
}

std::string Machine::text() {
  std::string made = test::kKernels;
  for (std::size_t changes = input_.below(3); changes > 0; --changes) {
    // The beginning says that it is text, and a zero would end it.
    const std::size_t at = 8 + input_.word() % (made.size() - 8);
    made[at] = static_cast<char>(1 + input_.byte() % 127);
  }
  return made;
}

}  // namespace quern::fuzz
