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

#include "device.hpp"
#include "forms.hpp"
#include "machine.hpp"
#include "options.hpp"

using namespace quern;
using oracle::Failure;
using oracle::FormKernel;
using oracle::must;

namespace {

constexpr std::uint32_t kBlock = 64;

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
  std::vector<std::uint64_t> words(output_words(kernel));
  // Short runs skip optimisation, which takes most of the time.
  oracle::run_kernel(table,
                     {.ptx = kernel.ptx,
                      .grid = {kernel.threads / kBlock, 1, 1},
                      .block = {kBlock, 1, 1},
                      .optimised = !oracle::tries_a_part()},
                     std::as_bytes(std::span(kernel.input)), std::as_writable_bytes(std::span(words)));
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

struct Settings {
  std::string only, target, part, device = "cpu", results;
};

struct Counts {
  std::size_t passed = 0, failed = 0, skipped = 0;
};

void try_kernel(const driver::DriverTable& table, const FormKernel& kernel, std::FILE* results,
                Counts& counts) {
  try {
    const std::vector<std::uint64_t> got = run_device(table, kernel);
    for (std::size_t k = 0; results != nullptr && k < kernel.instances.size(); ++k)
      fmt::print(results, "{}\t{:016x}\n", kernel.instances[k].text, digest_of(kernel, got, k));
    const std::size_t wrong = compare(kernel, run_oracle(kernel), got);
    counts.failed += wrong;
    counts.passed += kernel.instances.size() - wrong;
  } catch (const Failure& failure) {
    fmt::print("{} ...: {}\n", kernel.instances[0].text, failure.what);
    counts.failed += kernel.instances.size();
  } catch (const oracle::Unsupported& unsupported) {
    fmt::print("{} ...: {}\n", kernel.instances[0].text, unsupported.what());
    counts.failed += kernel.instances.size();
  }
}

int run(const std::vector<FormKernel>& kernels, const Settings& settings) {
  const Expected<driver::DriverTable> table = oracle::open_device(settings.device);
  if (!table) {
    fmt::print(stderr, "{}", to_string(table.errors()));
    return settings.device == "cpu" ? 1 : 77;
  }
  const int capability = capability_of(*table);
  std::FILE* const results = settings.results.empty() ? nullptr : std::fopen(settings.results.c_str(), "w");
  Counts counts;
  for (std::size_t index = 0; index < kernels.size(); ++index) {
    const FormKernel& kernel = kernels[index];
    if (!is_mine(index, settings.part) || (!settings.target.empty() && kernel.target != settings.target))
      continue;
    if (runs_target(capability, kernel.target))
      try_kernel(*table, kernel, results, counts);
    else
      counts.skipped += kernel.instances.size();
  }
  if (results != nullptr) std::fclose(results);
  fmt::print("{} instructions passed, {} failed, {} skipped: for targets that the device does not run\n",
             counts.passed, counts.failed, counts.skipped);
  return counts.failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  oracle::Options line("Instructions on boundary values, on the oracle and on the CPU device");
  Settings settings;
  bool list = false, show = false;
  line.add("--only", settings.only, "instructions whose text contains this");
  line.add("--target", settings.target, "only instructions of this target");
  line.add("--part", settings.part, "I/N: every N-th kernel from I on");
  line.add_choice("--device", settings.device, {"cpu", "cuda"});
  line.add("--results", settings.results, "write a digest of each instruction's results");
  line.add("--list", list, "print the instructions and stop");
  line.add("--show", show, "print the kernels and stop");
  if (const std::optional<int> status = line.read(argc, argv)) return *status;
  const std::vector<FormKernel> kernels = oracle::form_kernels(settings.only);
  for (const FormKernel& kernel : kernels) {
    if (show) fmt::print("{}", kernel.ptx);
    if (list)
      for (const oracle::FormInstance& instance : kernel.instances) fmt::print("{}\n", instance.text);
  }
  if (list || show) return 0;
  try {
    return run(kernels, settings);
  } catch (const Failure& failure) {
    fmt::print(stderr, "{}\n", failure.what);
    return 1;
  }
}
