// SPDX-License-Identifier: Apache-2.0
// Generates machine code for every kernel of PTX files, for each instruction set and many block shapes. It
// runs nothing. LLVM selects different instructions in each case.
//   sweep [--isa NAME,...] [--blocks SHAPE,...] [--first SEED] [--random COUNT] [--files FILE.ptx:...]
//   [--digests]
// With --digests it stops at LLVM IR and prints a digest of it for each compilation: if two builds print the
// same, they generate the same code. Prints each kernel that is refused and the reason, and at the end
// "kernels K, compilations C, refused R". After a crash, the kernel is the last text of the output.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <span>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "base/digest.hpp"
#include "cpu/compiler/compiler.hpp"
#include "generate.hpp"
#include "options.hpp"
#include "ptx/ptx.hpp"

using namespace quern;

namespace {

struct Settings {
  std::string isas = "baseline,avx2,avx512";
  std::string blocks =
      "1,2,7,31,32,33,40,63,64,65,100,128,256,257,512,1000,1023,1024,16x16,33x3,5x7x3,8x8x4,32x32";
  std::uint64_t first = 0;
  std::uint64_t random = 0;
  std::string files;
  bool digests = false;
};

struct Counts {
  unsigned kernels = 0;
  unsigned compilations = 0;
  unsigned refused = 0;
};

char current[512];

/// Calls only functions that are allowed in a signal handler.
void die_with_kernel(int) {
  constexpr std::string_view kWhat = "a crash at ";
  if (write(STDOUT_FILENO, kWhat.data(), kWhat.size()) < 0 ||
      write(STDOUT_FILENO, current, std::strlen(current)) < 0)
    _exit(4);
  _exit(3);
}

std::vector<std::string> split(const std::string& text, char at) {
  std::vector<std::string> parts;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, at);)
    if (!part.empty()) parts.push_back(part);
  return parts;
}

cpu::Isa isa_of(const std::string& name) {
  if (name == "avx512") return cpu::Isa::avx512;
  return name == "avx2" ? cpu::Isa::avx2 : cpu::Isa::baseline;
}

std::array<std::uint32_t, 3> block_of(const std::string& shape) {
  std::array<std::uint32_t, 3> block{1, 1, 1};
  std::size_t dimension = 0;
  for (const std::string& extent : split(shape, 'x'))
    block.at(dimension++) = static_cast<std::uint32_t>(std::stoul(extent));
  return block;
}

void compile(const ptx::Module& module, const std::string& kernel, const std::string& name,
             const cpu::Specialisation& specialisation, bool digests, Counts& counts) {
  const std::size_t length = name.copy(current, sizeof current - 2);
  current[length] = '\n';
  current[length + 1] = '\0';
  const cpu::Stage stage = digests ? cpu::Stage::llvm : cpu::Stage::assembly;
  const auto text = cpu::stage_text(module, kernel, specialisation, {.stage = stage});
  ++counts.compilations;
  if (text && digests) fmt::print("{} {}\n", base::sha256(std::as_bytes(std::span(*text))).hex(), name);
  if (text) return;
  ++counts.refused;
  fmt::print("{}: {}\n", name, to_string(text.errors()));
}

void sweep_kernel(const ptx::Module& module, const cpu::KernelInfo& info, const std::string& file,
                  const Settings& settings, Counts& counts) {
  ++counts.kernels;
  const ptx::PerformanceDirectives& demands = module.find_function(info.name)->performance;
  for (const std::string& isa : split(settings.isas, ','))
    for (const std::string& shape : split(settings.blocks, ',')) {
      cpu::Specialisation specialisation;
      specialisation.isa = isa_of(isa);
      specialisation.block = block_of(shape);
      const bool fixed = demands.reqntid[0] != 0;
      if (fixed)
        for (std::size_t d = 0; d < 3; ++d) specialisation.block[d] = std::max(demands.reqntid[d], 1u);
      if (specialisation.threads() > info.max_threads) continue;
      compile(module, info.name, fmt::format("{} {} {} {}", file, info.name, isa, shape), specialisation,
              settings.digests, counts);
      if (fixed) break;
    }
}

void sweep_module(const std::string& text, const std::string& file, const Settings& settings,
                  Counts& counts) {
  const Expected<ptx::Module> module = ptx::parse(text, file);
  const auto kernels = module ? cpu::inspect(*module, file) : module.errors();
  if (!kernels) {
    ++counts.refused;
    return fmt::print("{}: {}\n", file, to_string(kernels.errors()));
  }
  for (const cpu::KernelInfo& info : *kernels) sweep_kernel(*module, info, file, settings, counts);
}

}  // namespace

int main(int argc, char** argv) {
  oracle::Options line("Machine code of every kernel for each instruction set and many block shapes");
  Settings settings;
  line.add("--isa", settings.isas, "instruction sets, separated by commas");
  line.add("--blocks", settings.blocks, "block shapes, separated by commas");
  line.add("--first", settings.first, "first seed of random kernels");
  line.add("--random", settings.random, "number of random kernels");
  line.add("--files", settings.files, "PTX files, separated by colons");
  line.add("--digests", settings.digests, "print a digest of each kernel's LLVM IR");
  if (const std::optional<int> status = line.read(argc, argv)) return *status;
  for (const int signal : {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT}) std::signal(signal, die_with_kernel);
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  Counts counts;
  for (const std::string& file : split(settings.files, ':')) {
    std::ifstream stream(file);
    if (!stream) {
      fmt::print("{} cannot be read\n", file);
      return 2;
    }
    sweep_module({std::istreambuf_iterator<char>(stream), {}}, file, settings, counts);
  }
  for (std::uint64_t seed = settings.first; seed < settings.first + settings.random; ++seed)
    sweep_module(oracle::generate(seed).ptx, fmt::format("seed-{}", seed), settings, counts);
  fmt::print("kernels {}, compilations {}, refused {}\n", counts.kernels, counts.compilations,
             counts.refused);
  return counts.refused == 0 && counts.compilations != 0 ? 0 : 1;
}
