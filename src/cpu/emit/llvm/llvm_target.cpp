// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/llvm_target.hpp"

#include <llvm/ADT/StringMap.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/IR/Function.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Support/CommandLine.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Target/TargetOptions.h>
#include <llvm/TargetParser/Host.h>
#include <llvm/TargetParser/SubtargetFeature.h>

#include <algorithm>
#include <cstdlib>
#include <mutex>
#include <string>

#include "cpu/emit/llvm/register_pressure.hpp"

namespace quern::cpu::emit {
namespace {

constexpr const char* kTriple = "x86_64-unknown-linux-gnu";

template <class T>
void set_option(llvm::StringRef name, T value) {
  auto& options = llvm::cl::getRegisteredOptions();
  const auto found = options.find(name);
  if (found != options.end()) static_cast<llvm::cl::opt<T>*>(found->second)->setValue(value);
}

/// Sets code generator options that LLVM exposes only as command-line options. This LLVM is linked
/// statically, so its options affect no other user of LLVM in the process.
void set_options() {
  // optimise.cpp runs this pass, except for functions for which it takes too long.
  set_option("disable-lsr", true);
  // LLVM compares each memory access of a block with up to this many others; with LLVM's default of 1,000
  // this takes most of the compile time of a long kernel. Measured: the kernels of tools/bench run as fast
  // with 250 as with 1,000.
  set_option("dag-maps-huge-region", 250u);
  // This pass looks for mask words to keep in mask registers. Its time is quadratic in the length of a
  // kernel.
  set_option("disable-x86-domain-reassignment", true);
  // This pass shortens chains of integer operations by reassociation. Its time is quadratic in the length of
  // a block. Measured: the kernels of tools/bench run as fast without it.
  set_option("x86-machine-combiner", false);
  // This pass splits copies of 16 and 32 bytes if they follow narrower stores. It causes a fatal error for a
  // masked load with a constant mask, whose size LLVM does not keep, and it would split the volatile 16-byte
  // loads that implement ordered accesses of PTX.
  set_option("x86-disable-avoid-SFB", true);
  heed_saved_registers();
}

const llvm::Target& x86_target() {
  static const llvm::Target* const target = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    set_options();
    std::string error;
    return llvm::TargetRegistry::lookupTarget(kTriple, error);
  }();
  if (target == nullptr) std::abort();  // the X86 target is linked in, so this happens only in a broken build
  return *target;
}

const char* class_cpu(Isa isa) {
  switch (isa) {
    case Isa::avx512:
      return "skylake-avx512";
    case Isa::avx2:
      return "haswell";
    case Isa::baseline:
      break;
  }
  return "x86-64";
}

/// Detected once, since that takes as long as emitting a small kernel.
struct HostCpu {
  std::string name = llvm::sys::getHostCPUName().str();
  std::string features;
  bool has_vnni = false;
  HostCpu() {
    const auto found = llvm::sys::getHostCPUFeatures();
    llvm::SubtargetFeatures list;
    for (const auto& feature : found) list.AddFeature(feature.first(), feature.second);
    features = list.getString();
    has_vnni = found.lookup("avx512vnni");
  }
};
const HostCpu& host_cpu() {
  static const HostCpu cpu;
  return cpu;
}

/// Code for AVX2 is for this processor as well where it has AVX-512, and is as it would be without.
bool is_for_host(Isa isa, bool portable) {
  return !portable && (isa == widest_isa() || (isa == Isa::avx2 && widest_isa() == Isa::avx512));
}

/// All other features of AVX-512 depend on the one.
std::string host_features(Isa isa) { return host_cpu().features + (isa == Isa::avx512 ? "" : ",-avx512f"); }

}  // namespace

Isa widest_isa() {
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") != 0 && __builtin_cpu_supports("fma") != 0 &&
                    __builtin_cpu_supports("bmi2") != 0 && __builtin_cpu_supports("f16c") != 0;
  const bool avx512 = __builtin_cpu_supports("avx512f") != 0 && __builtin_cpu_supports("avx512bw") != 0 &&
                      __builtin_cpu_supports("avx512dq") != 0 && __builtin_cpu_supports("avx512vl") != 0 &&
                      __builtin_cpu_supports("avx512cd") != 0;
  return avx2 && avx512 ? Isa::avx512 : avx2 ? Isa::avx2 : Isa::baseline;
}

std::string host_identity() {
  return "processor " + host_cpu().name + " " + host_cpu().features + ", LLVM " LLVM_VERSION_STRING;
}

bool has_class(Isa isa) {
  if (isa > widest_isa()) return false;
  // Instructions that the code generator uses for the class, in addition to those that widest_isa() requires.
  constexpr const char* kOfAvx2[] = {"bmi", "lzcnt", "movbe", "popcnt", "pclmul", "sse4.2"};
  const auto host = llvm::sys::getHostCPUFeatures();
  return isa == Isa::baseline ||
         std::ranges::all_of(kOfAvx2, [&](const char* name) { return host.lookup(name); });
}

std::unique_ptr<llvm::TargetMachine> make_target_machine(Isa isa, unsigned opt_level, bool portable) {
  const bool is_host = is_for_host(isa, portable);
  const std::string cpu = is_host ? host_cpu().name : class_cpu(isa);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  const auto level = opt_level == kGoodLevel ? llvm::CodeGenOptLevel::Default : llvm::CodeGenOptLevel::None;
  return std::unique_ptr<llvm::TargetMachine>(
      x86_target().createTargetMachine(kTriple, cpu, is_host ? host_features(isa) : "", options,
                                       llvm::Reloc::PIC_, llvm::CodeModel::Small, level, /*JIT=*/true));
}

bool multiplies_bytes(Isa isa, bool portable) {
  return isa == Isa::avx512 && is_for_host(isa, portable) && host_cpu().has_vnni;
}

bool is_zen(llvm::StringRef cpu) { return cpu.starts_with("znver"); }

bool fills_first_cache(Isa isa, bool portable) {
  const llvm::StringRef cpu = host_cpu().name;
  return is_for_host(isa, portable) && is_zen(cpu) && cpu != "znver4";
}

void set_function_attributes(llvm::Function& function, Isa isa) {
  function.addFnAttr(llvm::Attribute::NoUnwind);
  function.addFnAttr("probe-stack", "inline-asm");
  if (isa == Isa::avx512) function.addFnAttr("prefer-vector-width", "512");
}

}  // namespace quern::cpu::emit
