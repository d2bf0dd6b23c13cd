// SPDX-License-Identifier: Apache-2.0
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdint>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <string>
#include <thread>

#include "kernels.hpp"
#include "process.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

CUlibrary load_library(const char* code) {
  CUlibrary library = nullptr;
  REQUIRE(CU(cuLibraryLoadData)(&library, code, nullptr, nullptr, 0, nullptr, nullptr, 0) == CUDA_SUCCESS);
  return library;
}

CUkernel kernel_of(CUlibrary library, const char* name) {
  CUkernel kernel = nullptr;
  REQUIRE(CU(cuLibraryGetKernel)(&kernel, library, name) == CUDA_SUCCESS);
  return kernel;
}

/// Launches a kernel where a function is expected.
CUresult launch_kernel(CUkernel kernel, unsigned grid, unsigned block, CUstream stream, void** parameters) {
  return cu().cuLaunchKernel(reinterpret_cast<CUfunction>(kernel), grid, 1, 1, block, 1, 1, 0, stream,
                             parameters, nullptr);
}

CUdeviceptr global_of(CUlibrary library, const char* name) {
  CUdeviceptr pointer = 0;
  REQUIRE(CU(cuLibraryGetGlobal)(&pointer, nullptr, library, name) == CUDA_SUCCESS);
  return pointer;
}

constexpr const char* kManaged = R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .attribute(.managed) .align 4 .u32 shared_count = 7;
.visible .global .align 4 .u32 own_count = 5;
.visible .entry count()
{
  .reg .b32 %r<3>;
  ld.global.u32 %r1, [shared_count];
  add.u32 %r1, %r1, 1;
  st.global.u32 [shared_count], %r1;
  ld.global.u32 %r2, [own_count];
  add.u32 %r2, %r2, 1;
  st.global.u32 [own_count], %r2;
  ret;
}
)";

}  // namespace

TEST_CASE("a library and its kernels need no context") {
  std::thread([] {
    const CUlibrary library = load_library(kKernels);
    const CUkernel saxpy = kernel_of(library, "saxpy");
    CHECK(kernel_of(library, "saxpy") == saxpy);
    CUkernel none = nullptr;
    CHECK(CU(cuLibraryGetKernel)(&none, library, "nothing") == CUDA_ERROR_NOT_FOUND);
    CHECK(CU(cuLibraryGetKernel)(&none, library, nullptr) == CUDA_ERROR_INVALID_VALUE);
    const char* name = nullptr;
    CHECK(CU(cuKernelGetName)(&name, saxpy) == CUDA_SUCCESS);
    CHECK(std::string(name) == "saxpy");
    CHECK(CU(cuKernelGetName)(&name, nullptr) == CUDA_ERROR_INVALID_VALUE);
    CUlibrary its_library = nullptr;
    CHECK(CU(cuKernelGetLibrary)(&its_library, saxpy) == CUDA_SUCCESS);
    CHECK(its_library == library);
    std::size_t offset = 99, size = 99;
    CHECK(CU(cuKernelGetParamInfo)(kernel_of(library, "many_parameters"), 4, &offset, &size) == CUDA_SUCCESS);
    CHECK(offset == 16);
    CHECK(size == 8);
    CHECK(CU(cuKernelGetParamInfo)(kernel_of(library, "many_parameters"), 6, &offset, nullptr) ==
          CUDA_ERROR_INVALID_VALUE);
    CUmodule module = nullptr;
    CHECK(CU(cuLibraryGetModule)(&module, library) == CUDA_ERROR_INVALID_CONTEXT);
    CUfunction function = nullptr;
    CHECK(CU(cuKernelGetFunction)(&function, saxpy) == CUDA_ERROR_INVALID_CONTEXT);
    CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
    if (is_cpu()) {
      CHECK(CU(cuLibraryUnload)(library) == CUDA_ERROR_INVALID_HANDLE);
      CHECK(CU(cuLibraryGetKernel)(&none, library, "saxpy") == CUDA_ERROR_INVALID_HANDLE);
      CHECK(CU(cuKernelGetLibrary)(&its_library, saxpy) == CUDA_ERROR_INVALID_HANDLE);
    }
  }).join();
}

TEST_CASE("all kernels of a library are counted and enumerated") {
  const CUlibrary library = load_library(kManaged);
  unsigned count = 0;
  CHECK(CU(cuLibraryGetKernelCount)(&count, library) == CUDA_SUCCESS);
  CHECK(count == 1);
  CUkernel kernels[2] = {nullptr, nullptr};
  CHECK(CU(cuLibraryEnumerateKernels)(kernels, 2, library) == CUDA_SUCCESS);
  CHECK(kernels[0] == kernel_of(library, "count"));
  CHECK(kernels[1] == nullptr);
  CHECK(CU(cuLibraryGetKernelCount)(nullptr, library) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLibraryEnumerateKernels)(nullptr, 1, library) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a kernel is accepted where a function is expected") {
  const CUlibrary library = load_library(kKernels);
  const CUkernel saxpy = kernel_of(library, "saxpy");
  const auto function = reinterpret_cast<CUfunction>(saxpy);
  CUdeviceptr x = upload<float>({1, 2, 3, 4, 5}), y = upload<float>({10, 20, 30, 40, 50});
  unsigned n = 4;
  float a = 2;
  void* parameters[] = {&n, &a, &x, &y};
  REQUIRE(launch_kernel(saxpy, 1, 64, nullptr, parameters) == CUDA_SUCCESS);
  CHECK(download<float>(y, 5) == std::vector<float>{12, 24, 36, 48, 50});
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 32;
  config.blockDimY = config.blockDimZ = 1;
  REQUIRE(cu().cuLaunchKernelEx(&config, function, parameters, nullptr) == CUDA_SUCCESS);
  CHECK(download<float>(y, 5) == std::vector<float>{14, 28, 42, 56, 50});
  int value = 0;
  CHECK(cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function) == CUDA_SUCCESS);
  CHECK(value > 0);
  int blocks = 0;
  CHECK(cu().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function, 128, 0) == CUDA_SUCCESS);
  CHECK(blocks >= 1);
  CUfunction own = nullptr;
  REQUIRE(CU(cuKernelGetFunction)(&own, saxpy) == CUDA_SUCCESS);
  CUmodule its_module = nullptr, library_module = nullptr;
  CHECK(CU(cuFuncGetModule)(&its_module, own) == CUDA_SUCCESS);
  CHECK(CU(cuLibraryGetModule)(&library_module, library) == CUDA_SUCCESS);
  CHECK(its_module == library_module);
  CHECK(cu().cuModuleUnload(library_module) == CUDA_ERROR_NOT_PERMITTED);
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
  if (is_cpu()) {
    CHECK(launch_kernel(saxpy, 1, 64, nullptr, parameters) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cu().cuModuleUnload(library_module) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cu().cuLaunchKernel(own, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) ==
          CUDA_ERROR_INVALID_HANDLE);
  }
}

TEST_CASE("each context has its own variables of a library, and all have the managed ones") {
  const CUlibrary library = load_library(kManaged);
  CUdeviceptr managed = 0;
  std::size_t bytes = 0;
  const CUkernel count = kernel_of(library, "count");
  CUdeviceptr own[2] = {0, 0}, seen[2] = {0, 0};
  Fixture first;
  {
    Fixture second;
    for (const CUcontext context : {first.context, second.context}) {
      const std::size_t index = context == second.context ? 1 : 0;
      REQUIRE(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
      own[index] = global_of(library, "own_count");
      REQUIRE(CU(cuLibraryGetManaged)(&seen[index], &bytes, library, "shared_count") == CUDA_SUCCESS);
      CHECK(bytes == 4);
      REQUIRE(launch_kernel(count, 1, 1, nullptr, nullptr) == CUDA_SUCCESS);
      REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
      CHECK(first.download<std::uint32_t>(own[index], 1)[0] == 6);
      std::uint32_t shared = 0;  // managed: the host reads it
      std::memcpy(&shared, reinterpret_cast<const void*>(seen[index]), sizeof shared);
      CHECK(shared == 8 + index);
    }
    CHECK(own[0] != own[1]);
    CHECK(seen[0] == seen[1]);
    CHECK(CU(cuLibraryGetManaged)(&managed, nullptr, library, "own_count") == CUDA_ERROR_NOT_FOUND);
    CHECK(CU(cuLibraryGetManaged)(nullptr, nullptr, library, "shared_count") == CUDA_ERROR_INVALID_VALUE);
    CHECK(CU(cuLibraryGetGlobal)(&managed, &bytes, library, "nothing") == CUDA_ERROR_NOT_FOUND);
    CHECK(CU(cuLibraryGetGlobal)(nullptr, nullptr, library, "own_count") == CUDA_ERROR_INVALID_VALUE);
    CHECK(global_of(library, "shared_count") == seen[0]);
  }
  // The second context is gone, and with it its module; the library goes on in the first.
  REQUIRE(cu().cuCtxSetCurrent(first.context) == CUDA_SUCCESS);
  REQUIRE(launch_kernel(count, 1, 1, nullptr, nullptr) == CUDA_SUCCESS);
  CHECK(first.download<std::uint32_t>(own[0], 1)[0] == 7);
  CHECK(first.download<std::uint32_t>(seen[0], 1)[0] == 10);
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
}

TEST_CASE("threads load one library into their contexts at one time") {
  const CUlibrary library = load_library(kManaged);
  const CUkernel count = kernel_of(library, "count");
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([&] {
      const Fixture fixture;
      for (int round = 0; round < 20; ++round)
        REQUIRE(launch_kernel(count, 1, 1, nullptr, nullptr) == CUDA_SUCCESS);
      CHECK(fixture.download<std::uint32_t>(global_of(library, "own_count"), 1)[0] == 5 + 20);
    });
  // Two threads use one context.
  const Fixture shared;
  for (int i = 0; i < 2; ++i)
    threads.emplace_back([&] {
      REQUIRE(cu().cuCtxSetCurrent(shared.context) == CUDA_SUCCESS);
      CHECK(kernel_of(library, "count") == count);
      CUfunction function = nullptr;
      REQUIRE(CU(cuKernelGetFunction)(&function, count) == CUDA_SUCCESS);
      CUmodule module = nullptr;
      CHECK(CU(cuFuncGetModule)(&module, function) == CUDA_SUCCESS);
    });
  for (std::thread& each : threads) each.join();
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "a library is unloaded when the work that uses it has ended") {
  const CUlibrary library = load_library(kWaitingModule);
  void* flag = nullptr;
  REQUIRE(cu().cuMemHostAlloc(&flag, 4, 0) == CUDA_SUCCESS);
  auto* const word = static_cast<std::atomic<std::uint32_t>*>(flag);
  word->store(0);
  CUdeviceptr pointer = 0;
  REQUIRE(cu().cuMemHostGetDevicePointer_v2(&pointer, flag, 0) == CUDA_SUCCESS);
  void* parameters[] = {&pointer};
  REQUIRE(launch_kernel(kernel_of(library, "spin"), 1, 32, stream(), parameters) == CUDA_SUCCESS);
  std::thread release([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    word->store(1);
  });
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(word->load() == 1);
  release.join();
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(cu().cuMemFreeHost(flag) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "attributes of a kernel hold in every context, less what its function was given") {
  const CUlibrary library = load_library(kKernels);
  const CUkernel kernel = kernel_of(library, "reverse");
  int value = 0;
  CHECK(CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, kernel, 0) == CUDA_SUCCESS);
  CHECK(value == 256);
  CUfunction function = nullptr;
  REQUIRE(CU(cuKernelGetFunction)(&function, kernel) == CUDA_SUCCESS);
  constexpr auto kDynamic = CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES;
  CHECK(CU(cuKernelSetAttribute)(kDynamic, 60000, kernel, 0) == CUDA_SUCCESS);
  CHECK(CU(cuKernelGetAttribute)(&value, kDynamic, kernel, 0) == CUDA_SUCCESS);
  CHECK(value == 60000);
  if (is_cpu()) {
    CHECK(cu().cuFuncGetAttribute(&value, kDynamic, function) == CUDA_SUCCESS);
    CHECK(value == 60000);
  }
  CHECK(cu().cuFuncSetAttribute(function, kDynamic, 50000) == CUDA_SUCCESS);
  CHECK(CU(cuKernelSetAttribute)(kDynamic, 61000, kernel, 0) == CUDA_SUCCESS);
  CHECK(cu().cuFuncGetAttribute(&value, kDynamic, function) == CUDA_SUCCESS);
  CHECK(value == 50000);
  CHECK(CU(cuKernelGetAttribute)(&value, kDynamic, kernel, 0) == CUDA_SUCCESS);
  CHECK(value == 61000);
  CHECK(CU(cuKernelSetAttribute)(kDynamic, 1 << 20, kernel, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuKernelSetAttribute)(CU_FUNC_ATTRIBUTE_NUM_REGS, 8, kernel, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuKernelGetAttribute)(&value, kDynamic, kernel, 99) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(CU(cuKernelGetAttribute)(&value, CU_FUNC_ATTRIBUTE_MAX, kernel, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuKernelGetAttribute)(nullptr, kDynamic, kernel, 0) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuKernelSetCacheConfig)(kernel, CU_FUNC_CACHE_PREFER_L1, 0) == CUDA_SUCCESS);
  CHECK(CU(cuKernelSetCacheConfig)(kernel, CU_FUNC_CACHE_PREFER_L1, 99) == CUDA_ERROR_INVALID_DEVICE);
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "libraries and modules are loaded from files") {
  const std::string file =
      (std::filesystem::temp_directory_path() / ("quern-library-" + std::to_string(::getpid()) + ".ptx"))
          .string();
  std::ofstream(file) << kManaged;
  CUlibrary library = nullptr;
  REQUIRE(CU(cuLibraryLoadFromFile)(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          CUDA_SUCCESS);
  kernel_of(library, "count");
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
  CUmodule loaded = nullptr;
  REQUIRE(CU(cuModuleLoad)(&loaded, file.c_str()) == CUDA_SUCCESS);
  CHECK(cu().cuModuleUnload(loaded) == CUDA_SUCCESS);
  CUlibraryOption option = CU_LIBRARY_BINARY_IS_PRESERVED;
  void* value = reinterpret_cast<void*>(1);
  CHECK(CU(cuLibraryLoadFromFile)(&library, file.c_str(), nullptr, nullptr, 0, &option, &value, 1) ==
        CUDA_ERROR_INVALID_VALUE);
  std::filesystem::remove(file);
  CHECK(CU(cuModuleLoad)(&loaded, file.c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
  CHECK(CU(cuModuleLoad)(&loaded, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLibraryLoadFromFile)(&library, file.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
        CUDA_ERROR_FILE_NOT_FOUND);
}

TEST_CASE_FIXTURE(Fixture, "what is no regular file is not loaded, and nothing is waited for") {
  if (!is_cpu()) return;
  const std::filesystem::path folder =
      std::filesystem::temp_directory_path() / ("quern-special-" + std::to_string(::getpid()));
  REQUIRE(std::filesystem::create_directory(folder));
  const std::string pipe = (folder / "pipe.ptx").string();
  REQUIRE(::mkfifo(pipe.c_str(), 0600) == 0);  // without a writer, opening it waits for one
  for (const std::string& path : {pipe, folder.string(), std::string("/dev/zero")}) {
    CAPTURE(path);
    CUmodule loaded = nullptr;
    CUlibrary library = nullptr;
    CHECK(CU(cuModuleLoad)(&loaded, path.c_str()) == CUDA_ERROR_FILE_NOT_FOUND);
    CHECK(CU(cuLibraryLoadFromFile)(&library, path.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          CUDA_ERROR_FILE_NOT_FOUND);
    CUlinkState link = nullptr;
    REQUIRE(cu().cuLinkCreate_v2(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
    CHECK(CU(cuLinkAddFile_v2)(link, CU_JIT_INPUT_PTX, path.c_str(), 0, nullptr, nullptr) ==
          CUDA_ERROR_FILE_NOT_FOUND);
    const char* reason = nullptr;
    CHECK(cu().cuGetErrorString(CUDA_ERROR_FILE_NOT_FOUND, &reason) == CUDA_SUCCESS);
    CHECK(std::string(reason).find(path) != std::string::npos);
    CHECK(cu().cuLinkDestroy(link) == CUDA_SUCCESS);
  }
  std::filesystem::remove_all(folder);
}

TEST_CASE_FIXTURE(Fixture, "a file is read up to its end, whatever a fat binary in it says") {
  if (!is_cpu()) return;
  const std::string file =
      (std::filesystem::temp_directory_path() / ("quern-damaged-" + std::to_string(::getpid()) + ".fatbin"))
          .string();
  const auto load = [&](const auto& content) {
    std::ofstream(file, std::ios::binary).write(reinterpret_cast<const char*>(&content), sizeof content);
    CUmodule loaded = nullptr;
    return CU(cuModuleLoad)(&loaded, file.c_str());
  };
  struct Header {
    std::uint32_t magic = 0xba55ed50;
    std::uint16_t version = 1, header_bytes = 16;
    std::uint64_t bytes = 0;
  } header;
  CHECK(load(header) == CUDA_ERROR_NO_BINARY_FOR_GPU);  // it is whole, and has no entry
  header.bytes = 1;
  CHECK(load(header) == CUDA_ERROR_INVALID_IMAGE);
  header.bytes = std::uint64_t{1} << 40;
  CHECK(load(header) == CUDA_ERROR_INVALID_IMAGE);
  const Header whole;
  const struct {
    std::uint32_t magic = 0x466243b1, version = 1;
    const void* image = nullptr;
    const void* none = nullptr;
  } wrapper{.image = &whole};
  CHECK(load(wrapper) == CUDA_ERROR_INVALID_IMAGE);  // an address in a file means nothing
  std::filesystem::remove(file);
}

TEST_CASE("what cannot be loaded as a library is refused, and the log says why") {
  char log[1024] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlibrary library = nullptr;
  const std::string bad = std::string(kEmptyModule) + "nonsense;";
  CHECK(CU(cuLibraryLoadData)(&library, bad.c_str(), options, values, 2, nullptr, nullptr, 0) ==
        CUDA_ERROR_INVALID_PTX);
  CHECK(std::string(log).find("nonsense") != std::string::npos);
  CHECK(CU(cuLibraryLoadData)(&library, nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuLibraryLoadData)(nullptr, kEmptyModule, nullptr, nullptr, 0, nullptr, nullptr, 0) ==
        CUDA_ERROR_INVALID_VALUE);
}

namespace {

/// A library with a variable of 32 MiB, and how much memory is taken.
constexpr std::size_t kBigBytes = std::size_t{32} << 20;
CUlibrary load_big() {
  CUlibrary library = nullptr;
  const std::string text = ".version 7.0\n.target sm_70\n.address_size 64\n.visible .global .b8 big[" +
                           std::to_string(kBigBytes) + "];\n.visible .entry k() { ret; }\n";
  REQUIRE(CU(cuLibraryLoadData)(&library, text.c_str(), nullptr, nullptr, 0, nullptr, nullptr, 0) ==
          CUDA_SUCCESS);
  return library;
}
std::size_t taken_bytes() {
  std::size_t free = 0, total = 0;
  REQUIRE(cu().cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
  return total - free;
}
/// Loads a library before and after a context is made, and checks when it takes memory.
void check_loading(CUmoduleLoadingMode expected) {
  CUmoduleLoadingMode mode{};
  CHECK(CU(cuModuleGetLoadingMode)(&mode) == CUDA_SUCCESS);
  CHECK(mode == expected);
  const bool eager = expected == CU_MODULE_EAGER_LOADING;
  const std::size_t before = taken_bytes();
  const CUlibrary library = load_big();
  CHECK((taken_bytes() - before >= kBigBytes) == eager);
  CUcontext other = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&other, nullptr, 0, 0) == CUDA_SUCCESS);
  CHECK((taken_bytes() - before >= 2 * kBigBytes) == eager);
  CUmodule loaded = nullptr;
  CHECK(CU(cuLibraryGetModule)(&loaded, library) == CUDA_SUCCESS);
  CHECK(taken_bytes() - before >= kBigBytes);
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
  CHECK(taken_bytes() - before < kBigBytes);
  CHECK(cu().cuCtxDestroy_v2(other) == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "part: libraries are loaded into all contexts" * doctest::skip()) {
  check_loading(CU_MODULE_EAGER_LOADING);
  const std::size_t before = taken_bytes();
  const CUlibrary library = load_big();
  CUcontext primary = nullptr;
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(taken_bytes() - before >= 2 * kBigBytes);
  REQUIRE(cu().cuDevicePrimaryCtxReset_v2(0) == CUDA_SUCCESS);
  CHECK(taken_bytes() - before < 2 * kBigBytes);
  REQUIRE(cu().cuDevicePrimaryCtxRetain(&primary, 0) == CUDA_SUCCESS);
  CHECK(taken_bytes() - before >= 2 * kBigBytes);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(cu().cuDevicePrimaryCtxRelease_v2(0) == CUDA_SUCCESS);
  CHECK(CU(cuLibraryUnload)(library) == CUDA_SUCCESS);
}
TEST_CASE_FIXTURE(Fixture, "part: libraries are loaded when they are needed" * doctest::skip()) {
  check_loading(CU_MODULE_LAZY_LOADING);
}

TEST_CASE("CUDA_MODULE_LOADING says when libraries are loaded into contexts") {
  if (!is_cpu()) return;  // how much memory a GPU takes for a module is its own affair
  for (const char* mode : {"LAZY", "DEFAULT", "", "EAGER"}) {
    CAPTURE(mode);
    ::setenv("CUDA_MODULE_LOADING", mode, 1);
    Process child(std::string_view(mode) == "EAGER" ? "part: libraries are loaded into all contexts"
                                                    : "part: libraries are loaded when they are needed");
    CHECK(child.succeeds());
  }
  ::unsetenv("CUDA_MODULE_LOADING");
}

TEST_CASE_FIXTURE(Fixture, "the functions of a module are counted and enumerated") {
  CUmodule loaded = nullptr;
  REQUIRE(CU(cuModuleLoadFatBinary)(&loaded, kWaitingModule) == CUDA_SUCCESS);
  unsigned count = 0;
  CHECK(CU(cuModuleGetFunctionCount)(&count, loaded) == CUDA_SUCCESS);
  REQUIRE(count >= 3);  // spin, meet, abandoned
  std::vector<CUfunction> functions(count);
  REQUIRE(CU(cuModuleEnumerateFunctions)(functions.data(), count, loaded) == CUDA_SUCCESS);
  std::set<std::string> names;
  for (const CUfunction each : functions) {
    const char* name = nullptr;
    REQUIRE(cu().cuFuncGetName(&name, each) == CUDA_SUCCESS);
    names.insert(name);
    CUfunctionLoadingState state{};
    CHECK(CU(cuFuncLoad)(each) == CUDA_SUCCESS);
    CHECK(CU(cuFuncIsLoaded)(&state, each) == CUDA_SUCCESS);
    CHECK(state == CU_FUNCTION_LOADING_STATE_LOADED);
    CUmodule its_module = nullptr;
    CHECK(CU(cuFuncGetModule)(&its_module, each) == CUDA_SUCCESS);
    CHECK(its_module == loaded);
  }
  CHECK(names.count("spin") == 1);
  CHECK(names.count("meet") == 1);
  CHECK(names.size() == count);
  CUmoduleLoadingMode mode{};
  CHECK(CU(cuModuleGetLoadingMode)(&mode) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(mode == CU_MODULE_LAZY_LOADING);
  CHECK(CU(cuModuleGetLoadingMode)(nullptr) == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuModuleUnload(loaded) == CUDA_SUCCESS);
  if (is_cpu()) {
    CHECK(CU(cuModuleGetFunctionCount)(&count, loaded) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(CU(cuFuncLoad)(functions[0]) == CUDA_ERROR_INVALID_HANDLE);
  }
}
