// SPDX-License-Identifier: Apache-2.0
#include "compile/compiler.hpp"

#include <thread>

#include "../support/scratch.hpp"
#include "toolkit.hpp"

using namespace quern;
using test::compiler;
using test::cuda;
using test::errors_of;

TEST_SUITE_BEGIN("compiler");

TEST_CASE("a plain kernel compiles to PTX with its entry, parameters and their layout") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(cuda(R"(
extern "C" __global__ void saxpy(int n, float a, const float* x, float* __restrict__ y) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = a * x[i] + y[i];
})"));
  REQUIRE_MESSAGE(image, errors_of(image));
  CHECK((*image)->ptx.find(".target sm_89") != std::string::npos);
  CHECK((*image)->ptx.find(".file\t1 \"kernel.cu\"") != std::string::npos);
  CHECK((*image)->machine_code.empty());
  CHECK((*image)->compile_ms > 0);
  REQUIRE((*image)->entries.size() == 1);
  const abi::EntryInfo& entry = (*image)->entries[0];
  CHECK(entry.name == "saxpy");
  CHECK(entry.lowered_name == "saxpy");
  REQUIRE(entry.parameters.size() == 4);
  const char* names[] = {"n", "a", "x", "y"};
  const char* types[] = {"int", "float", "const float*", "float*"};
  const std::uint32_t offsets[] = {0, 4, 8, 16}, sizes[] = {4, 4, 8, 8};
  for (std::size_t i = 0; i < 4; ++i) {
    CHECK(entry.parameters[i].name == names[i]);
    CHECK(entry.parameters[i].type == types[i]);
    CHECK(entry.parameters[i].offset == offsets[i]);
    CHECK(entry.parameters[i].size == sizes[i]);
    CHECK(entry.parameters[i].align == sizes[i]);
    CHECK(entry.parameters[i].pointer == (i >= 2));
  }
  CHECK(entry.parameters[2].read_only);
  CHECK(entry.parameters[2].pointee == "float");
  CHECK_FALSE(entry.parameters[3].read_only);
}

TEST_CASE("name expressions instantiate templates, under the author's names") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(cuda(R"(
namespace tools {
template <class T, int N> __global__ void __launch_bounds__(128) scale(T* data, const T factor) { data[threadIdx.x] *= factor * N; }
}
struct Pair { double a; char b; };
__global__ void plain(const Pair pair, float (&out)[3]) { __shared__ double s[32]; s[threadIdx.x] = pair.a; __syncthreads(); out[0] = s[3]; })",
                                             {"tools::scale<float, 2>", "&tools::scale<unsigned, 3>"}));
  REQUIRE_MESSAGE(image, errors_of(image));
  REQUIRE((*image)->entries.size() == 3);
  const auto find = [&](const char* name) {
    for (const abi::EntryInfo& entry : (*image)->entries)
      if (entry.name == name) return entry;
    FAIL("no entry " << name);
    return abi::EntryInfo();
  };
  const abi::EntryInfo scale = find("tools::scale<float, 2>");
  CHECK(scale.lowered_name == "_ZN5tools5scaleIfLi2EEEvPT_S1_");
  CHECK(scale.max_threads == 128);
  REQUIRE(scale.parameters.size() == 2);
  CHECK(scale.parameters[0].name == "data");
  CHECK(scale.parameters[0].type == "float*");
  CHECK(scale.parameters[1].name == "factor");
  CHECK(scale.parameters[1].type == "float");
  CHECK(find("tools::scale<unsigned, 3>").parameters[0].pointee == "unsigned int");
  const abi::EntryInfo plain = find("plain");
  CHECK(plain.parameters[0].size == 16);
  CHECK(plain.parameters[0].align == 8);
  CHECK(plain.parameters[0].type == "Pair");
  CHECK(plain.parameters[1].name == "out");
  CHECK(plain.parameters[1].pointer);
  CHECK(plain.static_shared_bytes == 256);
}

TEST_CASE("an error carries the author's file, line, column and source line") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(cuda("__global__ void k(float* p) {\n  p[0] = threadIdxx.x;\n}\n"));
  REQUIRE_FALSE(image);
  REQUIRE(image.errors().size() == 1);
  const Diagnostic& error = image.errors()[0];
  CHECK(error.severity == Severity::error);
  CHECK(error.span == Span{"kernel.cu", 2, 10, 20});
  CHECK(error.source_line == "  p[0] = threadIdxx.x;");
  CHECK(error.message == "identifier \"threadIdxx\" is undefined");
  CHECK(error.hint == "did you mean threadIdx?");
}

TEST_CASE("#line moves messages to the author's own file") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(cuda("#line 40 \"model.py\"\n__global__ void k() { wrong; }\n"));
  REQUIRE_FALSE(image);
  CHECK(image.errors()[0].span == Span{"model.py", 40, 23, 28});
}

TEST_CASE("warnings come with the image") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(cuda("__global__ void k() { int unused; }"));
  REQUIRE_MESSAGE(image, errors_of(image));
  REQUIRE((*image)->log.size() == 1);
  CHECK((*image)->log[0].severity == Severity::warning);
  CHECK((*image)->log[0].code == "cuda-177");
}

TEST_CASE("an unknown name expression is one error that lists the kernels there are") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(cuda(
      "template <class T> __global__ void scale(T* x) {}\n__global__ void other(int) {}\n", {"scle<float>"}));
  REQUIRE_FALSE(image);
  REQUIRE(image.errors().size() == 1);
  CHECK(image.errors()[0].code == "unknown-kernel");
  CHECK(image.errors()[0].message.find("'scle<float>'") != std::string::npos);
  CHECK(image.errors()[0].hint == "did you mean scale? the source's kernels are: scale<...>, other");
}

TEST_CASE("a host header is explained") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(cuda("#include <vector>\n__global__ void k() {}\n"));
  REQUIRE_FALSE(image);
  CHECK(image.errors()[0].span.line == 1);
  CHECK(image.errors()[0].hint.find("header of the host") != std::string::npos);
}

TEST_CASE("the toolkit's headers and quern's own are found without -I") {
  if (!test::have_nvrtc() || !test::have_toolkit_headers()) return;
  const auto image = compiler().compile(cuda(R"(
#include <quern/device.cuh>
#include <cooperative_groups.h>
#include <cuda_fp16.h>
#include <cuda/std/cstdint>
__global__ void k(quern::array<__half, 1> a, cuda::std::uint32_t n) {
  const auto i = quern::grid<1>();
  if (i < n) a(i) = __float2half(1.0f);
  cooperative_groups::this_thread_block().sync();
})"));
  REQUIRE_MESSAGE(image, errors_of(image));
  REQUIRE((*image)->entries.size() == 1);
  CHECK((*image)->entries[0].parameters[0].type == "quern::array<__half, 1>");
  CHECK((*image)->ptx.find("\"quern/cuda/array.cuh\"") != std::string::npos);
  CHECK((*image)->entries[0].parameters[0].size == 24);
}

TEST_CASE("machine code and PTX come from one request") {
  if (!test::have_nvrtc()) return;
  abi::KernelRequest request = cuda("__global__ void k(int* p) { *p = 1; }");
  request.target = {90, 90, 0};
  const auto same = compiler().compile(request);
  REQUIRE_MESSAGE(same, errors_of(same));
  CHECK((*same)->ptx.find(".target sm_90") != std::string::npos);
  CHECK((*same)->machine_code.size() > 100);
  request.target = {80, 90, 0};
  const auto differing = compiler().compile(request);
  REQUIRE_MESSAGE(differing, errors_of(differing));
  CHECK((*differing)->ptx.find(".target sm_80") != std::string::npos);
  CHECK((*differing)->machine_code.size() > 100);
}

TEST_CASE("where machine code cannot be made, the PTX is enough") {
  if (!test::have_nvrtc()) return;
  abi::KernelRequest request =
      cuda("#if __CUDA_ARCH__ == 900\n#error \"not here\"\n#endif\n__global__ void k(int* p) { *p = 1; }");
  request.target = {80, 90, 0};
  const auto image = compiler().compile(request);
  REQUIRE_MESSAGE(image, errors_of(image));
  CHECK((*image)->ptx.find(".target sm_80") != std::string::npos);
  CHECK((*image)->machine_code.empty());
  REQUIRE((*image)->log.size() == 1);
  CHECK((*image)->log[0].code == "machine-code");
  CHECK((*image)->log[0].severity == Severity::warning);
  request.target = {90, 90, 0};
  CHECK_FALSE(compiler().compile(request));
}

TEST_CASE("an error whose cause is not known has no hint") {
  if (!test::have_nvrtc()) return;
  const auto image = compiler().compile(
      cuda("__global__ void k(int* p) { *p = a; }\n__global__ void m(int* p) { *p = b; }"));
  REQUIRE_FALSE(image);
  REQUIRE(image.errors().size() == 2);
  CHECK(image.errors()[0].hint.empty());
  CHECK(image.errors()[1].hint.empty());
}

TEST_CASE("an architecture that NVRTC does not know is refused, for machine code it is a warning") {
  if (!test::have_nvrtc()) return;
  abi::KernelRequest request = cuda("__global__ void k(int* p) { *p = 1; }");
  request.target.compute = 30;
  const auto refused = compiler().compile(request);
  REQUIRE_FALSE(refused);
  CHECK(refused.errors()[0].code == "target-unsupported");
  request.target = {89, 9990, 0};
  const auto warned = compiler().compile(request);
  REQUIRE_MESSAGE(warned, errors_of(warned));
  CHECK((*warned)->machine_code.empty());
  REQUIRE((*warned)->log.size() == 1);
  CHECK((*warned)->log[0].code == "machine-code");
}

TEST_CASE("PTX for an older driver gets that driver's version") {
  if (!test::have_nvrtc()) return;
  abi::KernelRequest request = cuda(
      "__global__ void k(float* p) { p[threadIdx.x] = __shfl_xor_sync(~0u, p[0], 1); __syncthreads(); }");
  request.target.driver_version = 12020;
  const auto image = compiler().compile(request);
  REQUIRE_MESSAGE(image, errors_of(image));
  CHECK((*image)->ptx.find(".version 8.2\n") != std::string::npos);
  request.target.driver_version = 11040;  // this version does not support sm_89
  const auto refused = compiler().compile(request);
  REQUIRE_FALSE(refused);
  CHECK(refused.errors()[0].code == "ptx-version");
  CHECK(refused.errors()[0].message.find("'sm_89' is of PTX 7.8") != std::string::npos);
}

TEST_CASE("equal requests are compiled once, whoever asks") {
  if (!test::have_nvrtc()) return;
  compile::Compiler own;
  const abi::KernelRequest request = cuda("__global__ void once(int* p) { *p = 7; }");
  std::vector<compile::Compiler::Image> images(6);
  std::vector<std::thread> threads;
  for (auto& image : images)
    threads.emplace_back([&] {
      if (auto made = own.compile(request)) image = *made;
    });
  for (std::thread& thread : threads) thread.join();
  for (const auto& image : images) {
    REQUIRE(image);
    CHECK(image->ptx == images[0]->ptx);
  }
  CHECK(own.cache_stats().misses == 1);
  const auto again = own.compile(request);
  REQUIRE(again);
  CHECK((*again)->compile_ms == 0);
  abi::KernelRequest other = request;
  other.options = {"-DX=1"};
  REQUIRE(own.compile(other));
  CHECK(own.cache_stats().misses == 2);
}

TEST_CASE("a changed header is compiled anew, an unchanged one is not") {
  if (!test::have_nvrtc()) return;
  const test::Scratch scratch;
  scratch.write("inc/factor.h", "#define FACTOR 3\n");
  scratch.write("beside.h", "#include <factor.h>\n");
  compile::Compiler own;
  abi::KernelRequest request =
      cuda("#include \"beside.h\"\nextern \"C\" __global__ void k(int* p) { *p = FACTOR; }");
  request.source.file_name = (scratch.path / "kernel.cu").string();
  request.options = {"-I" + (scratch.path / "inc").string()};
  const auto three = own.compile(request);
  REQUIRE_MESSAGE(three, errors_of(three));
  REQUIRE(own.compile(request));
  CHECK(own.cache_stats().misses == 1);
  scratch.write("inc/factor.h", "#define FACTOR 4\n");
  const auto four = own.compile(request);
  REQUIRE_MESSAGE(four, errors_of(four));
  CHECK((*three)->ptx.find("%r1, 3;") != std::string::npos);
  CHECK((*four)->ptx.find("%r1, 4;") != std::string::npos);
}

TEST_CASE("128-bit integers are switched on where the source, a header or a macro uses them") {
  if (!test::have_nvrtc()) return;
  const test::Scratch scratch;
  scratch.write("wide.h", "#define WIDE unsigned __int128\n");
  const auto ptx = [&](const std::string& text, std::vector<std::string> options = {},
                       std::vector<std::string> names = {}) {
    abi::KernelRequest request = cuda(text);
    request.source.file_name = (scratch.path / "kernel.cu").string();
    request.options = std::move(options);
    request.name_expressions = std::move(names);
    const auto image = compiler().compile(request);
    return image ? (*image)->ptx : errors_of(image);
  };
  const std::string body =
      "__global__ void k(unsigned long long* p) { WIDE a = p[0]; p[1] = (a * p[2]) >> 64; }";
  const auto multiplies = [](const std::string& text) {
    return text.find("mul.hi.u64") != std::string::npos;
  };
  CHECK(
      multiplies(ptx("extern \"C\" __global__ void k(unsigned long long* p) {\n"
                     "  p[1] = ((unsigned __int128)p[0] * p[2]) >> 64;\n}\n")));
  CHECK(multiplies(ptx("#include \"wide.h\"\nextern \"C\" " + body)));
  CHECK(multiplies(ptx("#define WIDE __uint128_t\nextern \"C\" " + body)));
  CHECK(multiplies(ptx("extern \"C\" " + body, {"-DWIDE=unsigned __int128"})));
  CHECK(multiplies(ptx("extern \"C\" " + body, {"--define-macro=WIDE=__uint128_t", "-device-int128"})));
  CHECK(multiplies(ptx("template <class WIDE> " + body, {}, {"k<unsigned __int128>"})));
  // Nothing requests these here, and libraries can detect that they are off.
  const std::string off =
      "extern \"C\" __global__ void k(int* p) { /* __int128 */ p[0] = ON; p[1] = sizeof \"__int128\"; }";
  const std::string macro = "#ifdef __SIZEOF_INT128__\n#define ON 4711\n#else\n#define ON 815\n#endif\n";
  CHECK(ptx(macro + off).find("815") != std::string::npos);
}

TEST_CASE("a source whose includes only a preprocessor can name is compiled every time") {
  if (!test::have_nvrtc()) return;
  compile::Compiler own;
  const abi::KernelRequest request =
      cuda("#define HEADER <quern/device.cuh>\n#include HEADER\n__global__ void k() {}");
  REQUIRE(own.compile(request));
  REQUIRE(own.compile(request));
  CHECK(own.cache_stats().misses == 0);
}

TEST_CASE("broken input is refused before NVRTC sees it") {
  if (!test::have_nvrtc()) return;
  CHECK(compiler().compile(cuda(std::string("a\nb\0c", 5))).errors()[0].span.line == 2);
  CHECK(compiler().compile(cuda("", {" "})).errors()[0].code == "unknown-kernel");
  abi::KernelRequest request = cuda("__global__ void k() {}");
  request.options = {"--gpu-architecture=sm_75", "-I"};
  const auto refused = compiler().compile(request);
  REQUIRE_FALSE(refused);
  CHECK(refused.errors().size() == 2);
}

TEST_CASE("Kernel Python goes through CUDA C++, which the image keeps") {
  abi::KernelRequest request;
  request.source = {abi::Language::python, "from numba import cuda\n@cuda.jit\ndef k(a):\n    a[0] = 1\n",
                    "k.py"};
  request.signature = "(float32[::1],)";
  const auto image = compiler().compile(request);
  REQUIRE(image);
  CHECK((*image)->entries.at(0).name == "k");
  CHECK((*image)->entries.at(0).parameters.at(0).name == "a");
  CHECK((*image)->entries.at(0).parameters.at(0).type == "quern::c_array<float, 1>");
  CHECK((*image)->cuda_source.find("a[0] = 1;") != std::string::npos);
}

TEST_CASE("errors in Kernel Python are the front end's") {
  abi::KernelRequest request;
  request.source = {abi::Language::python, "from numba import cuda\n@cuda.jit\ndef k(a):\n    a[0] = b\n",
                    "k.py"};
  request.signature = "(float32[::1],)";
  const auto refused = compiler().compile(request);
  REQUIRE_FALSE(refused);
  CHECK(refused.errors()[0].span.line == 4);
  CHECK(refused.errors()[0].message == "the name 'b' is not defined");
}

TEST_CASE("without NVRTC the message lists every place and says what to do") {
  compile::CompilerOptions options;
  options.around.emplace();
  options.around->cuda_home = "/nonexistent/toolkit";
  options.around->fetched_roots = {"/nonexistent/fetched"};
  compile::Compiler none(options);
  const auto refused = none.compile(cuda("__global__ void k() {}"));
  REQUIRE_FALSE(refused);
  const std::string text = to_string(refused.errors());
  CHECK(refused.errors()[0].code == "nvrtc-missing");
  CHECK(text.find("/nonexistent/toolkit") != std::string::npos);
  CHECK(text.find("/nonexistent/fetched") != std::string::npos);
  CHECK(text.find("pip install nvidia-cuda-nvrtc") != std::string::npos);
}

TEST_CASE("nesting that would end the process inside NVRTC is refused where it is too deep") {
  if (!test::have_nvrtc()) return;
  const auto nested = [](std::size_t depth) {
    return cuda("extern \"C\" __global__ void f(int* x) {\n  x[0] =\n" + std::string(depth, '(') + "1" +
                std::string(depth, ')') + ";\n}\n// " + std::string(2000, '('));
  };
  CHECK(compiler().compile(nested(500)));
  const auto image = compiler().compile(nested(100000));
  REQUIRE_FALSE(image);
  CHECK(image.errors()[0].code == "source-text");
  CHECK(image.errors()[0].span.line == 3);
  CHECK_FALSE(image.errors()[0].hint.empty());
}

TEST_SUITE_END();
