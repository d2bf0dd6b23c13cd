// SPDX-License-Identifier: Apache-2.0
// Measures a user's wait for small pieces of work on the CPU device: nodes of a graph, and the first launch
// of a kernel from its CUDA C++, with the parts of that time. Prints rows of values separated by tabs, for
// tools/bench --latency:
//     graph, us a node
//     first, name, ms: all, NVRTC, our part of the CPU device, LLVM's passes, its code generator, all in a
//     second process, which finds everything on the disk, and all but NVRTC if quick code runs first
// All but the last are with good code only.
#include <fmt/format.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "driver/loader.hpp"
#include "sources.hpp"

namespace {

using namespace quern;

constexpr std::uint32_t kThreads = 256;
constexpr int kRepeats = 9;
constexpr int kNodes = 1000;

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

void require(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  fmt::print(stderr, "latency-bench: {} fails with {}\n", call, static_cast<int>(result));
  std::exit(1);
}

/// A function that is no slot of DriverTable.
template <class Function>
Function* find(const driver::DriverTable& cu, const char* name) {
  void* found = nullptr;
  require(cu.cuGetProcAddress_v2(name, &found, 12000, CU_GET_PROC_ADDRESS_DEFAULT, nullptr), name);
  return reinterpret_cast<Function*>(found);
}
#define QUERN_FIND(cu, name) find<decltype(::name)>(cu, #name)

/// A chain of empty kernels, ready to launch in the current context.
CUgraphExec chain(const driver::DriverTable& cu, CUfunction function) {
  CUgraph graph = nullptr;
  require(QUERN_FIND(cu, cuGraphCreate)(&graph, 0), "cuGraphCreate");
  CUDA_KERNEL_NODE_PARAMS node_parameters{};
  node_parameters.func = function;
  node_parameters.gridDimX = node_parameters.gridDimY = node_parameters.gridDimZ = 1;
  node_parameters.blockDimX = 32;
  node_parameters.blockDimY = node_parameters.blockDimZ = 1;
  auto* const add = find<decltype(::cuGraphAddKernelNode_v2)>(cu, "cuGraphAddKernelNode");
  CUgraphNode last = nullptr;
  for (int i = 0; i < kNodes; ++i) {
    CUgraphNode node = nullptr;
    require(add(&node, graph, &last, i == 0 ? 0 : 1, &node_parameters), "cuGraphAddKernelNode");
    last = node;
  }
  CUgraphExec launchable = nullptr;
  require(QUERN_FIND(cu, cuGraphInstantiateWithFlags)(&launchable, graph, 0), "cuGraphInstantiate");
  return launchable;
}

/// Microseconds from the launch of a graph of empty kernels, one after another, to its end, for each node.
double graph_node_us() {
  const Session session("cpu");
  const Module module = session.load_cuda("extern \"C\" __global__ void empty() {}");
  const Expected<driver::LoadedPlugin> device = driver::load_cpu_plugin();
  if (!device) std::exit(1);
  const driver::DriverTable& cu = device->table;
  CUcontext context = nullptr;
  require(cu.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
  require(cu.cuCtxSetCurrent(context), "cuCtxSetCurrent");
  const CUgraphExec graph = chain(cu, static_cast<CUfunction>(module.kernel().handle()));
  auto* const launch = QUERN_FIND(cu, cuGraphLaunch);
  double least = 1e30;
  for (int round = 0; round < 50; ++round) {
    const double begin = now_ms();
    require(launch(graph, nullptr), "cuGraphLaunch");
    require(cu.cuStreamSynchronize(nullptr), "cuStreamSynchronize");
    least = std::min(least, now_ms() - begin);
  }
  return least * 1e3 / kNodes;
}

struct Case {
  const char* name;
  std::string source;  ///< of a kernel k(pointer)
};

std::vector<Case> cases() {
  return {{"y * 2, f32", bench::elementwise("float", "x * 2")},
          {"50 lines, f32", bench::fifty_lines()},
          {"sin, f32", bench::elementwise("float", "sinf(x)")},
          {"exp + sin * pow, f64", bench::elementwise("double", "exp(x) + sin(x) * pow(x, 1.5)")}};
}

/// Nobody has compiled it with that serial number before; the variable makes the PTX differ, too.
std::string with_serial(const std::string& source, int serial) {
  return fmt::format("{}__device__ int serial = {};\n", source, serial);
}

/// The parts of the CPU device's compile time, in milliseconds.
struct Parts {
  double ours = 0, passes = 0, code = 0;
};

/// The least time of each pass in several runs of the compiler.
std::vector<PassTime> pass_times(const std::string& source) {
  std::vector<PassTime> least;
  for (int run = 0; run < kRepeats; ++run) {
    std::vector<PassTime> times;
    StageOptions options;
    options.pass_times = &times;
    static_cast<void>(stage_text(source, SourceLanguage::cuda, Stage::assembly, options));
    if (least.empty()) least = times;
    for (std::size_t i = 0; i < least.size(); ++i) least[i].time = std::min(least[i].time, times[i].time);
  }
  return least;
}

/// The passes over LLVM's IR run between ours, which end with emit_llvm, and the code generator.
Parts parts_of(const std::string& source) {
  Parts parts;
  double* part = &parts.ours;
  for (const PassTime& pass : pass_times(source)) {
    if (pass.name == "print_assembly") part = &parts.code;
    *part += std::chrono::duration<double, std::milli>(pass.time).count();
    if (pass.name == "emit_llvm") part = &parts.passes;
  }
  return parts;
}

struct First {
  double all = 1e30;
  KernelInfo info;
};

/// From the source to the end of the launch; the array and the compilers are there before.
First first_launch(const Session& session, const std::string& source) {
  const DeviceBuffer array = session.allocate(std::size_t{8} * kThreads);
  session.synchronize();
  const double begin = now_ms();
  const Kernel kernel = session.load_cuda(source).kernel("k");
  kernel({.grid = 1, .block = kThreads})(array);
  session.synchronize();
  const First first{now_ms() - begin, kernel.info()};
  kernel.prepare(kThreads);  // nothing is compiled in the background when the next one begins
  return first;
}

/// The quickest of several sources that differ only in their serial numbers, of which it is the first.
First quickest(const std::string& source, int first_serial = 0) {
  const Session session("cpu");
  first_launch(session, bench::elementwise("int", "x + 1"));  // loads NVRTC, starts LLVM
  First least;
  for (int serial = first_serial; serial < first_serial + kRepeats; ++serial) {
    const First one = first_launch(session, with_serial(source, serial));
    if (one.all < least.all) least = one;
  }
  return least;
}

/// The line that `work` prints in a process of its own.
std::string in_child(const std::function<std::string()>& work) {
  int ends[2];
  if (::pipe(ends) != 0) std::exit(1);
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = work();
    const bool written = ::write(ends[1], text.data(), text.size()) == static_cast<ssize_t>(text.size());
    ::_exit(written ? 0 : 1);
  }
  ::close(ends[1]);
  std::array<char, 256> text{};
  const ssize_t size = ::read(ends[0], text.data(), text.size());
  ::close(ends[0]);
  int status = 0;
  if (child < 0 || ::waitpid(child, &status, 0) != child || status != 0 || size <= 0) std::exit(1);
  return {text.data(), static_cast<std::size_t>(size)};
}

std::string measure_new(const Case& of) {
  const First first = quickest(of.source);
  const Parts parts = parts_of(of.source);
  // The stage is another run of the compiler, so that only the proportion of its parts is taken.
  const double scale = first.info.machine_code_ms / (parts.ours + parts.passes + parts.code);
  return fmt::format("{}\t{}\t{}\t{}\t{}", first.all, first.info.nvrtc_ms,
                     first.info.load_ms + parts.ours * scale, parts.passes * scale, parts.code * scale);
}

std::string measure_known(const Case& of) {
  const First first = quickest(of.source);
  if (first.info.compile_ms != 0) return "";  // something was not on the disk
  return fmt::format("{}", first.all);
}

/// With quick code first, of sources that the disk does not know.
std::string measure_quick(const Case& of) {
  ::setenv("QUERN_CPU_TIER", "auto", 1);
  const First first = quickest(of.source, kRepeats);
  return fmt::format("{}", first.all - first.info.nvrtc_ms);
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view only = argc > 1 ? argv[1] : "";
  std::string folder = (std::filesystem::temp_directory_path() / "quern-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  ::setenv("QUERN_CACHE", "1", 1);
  ::setenv("QUERN_CPU_TIER", "good", 1);
  ::setenv("QUERN_CACHE_DIR", (folder + "/cache").c_str(), 1);
  if (std::string_view("graph").find(only) != std::string_view::npos)
    fmt::print("graph\t{}\n", in_child([] { return fmt::format("{}", graph_node_us()); }));
  for (const Case& of : cases()) {
    if (std::string_view(of.name).find(only) == std::string_view::npos) continue;
    const std::string fresh = in_child([&] { return measure_new(of); });
    const std::string known = in_child([&] { return measure_known(of); });
    fmt::print("first\t{}\t{}\t{}\t{}\n", of.name, fresh, known, in_child([&] { return measure_quick(of); }));
    std::fflush(stdout);
  }
  std::filesystem::remove_all(folder);
}
