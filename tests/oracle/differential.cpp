// SPDX-License-Identifier: Apache-2.0
// Runs generated kernels on the oracle and on a device: every bit must agree (any two NaNs are equal).
//   differential [--first SEED] [--count N] [--show SEED] [--waiting] [--device cpu|cuda] [--without REGEX]
// --without: kernels with an instruction that matches are skipped; for GPUs, whose deviations are listed.
// With QUERN_CPU_DISPATCH=1, the dispatcher runs every kernel on the device. Exit status 1 if a kernel
// differs; the seed, the place and both values are printed. The seed alone reproduces a kernel. The device
// optimises three of four kernels.
#include <fmt/format.h>

#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <regex>

#include "device.hpp"
#include "generate.hpp"
#include "machine.hpp"
#include "options.hpp"

using namespace quern;
using oracle::Failure;
using oracle::Generated;

namespace {

std::vector<std::byte> run_oracle(const Generated& kernel, const std::vector<std::byte>& input) {
  oracle::Machine machine(oracle::read(kernel.ptx));
  const std::uint64_t in = machine.allocate(kernel.in_bytes), out = machine.allocate(kernel.out_bytes);
  std::memcpy(machine.memory(in).data(), input.data(), input.size());
  std::memset(machine.memory(out).data(), oracle::kOutFill, kernel.out_bytes);
  std::vector<std::byte> params(20);
  std::memcpy(params.data(), &in, 8);
  std::memcpy(params.data() + 8, &out, 8);
  const oracle::Result result = machine.launch("k", {.grid = kernel.grid, .block = kernel.block}, params);
  if (result.outcome != oracle::Outcome::ok) throw Failure{"the oracle stops: " + result.message};
  const auto bytes = machine.memory(out);
  return {bytes.begin(), bytes.end()};
}

std::vector<std::byte> run_device(const driver::DriverTable& table, const Generated& kernel,
                                  const std::vector<std::byte>& input, bool optimised) {
  std::vector<std::byte> output(kernel.out_bytes, std::byte{oracle::kOutFill});
  oracle::run_kernel(table,
                     {.ptx = kernel.ptx, .grid = kernel.grid, .block = kernel.block, .optimised = optimised},
                     input, output);
  return output;
}

/// Threads that wait take much time in the oracle.
std::uint64_t usual_count(bool waiting) { return oracle::part_of(waiting ? 30 : 100); }

/// True if an instruction, without its predicate and operands, matches as a whole.
bool has_instruction(const std::string& ptx, const std::regex& wanted) {
  static const std::regex opcode(R"((?:^|[;{:]|\n)\s*(?:@!?%\w+\s+)?([a-z][\w.:]*))");
  for (std::sregex_iterator found(ptx.begin(), ptx.end(), opcode), end; found != end; ++found)
    if (std::regex_match((*found)[1].str(), wanted)) return true;
  return false;
}

struct Settings {
  std::uint64_t first = 0;
  std::optional<std::uint64_t> count;
  std::string device = "cpu", without;
  oracle::GenerateOptions options;
};

int run(const Settings& settings) {
  const Expected<driver::DriverTable> table = oracle::open_device(settings.device);
  if (!table) {
    fmt::print(stderr, "{}", to_string(table.errors()));
    return settings.device == "cpu" ? 1 : 77;
  }
  const std::uint64_t count = settings.count.value_or(usual_count(settings.options.waiting));
  const std::regex without(settings.without.empty() ? "$^" : settings.without);
  std::uint64_t passed = 0, failed = 0, skipped = 0;
  for (std::uint64_t seed = settings.first; seed < settings.first + count; ++seed) {
    try {
      const Generated kernel = oracle::generate(seed, settings.options);
      if (has_instruction(kernel.ptx, without)) {
        ++skipped;
        continue;
      }
      const std::vector<std::byte> input = oracle::input_of(kernel, seed, static_cast<unsigned>(seed % 8));
      const std::string differs =
          difference(kernel, run_oracle(kernel, input), run_device(*table, kernel, input, seed % 4 != 0));
      if (!differs.empty()) throw Failure{differs};
      ++passed;
    } catch (const Failure& failure) {
      ++failed;
      fmt::print("seed {}: {}\n", seed, failure.what);
    }
  }
  fmt::print("{} passed, {} failed, {} skipped\n", passed, failed, skipped);
  return failed == 0 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) {
  oracle::Options line("Generated kernels on the oracle and on a device");
  Settings settings;
  std::optional<std::uint64_t> show;
  line.add("--first", settings.first, "first seed");
  line.add("--count", settings.count, "number of seeds, instead of a usual number");
  line.add("--waiting", settings.options.waiting,
           "with locks, chains of threads, barriers for a part of the block, loops with two entries");
  line.add_choice("--device", settings.device, {"cpu", "cuda"});
  line.add("--without", settings.without,
           "skip kernels that have an instruction which this expression matches");
  line.add("--show", show, "print the kernel of this seed and stop");
  if (const std::optional<int> status = line.read(argc, argv)) return *status;
  if (show) {
    const Generated kernel = oracle::generate(*show, settings.options);
    fmt::print("// grid {}x{}x{}, block {}x{}x{}\n{}", kernel.grid[0], kernel.grid[1], kernel.grid[2],
               kernel.block[0], kernel.block[1], kernel.block[2], kernel.ptx);
    return 0;
  }
  try {
    return run(settings);
  } catch (const Failure& failure) {
    fmt::print(stderr, "{}\n", failure.what);
    return 1;
  }
}
