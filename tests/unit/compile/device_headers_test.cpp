// SPDX-License-Identifier: Apache-2.0
// include/quern/cuda: compiled by NVRTC, and array.cuh compiled by the host's compiler.
#include "compile/source/device_headers.hpp"

#include <map>
#include <set>
#include <sstream>

#include "quern/cuda/array.cuh"
#include "toolkit.hpp"

using namespace quern;
using test::compiler;
using test::cuda;
using test::errors_of;

namespace {

std::string ptx_of(const std::string& text, std::vector<std::string> options = {},
                   std::vector<std::string> names = {}) {
  abi::KernelRequest request = cuda("#include <quern/device.cuh>\n" + text, std::move(names));
  request.options = std::move(options);
  const auto image = compiler().compile(request);
  REQUIRE_MESSAGE(image, errors_of(image));
  CHECK_MESSAGE((*image)->log.empty(), to_string((*image)->log));
  return (*image)->ptx;
}

// Counts the opcodes in each entry's body: "ld.global.f32" -> 2.
struct Opcodes : std::map<std::string, int> {
  friend doctest::String toString(const Opcodes& opcodes) {
    std::string text;
    for (const auto& [opcode, times] : opcodes) text += opcode + " " + std::to_string(times) + ", ";
    return text.c_str();
  }
};
std::map<std::string, Opcodes> opcodes_of(const std::string& ptx) {
  std::map<std::string, Opcodes> entries;
  std::istringstream lines(ptx);
  std::string line, entry;
  while (std::getline(lines, line)) {
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (const std::size_t at = line.find(".entry "); at != std::string::npos)
      entry = line.substr(at + 7, line.find('(', at) - at - 7);
    if (line.size() < 3 || line[0] != '\t' || !line.ends_with(';') || line[1] == '.') continue;
    std::size_t begin = line[1] == '@' ? line.find(' ') : 1;
    while (std::isspace(static_cast<unsigned char>(line[begin])) != 0) ++begin;
    ++entries[entry][line.substr(begin, line.find_first_of(" \t;", begin) - begin)];
  }
  return entries;
}

// Declarations of shared variables: name -> line.
std::set<std::string> shared_variables(const std::string& ptx) {
  std::set<std::string> found;
  std::istringstream lines(ptx);
  for (std::string line; std::getline(lines, line);)
    if (line.find(".shared .align") != std::string::npos) found.insert(line);
  return found;
}

}  // namespace

TEST_CASE("every header of include/quern/cuda is embedded under the name it is included by") {
  std::set<std::string> names;
  for (const base::EmbeddedText& header : compile::device_headers()) {
    names.emplace(header.name);
    CHECK(header.text.starts_with("// SPDX-License-Identifier: Apache-2.0\n"));
    CHECK(header.text.data()[header.text.size()] == '\0');
  }
  CHECK(names == std::set<std::string>{
                     "quern/device.cuh",         "quern/cuda/arithmetic.cuh", "quern/cuda/array.cuh",
                     "quern/cuda/atomic.cuh",    "quern/cuda/c_array.cuh",    "quern/cuda/wrap.cuh",
                     "quern/cuda/cg.cuh",        "quern/cuda/cmath.cuh",      "quern/cuda/complex.cuh",
                     "quern/cuda/constant.cuh",  "quern/cuda/debug.cuh",      "quern/cuda/fold.cuh",
                     "quern/cuda/grid.cuh",      "quern/cuda/half.cuh",       "quern/cuda/layout.cuh",
                     "quern/cuda/libdevice.cuh", "quern/cuda/local.cuh",      "quern/cuda/match.cuh",
                     "quern/cuda/number.cuh",    "quern/cuda/parts.cuh",      "quern/cuda/random.cuh",
                     "quern/cuda/range.cuh",     "quern/cuda/roc.cuh",        "quern/cuda/shared.cuh",
                     "quern/cuda/sync.cuh",      "quern/cuda/tuple.cuh",      "quern/cuda/vector.cuh",
                     "quern/cuda/view.cuh",      "quern/cuda/warp.cuh"});
}

TEST_CASE("each header compiles alone, in C++17 and in C++20, without warnings") {
  if (!test::have_nvrtc()) return;
  for (const base::EmbeddedText& header : compile::device_headers())
    for (const char* standard : {"--std=c++17", "--std=c++20"}) {
      abi::KernelRequest request =
          cuda("#include <" + std::string(header.name) + ">\n__global__ void k() {}\n");
      request.options = {standard};
      const auto image = compiler().compile(request);
      REQUIRE_MESSAGE(image, errors_of(image));
      CHECK_MESSAGE((*image)->log.empty(), to_string((*image)->log));
    }
}

TEST_CASE("quern::array is indexed with its strides, for nothing more than doing it by hand") {
  if (!test::have_nvrtc()) return;
  const auto entries = opcodes_of(ptx_of(R"(
extern "C" __global__ void by_hand(quern::array<float, 2> a, long long i, long long j) {
  *(float*)((char*)a.data + (i * a.strides_bytes[0] + j * a.strides_bytes[1])) = 1.0f;
}
extern "C" __global__ void by_call(quern::array<float, 2> a, long long i, long long j) { a(i, j) = 1.0f; }
extern "C" __global__ void by_bracket(quern::array<const float, 1> a, float* out, int i) { *out = a[i]; }
extern "C" __global__ void bracket_by_hand(quern::array<const float, 1> a, float* out, int i) {
  *out = *(const float*)((const char*)a.data + i * a.strides_bytes[0]);
})"));
  CHECK(entries.at("by_call") == entries.at("by_hand"));
  CHECK(entries.at("by_bracket") == entries.at("bracket_by_hand"));
}

TEST_CASE("grid positions cost what the formula by hand costs") {
  if (!test::have_nvrtc()) return;
  const auto entries = opcodes_of(ptx_of(R"(
extern "C" __global__ void int_by_hand(float* p, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) p[i] = 1.0f;
}
extern "C" __global__ void int_by_grid(float* p, int n) {
  const int i = quern::grid<1>();
  if (i < n) p[i] = 1.0f;
}
extern "C" __global__ void int_by_roc(float* p, int n) {
  const int i = quern::roc::get_global_id(0);
  if (i < n) p[i] = 1.0f;
}
extern "C" __global__ void wide_by_hand(long long* p) {
  const long long x = (long long)blockIdx.x * blockDim.x + threadIdx.x, y = (long long)blockIdx.y * blockDim.y + threadIdx.y;
  p[0] = x;
  p[1] = y;
}
extern "C" __global__ void wide_by_grid(long long* p) {
  const auto [x, y] = quern::grid<2, long long>();
  p[0] = x;
  p[1] = y;
}
extern "C" __global__ void size_by_hand(int* p) { *p = gridDim.x * blockDim.x - gridDim.y * blockDim.y * (gridDim.z * blockDim.z); }
extern "C" __global__ void size_by_gridsize(int* p) {
  const auto [x, y, z] = quern::gridsize<3>();
  *p = x - y * z;
})"));
  CHECK(entries.at("int_by_grid") == entries.at("int_by_hand"));
  CHECK(entries.at("int_by_roc") == entries.at("int_by_hand"));
  CHECK(entries.at("wide_by_grid") == entries.at("wide_by_hand"));
  CHECK(entries.at("size_by_gridsize") == entries.at("size_by_hand"));
}

TEST_CASE("shared and local arrays cost what declared ones cost") {
  if (!test::have_nvrtc()) return;
  const std::string ptx = ptx_of(R"(
extern "C" __global__ void shared_by_hand(float* p) {
  __shared__ __align__(16) float tile[16][17];
  tile[threadIdx.y][threadIdx.x] = p[threadIdx.x];
  __syncthreads();
  p[threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void shared_by_brackets(float* p) {
  auto tile = quern::shared::array<float, 16, 17>();
  tile[threadIdx.y][threadIdx.x] = p[threadIdx.x];
  quern::syncthreads();
  p[threadIdx.x] = tile[threadIdx.x][threadIdx.y];
}
extern "C" __global__ void shared_by_call(float* p) {
  auto tile = quern::shared::array<float, 16, 17>();
  tile(threadIdx.y, threadIdx.x) = p[threadIdx.x];
  quern::syncthreads();
  p[threadIdx.x] = tile(threadIdx.x, threadIdx.y);
}
extern "C" __global__ void local_by_hand(float* p) {
  float window[4];
  for (int i = 0; i < 4; ++i) window[i] = p[i];
  p[4] = window[0] + window[1] * window[2] - window[3];
}
extern "C" __global__ void local_by_array(float* p) {
  auto window = quern::local::array<float, 2, 2>();
  for (int i = 0; i < 2; ++i)
    for (int j = 0; j < 2; ++j) window(i, j) = p[i * 2 + j];
  p[4] = window[0][0] + window[0][1] * window[1][0] - window[1][1];
})");
  auto entries = opcodes_of(ptx);
  CHECK(entries.at("shared_by_brackets") == entries.at("shared_by_hand"));
  CHECK(entries.at("shared_by_call") == entries.at("shared_by_hand"));
  CHECK(entries.at("local_by_array") == entries.at("local_by_hand"));
  CHECK(ptx.find(".local") == std::string::npos);
  CHECK(ptx.find(".global .") == std::string::npos);  // the headers leave no variables behind
}

TEST_CASE("every place that asks for a shared array has storage of its own") {
  if (!test::have_nvrtc()) return;
  const std::string text = R"(
template <class T> __device__ T helper(T value, int i) {
  auto a = quern::shared::array<float, 32>(SITE);
  auto b = quern::shared::array<float, 32>(SITE);
  a[threadIdx.x] = value;
  b[threadIdx.x] = value + 1;
  __syncthreads();
  return a[i] + b[i];
}
template <class T> __global__ void of_template(T* p) {
  auto a = quern::shared::array<T, 32>(SITE);
  auto b = quern::shared::array<T, 32>(SITE);
  a[threadIdx.x] = p[0];
  b[threadIdx.x] = p[1];
  __syncthreads();
  p[2] = a[31 - threadIdx.x] + b[31 - threadIdx.x];
}
__global__ void plain(float* p) {
  auto a = quern::shared::array<float, 32>(SITE);
  a[threadIdx.x] = helper(1.0f, 3) + helper(2, 4);
  __syncthreads();
  for (int i = 0; i < 3; ++i) {
    auto b = quern::shared::array<float, 32>(SITE);
    b[threadIdx.x] = a[31 - threadIdx.x];
    __syncthreads();
    p[i] += b[30 - i];
  }
})";
  const std::vector<std::string> names = {"of_template<float>", "of_template<double>"};
  // plain: its own two and two for each helper; each template kernel: two.
  CHECK(shared_variables(ptx_of("#define SITE\n" + text, {}, names)).size() == 10);
  CHECK(shared_variables(ptx_of("#define SITE [] {}\n" + text, {}, names)).size() == 10);
  CHECK(shared_variables(ptx_of("#define SITE [] {}\n" + text, {"--std=c++17"}, names)).size() == 10);
}

TEST_CASE("C++17 says how to write a shared array") {
  if (!test::have_nvrtc()) return;
  abi::KernelRequest request = cuda(
      "#include <quern/device.cuh>\n__global__ void k(int* p) { auto a = quern::shared::array<int, 4>(); *p "
      "= a[0]; }");
  request.options = {"--std=c++17"};
  const auto refused = compiler().compile(request);
  REQUIRE_FALSE(refused);
  REQUIRE(refused.errors().size() == 1);
  CHECK(refused.errors()[0].message.find("array<T, extents...>([] {})") != std::string::npos);
}

TEST_CASE("an extent of 0 is the dynamic shared memory, one address for every type") {
  if (!test::have_nvrtc()) return;
  const std::string ptx = ptx_of(R"(
extern "C" __global__ void k(float* p) {
  auto floats = quern::shared::array<float, 0>();
  auto ints = quern::shared::array<int, 0>();
  floats[threadIdx.x] = p[0];
  __syncthreads();
  p[1] = ints[31 - threadIdx.x] + ints.size();
})");
  const std::set<std::string> variables = shared_variables(ptx);
  REQUIRE(variables.size() == 1);
  CHECK(variables.begin()->find(".extern .shared .align 16 .b8") != std::string::npos);
  CHECK(ptx.find("%dynamic_smem_size") != std::string::npos);
}

TEST_CASE("array_like puts a copy of a constexpr array into constant memory") {
  if (!test::have_nvrtc()) return;
  for (const char* standard : {"--std=c++17", "--std=c++20"}) {
    const std::string ptx = ptx_of(R"(
constexpr int kTable[2][3] = {{1, 2, 3}, {4, 5, 6}};
struct Pair { short a; short b; };
constexpr Pair kPairs[] = {{7, 8}, {9, 10}};
extern "C" __global__ void k(int* p, int i, int j) {
  auto table = quern::constant::array_like<kTable>();
  auto pairs = quern::constant::array_like<kPairs>();
  static_assert(table.extent(0) == 2 && table.extent(1) == 3 && table.size() == 6 && pairs.size() == 2);
  *p = table(i, j) + table[j][i] + pairs[i].b;
})",
                                   {standard});
    CHECK(ptx.find("{1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6}") != std::string::npos);
    CHECK(ptx.find("{7, 0, 8, 0, 9, 0, 10}") != std::string::npos);
    CHECK(opcodes_of(ptx).at("k")["ld.const.u32"] == 2);
  }
}

TEST_CASE("constant arrays beyond 64 KiB are refused with the reason") {
  if (!test::have_nvrtc()) return;
  const auto refused = compiler().compile(
      cuda("#include <quern/device.cuh>\nconstexpr double kBig[8193] = {1};\n"
           "__global__ void k(double* p, int i) { *p = quern::constant::array_like<kBig>()[i]; }"));
  REQUIRE_FALSE(refused);
  CHECK(refused.errors()[0].message.find("constant memory holds 64 KiB") != std::string::npos);
}

TEST_CASE("barriers and fences are the instructions they stand for") {
  if (!test::have_nvrtc()) return;
  auto entries = opcodes_of(ptx_of(R"(
extern "C" __global__ void block(int* p) {
  quern::syncthreads();
  p[0] = quern::syncthreads_count(p[1]) + quern::syncthreads_and(p[2]) + quern::syncthreads_or(p[3]);
}
extern "C" __global__ void local_fence() { quern::roc::barrier(quern::roc::CLK_LOCAL_MEM_FENCE); }
extern "C" __global__ void global_fence() { quern::roc::barrier(quern::roc::CLK_GLOBAL_MEM_FENCE); }
extern "C" __global__ void both() { quern::roc::barrier(quern::roc::CLK_LOCAL_MEM_FENCE | quern::roc::CLK_GLOBAL_MEM_FENCE); }
extern "C" __global__ void wave() { quern::roc::wavebarrier(); }
extern "C" __global__ void fences() { quern::roc::mem_fence(quern::roc::CLK_LOCAL_MEM_FENCE); quern::threadfence_system(); }
)"));
  CHECK(entries.at("block")["bar.sync"] == 1);
  CHECK(entries.at("block")["bar.red.popc.u32"] == 1);
  CHECK(entries.at("block")["bar.red.and.pred"] == 1);
  CHECK(entries.at("block")["bar.red.or.pred"] == 1);
  CHECK(entries.at("local_fence")["bar.sync"] == 1);
  CHECK(entries.at("local_fence")["membar.gl"] == 0);
  CHECK(entries.at("global_fence")["membar.gl"] + entries.at("global_fence")["fence.acq_rel.gpu"] == 1);
  CHECK(entries.at("both")["bar.sync"] == 1);
  CHECK(entries.at("wave")["bar.warp.sync"] == 1);
  CHECK(entries.at("fences")["membar.cta"] + entries.at("fences")["fence.acq_rel.cta"] == 1);
  CHECK(entries.at("fences")["membar.sys"] + entries.at("fences")["fence.acq_rel.sys"] == 1);
}

TEST_CASE("the host reads quern::array by the same rules") {
  float data[6] = {0, 1, 2, 3, 4, 5};
  const quern::array<float, 2> rows{data, {2, 3}, {12, 4}};
  CHECK(rows(1, 2) == 5.0f);
  CHECK(rows.size() == 6);
  CHECK(rows.extent(1) == 3);
  const quern::array<const float, 2> transposed{data, {3, 2}, {4, 12}};
  CHECK(transposed(2, 1) == 5.0f);
  const quern::array<float, 1> backwards{data + 5, {6}, {-4}};
  CHECK(backwards[1] == 4.0f);
  const quern::array<float, 0> point{data + 3};
  CHECK(point() == 3.0f);
  static_assert(sizeof(quern::array<float, 0>) == 8);
  static_assert(sizeof(quern::array<double, 3>) == 8 + 3 * 16);
  const quern::fixed_array<float, 2, 3> fixed{data};
  CHECK(fixed(1, 1) == 4.0f);
  CHECK(fixed[1][2] == 5.0f);
}
