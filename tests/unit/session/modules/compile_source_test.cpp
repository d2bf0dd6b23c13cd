// SPDX-License-Identifier: Apache-2.0
// Compiling without a device. The test's environment hides the CPU device and libcuda.
#include <doctest/doctest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <string>

using namespace quern;

namespace {

bool ready() {
  static const bool found = [] {
    const DoctorReport report = doctor();
    return std::any_of(report.findings.begin(), report.findings.end(), [](const Finding& finding) {
      return finding.subject == "NVRTC" && finding.state == Finding::State::good;
    });
  }();
  if (!found) MESSAGE("SKIPPED: no NVRTC on this machine");
  return found;
}

constexpr const char* kPython = R"(
from numba import cuda
SCALE = 2

@cuda.jit
def scale(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= SCALE
)";

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

}  // namespace

TEST_CASE("no device can be opened here") { CHECK_FALSE(Session::try_open().has_value()); }

TEST_CASE("CUDA C++ compiles with headers from memory, defines and instances of templates") {
  if (!ready()) return;
  CompileRequest request;
  request.source =
      "#include \"mine/factor.cuh\"\n"
      "__constant__ float gain;\n"
      "template <class T> __global__ void scale(T* data) { data[threadIdx.x] *= FACTOR * N * gain; }";
  request.load.file_name = "scale.cu";
  request.load.headers = {{"mine/factor.cuh", "#define FACTOR 3\n"}};
  request.load.defines = {"N=4"};
  request.load.name_expressions = {"scale<float>"};
  request.compute_capability = 80;
  const CompiledSource compiled = compile_source(request);
  CHECK(holds(compiled.ptx, ".target sm_80"));
  CHECK(holds(compiled.ptx, "\"scale.cu\""));
  REQUIRE(compiled.kernels.size() == 1);
  const CompiledKernel& kernel = compiled.kernels.front();
  CHECK(kernel.name == "scale<float>");
  CHECK(holds(compiled.ptx, ".entry " + kernel.lowered_name + "("));
  REQUIRE(kernel.parameters.size() == 1);
  CHECK(kernel.parameters[0].size == 8);
  CHECK(kernel.parameters[0].pointer);
  REQUIRE(compiled.variables.size() == 1);
  CHECK(compiled.variables[0].name == "gain");
  CHECK(compiled.machine_code.empty());
  CHECK(compiled.cuda_source.empty());
}

TEST_CASE("machine code of a GPU comes beside the PTX where it is asked for") {
  if (!ready()) return;
  CompileRequest request;
  request.source = "extern \"C\" __global__ void one(int* x) { *x = 1; }";
  request.machine = 80;
  const CompiledSource compiled = compile_source(request);
  CHECK(holds(compiled.ptx, ".target sm_89"));
  const std::string elf =
      "\x7f"
      "ELF";
  REQUIRE(compiled.machine_code.size() > 64);
  CHECK(std::equal(elf.begin(), elf.end(), reinterpret_cast<const char*>(compiled.machine_code.data())));
}

TEST_CASE("Kernel Python compiles for a signature, with the host's constants") {
  if (!ready()) return;
  CompileRequest request;
  request.source = kPython;
  request.language = SourceLanguage::python;
  request.signature = "(float32[::1],)";
  const CompiledSource two = compile_source(request);
  CHECK(two.kernels.at(0).name == "scale");
  CHECK(holds(two.cuda_source, "scale"));
  request.load.constants = {Constant("SCALE", 9.0)};
  CHECK(compile_source(request).ptx != two.ptx);
}

TEST_CASE("PTX is read without NVRTC") {
  CompileRequest request;
  request.language = SourceLanguage::ptx;
  request.source =
      ".version 8.0\n.target sm_89\n.address_size 64\n"
      ".visible .entry set(.param .u64 place, .param .f32 value) { ret; }\n";
  const CompiledSource read = compile_source(request);
  CHECK(read.kernels.at(0).name == "set");
  CHECK(read.kernels.at(0).parameters.at(1).offset == 8);
}

TEST_CASE("errors come back with file and line") {
  if (!ready()) return;
  CompileRequest request;
  request.source = "\nextern \"C\" __global__ void k(int* x) { *x = missing; }";
  request.load.file_name = "wrong.cu";
  const Expected<CompiledSource> wrong = try_compile_source(request);
  REQUIRE_FALSE(wrong.has_value());
  CHECK(wrong.errors().front().span.file == "wrong.cu");
  CHECK(wrong.errors().front().span.line == 2);
  CHECK_THROWS_AS(static_cast<void>(compile_source(request)), CompileError);
}

TEST_CASE("what only Kernel Python takes is refused for CUDA C++") {
  CompileRequest request;
  request.source = "extern \"C\" __global__ void k(int* x) { *x = 1; }";
  request.signature = "int32[:]";
  CHECK(try_compile_source(request).errors().front().code == "usage");
  request.signature.clear();
  request.load.constants = {Constant("N", 4.0)};
  CHECK(try_compile_source(request).errors().front().code == "usage");
}

TEST_CASE("a handler of progress cancels the compilation") {
  if (!ready()) return;
  CompileRequest request;
  request.source = "extern \"C\" __global__ void never_compiled(int* x) { *x = 17; }";
  request.progress = [](const Progress&) { return false; };
  CHECK(try_compile_source(request).errors().front().code == "cancelled");
  request.progress = {};
  CHECK(try_compile_source(request).has_value());
}

TEST_CASE("a forked child finds what its parent has compiled") {
  if (!ready()) return;
  CompileRequest request;
  request.source = "extern \"C\" __global__ void of_the_parent(int* x) { *x = 18; }";
  const std::string ptx = compile_source(request).ptx;
  const std::uint64_t hits = compile_cache_stats().compiles.cache_hits;
  const pid_t child = ::fork();
  if (child == 0) {
    ::alarm(20);
    const bool same = compile_source(request).ptx == ptx;
    ::_exit(same && compile_cache_stats().compiles.cache_hits == hits + 1 ? 0 : 1);
  }
  int status = -1;
  ::waitpid(child, &status, 0);
  CHECK(WIFEXITED(status));
  CHECK(WEXITSTATUS(status) == 0);
}

TEST_CASE("the text of a stage is given of source in memory") {
  if (!ready()) return;
  StageOptions options;
  options.signature = "(float32[::1],)";
  const std::string cuda = stage_text(kPython, SourceLanguage::python, Stage::cuda, options);
  CHECK(holds(cuda, "__global__"));
  options.load.file_name = "scale.py";
  CHECK(holds(stage_text(kPython, SourceLanguage::python, Stage::ptx, options), "\"scale.py\""));
}
