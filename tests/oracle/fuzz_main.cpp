// SPDX-License-Identifier: Apache-2.0
// Runs generated kernels on the oracle and on the CPU device, each with several configurations and several
// sets of data: every byte of the output must agree (any two NaNs are equal). A case is one kernel with one
// configuration and one set of data.
//   differential-fuzz [--first SEED] [--kernels N] [--configurations N] [--data N] [--statements N]
//                     [--indices PERCENT] [--waiting PERCENT] [--dispatched PERCENT]
//   differential-fuzz --show SEED
// Prints each seed that fails and the reason, and at the end "kernels K, compilations C, cases N, failed F".
// After a crash or a hang, the seed is the last word of the output.
#include <fmt/format.h>
#include <sys/time.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstring>
#include <optional>

#include "bare_device.hpp"
#include "machine.hpp"
#include "options.hpp"
#include "ptx/ptx.hpp"
#include "random.hpp"

using namespace quern;
using oracle::Generated;

namespace {

constexpr long kHangSeconds = 120;  ///< of processor time, so that a busy machine does not count as a hang

struct Settings {
  std::uint64_t first = 0;
  std::uint64_t kernels = oracle::part_of(60);
  unsigned configurations = 2;
  unsigned data = 32;
  unsigned statements = 0;   ///< 0: the seed determines it
  unsigned indices = 25;     ///< percent of the kernels that mostly compute indices
  unsigned waiting = 10;     ///< percent of the kernels whose threads wait for each other
  unsigned dispatched = 20;  ///< percent of the configurations
};

struct Counts {
  std::uint64_t kernels = 0;
  std::uint64_t compilations = 0;
  std::uint64_t cases = 0;
  std::uint64_t failed = 0;
};

struct Failure {
  std::string what;
};

volatile std::uint64_t current_seed = 0;

/// Sends SIGPROF after this many seconds; 0: never.
void limit_time(long seconds) {
  const itimerval limit{.it_interval = {}, .it_value = {.tv_sec = seconds, .tv_usec = 0}};
  setitimer(ITIMER_PROF, &limit, nullptr);
}

/// Calls only functions that are allowed in a signal handler.
void die_with_seed(int signal) {
  char text[64];
  std::size_t at = sizeof text;
  text[--at] = '\n';
  for (std::uint64_t rest = current_seed;; rest /= 10) {
    text[--at] = static_cast<char>('0' + rest % 10);
    if (rest < 10) break;
  }
  const char* const what = signal == SIGPROF ? "a hang at seed " : "a crash at seed ";
  if (write(STDOUT_FILENO, what, std::strlen(what)) < 0 ||
      write(STDOUT_FILENO, text + at, sizeof text - at) < 0)
    _exit(4);
  _exit(3);
}

void catch_signals() {
  // Uses a separate stack, since a kernel may have exhausted the current one.
  static std::array<std::byte, 1 << 16> stack;
  stack_t place{};
  place.ss_sp = stack.data();
  place.ss_size = stack.size();
  sigaltstack(&place, nullptr);
  struct sigaction action{};
  action.sa_handler = die_with_seed;
  action.sa_flags = SA_ONSTACK;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT, SIGPROF})
    sigaction(signal, &action, nullptr);
}

std::vector<std::byte> parameters(std::uint64_t in, std::uint64_t out) {
  std::vector<std::byte> bytes(20);
  std::memcpy(bytes.data(), &in, 8);
  std::memcpy(bytes.data() + 8, &out, 8);
  return bytes;
}

/// The oracle's memory is allocated once for all sets of data.
class OracleRun {
 public:
  explicit OracleRun(const Generated& kernel)
      : kernel_(kernel),
        machine_(oracle::read(kernel.ptx)),
        in_(machine_.allocate(kernel.in_bytes)),
        out_(machine_.allocate(kernel.out_bytes)) {}

  std::vector<std::byte> run(const std::vector<std::byte>& input) {
    std::memcpy(machine_.memory(in_).data(), input.data(), input.size());
    const auto out = machine_.memory(out_);
    std::memset(out.data(), oracle::kOutFill, out.size());
    const oracle::Result result =
        machine_.launch("k", {.grid = kernel_.grid, .block = kernel_.block}, parameters(in_, out_));
    if (result.outcome != oracle::Outcome::ok) throw Failure{"the oracle stops: " + result.message};
    return {out.begin(), out.end()};
  }

 private:
  const Generated& kernel_;
  oracle::Machine machine_;
  std::uint64_t in_, out_;
};

/// The stack of one thread for called functions: `descend` calls itself seven times.
constexpr std::uint64_t kStackBytes = 1024;

class DeviceRun {
 public:
  DeviceRun(oracle::BareDevice& device, const Generated& kernel) : device_(device), kernel_(kernel) {
    Expected<ptx::Module> module = ptx::parse(kernel.ptx, "kernel");
    if (!module) throw Failure{to_string(module.errors())};
    if (const Expected<void> valid = ptx::verify(*module, "kernel"); !valid)
      throw Failure{to_string(valid.errors())};
    module_ = std::move(*module);
    const auto info = cpu::inspect(module_, "kernel");
    if (!info) throw Failure{to_string(info.errors())};
  }

  void compile(const cpu::Specialisation& specialisation) {
    auto code = cpu::compile(module_, "k", specialisation);
    if (!code) throw Failure{to_string(code.errors())};
    code_ = *code;
    local_bytes_ = code_->local.bytes + (code_->local.calls ? kStackBytes : 0);
    specialisation_ = specialisation;
    device_.load(module_);
    in_ = device_.allocate(kernel_.in_bytes);
    out_ = device_.allocate(kernel_.out_bytes);
  }

  std::vector<std::byte> run(const std::vector<std::byte>& input) {
    std::memcpy(in_, input.data(), input.size());
    std::memset(out_, oracle::kOutFill, kernel_.out_bytes);
    const auto params =
        parameters(reinterpret_cast<std::uint64_t>(in_), reinterpret_cast<std::uint64_t>(out_));
    if (!device_.launch(*code_, specialisation_, kernel_.grid, params, local_bytes_))
      throw Failure{"the device traps"};
    return {out_, out_ + kernel_.out_bytes};
  }

 private:
  oracle::BareDevice& device_;
  const Generated& kernel_;
  ptx::Module module_;
  std::uint64_t local_bytes_ = 0;
  std::shared_ptr<const cpu::KernelCode> code_;
  cpu::Specialisation specialisation_;
  std::byte* in_ = nullptr;
  std::byte* out_ = nullptr;
};

oracle::GenerateOptions options_of(std::uint64_t seed, const Settings& settings) {
  oracle::Random random(seed + 0x51ed270b);
  oracle::GenerateOptions options;
  options.statements =
      settings.statements != 0 ? settings.statements : 3 + random.below(random.chance(20) ? 24 : 9);
  options.waiting = settings.waiting != 0 && random.chance(settings.waiting);
  options.indices = settings.indices != 0 && random.chance(settings.indices);
  return options;
}

void try_configuration(DeviceRun& device, const cpu::Specialisation& specialisation, std::uint64_t seed,
                       const std::vector<std::vector<std::byte>>& inputs,
                       const std::vector<std::vector<std::byte>>& expected, const Generated& kernel,
                       Counts& counts) {
  const std::string name = oracle::name_of(specialisation);
  try {
    device.compile(specialisation);
    ++counts.compilations;
    for (std::size_t set = 0; set < inputs.size(); ++set) {
      const std::string differs = difference(kernel, expected[set], device.run(inputs[set]));
      ++counts.cases;
      if (!differs.empty()) throw Failure{fmt::format("data {}: {}", set, differs)};
    }
  } catch (const Failure& failure) {
    ++counts.failed;
    fmt::print("seed {} ({}): {}\n", seed, name, failure.what);
  }
}

void try_seed(oracle::BareDevice& device, std::uint64_t seed, const Settings& settings, Counts& counts) {
  ++counts.kernels;
  const Generated kernel = oracle::generate(seed, options_of(seed, settings));
  try {
    std::vector<std::vector<std::byte>> inputs, expected;
    OracleRun oracle(kernel);
    for (unsigned set = 0; set < settings.data; ++set) {
      inputs.push_back(oracle::input_of(kernel, seed, set));
      expected.push_back(oracle.run(inputs.back()));
    }
    DeviceRun run(device, kernel);
    for (const cpu::Specialisation& one :
         oracle::configurations(seed, kernel.block, settings.configurations, settings.dispatched))
      try_configuration(run, one, seed, inputs, expected, kernel, counts);
  } catch (const Failure& failure) {
    ++counts.failed;
    fmt::print("seed {}: {}\n", seed, failure.what);
  } catch (const oracle::Unsupported& unsupported) {
    ++counts.failed;
    fmt::print("seed {}: {}\n", seed, unsupported.what());
  }
}

}  // namespace

int main(int argc, char** argv) {
  oracle::Options line("Generated kernels on the oracle and on the CPU device, in many configurations");
  Settings settings;
  std::optional<std::uint64_t> show;
  line.add("--first", settings.first, "first seed");
  line.add("--kernels", settings.kernels, "number of seeds");
  line.add("--configurations", settings.configurations, "of each kernel");
  line.add("--data", settings.data, "sets of data for each configuration");
  line.add("--statements", settings.statements, "of each kernel, instead of a number by the seed");
  line.add("--indices", settings.indices, "percent of the kernels that mostly compute indices");
  line.add("--waiting", settings.waiting, "percent of the kernels whose threads wait for each other");
  line.add("--dispatched", settings.dispatched, "percent of the configurations that the dispatcher runs");
  line.add("--show", show, "print the kernel of this seed and stop");
  if (const std::optional<int> status = line.read(argc, argv)) return *status;
  if (show) {
    const Generated kernel = oracle::generate(*show, options_of(*show, settings));
    fmt::print("// grid {}x{}x{}, block {}x{}x{}\n{}", kernel.grid[0], kernel.grid[1], kernel.grid[2],
               kernel.block[0], kernel.block[1], kernel.block[2], kernel.ptx);
    return 0;
  }
  oracle::BareDevice device;
  catch_signals();
  Counts counts;
  for (std::uint64_t seed = settings.first; seed < settings.first + settings.kernels; ++seed) {
    current_seed = seed;
    limit_time(kHangSeconds);
    try_seed(device, seed, settings, counts);
  }
  limit_time(0);
  fmt::print("kernels {}, compilations {}, cases {}, failed {}\n", counts.kernels, counts.compilations,
             counts.cases, counts.failed);
  return counts.failed == 0 ? 0 : 1;
}
