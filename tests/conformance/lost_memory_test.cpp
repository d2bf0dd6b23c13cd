// SPDX-License-Identifier: Apache-2.0
// Registered memory that the program takes away: it truncates the file that is mapped there.
#include <sys/mman.h>
#include <unistd.h>

#include <chrono>
#include <functional>
#include <thread>
#include <vector>

#include "kernels.hpp"
#include "pages.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

// ThreadSanitizer's runtime accesses memory for the program under locks of its own, which a fault there
// leaves locked.
#if defined(__has_feature)
#if __has_feature(thread_sanitizer)
#define QUERN_THREAD_SANITIZER
#endif
#endif
#ifdef QUERN_THREAD_SANITIZER
constexpr bool kSkipped = true;
#else
constexpr bool kSkipped = false;
#endif

/// A mapped file, registered, and its address for kernels.
class MappedFile {
 public:
  MappedFile() {
    REQUIRE(::ftruncate(file_, static_cast<off_t>(bytes())) == 0);
    REQUIRE(cu().cuMemHostRegister_v2(pages_.at(0), bytes(), CU_MEMHOSTREGISTER_DEVICEMAP) == CUDA_SUCCESS);
    REQUIRE(cu().cuMemHostGetDevicePointer_v2(&device, pages_.at(0), 0) == CUDA_SUCCESS);
  }
  ~MappedFile() { ::close(file_); }
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  static std::size_t bytes() { return 4 * Pages::size(); }
  char* host() const { return pages_.at(0); }
  void truncate() const { REQUIRE(::ftruncate(file_, static_cast<off_t>(Pages::size())) == 0); }

  CUdeviceptr device = 0;

 private:
  const int file_ = ::memfd_create("registered", MFD_CLOEXEC);
  const Pages pages_{4, file_};
};

using Use = std::function<void(const Fixture&, const MappedFile&, CUstream)>;

/// The work fails, whatever the stream: the call answers it, or the next one that waits.
void check_lost(const Use& use) {
  for (const bool queued : {false, true}) {
    CAPTURE(queued);
    Fixture fixture;
    const MappedFile file;
    const CUdeviceptr go = fixture.upload(std::vector<unsigned>{0});
    const CUstream on = fixture.stream(), opens = fixture.stream();
    file.truncate();
    if (queued) REQUIRE(CU(cuStreamWaitValue32_v2)(on, go, 1, CU_STREAM_WAIT_VALUE_EQ) == CUDA_SUCCESS);
    use(fixture, file, on);
    if (queued) REQUIRE(CU(cuStreamWriteValue32_v2)(opens, go, 1, 0) == CUDA_SUCCESS);
    CHECK(cu().cuStreamSynchronize(on) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
  Fixture fresh;
  CHECK(fresh.launch("empty", 1, 32, nullptr) == CUDA_SUCCESS);
  CHECK(cu().cuCtxSynchronize() == CUDA_SUCCESS);
}

}  // namespace

TEST_CASE("copies of registered memory that is not there any more fail, and the process lives" *
          doctest::skip(kSkipped)) {
  if (!is_cpu()) return;  // a GPU keeps the pages
  const std::size_t bytes = MappedFile::bytes();
  check_lost([&](const Fixture& fixture, const MappedFile& file, CUstream on) {
    cu().cuMemcpyHtoDAsync_v2(fixture.allocate(bytes), file.host(), bytes, on);
  });
  check_lost([&](const Fixture& fixture, const MappedFile& file, CUstream on) {
    cu().cuMemcpyDtoHAsync_v2(file.host(), fixture.allocate(bytes), bytes, on);
  });
  check_lost([&](const Fixture& fixture, const MappedFile& file, CUstream on) {
    cu().cuMemcpyDtoDAsync_v2(fixture.allocate(bytes), file.device, bytes, on);
  });
  check_lost([&](const Fixture&, const MappedFile& file, CUstream on) {
    cu().cuMemsetD8Async(file.device, 7, bytes, on);
  });
  check_lost([&](const Fixture& fixture, const MappedFile& file, CUstream on) {
    CUDA_MEMCPY2D box{};
    box.srcMemoryType = CU_MEMORYTYPE_HOST;
    box.srcHost = file.host();
    box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
    box.dstDevice = fixture.allocate(bytes);
    box.WidthInBytes = 16;
    box.srcPitch = 64;
    box.dstPitch = 16;
    box.Height = bytes / 64;
    CU(cuMemcpy2DAsync_v2)(&box, on);
  });
}

TEST_CASE("a synchronous copy of registered memory that is not there any more answers it" *
          doctest::skip(kSkipped)) {
  if (!is_cpu()) return;
  const std::size_t bytes = MappedFile::bytes();
  for (const bool to_host : {false, true}) {
    Fixture fixture;
    const MappedFile file;
    const CUdeviceptr memory = fixture.allocate(bytes);
    file.truncate();
    CHECK((to_host ? cu().cuMemcpyDtoH_v2(file.host(), memory, bytes)
                   : cu().cuMemcpyHtoD_v2(memory, file.host(), bytes)) == CUDA_ERROR_ILLEGAL_ADDRESS);
    CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
  }
}

TEST_CASE("what is still there of registered memory is copied" * doctest::skip(kSkipped)) {
  if (!is_cpu()) return;
  Fixture fixture;
  const MappedFile file;
  const CUdeviceptr memory = fixture.allocate(MappedFile::bytes());
  file.host()[9] = 5;
  file.truncate();
  CHECK(cu().cuMemcpyHtoD_v2(memory, file.host(), Pages::size()) == CUDA_SUCCESS);
  CHECK(fixture.download<char>(memory, 10)[9] == 5);
  CHECK(cu().cuMemHostUnregister(file.host()) == CUDA_SUCCESS);
}

TEST_CASE("streams that read or write registered values that are not there any more fail" *
          doctest::skip(kSkipped)) {
  if (!is_cpu()) return;
  check_lost([](const Fixture&, const MappedFile& file, CUstream on) {
    CU(cuStreamWaitValue32_v2)(on, file.device + 2 * Pages::size(), 1, CU_STREAM_WAIT_VALUE_EQ);
  });
  check_lost([](const Fixture&, const MappedFile& file, CUstream on) {
    CU(cuStreamWriteValue32_v2)(on, file.device + 2 * Pages::size(), 1, 0);
  });
}

TEST_CASE("a launch fails if registered memory for it is not there any more" * doctest::skip(kSkipped)) {
  if (!is_cpu()) return;
  check_lost([](const Fixture& fixture, const MappedFile& file, CUstream on) {
    CHECK(fixture.launch("fill", 1, 32, on, file.device, 32u, 1u) == CUDA_SUCCESS);
  });
}

TEST_CASE("a kernel that waits for the host fails when registered memory for it goes" *
          doctest::skip(kSkipped)) {
  if (!is_cpu()) return;
  Fixture fixture;
  CUmodule waiting = nullptr;
  CUfunction spin = nullptr;
  REQUIRE(cu().cuModuleLoadData(&waiting, kWaitingModule) == CUDA_SUCCESS);
  REQUIRE(cu().cuModuleGetFunction(&spin, waiting, "spin") == CUDA_SUCCESS);
  const MappedFile file;
  CUdeviceptr flag = file.device;
  void* parameters[] = {&flag};
  REQUIRE(cu().cuLaunchKernel(spin, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  std::this_thread::sleep_for(std::chrono::milliseconds(20));
  file.truncate();
  CHECK(cu().cuCtxSynchronize() == CUDA_ERROR_ILLEGAL_ADDRESS);
}
