// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/emit.hpp"

#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Module.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <optional>

#include "cpu/emit/calls.hpp"
#include "cpu/emit/driver_loop.hpp"
#include "cpu/emit/fatal.hpp"
#include "cpu/emit/link.hpp"
#include "cpu/emit/llvm_target.hpp"
#include "cpu/emit/optimise.hpp"
#include "cpu/emit/plan.hpp"
#include "cpu/emit/sites.hpp"

namespace quern::cpu::emit {
namespace {

/// LLVM IR of one kernel, with the objects that must outlive it.
struct Emitted {
  std::unique_ptr<llvm::LLVMContext> context = std::make_unique<llvm::LLVMContext>();
  std::unique_ptr<llvm::Module> module;
  std::unique_ptr<llvm::TargetMachine> machine;
  std::vector<ir::Location> locations;
  std::uint32_t frame_bytes = 0;
  bool waits = false;
};

Diagnostic defect(const ir::Module& module, const std::string& what) {
  return Diagnostic{
      .code = "internal",
      .message = "compiling kernel " + module.functions[0].name + " for the CPU device: " + what,
      .hint = "This is a defect of the CPU device; please report it with the kernel's PTX."};
}

void emit_functions(ir::Module& module, const std::vector<Plan>& plans, const Specialisation& specialisation,
                    Emitted& out) {
  DeviceFunctions callees;
  for (std::uint32_t i = 1; i < plans.size(); ++i)
    callees[i] = declare_device_function(*out.module, module.functions[i], i, specialisation.isa);
  for (std::uint32_t i = 1; i < plans.size(); ++i)
    emit_device_function(*callees[i], plans[i], specialisation, callees);
  out.waits = plans[0].dispatched;
  out.frame_bytes = emit_run(*out.module, plans[0], specialisation, callees);
}

/// One table of locations for all functions: instructions refer to it from here on.
std::vector<ir::Location> gather_locations(ir::Module& module) {
  std::vector<ir::Location> all;
  for (ir::Function& function : module.functions) {
    const auto first = static_cast<std::uint32_t>(all.size());
    for (ir::Inst& inst : function.insts)
      if (inst.location != ir::kNone) inst.location += first;
    for (ir::Location at : function.locations) {
      if (at.inlined_at != ir::kNone) at.inlined_at += first;
      all.push_back(std::move(at));
    }
  }
  return all;
}

enum class WithSites : bool { no, yes };

Expected<Emitted> emit_llvm(ir::Module& module, const Specialisation& specialisation,
                            WithSites with_sites = WithSites::no) {
  if (auto checked = check_emittable(module); !checked) return checked.errors();
  std::vector<Plan> plans;
  for (ir::Function& function : module.functions) {
    auto plan = make_plan(module, function, specialisation);
    if (!plan) return plan.errors();
    plans.push_back(std::move(*plan));
  }
  Emitted out;
  out.locations = gather_locations(module);
  out.machine = make_target_machine(specialisation.isa, specialisation.opt_level);
  out.module = std::make_unique<llvm::Module>(module.functions[0].name, *out.context);
  out.module->setTargetTriple(out.machine->getTargetTriple().str());
  out.module->setDataLayout(out.machine->createDataLayout());
  if (with_sites == WithSites::yes) begin_sites(*out.module);
  try {
    emit_functions(module, plans, specialisation, out);
    end_sites(*out.module);
  } catch (const Defect& error) {
    return defect(module, error.what());
  }
  std::string complaint;
  llvm::raw_string_ostream stream(complaint);
  if (llvm::verifyModule(*out.module, &stream)) return defect(module, "malformed LLVM IR: " + complaint);
  optimise(*out.module, *out.machine, specialisation.opt_level);
  return out;
}

std::vector<SymbolUse> symbols_of(const ir::Module& module) {
  std::vector<SymbolUse> uses;
  for (const ir::Symbol& symbol : module.symbols)
    uses.push_back({symbol.name, symbol.space, symbol.shared_offset});
  return uses;
}

LocalNeeds local_needs(const ir::Module& module) {
  LocalNeeds needs{.bytes = module.functions[0].local_bytes,
                   .activation_bytes = module.functions[0].stack_bytes};
  for (std::size_t i = 1; i < module.functions.size(); ++i)
    needs.calls |= module.functions[i].local_bytes != 0;
  return needs;
}

Expected<CodeImage> make_image(const ir::Module& module, Emitted& emitted) {
  auto object = make_object(*emitted.module, *emitted.machine);
  if (!object) return object.errors();
  auto code = link_object((*object)->getMemBufferRef(), kRunName);
  if (!code) return code.errors();
  CodeImage image;
  image.code = std::move(*code);
  image.facts.digest = code_digest((*object)->getMemBufferRef());
  image.facts.frame_bytes = emitted.frame_bytes;
  image.facts.waits = emitted.waits;
  image.facts.calls = module.functions.size() > 1;
  image.facts.local = local_needs(module);
  image.facts.symbols = symbols_of(module);
  image.facts.locations = std::move(emitted.locations);
  return image;
}

/// `work`'s result, or the fatal error that LLVM ended it with.
template <class Result, class Work>
Expected<Result> guarded(const ir::Module& module, const Work& work) {
  std::optional<Expected<Result>> result;
  auto done = guard_llvm(module.functions[0].name, [&] { result.emplace(work()); });
  if (!done) return std::move(done).errors();
  return *std::move(result);
}

}  // namespace

Expected<CodeImage> emit_image(ir::Module module, const Specialisation& specialisation) {
  return guarded<CodeImage>(module, [&]() -> Expected<CodeImage> {
    auto emitted = emit_llvm(module, specialisation);
    if (!emitted) return emitted.errors();
    return make_image(module, *emitted);
  });
}

Expected<CodeSites> emit_sites(ir::Module module, const Specialisation& specialisation) {
  auto found = guarded<CodeSites>(module, [&]() -> Expected<CodeSites> {
    auto emitted = emit_llvm(module, specialisation, WithSites::yes);
    if (!emitted) return emitted.errors();
    auto object = make_object(*emitted->module, *emitted->machine);
    if (!object) return object.errors();
    CodeSites sites;
    sites.sites = read_sites((*object)->getMemBufferRef(), module);
    sites.digest = code_digest((*object)->getMemBufferRef());
    return sites;
  });
  if (found) found->module = std::move(module);
  return found;
}

Expected<std::string> emit_text(ir::Module module, const Specialisation& specialisation, Stage stage) {
  return guarded<std::string>(module, [&]() -> Expected<std::string> {
    auto emitted = emit_llvm(module, specialisation);
    if (!emitted) return emitted.errors();
    if (stage == Stage::assembly) return make_assembly(*emitted->module, *emitted->machine);
    std::string text;
    llvm::raw_string_ostream stream(text);
    emitted->module->print(stream, nullptr);
    return text;
  });
}

std::string processor_identity() { return host_identity(); }

Isa processor_isa() { return widest_isa(); }

}  // namespace quern::cpu::emit
