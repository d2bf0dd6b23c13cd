// SPDX-License-Identifier: Apache-2.0
// Runs every instruction of forms.def with boundary values on the oracle and on the CPU device: the bits must
// agree (unless PTX specifies the bits of a NaN, any two NaNs are equal).
//   forms [--only TEXT] [--part I/N] [--list] [--show] [--device cpu|cuda] [--results FILE]
// --results: for each instruction, a line with its text and a digest of the device's results. Exit status 77:
// there is no such device.
#include <fmt/format.h>

#include <cstdio>
#include <cstring>
#include <optional>

#include "driver/loader.hpp"
#include "forms.hpp"
#include "machine.hpp"
#include "options.hpp"

using namespace quern;
using oracle::FormKernel;

namespace {

constexpr std::uint32_t kBlock = 64;

struct Failure {
  std::string what;
};

void must(CUresult result, const char* call) {
  if (result != CUDA_SUCCESS) throw Failure{fmt::format("{} answers {}", call, static_cast<int>(result))};
}

std::size_t output_words(const FormKernel& kernel) {
  return std::size_t{kernel.threads} * kernel.instances.size();
}

std::vector<std::uint64_t> run_oracle(const FormKernel& kernel) {
  oracle::Machine machine(oracle::read(kernel.ptx));
  const std::uint64_t in = machine.allocate(kernel.input.size() * 8);
  const std::uint64_t out = machine.allocate(output_words(kernel) * 8);
  std::memcpy(machine.memory(in).data(), kernel.input.data(), kernel.input.size() * 8);
  std::vector<std::byte> params(16);
  std::memcpy(params.data(), &in, 8);
  std::memcpy(params.data() + 8, &out, 8);
  const oracle::Result result =
      machine.launch("k", {.grid = {kernel.threads / kBlock, 1, 1}, .block = {kBlock, 1, 1}}, params);
  if (result.outcome != oracle::Outcome::ok) throw Failure{"the oracle stops: " + result.message};
  std::vector<std::uint64_t> words(output_words(kernel));
  std::memcpy(words.data(), machine.memory(out).data(), words.size() * 8);
  return words;
}

std::vector<std::uint64_t> run_device(const driver::DriverTable& table, const FormKernel& kernel) {
  char log[4096] = "";
  CUjit_option options[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES,
                            CU_JIT_OPTIMIZATION_LEVEL};
  // Short runs skip optimisation, which takes most of the time.
  void* values[] = {log, reinterpret_cast<void*>(sizeof log),
                    reinterpret_cast<void*>(std::uintptr_t{oracle::tries_a_part() ? 0u : 4u})};
  CUmodule module = nullptr;
  if (table.cuModuleLoadDataEx(&module, kernel.ptx.c_str(), 3, options, values) != CUDA_SUCCESS)
    throw Failure{fmt::format("does not load: {}", log)};
  CUfunction function = nullptr;
  must(table.cuModuleGetFunction(&function, module, "k"), "cuModuleGetFunction");
  CUdeviceptr in = 0, out = 0;
  std::vector<std::uint64_t> words(output_words(kernel));
  must(table.cuMemAlloc_v2(&in, kernel.input.size() * 8), "cuMemAlloc");
  must(table.cuMemAlloc_v2(&out, words.size() * 8), "cuMemAlloc");
  must(table.cuMemcpyHtoD_v2(in, kernel.input.data(), kernel.input.size() * 8), "cuMemcpyHtoD");
  void* params[] = {&in, &out};
  must(table.cuLaunchKernel(function, kernel.threads / kBlock, 1, 1, kBlock, 1, 1, 0, nullptr, params,
                            nullptr),
       "cuLaunchKernel");
  must(table.cuMemcpyDtoH_v2(words.data(), out, words.size() * 8), "cuMemcpyDtoH");
  must(table.cuMemFree_v2(in), "cuMemFree");
  must(table.cuMemFree_v2(out), "cuMemFree");
  must(table.cuModuleUnload(module), "cuModuleUnload");
  return words;
}

/// Reports each instruction that differs once. Returns their number.
std::size_t compare(const FormKernel& kernel, const std::vector<std::uint64_t>& expected,
                    const std::vector<std::uint64_t>& got) {
  const std::size_t count = kernel.instances.size();
  std::size_t failed = 0;
  for (std::size_t k = 0; k < count; ++k)
    for (std::size_t thread = 0; thread < kernel.threads; ++thread) {
      const std::uint64_t a = expected[thread * count + k], b = got[thread * count + k];
      if (oracle::same_result(kernel.instances[k].kind, a, b)) continue;
      std::string inputs;
      for (unsigned s = 0; s < kernel.sources; ++s)
        inputs += fmt::format(" {:#x}", kernel.input[thread * kernel.sources + s]);
      fmt::print("{} of{}: the oracle has {:#x}, the device {:#x}\n", kernel.instances[k].text, inputs, a, b);
      ++failed;
      break;
    }
  return failed;
}

/// FNV-1a over the instruction's results. NaNs whose bits PTX leaves open count as one.
std::uint64_t digest_of(const FormKernel& kernel, const std::vector<std::uint64_t>& got, std::size_t k) {
  std::uint64_t digest = 0xcbf29ce484222325u;
  for (std::size_t thread = 0; thread < kernel.threads; ++thread) {
    std::uint64_t word = got[thread * kernel.instances.size() + k];
    word = oracle::canonical_result(kernel.instances[k].kind, word);
    for (unsigned byte = 0; byte < 8; ++byte)
      digest = (digest ^ (word >> (8 * byte) & 0xff)) * 0x100000001b3u;
  }
  return digest;
}

Expected<driver::DriverTable> open_table(const std::string& device) {
  // The libraries are never closed: their threads may outlive this code.
  if (device == "cuda") {
    auto loaded = driver::load_libcuda();
    if (!loaded) return loaded.errors();
    static const auto* const kept = new driver::LoadedDriver(std::move(*loaded));
    return kept->table;
  }
  auto loaded = driver::load_cpu_plugin();
  if (!loaded) return loaded.errors();
  static const auto* const kept = new driver::LoadedPlugin(std::move(*loaded));
  return kept->table;
}

/// True if a device of that compute capability (89: 8.9) runs modules for `target`. "sm_100a" is for 10.0
/// only.
bool runs_target(int capability, const std::string& target) {
  const int number = std::stoi(target.substr(target.find('_') + 1));
  return target.back() == 'a' ? number == capability : number <= capability;
}

int capability_of(const driver::DriverTable& table) {
  int major = 0, minor = 0;
  must(table.cuDeviceGetAttribute(&major, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 0),
       "cuDeviceGetAttribute");
  must(table.cuDeviceGetAttribute(&minor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0),
       "cuDeviceGetAttribute");
  return major * 10 + minor;
}

bool is_mine(std::size_t index, const std::string& part) {
  const std::size_t slash = part.find('/');
  if (slash == std::string::npos) return true;
  return index % std::stoul(part.substr(slash + 1)) == std::stoul(part.substr(0, slash));
}

}  // namespace

int main(int argc, char** argv) {
  oracle::Options line("Instructions on boundary values, on the oracle and on the CPU device");
  std::string only, target, part, device_name = "cpu", results_file;
  bool list = false, show = false;
  line.add("--only", only, "instructions whose text contains this");
  line.add("--target", target, "only instructions of this target");
  line.add("--part", part, "I/N: every N-th kernel from I on");
  line.add_choice("--device", device_name, {"cpu", "cuda"});
  line.add("--results", results_file, "write a digest of each instruction's results");
  line.add("--list", list, "print the instructions and stop");
  line.add("--show", show, "print the kernels and stop");
  if (const std::optional<int> status = line.read(argc, argv)) return *status;
  const std::vector<FormKernel> kernels = oracle::form_kernels(only);
  for (const FormKernel& kernel : kernels) {
    if (show) fmt::print("{}", kernel.ptx);
    if (list)
      for (const oracle::FormInstance& instance : kernel.instances) fmt::print("{}\n", instance.text);
  }
  if (list || show) return 0;
  const Expected<driver::DriverTable> opened = open_table(device_name);
  if (!opened) {
    fmt::print(stderr, "{}", to_string(opened.errors()));
    return device_name == "cpu" ? 1 : 77;
  }
  const driver::DriverTable& table = *opened;
  std::FILE* const results = results_file.empty() ? nullptr : std::fopen(results_file.c_str(), "w");
  std::size_t passed = 0, failed = 0, skipped = 0;
  int capability = 0;
  try {
    CUcontext context = nullptr;
    must(table.cuInit(0), "cuInit");
    must(table.cuDevicePrimaryCtxRetain(&context, 0), "cuDevicePrimaryCtxRetain");
    must(table.cuCtxSetCurrent(context), "cuCtxSetCurrent");
    capability = capability_of(table);
  } catch (const Failure& failure) {
    fmt::print(stderr, "{}\n", failure.what);
    return 1;
  }
  for (std::size_t index = 0; index < kernels.size(); ++index) {
    const FormKernel& kernel = kernels[index];
    if (!is_mine(index, part) || (!target.empty() && kernel.target != target)) continue;
    if (!runs_target(capability, kernel.target)) {
      skipped += kernel.instances.size();
      continue;
    }
    try {
      const std::vector<std::uint64_t> got = run_device(table, kernel);
      for (std::size_t k = 0; results != nullptr && k < kernel.instances.size(); ++k)
        fmt::print(results, "{}\t{:016x}\n", kernel.instances[k].text, digest_of(kernel, got, k));
      const std::size_t wrong = compare(kernel, run_oracle(kernel), got);
      failed += wrong;
      passed += kernel.instances.size() - wrong;
    } catch (const Failure& failure) {
      fmt::print("{} ...: {}\n", kernel.instances[0].text, failure.what);
      failed += kernel.instances.size();
    } catch (const oracle::Unsupported& unsupported) {
      fmt::print("{} ...: {}\n", kernel.instances[0].text, unsupported.what());
      failed += kernel.instances.size();
    }
  }
  if (results != nullptr) std::fclose(results);
  fmt::print("{} instructions passed, {} failed, {} skipped: for targets that the device does not run\n",
             passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}
