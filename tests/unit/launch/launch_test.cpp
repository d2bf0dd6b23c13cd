// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "launch/loaded_kernel.hpp"
#include "quern/error.hpp"
#include "quern/kernel.hpp"
#include "runtime/array/buffer.hpp"
#include "runtime/context/stream.hpp"
#include "tests/unit/support/fake_driver.hpp"

using namespace quern;
using quern::test::FakeDriver;

namespace {

struct Setup {
  FakeDriver fake;
  std::shared_ptr<runtime::Context> context = fake.context();

  Kernel kernel(std::vector<abi::ParameterInfo> parameters) {
    fake.parameter_bytes.clear();
    std::uint32_t offset = 0;
    for (abi::ParameterInfo& parameter : parameters) {
      const std::uint32_t align = parameter.size > 8 ? 8 : parameter.size;
      offset = (offset + align - 1) / align * align;
      parameter.offset = offset;
      offset += parameter.size;
      fake.parameter_bytes.push_back(parameter.size);
    }
    auto image = std::make_shared<abi::PtxImage>();
    image->entries.push_back({"k", "k", std::move(parameters), 0, 0});
    auto module = runtime::load_image(context, "ptx").module;
    return Kernel(std::make_shared<const launch::LoadedKernel>(module, image, image->entries[0], nullptr));
  }
  Kernel saxpy() {
    return kernel({{"n", "int", 0, 4, 4, false},
                   {"a", "float", 0, 4, 4, false},
                   {"x", "const float*", 0, 8, 8, true},
                   {"y", "float*", 0, 8, 8, true}});
  }
  template <class T>
  DeviceArray<T> array(std::int64_t count) {
    return DeviceArray<T>(runtime::make_buffer(context, static_cast<std::size_t>(count) * sizeof(T)),
                          {count});
  }
  template <class T>
  T parameter(std::size_t index) {
    const std::vector<std::byte>& bytes = fake.launches.back().parameters.at(index);
    REQUIRE(bytes.size() == sizeof(T));
    T value;
    std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
};

struct Caught {
  ErrorCode code = ErrorCode::internal;
  std::string text;
};

Caught caught(const auto& action) {
  try {
    action();
  } catch (const Error& error) {
    return {error.code(), error.what()};
  }
  return {};
}

bool holds(const Caught& caught, const std::string& part) {
  return caught.text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("arguments reach the parameter buffer in order, converted to the parameters' types") {
  Setup setup;
  const auto x = setup.array<float>(10);
  const auto y = setup.array<float>(10);
  setup.saxpy()({.grid = 4, .block = {32, 2}})(10, 2.5, x, y);
  REQUIRE(setup.fake.launches.size() == 1);
  CHECK(setup.fake.launches[0].grid == std::array<unsigned, 3>{4, 1, 1});
  CHECK(setup.fake.launches[0].block == std::array<unsigned, 3>{32, 2, 1});
  CHECK(setup.parameter<int>(0) == 10);
  CHECK(setup.parameter<float>(1) == 2.5f);
  CHECK(setup.parameter<float*>(2) == x.data());
  CHECK(setup.parameter<float*>(3) == y.data());
}

TEST_CASE("the wrong number of arguments shows the signature") {
  Setup setup;
  const Caught error = caught([&] { setup.saxpy()({.grid = 1, .block = 32})(10, 2.0f); });
  CHECK(error.code == ErrorCode::usage);
  CHECK(holds(error, "kernel k takes 4 arguments, 2 were given"));
  CHECK(holds(error, "k(int n, float a, const float* x, float* y)"));
  CHECK(setup.fake.launches.empty());
}

TEST_CASE("an array of the wrong dtype is refused, the parameter marked") {
  Setup setup;
  const auto x = setup.array<double>(10);
  const auto y = setup.array<float>(10);
  const Caught error = caught([&] { setup.saxpy()({.grid = 1, .block = 32})(10, 2.0f, x, y); });
  CHECK(error.code == ErrorCode::usage);
  CHECK(
      holds(error, "argument #2 of kernel k does not fit: it is a device array of float64 with shape (10,)"));
  CHECK(holds(error,
              "    k(int n, float a, const float* x, float* y)\n"
              "                      ^~~~~~~~~~~~~~\n"));
  CHECK(holds(error, "hint: give an array of float32"));
}

TEST_CASE("a scalar for a pointer and an array for a scalar are refused") {
  Setup setup;
  const auto x = setup.array<float>(10);
  CHECK(holds(caught([&] { setup.saxpy()({.grid = 1, .block = 32})(10, 2.0f, 3, x); }),
              "it is the scalar int32 3"));
  CHECK(
      holds(caught([&] { setup.saxpy()({.grid = 1, .block = 32})(x, 2.0f, x, x); }), "give one int32 value"));
  CHECK(holds(caught([&] { setup.saxpy()({.grid = 1, .block = 32})(2.5, 2.0f, x, x); }),
              "not cut to a whole number"));
  CHECK(holds(caught([&] { setup.saxpy()({.grid = 1, .block = 32})(std::int64_t{1} << 40, 2.0f, x, x); }),
              "does not fit int32"));
}

TEST_CASE("structs, buffers, raw addresses and null are arguments") {
  struct Pair {
    int a;
    float b;
  };
  Setup setup;
  const Kernel kernel = setup.kernel({{"p", "Pair", 0, 8, 4, false},
                                      {"x", "void*", 0, 8, 8, true},
                                      {"y", "int*", 0, 8, 8, true},
                                      {"z", "int*", 0, 8, 8, true}});
  const DeviceBuffer buffer = runtime::make_buffer(setup.context, 16);
  kernel({.grid = 1, .block = 1})(Pair{7, 0.5f}, buffer, static_cast<int*>(buffer.data()), nullptr);
  CHECK(setup.parameter<Pair>(0).a == 7);
  CHECK(setup.parameter<Pair>(0).b == 0.5f);
  CHECK(setup.parameter<void*>(1) == buffer.data());
  CHECK(setup.parameter<void*>(2) == buffer.data());
  CHECK(setup.parameter<void*>(3) == nullptr);
}

TEST_CASE("a device array goes into a quern::array by value: address, extents, strides in bytes") {
  Setup setup;
  const Kernel kernel = setup.kernel({{"a", "quern::array<float, 2>", 0, 40, 8, false}});
  const DeviceArray<float> array(runtime::make_buffer(setup.context, 24), {2, 3});
  kernel({.grid = 1, .block = 1})(array);
  struct Expected {
    float* data;
    std::int64_t extents[2];
    std::int64_t strides[2];
  };
  const auto packed = setup.parameter<Expected>(0);
  CHECK(packed.data == array.data());
  CHECK(packed.extents[0] == 2);
  CHECK(packed.extents[1] == 3);
  CHECK(packed.strides[0] == 12);
  CHECK(packed.strides[1] == 4);
  CHECK(holds(caught([&] { kernel({.grid = 1, .block = 1})(setup.array<float>(3)); }),
              "2 dimensions, the array 1"));
}

TEST_CASE("PTX parameters take what fits their width") {
  Setup setup;
  const Kernel kernel = setup.kernel(
      {{"", ".u64", 0, 8, 8, false}, {"", ".u32", 0, 4, 4, false}, {"", ".f32", 0, 4, 4, false}});
  const auto x = setup.array<float>(4);
  kernel({.grid = 1, .block = 1})(x, -1, 2);
  CHECK(setup.parameter<float*>(0) == x.data());
  CHECK(setup.parameter<std::uint32_t>(1) == 0xffffffffu);
  CHECK(setup.parameter<float>(2) == 2.0f);
  kernel({.grid = 1, .block = 1})(-1, 0, 0);
  CHECK(setup.parameter<std::uint64_t>(0) == ~std::uint64_t{0});
}

TEST_CASE("a view whose elements do not follow each other goes to a plain pointer by its address only") {
  Setup setup;
  const Kernel plain = setup.kernel({{"x", "float*", 0, 8, 8, true}});
  const DeviceNDArray matrix = setup.array<float>(12).reshape({3, 4});
  const DeviceNDArray views[] = {matrix.transpose(), matrix(kEllipsis, Slice{0, 2}), matrix[Slice{0, 3, 2}],
                                 matrix(0, Slice{{}, {}, -1})};
  for (const DeviceNDArray& view : views) {
    const Caught error = caught([&] { plain({.grid = 1, .block = 1})(view); });
    CHECK(error.code == ErrorCode::usage);
    CHECK(holds(error, "argument #0 of kernel k does not fit"));
    CHECK(holds(error, "a pointer has no strides"));
    CHECK(holds(error, "array.data()"));
    plain({.grid = 1, .block = 1})(view.data());
    CHECK(setup.parameter<void*>(0) == view.data());
  }
  CHECK(holds(caught([&] { plain({.grid = 1, .block = 1})(views[0]); }), "its strides are (4, 16) bytes"));
  // A contiguous range of elements is one run, wherever it begins.
  const DeviceNDArray runs[] = {matrix[1], matrix[Slice{1, 3}], matrix(Slice{0, 0}, Slice{0, 2}),
                                matrix(Slice{1, 2}, Slice{}).transpose(), matrix(2, 3)};
  for (const DeviceNDArray& run : runs) {
    plain({.grid = 1, .block = 1})(run);
    CHECK(setup.parameter<void*>(0) == run.data());
  }
  // PTX does not distinguish pointers from integers.
  const Kernel word = setup.kernel({{"", ".u64", 0, 8, 8, false}});
  CHECK(holds(caught([&] { word({.grid = 1, .block = 1})(views[0]); }), "a pointer has no strides"));
  const Kernel alias = setup.kernel({{"x", "Pointer", 0, 8, 8, false}});
  CHECK(holds(caught([&] { alias({.grid = 1, .block = 1})(views[0]); }), "a pointer has no strides"));
  setup.kernel({{"x", "quern::array<float, 2>", 0, 40, 8, false}})({.grid = 1, .block = 1})(views[0]);
  CHECK(setup.fake.launches.size() == 10);
}

TEST_CASE("a kernel with very many parameters is launched whole") {
  Setup setup;
  std::vector<abi::ParameterInfo> parameters(200, {"", "double", 0, 8, 8, false});
  const Kernel kernel = setup.kernel(parameters);
  const std::vector<Argument> arguments(200, Argument(7));
  kernel.launch({.grid = 1, .block = 1}, arguments);
  CHECK(setup.parameter<double>(0) == 7.0);
  CHECK(setup.parameter<double>(199) == 7.0);
}

TEST_CASE("launches beyond a limit state the limit and what to do") {
  Setup setup;
  const Kernel kernel = setup.kernel({});
  const Caught block = caught([&] { kernel({.grid = 1, .block = 2048})(); });
  CHECK(block.code == ErrorCode::unsupported);
  CHECK(holds(block, "at most 1024 threads along x\nhint: use a smaller block"));
  CHECK(holds(caught([&] { kernel({.grid = 1, .block = {64, 32}})(); }),
              "that is 2048 threads, fake device allows at most 1024"));
  CHECK(holds(caught([&] { kernel({.grid = 1, .block = 600})(); }), "this kernel allows at most 512"));
  CHECK(holds(caught([&] { kernel({.grid = 1, .block = 0})(); }), "at least one thread"));
  CHECK(holds(caught([&] { kernel({.grid = {1, 70000}, .block = 1})(); }), "at most 65535 blocks along y"));
  const Caught shared = caught([&] { kernel({.grid = 1, .block = 1, .shared_bytes = 101000})(); });
  CHECK(holds(shared, "more than the 101376 bytes"));
  CHECK(setup.fake.launches.empty());
}

TEST_CASE("dynamic shared memory beyond the default raises the kernel's limit once") {
  Setup setup;
  const Kernel kernel = setup.kernel({});
  kernel({.grid = 1, .block = 1, .shared_bytes = 48000})();
  CHECK(setup.fake.set_attributes.empty());
  for (const std::size_t bytes : {std::size_t{90000}, std::size_t{80000}, std::size_t{90000}})
    kernel({.grid = 1, .block = 1, .shared_bytes = bytes})();
  REQUIRE(setup.fake.set_attributes.size() == 1);
  CHECK(setup.fake.set_attributes[0].first == CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES);
  CHECK(setup.fake.set_attributes[0].second == 90000);
  CHECK(setup.fake.launches.back().shared_bytes == 90000);
}

TEST_CASE("an empty grid launches nothing") {
  Setup setup;
  setup.kernel({})({.grid = {4, 0}, .block = 32})();
  CHECK(setup.fake.launches.empty());
}

TEST_CASE("the suggested block has most threads resident, and the larger block of two that have as many") {
  Setup setup;
  // 1400 threads, 16 blocks and 48 KiB of shared memory for each multiprocessor; the kernel allows 512
  // threads in a block.
  setup.fake.active_blocks = [](int block, std::size_t shared) {
    const int by_threads = std::min(1400 / block, 16);
    return shared == 0 ? by_threads : std::min(by_threads, static_cast<int>(49152 / shared));
  };
  const Kernel kernel = setup.kernel({});
  CHECK(kernel.suggested_block() == 448);        // 3 blocks, 1344 threads, as 6 blocks of 224 have
  CHECK(kernel.suggested_block(0, 256) == 224);  // 6 blocks, 1344 threads
  CHECK(kernel.suggested_block(20000) == 512);   // 2 blocks
  CHECK(kernel.suggested_block(0, 20) == 20);    // less than a warp
  CHECK(kernel.active_blocks(128) == 10);
  CHECK(kernel.max_cooperative_blocks(128) == 40);  // on 4 multiprocessors
  CHECK(kernel.max_cooperative_blocks(128, 20000) == 8);
}

TEST_CASE("for_all takes the suggested block, or the one that is given, and as many as cover the tasks") {
  Setup setup;
  setup.fake.active_blocks = [](int block, std::size_t) { return std::min(1400 / block, 16); };
  const Kernel kernel = setup.kernel({});
  const auto grid_of = [&](std::uint64_t tasks, const LaunchConfig& config) {
    kernel.for_all(tasks, config)();
    return setup.fake.launches.back().grid[0];
  };
  CHECK(grid_of(1, {}) == 1);
  CHECK(grid_of(896, {}) == 2);
  CHECK(grid_of(897, {}) == 3);
  CHECK(setup.fake.launches.back().block == std::array<unsigned, 3>{448, 1, 1});
  CHECK(grid_of(1000, {.block = {32, 2}}) == 16);
  const std::size_t launched = setup.fake.launches.size();
  kernel.for_all(0)();
  CHECK(setup.fake.launches.size() == launched);
}

TEST_CASE("a cooperative launch says so to the driver, and too large a one how many blocks fit") {
  Setup setup;
  const Kernel kernel = setup.kernel({});
  kernel({.grid = 2, .block = 32, .cooperative = true})();
  CHECK(setup.fake.launches.back().cooperative);
  setup.fake.launch_result = CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  CHECK(holds(caught([&] { kernel({.grid = 100, .block = 32, .cooperative = true})(); }),
              "at most 8 of its blocks fit"));
}

TEST_CASE("a launch goes to its stream, and a failed one names kernel, grid and block") {
  Setup setup;
  const Kernel kernel = setup.kernel({});
  const Stream stream = runtime::make_stream(setup.context);
  kernel({.grid = 1, .block = 32, .stream = stream})();
  CHECK(setup.fake.launches.back().stream == stream.view().handle());
  setup.fake.launch_result = CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  const Caught error = caught([&] { kernel({.grid = 3, .block = 32})(); });
  CHECK(error.code == ErrorCode::driver);
  CHECK(holds(error, "launch kernel k with grid (3, 1, 1) and block (32, 1, 1)"));
}

TEST_CASE("extents that no launch can have are refused where they are written") {
  CHECK(caught([] { static_cast<void>(Dim3(-1)); }).code == ErrorCode::usage);
  CHECK(holds(caught([] { static_cast<void>(Dim3(std::uint64_t{1} << 32)); }), "4294967296"));
  CHECK(Dim3(3, 4u, std::size_t{5}).count() == 60);
}

TEST_CASE("a parameter that driver and compiler see differently stops the kernel from loading") {
  Setup setup;
  setup.kernel({{"n", "int", 0, 4, 4, false}});
  setup.fake.parameter_bytes = {8};
  auto image = std::make_shared<abi::PtxImage>();
  image->entries.push_back({"k", "k", {{"n", "int", 0, 4, 4, false}}, 0, 0});
  auto module = runtime::load_image(setup.context, "ptx").module;
  CHECK_THROWS_AS(launch::LoadedKernel(module, image, image->entries[0], nullptr), Error);
}
