// SPDX-License-Identifier: Apache-2.0
// Copies and fills of boxes, batches of copies, and copies between contexts.
#include <limits>
#include <numeric>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

std::vector<unsigned char> bytes_from(unsigned char first, std::size_t count) {
  std::vector<unsigned char> result(count);
  std::iota(result.begin(), result.end(), first);
  return result;
}

CUdeviceptr address(const void* pointer) { return reinterpret_cast<CUdeviceptr>(pointer); }

CUDA_MEMCPY2D host_to_device(const void* from, std::size_t from_pitch, CUdeviceptr to, std::size_t to_pitch,
                             std::size_t width, std::size_t height) {
  CUDA_MEMCPY2D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_HOST;
  copy.srcHost = from;
  copy.srcPitch = from_pitch;
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstDevice = to;
  copy.dstPitch = to_pitch;
  copy.WidthInBytes = width;
  copy.Height = height;
  return copy;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "a rectangle is copied into a wider one, the rest stays") {
  const auto host = bytes_from(1, 12);  // 3 rows of 4
  const CUdeviceptr pointer = allocate(64);
  REQUIRE(cu().cuMemsetD8_v2(pointer, 0xee, 64) == CUDA_SUCCESS);
  CUDA_MEMCPY2D copy = host_to_device(host.data(), 4, pointer, 16, 2, 2);
  copy.srcXInBytes = 1;
  copy.srcY = 1;
  copy.dstXInBytes = 3;
  copy.dstY = 2;
  SUBCASE("synchronous") { CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_SUCCESS); }
  SUBCASE("unaligned") { CHECK(CU(cuMemcpy2DUnaligned_v2)(&copy) == CUDA_SUCCESS); }
  SUBCASE("on a stream") {
    const CUstream on = stream();
    CHECK(CU(cuMemcpy2DAsync_v2)(&copy, on) == CUDA_SUCCESS);
    CHECK(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  }
  std::vector<unsigned char> expected(64, 0xee);
  expected[2 * 16 + 3] = 6;  // row 1 of the source begins with 5
  expected[2 * 16 + 4] = 7;
  expected[3 * 16 + 3] = 10;
  expected[3 * 16 + 4] = 11;
  CHECK(download<unsigned char>(pointer, 64) == expected);
}

TEST_CASE_FIXTURE(Fixture, "a pitch of 0 is that of rows without gaps") {
  const auto host = bytes_from(1, 12);
  const CUdeviceptr pointer = allocate(64);
  REQUIRE(cu().cuMemsetD8_v2(pointer, 0xee, 64) == CUDA_SUCCESS);
  const CUDA_MEMCPY2D copy = host_to_device(host.data(), 4, pointer, 0, 4, 3);
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(download<unsigned char>(pointer, 12) == host);
}

TEST_CASE_FIXTURE(Fixture, "rectangles that leave their memory or their pitch are refused") {
  const auto host = bytes_from(0, 64);
  const CUdeviceptr pointer = allocate(64);
  CUDA_MEMCPY2D copy = host_to_device(host.data(), 8, pointer, 16, 8, 4);
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_SUCCESS);
  copy.dstPitch = 7;
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_ERROR_INVALID_VALUE);
  copy.dstPitch = std::size_t{1} << 40;
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_ERROR_INVALID_VALUE);
  copy.dstPitch = 16;
  copy.Height = 0;
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_SUCCESS);
  copy.Height = 4;
  copy.dstMemoryType = static_cast<CUmemorytype>(7);
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemcpy2D_v2)(nullptr) == CUDA_ERROR_INVALID_VALUE);
  if (!is_cpu()) return;
  copy.dstMemoryType = CU_MEMORYTYPE_ARRAY;
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_ERROR_NOT_SUPPORTED);
  copy.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  copy.dstY = 1;
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_ERROR_INVALID_VALUE);
  copy.dstY = std::size_t{1} << 62;
  CHECK(CU(cuMemcpy2D_v2)(&copy) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "a box is cut out of a larger one") {
  const auto host = bytes_from(0, 4 * 3 * 2);  // 2 slices of 3 rows of 4
  const CUdeviceptr pointer = upload(host);
  CUDA_MEMCPY3D copy{};
  copy.srcMemoryType = CU_MEMORYTYPE_UNIFIED;
  copy.srcDevice = pointer;
  copy.srcPitch = 4;
  copy.srcHeight = 3;
  copy.srcXInBytes = 1;
  copy.srcY = 1;
  std::vector<unsigned char> cut(8);
  copy.dstMemoryType = CU_MEMORYTYPE_HOST;
  copy.dstHost = cut.data();
  copy.dstPitch = 2;
  copy.dstHeight = 2;
  copy.WidthInBytes = 2;
  copy.Height = 2;
  copy.Depth = 2;
  const std::vector<unsigned char> expected{5, 6, 9, 10, 17, 18, 21, 22};
  SUBCASE("synchronous") {
    CHECK(CU(cuMemcpy3D_v2)(&copy) == CUDA_SUCCESS);
    CHECK(cut == expected);
  }
  SUBCASE("into ordinary memory, done on return") {
    const CUstream on = stream();
    REQUIRE(launch("fill", 1024, 128, on, allocate(1 << 20), 1u << 18, 3u) == CUDA_SUCCESS);
    CHECK(CU(cuMemcpy3DAsync_v2)(&copy, on) == CUDA_SUCCESS);
    CHECK(cut == expected);
  }
  SUBCASE("bad fields") {
    copy.srcHeight = 2;  // rows 1 and 2 of each slice: a slice has at least 3
    CHECK(CU(cuMemcpy3D_v2)(&copy) == CUDA_ERROR_INVALID_VALUE);
  }
  SUBCASE("fields that are not read") {
    copy.srcLOD = 1;
    copy.reserved0 = &copy;
    CHECK(CU(cuMemcpy3D_v2)(&copy) == CUDA_SUCCESS);
    CHECK(cut == expected);
  }
}

TEST_CASE_FIXTURE(Fixture, "ordinary memory of a rectangle may be reused once the copy has returned") {
  const CUstream on = stream();
  const CUdeviceptr busy = allocate(4 << 20), pointer = allocate(64);
  for (unsigned char round = 1; round < 20; ++round) {
    REQUIRE(launch("fill", 4096, 256, on, busy, 1u << 20, 1u) == CUDA_SUCCESS);
    std::vector<unsigned char> host(40, round);
    const CUDA_MEMCPY2D copy = host_to_device(host.data(), 10, pointer, 16, 8, 4);
    REQUIRE(CU(cuMemcpy2DAsync_v2)(&copy, on) == CUDA_SUCCESS);
    host.assign(40, 0);
    REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
    CHECK(download<unsigned char>(pointer + 3 * 16, 8) == std::vector<unsigned char>(8, round));
  }
}

TEST_CASE_FIXTURE(Fixture, "addresses of one space are copied whatever they belong to") {
  auto host = bytes_from(7, 32);
  const CUdeviceptr first = allocate(32), second = allocate(32);
  CHECK(CU(cuMemcpy)(first, address(host.data()), 32) == CUDA_SUCCESS);
  const CUstream on = stream();
  CHECK(CU(cuMemcpyAsync)(second, first, 32, on) == CUDA_SUCCESS);
  std::vector<unsigned char> back(32);
  CHECK(CU(cuMemcpyAsync)(address(back.data()), second, 32, on) == CUDA_SUCCESS);
  CHECK(back == host);
  CHECK(CU(cuMemcpy)(0, first, 32) == CUDA_ERROR_INVALID_VALUE);
  if (is_cpu()) CHECK(CU(cuMemcpy)(first, second, 33) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "fills of rows leave what is between them") {
  const CUdeviceptr pointer = allocate(64);
  const CUstream on = stream();
  REQUIRE(cu().cuMemsetD8_v2(pointer, 0, 64) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D8_v2)(pointer, 16, 0x11, 3, 4) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D16_v2)(pointer + 4, 32, 0x2222, 2, 2) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D32_v2)(pointer + 8, 16, 0x33333333, 1, 1) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD16_v2)(pointer + 60, 0x4444, 1) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD16Async)(pointer + 62, 0x5555, 1, on) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D8Async)(pointer + 12, 16, 0x66, 1, 2, on) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D16Async)(pointer + 14, 16, 0x7777, 1, 2, on) == CUDA_SUCCESS);
  CHECK(CU(cuMemsetD2D32Async)(pointer + 40, 8, 0x88888888, 1, 2, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  std::vector<unsigned char> expected(64, 0);
  const auto put = [&](std::size_t at, std::size_t count, unsigned char value) {
    std::fill_n(expected.begin() + static_cast<std::ptrdiff_t>(at), count, value);
  };
  for (std::size_t row = 0; row < 4; ++row) put(16 * row, 3, 0x11);
  put(4, 4, 0x22), put(36, 4, 0x22), put(8, 4, 0x33), put(60, 2, 0x44), put(62, 2, 0x55);
  put(12, 1, 0x66), put(28, 1, 0x66), put(14, 2, 0x77), put(30, 2, 0x77), put(40, 4, 0x88), put(48, 4, 0x88);
  // The third row's bytes 0x11 at 48 are overwritten by the last fill.
  CHECK(download<unsigned char>(pointer, 64) == expected);
  CHECK(CU(cuMemsetD2D16_v2)(pointer, 7, 1, 2, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD2D32_v2)(pointer, 4, 1, 2, 2) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemsetD16_v2)(pointer + 1, 1, 1) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "a batch of copies") {
  auto host = bytes_from(1, 16);
  const CUdeviceptr pointer = allocate(16);
  std::vector<unsigned char> back(16);
  const CUstream on = stream();
  CUdeviceptr to[] = {pointer, pointer + 8}, from[] = {address(host.data() + 8), address(host.data())};
  std::size_t sizes[] = {8, 8}, first[] = {0, 1};
  CUmemcpyAttributes attributes[2]{};
  attributes[0].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_DURING_API_CALL;
  attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  CHECK(CU(cuMemcpyBatchAsync_v2)(to, from, sizes, 2, attributes, first, 2, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  std::vector<unsigned char> swapped(host.begin() + 8, host.end());
  swapped.insert(swapped.end(), host.begin(), host.begin() + 8);
  CHECK(download<unsigned char>(pointer, 16) == swapped);

  std::size_t failed = 77;
  attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_INVALID;
  CHECK(CU(cuMemcpyBatchAsync)(to, from, sizes, 2, attributes, first, 2, &failed, on) ==
        CUDA_ERROR_INVALID_VALUE);
  CHECK(failed == std::numeric_limits<std::size_t>::max());  // attributes are of no single copy
  attributes[1].srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  CHECK(CU(cuMemcpyBatchAsync_v2)(to, from, sizes, 2, attributes, first, 2, nullptr) ==
        CUDA_ERROR_INVALID_VALUE);
  first[0] = 1;
  CHECK(CU(cuMemcpyBatchAsync_v2)(to, from, sizes, 2, attributes, first, 2, on) == CUDA_ERROR_INVALID_VALUE);
  first[0] = 0;
  CHECK(CU(cuMemcpyBatchAsync_v2)(to, from, sizes, 0, attributes, first, 2, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(CU(cuMemcpyBatchAsync_v2)(to, from, sizes, 1, attributes, first, 2, on) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "a batch of boxes") {
  auto host = bytes_from(0, 12);
  const CUdeviceptr pointer = allocate(12);
  const CUstream on = stream();
  CUDA_MEMCPY3D_BATCH_OP operation{};
  operation.src.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  operation.src.op.ptr = {address(host.data()), 3, 2, {}};
  operation.dst.type = CU_MEMCPY_OPERAND_TYPE_POINTER;
  operation.dst.op.ptr = {pointer, 0, 0, {}};
  operation.extent = {2, 1, 2};
  operation.srcAccessOrder = CU_MEMCPY_SRC_ACCESS_ORDER_STREAM;
  CHECK(CU(cuMemcpy3DBatchAsync_v2)(1, &operation, 0, on) == CUDA_SUCCESS);
  REQUIRE(cu().cuStreamSynchronize(on) == CUDA_SUCCESS);
  CHECK(download<unsigned char>(pointer, 4) == std::vector<unsigned char>{0, 1, 6, 7});
  CHECK(CU(cuMemcpy3DBatchAsync_v2)(1, &operation, 1, on) == CUDA_ERROR_INVALID_VALUE);
  std::size_t failed = 77;
  operation.extent.height = 0;
  CHECK(CU(cuMemcpy3DBatchAsync)(1, &operation, &failed, 0, on) == CUDA_ERROR_INVALID_VALUE);
  CHECK(failed == 0);
}

TEST_CASE_FIXTURE(Fixture, "a copy between contexts") {
  const auto host = bytes_from(3, 64);
  const CUdeviceptr first = upload(host);
  CUcontext other = nullptr;
  REQUIRE(cu().cuCtxCreate_v4(&other, nullptr, 0, 0) == CUDA_SUCCESS);
  CUdeviceptr second = 0;
  REQUIRE(cu().cuMemAlloc_v2(&second, 64) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSetCurrent(context) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyPeer)(second, other, first, context, 64) == CUDA_SUCCESS);
  CHECK(download<unsigned char>(second, 64) == host);
  CHECK(CU(cuMemcpyPeerAsync)(second, other, first + 32, context, 32, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(download<unsigned char>(second, 1)[0] == host[32]);
  CUDA_MEMCPY3D_PEER box{};
  box.srcMemoryType = box.dstMemoryType = CU_MEMORYTYPE_DEVICE;
  box.srcDevice = first;
  box.srcContext = context;
  box.dstDevice = second;
  box.dstContext = other;
  box.srcPitch = box.dstPitch = 8;
  box.WidthInBytes = 4;
  box.Height = 2;
  box.Depth = 1;
  CHECK(CU(cuMemcpy3DPeer)(&box) == CUDA_SUCCESS);
  CHECK(download<unsigned char>(second + 8, 4) ==
        std::vector<unsigned char>(host.begin() + 8, host.begin() + 12));
  CHECK(CU(cuMemcpy3DPeerAsync)(&box, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxDestroy_v2(other) == CUDA_SUCCESS);
  CHECK(CU(cuMemcpyPeer)(second, other, first, context, 64) == CUDA_ERROR_INVALID_CONTEXT);
  CHECK(CU(cuMemcpyPeer)(first, nullptr, first, context, 64) == CUDA_SUCCESS);  // the current one
}
