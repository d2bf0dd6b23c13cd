// SPDX-License-Identifier: Apache-2.0
// Uses of a module besides launches: variables, and headers given as text.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <cstdint>
#include <string>
#include <vector>

#include "../support/messages.hpp"

using namespace quern;
using quern::test::holds;
using quern::test::message;

namespace {

Session& on_cpu() {
  static Session instance("cpu");
  return instance;
}

struct Params {
  int count;
  float weights[3];
};

constexpr const char* kSource = R"(
struct Params { int count; float weights[3]; };
__device__ int counter = 7;
__device__ double unused = 2.5;
__constant__ float table[4] = {1, 2, 3, 4};
static __device__ int hidden = 3;
namespace ns {
__constant__ Params params;
__device__ float grid[2][3];
namespace { __device__ int anonymous = 1; }
template <class T> __device__ T slot = 5;
}
extern "C" __global__ void read(float* out) {
  const int i = threadIdx.x;
  if (i < 4) out[i] = table[i];
  if (i == 4) out[i] = ns::params.count + ns::params.weights[2];
  if (i == 5) out[i] = ns::grid[1][2];
  if (i == 6) out[i] = hidden + ns::anonymous;
  if (i == 7) out[i] = atomicAdd(&counter, 1);
}
template <class T> __global__ void count(T* out) { *out = atomicAdd(&counter, 1); }
)";

std::vector<float> read(const Module& module, StreamView stream = {}) {
  const auto out = on_cpu().to_device(std::vector<float>(8));
  module.kernel("read")({.grid = 1, .block = 32, .stream = stream})(out);
  on_cpu().synchronize();
  return out.copy_to_host();
}

}  // namespace

TEST_CASE("variables of a module are read and written: values, structs, arrays") {
  const Module module = on_cpu().load_cuda(kSource);
  const Global<int> counter = module.global<int>("counter");
  CHECK(counter.get() == 7);
  CHECK(counter.size_bytes() == 4);
  counter.set(40);
  CHECK(module.global<float[4]>("table").copy_to_host() == std::vector<float>{1, 2, 3, 4});
  const std::vector<float> values{9, 8, 7, 6};
  module.global<float[]>("table").copy_from_host(values);
  module.global<Params>("ns::params").set({10, {0, 0, 0.5f}});
  CHECK(module.global<Params>("ns::params").get().weights[2] == 0.5f);
  const Global<float[2][3]> grid = module.global<float[2][3]>("ns::grid");
  CHECK(grid.size() == 6);
  CHECK(grid.array().ndim() == 2);
  grid.array()(1, 2).assign(11.0f);
  CHECK(module.global<double>("unused").get() == 2.5);
  CHECK(read(module) == std::vector<float>{9, 8, 7, 6, 10.5f, 11, 4, 40});
  CHECK(counter.get() == 41);
}

TEST_CASE("names are the author's, however they are spaced, or the PTX's") {
  const Module module = on_cpu().load_cuda(kSource, {.name_expressions = {"&ns::slot<unsigned int>"}});
  CHECK(module.global<int>("hidden").get() == 3);
  CHECK(module.global<int>("ns::anonymous").get() == 1);
  CHECK(module.global<std::uint32_t>("ns::slot<unsigned int>").get() == 5);
  CHECK(module.global<std::uint32_t>("&ns::slot< unsigned int >").get() == 5);
  CHECK(module.global("_ZN2ns6paramsE").data() == module.global("ns::params").data());
  const std::vector<std::string> names = module.global_names();
  for (const char* name : {"counter", "unused", "table", "hidden", "ns::params", "ns::grid", "ns::anonymous",
                           "ns::slot<unsigned int>"})
    CHECK_MESSAGE(std::count(names.begin(), names.end(), name) == 1, name);
  CHECK(names.size() == 8);  // does not include strings of printf and similar
}

TEST_CASE("unknown names list the variables there are, a type of another size is refused") {
  const Module module = on_cpu().load_cuda(kSource, {.file_name = "k.cu"});
  const std::string unknown = message([&] { static_cast<void>(module.global("cuonter")); });
  CHECK(holds(unknown, "k.cu has no variable 'cuonter'"));
  CHECK(holds(unknown, "counter, unused, "));
  CHECK(holds(unknown, "\"&cuonter\""));
  CHECK(module.try_global("cuonter").errors().front().code == "not_found");
  CHECK(module.try_global("counter"));
  CHECK(holds(message([&] { static_cast<void>(module.global<double>("counter")); }),
              "cannot take variable counter as a value of 8 bytes: it has 4 bytes"));
  CHECK(holds(message([&] { static_cast<void>(module.global<float>("table")); }), "it has 16 bytes"));
  CHECK(holds(message([&] { static_cast<void>(module.global<Params[]>("ns::grid")); }),
              "elements of 16 bytes: it has 24 bytes"));
  const std::vector<float> three(3);
  CHECK(holds(message([&] { module.global<float[]>("table").copy_from_host(three); }), "it has 4"));
  CHECK(holds(message([&] { static_cast<void>(module.global("table").array(Dtype::float32, {5})); }),
              "20 bytes, and it has 16"));
  const Module python = on_cpu().load_python("from numba import cuda\n@cuda.jit\ndef f(x):\n    x[0] = 1\n");
  CHECK(holds(message([&] { static_cast<void>(python.global("x")); }), "Kernel Python"));
}

TEST_CASE("copies of variables are queued on streams, which stage what they are given") {
  const Module module = on_cpu().load_cuda(kSource);
  const Stream stream = on_cpu().stream();
  {
    const std::vector<float> values{4, 3, 2, 1};
    module.global<float[]>("table").copy_from_host(values, stream);
    module.global<int>("counter").set(5, stream);
  }
  std::vector<float> back(4);
  module.global<float[]>("table").copy_to_host(back, stream);
  stream.synchronize();
  CHECK(back == std::vector<float>{4, 3, 2, 1});
  CHECK(read(module, stream)[7] == 5);
}

TEST_CASE("a variable keeps its module, and a kernel takes it as an array") {
  std::optional<Module> module = on_cpu().load_cuda(kSource);
  const Global<float[2][3]> grid = module->global<float[2][3]>("ns::grid");
  module.reset();
  on_cpu().release_pending();
  const Module other = on_cpu().load_cuda(
      "extern \"C\" __global__ void twice(float* x) { x[threadIdx.x] = 2 * x[threadIdx.x] + 1; }");
  other.kernel()({.grid = 1, .block = 6})(grid.array());
  CHECK(grid.copy_to_host() == std::vector<float>(6, 1));
}

TEST_CASE("a template's instance that has variables of its own is not mixed up with the module") {
  const auto out = on_cpu().to_device(std::vector<int>(1));
  const LaunchConfig one = {.grid = 1, .block = 1};
  {
    const Module module = on_cpu().load_cuda(kSource, {.file_name = "k.cu"});
    const Kernel instance = module.kernel("count<int>");
    const std::string text = message([&] { static_cast<void>(module.global("counter")); });
    CHECK(holds(text, "variable 'counter' of k.cu is ambiguous: count<int> was compiled on its own"));
    CHECK(holds(text, "name_expressions"));
    instance.global<int>("counter").set(100);
    instance(one)(out);
    CHECK(out.copy_to_host()[0] == 100);
    CHECK(module.kernel("read").global<int>("counter").get() == 7);
  }
  {
    const Module module = on_cpu().load_cuda(kSource, {.file_name = "k.cu"});
    module.global<int>("counter").set(1);
    CHECK(holds(message([&] { static_cast<void>(module.kernel("count<int>")); }),
                "cannot take count<int> from k.cu: compiled on its own it has another copy of variable "
                "'counter'"));
  }
  const Module module = on_cpu().load_cuda(kSource, {.name_expressions = {"count<int>"}});
  module.global<int>("counter").set(20);
  module.kernel("count<int>")(one)(out);
  CHECK(out.copy_to_host()[0] == 20);
  CHECK(read(module)[7] == 21);
}

TEST_CASE("variables of PTX go by their names there") {
  const Module module = on_cpu().load_ptx(R"(.version 8.0
.target sm_80
.address_size 64
.visible .global .align 4 .u32 total = 6;
.const .align 8 .b8 bytes[24];
.global .attribute(.managed) .align 8 .u64 shared_value = 9;
.visible .entry add()
{
  .reg .b32 %r<2>;
  ld.global.u32 %r1, [total];
  add.u32 %r1, %r1, 1;
  st.global.u32 [total], %r1;
  ret;
}
)");
  CHECK(module.global_names() == std::vector<std::string>{"total", "bytes", "shared_value"});
  CHECK(module.global("bytes").size_bytes() == 24);
  module.kernel("add")({.grid = 1, .block = 1})();
  CHECK(module.global<std::uint32_t>("total").get() == 7);
}

TEST_CASE("streams have a priority, taken into the device's range, and may be non-blocking") {
  const StreamPriorities range = on_cpu().stream_priorities();
  CHECK(range.greatest < range.least);
  const Stream plain = on_cpu().stream();
  CHECK(plain.priority() == 0);
  CHECK_FALSE(plain.is_non_blocking());
  const Stream first = on_cpu().stream({.priority = range.greatest, .non_blocking = true});
  CHECK(first.priority() == range.greatest);
  CHECK(first.is_non_blocking());
  CHECK(on_cpu().stream({.priority = -100}).priority() == range.greatest);
  CHECK(on_cpu().stream({.priority = 100}).priority() == range.least);
  CHECK(on_cpu().default_stream().priority() == 0);
  CHECK_FALSE(on_cpu().per_thread_default_stream().is_non_blocking());
  const auto x = on_cpu().to_device(std::vector<float>(100, 1.0f), first.view());
  std::vector<float> back(100);
  x.copy_to_host(back, first);
  first.synchronize();
  CHECK(back == std::vector<float>(100, 1.0f));
}

TEST_CASE("managed memory is prefetched and advised on; other memory is not") {
  const ManagedNDArray array = on_cpu().managed_array({10, 10}, Dtype::float32);
  array.host().assign(3.0f);
  const Stream stream = on_cpu().stream();
  array.prefetch();
  array.prefetch(Where::device, stream);
  array.prefetch(Where::host, stream);
  ManagedNDArray(array(Slice{2, 4}, Slice{{}, {}, -2})).prefetch(Where::host);
  for (const MemoryAdvice advice :
       {MemoryAdvice::read_mostly, MemoryAdvice::unset_read_mostly, MemoryAdvice::preferred_location,
        MemoryAdvice::unset_preferred_location, MemoryAdvice::accessed_by, MemoryAdvice::unset_accessed_by}) {
    array.advise(advice);
    array.advise(advice, Where::host);
  }
  stream.synchronize();
  CHECK(array.copy_to_host().at<float>(9, 9) == 3.0f);
  ManagedNDArray().prefetch();
  const ManagedNDArray mapped(on_cpu().mapped_array({4}, Dtype::float32));
  CHECK(holds(message([&] { mapped.prefetch(); }), "CUDA_ERROR_INVALID_VALUE"));
  CHECK(holds(message([&] { mapped.advise(MemoryAdvice::read_mostly); }), "CUDA_ERROR_INVALID_VALUE"));
}

TEST_CASE("sources are linked: functions and variables of one are another's, private ones stay apart") {
  const LinkSource user{R"(
extern __device__ int total;
extern __device__ float scaled(float x);
static __device__ int calls;
template <class T> __global__ void run(T* out) {
  out[threadIdx.x] = scaled(out[threadIdx.x]);
  if (threadIdx.x == 0) { ++calls; total += calls; }
}
)",
                        {.name_expressions = {"run<float>"}, .file_name = "user.cu"}};
  const LinkSource definer{
      R"(
#include "gain.cuh"
__device__ int total = 40;
static __device__ int calls = 100;
__device__ float scaled(float x) { return x * kGain + (calls - 100); }
extern "C" __global__ void get(int* out) { *out = total + calls; }
)",
      {.file_name = "definer.cu", .headers = {{"gain.cuh", "constexpr float kGain = 3;\n"}}}};
  for (const bool swapped : {false, true}) {
    const Module module = swapped ? on_cpu().link({definer, user}) : on_cpu().link({user, definer});
    const auto x = on_cpu().to_device(std::vector<float>{1, 2, 3});
    module.kernel("run<float>")({.grid = 1, .block = 3})(x);
    CHECK(x.copy_to_host() == std::vector<float>{3, 6, 9});
    const auto out = on_cpu().to_device(std::vector<int>(1));
    module.kernel("get")({.grid = 1, .block = 1})(out);
    CHECK(out.copy_to_host()[0] == 141);
    CHECK(module.global<int>("total").get() == 41);
  }
}

TEST_CASE("PTX and CUDA C++ call each other's functions") {
  const LinkSource cuda{
      R"(
extern "C" __device__ int tripled(int x);
extern "C" __device__ int minus_one(int x) { return x - 1; }
extern "C" __global__ void k(int* x) { x[threadIdx.x] = tripled(x[threadIdx.x]); }
)",
      {.file_name = "cuda.cu"}};
  const LinkSource ptx{R"(.version 8.0
.target sm_80
.address_size 64
.extern .func (.param .b32 result) minus_one(.param .b32 x);
.visible .func (.param .b32 result) tripled(.param .b32 x)
{
  .reg .b32 %r<4>;
  ld.param.b32 %r1, [x];
  mul.lo.s32 %r2, %r1, 3;
  {
    .param .b32 argument;
    .param .b32 value;
    st.param.b32 [argument], %r2;
    call (value), minus_one, (argument);
    ld.param.b32 %r3, [value];
  }
  st.param.b32 [result], %r3;
  ret;
}
)",
                       {.file_name = "tripled.ptx"},
                       SourceLanguage::ptx};
  for (const bool swapped : {false, true}) {
    const Module module = swapped ? on_cpu().link({ptx, cuda}) : on_cpu().link({cuda, ptx});
    const auto x = on_cpu().to_device(std::vector<int>{1, 2, 3, 4});
    module.kernel("k")({.grid = 1, .block = 4})(x);
    CHECK(x.copy_to_host() == std::vector<int>{2, 5, 8, 11});
  }
}

TEST_CASE("functions that are missing, defined twice or declared otherwise are named with their sources") {
  const auto source = [](const char* text, const char* name) {
    return LinkSource{text, {.file_name = name}};
  };
  const LinkSource user = source(
      "namespace law { extern __device__ float scaled(float x, int n); }\n"
      "extern \"C\" __global__ void k(float* x) { *x = law::scaled(*x, 2); }",
      "user.cu");
  // Another prototype is another function of C++.
  const LinkSource other =
      source("namespace law { __device__ float scaled(double x, int n) { return x * n; } }", "other.cu");
  const std::string missing = message([&] { on_cpu().link({user, other}); });
  CAPTURE(missing);
  CHECK(holds(missing, "cannot link user.cu + other.cu"));
  CHECK(holds(missing, "user.cu:2"));
  CHECK(holds(missing, "the module has no body for function '_ZN3law6scaledEfi'"));
  CHECK(holds(missing, "_ZN3law6scaledEfi is law::scaled(float, int)"));

  const LinkSource definer =
      source("namespace law { __device__ float scaled(float x, int n) { return x * n; } }", "definer.cu");
  const std::string twice = message([&] { on_cpu().link({user, definer, definer}); });
  CAPTURE(twice);
  CHECK(holds(twice, "_ZN3law6scaledEfi is law::scaled(float, int)"));
  CHECK(holds(twice, "is defined here and in definer.cu"));

  const LinkSource caller = source(
      "extern \"C\" __device__ float f(float);\nextern \"C\" __global__ void k(float* x) { *x = f(*x); }",
      "caller.cu");
  const LinkSource wide = source("extern \"C\" __device__ double f(double x) { return x; }", "wide.cu");
  const std::string differs = message([&] { on_cpu().link({caller, wide}); });
  CAPTURE(differs);
  CHECK(holds(differs, "'f' is not what it is in caller.cu"));
  CHECK(holds(differs, "parameters differ"));

  const LinkSource number = source(
      "extern __device__ int number;\nextern \"C\" __global__ void k(int* x) { *x = number; }", "number.cu");
  const LinkSource wide_number = source("__device__ long long number = 1;", "wide_number.cu");
  CHECK(holds(message([&] { on_cpu().link({number, wide_number}); }),
              "'number' is not what it is in number.cu"));
}

TEST_CASE("what does not link says why, and what does not compile where") {
  const LinkSource user{
      "extern __device__ int elsewhere;\nextern \"C\" __global__ void k(int* x) { *x = elsewhere; }",
      {.file_name = "user.cu"}};
  const Expected<Module> missing = on_cpu().try_link(std::span(&user, 1));
  REQUIRE_FALSE(missing);
  const std::string text = to_string(missing.errors());
  CHECK(holds(text, "cannot link user.cu"));
  CHECK(holds(text, "'elsewhere' is .extern and nothing defines it"));
  CHECK(holds(message([&] { on_cpu().link({user, user}); }), "cannot link user.cu + user.cu"));
  const LinkSource broken{"__device__ int f() { return y; }", {.file_name = "broken.cu"}};
  CHECK(holds(message([&] { on_cpu().link({user, broken}); }), "broken.cu:1"));
  CHECK(holds(message([&] { on_cpu().link(std::span<const LinkSource>()); }), "cannot link nothing"));
  const LinkSource ptx{
      ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .align 4 .u32 elsewhere = 6;\n",
      {.file_name = "data.ptx"},
      SourceLanguage::ptx};
  const Module module = on_cpu().link({user, ptx});
  const auto out = on_cpu().to_device(std::vector<int>(1));
  module.kernel("k")({.grid = 1, .block = 1})(out);
  CHECK(out.copy_to_host()[0] == 6);
}
