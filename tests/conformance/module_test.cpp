// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <string>

#include "kernels.hpp"
#include "suite.hpp"

using namespace quern::conformance;

namespace {

struct LoadResult {
  CUresult result;
  std::string log;
};
LoadResult load(const void* image) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUmodule module = nullptr;
  const CUresult result = cu().cuModuleLoadDataEx(&module, image, 2, options, values);
  if (result == CUDA_SUCCESS) cu().cuModuleUnload(module);
  return {result, log};
}
std::string with_body(const std::string& body) {
  return std::string(kEmptyModule) + ".visible .entry k() {\n" + body + "\nret; }\n";
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "functions and variables are found by name, once and for all") {
  CUfunction first = nullptr, second = nullptr;
  CHECK(cu().cuModuleGetFunction(&first, module, "saxpy") == CUDA_SUCCESS);
  CHECK(cu().cuModuleGetFunction(&second, module, "saxpy") == CUDA_SUCCESS);
  CHECK(first == second);
  CHECK(cu().cuModuleGetFunction(&first, module, "nothing") == CUDA_ERROR_NOT_FOUND);
  CHECK(cu().cuModuleGetFunction(&first, module, "") == CUDA_ERROR_INVALID_VALUE);
  CHECK(cu().cuModuleGetFunction(&first, module, nullptr) == CUDA_ERROR_INVALID_VALUE);
  CUdeviceptr answer = 0, pointer = 0;
  std::size_t bytes = 0;
  CHECK(cu().cuModuleGetGlobal_v2(&answer, &bytes, module, "answer") == CUDA_SUCCESS);
  CHECK(bytes == 4);
  CHECK(download<std::uint32_t>(answer, 1)[0] == 42);
  CHECK(cu().cuModuleGetGlobal_v2(&pointer, nullptr, module, "answer_address") == CUDA_SUCCESS);
  CHECK(download<CUdeviceptr>(pointer, 1)[0] == answer);
  CHECK(cu().cuModuleGetGlobal_v2(&answer, &bytes, module, "nothing") == CUDA_ERROR_NOT_FOUND);
  CHECK(cu().cuModuleGetGlobal_v2(&answer, &bytes, module, "empty") == CUDA_ERROR_INVALID_VALUE);  // a kernel
}

TEST_CASE_FIXTURE(Fixture, "kernels read constants and write variables; every load has its own") {
  const CUdeviceptr out = allocate(16);
  REQUIRE(launch("read_table", 1, 4, nullptr, out) == CUDA_SUCCESS);
  CHECK(download<float>(out, 4) == std::vector<float>{1, 2, 3, 4});
  CUdeviceptr answer = 0, other_answer = 0;
  REQUIRE(cu().cuModuleGetGlobal_v2(&answer, nullptr, module, "answer") == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(answer, 1)[0] == 43);
  CUmodule other = nullptr;
  REQUIRE(cu().cuModuleLoadData(&other, kKernels) == CUDA_SUCCESS);
  REQUIRE(cu().cuModuleGetGlobal_v2(&other_answer, nullptr, other, "answer") == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(other_answer, 1)[0] == 42);
  CHECK(cu().cuModuleUnload(other) == CUDA_SUCCESS);
  if (is_cpu()) CHECK(cu().cuModuleUnload(other) == CUDA_ERROR_INVALID_HANDLE);
}

TEST_CASE_FIXTURE(Fixture, "attributes and parameters of functions") {
  int value = 0;
  CHECK(cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function("at_most_64")) ==
        CUDA_SUCCESS);
  CHECK(value == 64);
  CHECK(cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, function("reverse")) ==
        CUDA_SUCCESS);
  CHECK(value == 256);
  CHECK(cu().cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function("saxpy")) == CUDA_SUCCESS);
  CHECK(value > 0);
  const char* name = nullptr;
  CHECK(cu().cuFuncGetName(&name, function("saxpy")) == CUDA_SUCCESS);
  CHECK(std::string(name) == "saxpy");
  std::size_t offset = 99, size = 99;
  CHECK(cu().cuFuncGetParamInfo(function("many_parameters"), 4, &offset, &size) == CUDA_SUCCESS);
  CHECK(offset == 16);
  CHECK(size == 8);
  CHECK(cu().cuFuncGetParamInfo(function("many_parameters"), 6, &offset, &size) == CUDA_ERROR_INVALID_VALUE);
  int blocks = 0;
  CHECK(cu().cuOccupancyMaxActiveBlocksPerMultiprocessor(&blocks, function("saxpy"), 128, 0) == CUDA_SUCCESS);
  CHECK(blocks >= 1);
}

TEST_CASE_FIXTURE(Fixture, "a module without kernels loads") {
  CHECK(load(kEmptyModule).result == CUDA_SUCCESS);
}

TEST_CASE_FIXTURE(Fixture, "PTX with an error is refused, and the log says where") {
  const LoadResult syntax = load(with_body("  this is no instruction;").c_str());
  CHECK(syntax.result == CUDA_ERROR_INVALID_PTX);
  CHECK(syntax.log.find("5") != std::string::npos);
  const LoadResult type = load(with_body("  .reg .f32 %f1;\n  add.s32 %f1, %f1, 1;").c_str());
  CHECK(type.result == CUDA_ERROR_INVALID_PTX);
  CHECK(type.log.find("6") != std::string::npos);
  const LoadResult name = load(with_body("  mov.u32 %r7, 1;").c_str());
  CHECK(name.result == CUDA_ERROR_INVALID_PTX);
  CHECK(name.log.find("%r7") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "images that are no PTX, and PTX of versions that there are not, are refused") {
  for (const char* text : {"", " \n", "this is not PTX", "// .version 8.0\n", "/* .version 8.0"}) {
    CAPTURE(text);
    CHECK(load(text).result == CUDA_ERROR_INVALID_IMAGE);
  }
  CHECK(load("\177ELF garbage garbage garbage garbage garbage garbage garbage garbage garbage").result ==
        CUDA_ERROR_INVALID_IMAGE);
  CHECK(load(".version 8.0\n").result == CUDA_ERROR_INVALID_PTX);
  CHECK(load("// a comment\n/* and another */ .version 8.0\n.target sm_75\n.address_size 64\n").result ==
        CUDA_SUCCESS);
  for (const char* version : {"9.9", "10.0", "0.5"}) {
    CAPTURE(version);
    const std::string text = std::string(".version ") + version + "\n.target sm_75\n.address_size 64\n";
    CHECK(load(text.c_str()).result == CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
  }
}

TEST_CASE_FIXTURE(Fixture, "images for other architectures are refused") {
  if (!is_cpu()) return;
  const LoadResult newer = load(".version 8.6\n.target sm_100\n.address_size 64\n");
  CHECK(newer.result == CUDA_ERROR_INVALID_PTX);
  CHECK(newer.log.find("sm_100") != std::string::npos);
  const LoadResult suffix = load(".version 8.6\n.target sm_90a\n.address_size 64\n");
  CHECK(suffix.result == CUDA_ERROR_INVALID_PTX);
  const char cubin[64] = "\177ELF\2\1\1";
  const LoadResult machine_code = load(cubin);
  CHECK(machine_code.result == CUDA_ERROR_NO_BINARY_FOR_GPU);
  CHECK(machine_code.log.find("machine code") != std::string::npos);
  CHECK(load(".version 99.0\n.target sm_80\n.address_size 64\n").result ==
        CUDA_ERROR_UNSUPPORTED_PTX_VERSION);
}

TEST_CASE_FIXTURE(Fixture,
                  "what the CPU device does not have is refused at load, with the instruction and its line") {
  if (!is_cpu()) return;
  const LoadResult texture = load((std::string(kEmptyModule) + ".global .texref picture;\n").c_str());
  CHECK(texture.result == CUDA_ERROR_INVALID_PTX);
  CHECK(texture.log.find("picture") != std::string::npos);
  const LoadResult external = load((std::string(kEmptyModule) + ".extern .global .u32 elsewhere;\n").c_str());
  CHECK(external.result == CUDA_ERROR_INVALID_PTX);
  CHECK(external.log.find("elsewhere") != std::string::npos);
}

TEST_CASE_FIXTURE(Fixture, "refused variables and directives come with their line of the PTX") {
  if (!is_cpu()) return;  // in words of its own
  const std::string head = ".version 7.0\n.target sm_70\n";
  const struct {
    const char* text;
    const char* place;
  } cases[] = {
      {".address_size 64\n\n.global .texref texture;\n", "<ptx>:5:"},
      {".address_size 64\n.global .u32 here;\n.extern .global .u32 elsewhere;\n", "<ptx>:5:"},
      {".address_size 64\n.const .b8 small[60000];\n.const .b8 more[6000];\n", "<ptx>:5:"},
      {"\n.address_size 32\n", "<ptx>:4:"},
  };
  for (const auto& [text, place] : cases) {
    const LoadResult result = load((head + text).c_str());
    CAPTURE(result.log);
    CHECK(result.result == CUDA_ERROR_INVALID_PTX);
    CHECK(result.log.find(place) != std::string::npos);
  }
}

TEST_CASE_FIXTURE(Fixture, "options of loading: logs need sizes, a log that is too small is cut") {
  CUmodule unused = nullptr;
  char log[8] = "";
  CUjit_option option = CU_JIT_ERROR_LOG_BUFFER;
  void* value = log;
  CHECK(cu().cuModuleLoadDataEx(&unused, kEmptyModule, 1, &option, &value) == CUDA_ERROR_INVALID_VALUE);
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CHECK(cu().cuModuleLoadDataEx(&unused, with_body("nonsense;").c_str(), 2, options, values) ==
        CUDA_ERROR_INVALID_PTX);
  CHECK(std::memchr(log, '\0', sizeof log) != nullptr);
  CHECK(cu().cuModuleLoadData(&unused, nullptr) == CUDA_ERROR_INVALID_VALUE);
}

TEST_CASE_FIXTURE(Fixture, "a kernel's values do not depend on the level of optimisation") {
  for (std::uintptr_t level = 0; level <= 4; ++level) {
    CAPTURE(level);
    CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
    void* value = reinterpret_cast<void*>(level);
    CUmodule leveled = nullptr;
    REQUIRE(cu().cuModuleLoadDataEx(&leveled, kKernels, 1, &option, &value) == CUDA_SUCCESS);
    CUfunction saxpy = nullptr;
    REQUIRE(cu().cuModuleGetFunction(&saxpy, leveled, "saxpy") == CUDA_SUCCESS);
    CUdeviceptr x = upload<float>({1, 2, 3, 4, 5}), y = upload<float>({10, 20, 30, 40, 50});
    unsigned n = 4;
    float a = 2;
    void* parameters[] = {&n, &a, &x, &y};
    REQUIRE(cu().cuLaunchKernel(saxpy, 1, 1, 1, 64, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
    CHECK(download<float>(y, 5) == std::vector<float>{12, 24, 36, 48, 50});
    CHECK(cu().cuModuleUnload(leveled) == CUDA_SUCCESS);
  }
  CUjit_option option = CU_JIT_OPTIMIZATION_LEVEL;
  void* value = reinterpret_cast<void*>(std::uintptr_t{9});  // as the highest
  CUmodule loaded = nullptr;
  CHECK(cu().cuModuleLoadDataEx(&loaded, kKernels, 1, &option, &value) == CUDA_SUCCESS);
  CHECK(cu().cuModuleUnload(loaded) == CUDA_SUCCESS);
  option = CU_JIT_TARGET;
  value = reinterpret_cast<void*>(std::uintptr_t{10});  // there never was one
  CHECK(cu().cuModuleLoadDataEx(&loaded, kKernels, 1, &option, &value) == CUDA_ERROR_INVALID_VALUE);
}

namespace {

/// A kernel with a loop that adds to `count` f64 values, and then stores them all.
std::string accumulating(int count) {
  const std::string number = std::to_string(count + 1);
  std::string text = std::string(kEmptyModule) +
                     ".visible .entry accumulate(.param .u64 x, .param .u32 n)\n{\n" + "  .reg .f64 %fd<" +
                     number + ">; .reg .f64 %l<" + number +
                     ">; .reg .b64 %rd<2>; .reg .b32 %r<3>; .reg .pred %p;\n" +
                     "  ld.param.u64 %rd1, [x];\n  ld.param.u32 %r1, [n];\n";
  const auto each = [&](const auto& line) {
    for (int i = 1; i <= count; ++i) text += "  " + line(std::to_string(i), std::to_string(8 * i)) + "\n";
  };
  each([](const std::string& i, const std::string&) { return "mov.f64 %fd" + i + ", 0d0000000000000000;"; });
  text += "again:\n";
  each([](const std::string& i, const std::string& at) {
    return "ld.volatile.global.f64 %l" + i + ", [%rd1+" + at + "]; add.f64 %fd" + i + ", %fd" + i + ", %l" +
           i + ";";
  });
  text += "  sub.u32 %r1, %r1, 1;\n  setp.ne.u32 %p, %r1, 0;\n  @%p bra again;\n";
  each([](const std::string& i, const std::string& at) {
    return "st.global.f64 [%rd1+" + at + "], %fd" + i + ";";
  });
  return text + "  ret;\n}\n";
}

/// An attribute of kernel `accumulate`, loaded with CU_JIT_MAX_REGISTERS if that is not 0.
int attribute_of(const std::string& text, CUfunction_attribute attribute, std::uintptr_t max_registers = 0) {
  CUjit_option option = CU_JIT_MAX_REGISTERS;
  void* value = reinterpret_cast<void*>(max_registers);
  CUmodule loaded = nullptr;
  REQUIRE(cu().cuModuleLoadDataEx(&loaded, text.c_str(), max_registers == 0 ? 0 : 1, &option, &value) ==
          CUDA_SUCCESS);
  CUfunction accumulate = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&accumulate, loaded, "accumulate") == CUDA_SUCCESS);
  int result = 0;
  REQUIRE(cu().cuFuncGetAttribute(&result, attribute, accumulate) == CUDA_SUCCESS);
  CHECK(cu().cuModuleUnload(loaded) == CUDA_SUCCESS);
  return result;
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "registers hold what is alive over a loop, within the limit of loading") {
  const std::string few = accumulating(2), many = accumulating(30);
  CHECK(attribute_of(few, CU_FUNC_ATTRIBUTE_NUM_REGS) < 40);
  CHECK(attribute_of(many, CU_FUNC_ATTRIBUTE_NUM_REGS) >= 60);  // 30 values of 64 bits
  CHECK(attribute_of(many, CU_FUNC_ATTRIBUTE_NUM_REGS, 40) <= 40);
  CHECK(attribute_of(many, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES) == 0);
  CHECK(attribute_of(many, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, 40) > 0);  // what does not fit is spilled
  std::string bounded = many;
  bounded.insert(bounded.find("\n{"), " .maxnreg 48");
  CHECK(attribute_of(bounded, CU_FUNC_ATTRIBUTE_NUM_REGS) <= 48);
}

namespace {

constexpr const char* kCaller = R"(.version 7.0
.target sm_50
.address_size 64
.extern .global .align 4 .u32 total;
.extern .func (.param .b32 r) plus_two(.param .b32 x);
.visible .entry run(.param .u64 to)
{
  .reg .b32 %r<4>; .reg .b64 %rd<2>;
  ld.global.u32 %r1, [total];
  { .param .b32 in; .param .b32 out;
  st.param.b32 [in], %r1;
  call.uni (out), plus_two, (in);
  ld.param.b32 %r2, [out]; }
  st.global.u32 [total], %r2;
  ld.param.u64 %rd1, [to];
  st.global.u32 [%rd1], %r2;
  ret;
}
)";
constexpr const char* kCallee = R"(.version 7.0
.target sm_50
.address_size 64
.visible .global .align 4 .u32 total = 40;
.visible .func (.param .b32 r) plus_two(.param .b32 x)
{
  .reg .b32 %r<3>;
  ld.param.b32 %r1, [x];
  add.u32 %r2, %r1, 2;
  st.param.b32 [r], %r2;
  ret;
}
)";

CUresult add(CUlinkState link, const char* text, const char* name) {
  return cu().cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, const_cast<char*>(text), std::strlen(text) + 1, name,
                               0, nullptr, nullptr);
}

}  // namespace

TEST_CASE_FIXTURE(Fixture, "modules are linked: functions and variables of one are another's") {
  CUlinkState link = nullptr;
  REQUIRE(cu().cuLinkCreate_v2(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
  REQUIRE(add(link, kCaller, "caller.ptx") == CUDA_SUCCESS);
  REQUIRE(add(link, kCallee, "callee.ptx") == CUDA_SUCCESS);
  void* image = nullptr;
  std::size_t bytes = 0;
  REQUIRE(cu().cuLinkComplete(link, &image, &bytes) == CUDA_SUCCESS);
  CHECK(bytes > 0);
  CUmodule linked = nullptr;
  REQUIRE(cu().cuModuleLoadData(&linked, image) == CUDA_SUCCESS);
  CHECK(cu().cuLinkDestroy(link) == CUDA_SUCCESS);
  CUfunction run = nullptr;
  REQUIRE(cu().cuModuleGetFunction(&run, linked, "run") == CUDA_SUCCESS);
  CUdeviceptr to = allocate(4);
  void* parameters[] = {&to};
  for (int i = 0; i < 2; ++i)
    REQUIRE(cu().cuLaunchKernel(run, 1, 1, 1, 1, 1, 1, 0, nullptr, parameters, nullptr) == CUDA_SUCCESS);
  REQUIRE(cu().cuCtxSynchronize() == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(to, 1)[0] == 44);
  CUdeviceptr total = 0;
  REQUIRE(cu().cuModuleGetGlobal_v2(&total, &bytes, linked, "total") == CUDA_SUCCESS);
  CHECK(download<std::uint32_t>(total, 1)[0] == 44);
}

TEST_CASE_FIXTURE(Fixture, "what cannot be linked is refused, and the log says why") {
  char log[1024] = "x";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {log, reinterpret_cast<void*>(sizeof log)};
  CUlinkState link = nullptr;
  REQUIRE(cu().cuLinkCreate_v2(2, options, values, &link) == CUDA_SUCCESS);
  REQUIRE(add(link, kCaller, "caller.ptx") == CUDA_SUCCESS);
  void* image = nullptr;
  std::size_t bytes = 0;
  CHECK(cu().cuLinkComplete(link, &image, &bytes) == CUDA_ERROR_INVALID_SOURCE);
  CHECK(std::string(log).find("total") != std::string::npos);
  CHECK(cu().cuLinkDestroy(link) == CUDA_SUCCESS);
  if (is_cpu()) {
    CHECK(cu().cuLinkDestroy(link) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(cu().cuLinkComplete(link, &image, &bytes) == CUDA_ERROR_INVALID_HANDLE);
    REQUIRE(cu().cuLinkCreate_v2(0, nullptr, nullptr, &link) == CUDA_SUCCESS);
    CHECK(add(link, "no PTX", "x.ptx") == CUDA_ERROR_INVALID_IMAGE);
    CHECK(cu().cuLinkAddData_v2(link, CU_JIT_INPUT_CUBIN, values, 8, "x", 0, nullptr, nullptr) ==
          CUDA_ERROR_INVALID_IMAGE);
    CHECK(cu().cuLinkComplete(link, &image, &bytes) == CUDA_SUCCESS);  // nothing was added
    CHECK(cu().cuLinkComplete(link, &image, &bytes) == CUDA_ERROR_INVALID_HANDLE);
    CHECK(add(link, kCaller, "late.ptx") == CUDA_ERROR_INVALID_VALUE);
    CHECK(cu().cuLinkAddData_v2(link, CU_JIT_INPUT_PTX, nullptr, 8, "x", 0, nullptr, nullptr) ==
          CUDA_ERROR_INVALID_VALUE);
    CHECK(cu().cuLinkDestroy(link) == CUDA_SUCCESS);
  }
  CHECK(cu().cuLinkCreate_v2(0, nullptr, nullptr, nullptr) == CUDA_ERROR_INVALID_VALUE);
}
