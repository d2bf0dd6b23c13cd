// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/emit.hpp"

#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include <utility>

#include "cpu/emit/block_loop.hpp"
#include "cpu/emit/device_functions.hpp"
#include "cpu/emit/llvm/fatal.hpp"
#include "cpu/emit/llvm/link.hpp"
#include "cpu/emit/llvm/llvm_code.hpp"
#include "cpu/emit/llvm/llvm_target.hpp"
#include "cpu/emit/llvm/machine_code.hpp"
#include "cpu/emit/llvm/sites.hpp"

namespace quern::cpu::emit {
namespace {

void emit_functions(const ir::Module& module, const std::vector<Plan>& plans,
                    const Specialisation& specialisation, LlvmCode& out) {
  DeviceFunctions callees;
  for (std::uint32_t i = 1; i < plans.size(); ++i)
    callees[i] = declare_device_function(*out.module, module.functions[i], i, specialisation.isa);
  for (std::uint32_t i = 1; i < plans.size(); ++i)
    emit_device_function(*callees[i], plans[i], specialisation, callees);
  out.waits = plans[0].dispatched;
  out.streamed = streamed_parameters(plans[0]);
  out.atomics = plans[0].atomics;
  out.frame_bytes = emit_run(*out.module, plans[0], specialisation, callees);
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

OwnedLlvmCode make_code(const std::string& kernel, const Specialisation& specialisation) {
  auto machine = make_target_machine(specialisation.isa, specialisation.opt_level, specialisation.portable);
  OwnedLlvmCode code(new LlvmCode(kernel, *machine));
  code->owned_machine = std::move(machine);
  return code;
}

}  // namespace

void DeleteLlvmCode::operator()(LlvmCode* code) const noexcept { delete code; }

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

Expected<OwnedLlvmCode> emit_llvm(const ir::Module& module, const std::vector<cuts::Plan>& plans,
                                  const Specialisation& specialisation, WithSites with_sites) {
  const std::string& kernel = module.functions[0].name;
  OwnedLlvmCode code;
  if (auto made = guard_llvm(kernel, [&] { code = make_code(kernel, specialisation); }); !made)
    return std::move(made).errors();
  const Expected<void> done = code->guarded([&]() -> Expected<void> {
    if (with_sites == WithSites::yes) begin_sites(*code->module);
    try {
      emit_functions(module, plans, specialisation, *code);
      end_sites(*code->module);
    } catch (const Defect& error) {
      return code->defect(error.what());
    }
    return {};
  });
  if (!done) return done.errors();
  return code;
}

Expected<void> verify_llvm(LlvmCode& code) {
  return code.guarded([&]() -> Expected<void> {
    std::string complaint;
    llvm::raw_string_ostream stream(complaint);
    if (llvm::verifyModule(*code.module, &stream)) return code.defect("malformed LLVM IR: " + complaint);
    return {};
  });
}

Expected<void> make_object(LlvmCode& code) {
  code.forget_analyses();
  return code.guarded([&]() -> Expected<void> {
    auto object = make_object(*code.module, code.machine);
    if (!object) return object.errors();
    code.object = std::move(*object);
    return {};
  });
}

Expected<CodeImage> link_image(LlvmCode& code, const ir::Module& module,
                               std::vector<ir::Location> locations) {
  CodeImage image;
  const Expected<void> done = code.guarded([&]() -> Expected<void> {
    auto linked = link_object(code.object->getMemBufferRef(), kRunName);
    if (!linked) return linked.errors();
    image.code = std::move(*linked);
    image.facts.digest = code_digest(code.object->getMemBufferRef());
    return {};
  });
  if (!done) return done.errors();
  image.facts.frame_bytes = code.frame_bytes;
  image.facts.waits = code.waits;
  image.facts.streamed = code.streamed;
  image.facts.atomics = code.atomics;
  image.facts.calls = module.functions.size() > 1;
  image.facts.local = local_needs(module);
  image.facts.symbols = symbols_of(module);
  image.facts.locations = std::move(locations);
  return image;
}

Expected<CodeSites> read_sites(LlvmCode& code, const ir::Module& module) {
  CodeSites sites;
  const Expected<void> done = code.guarded([&]() -> Expected<void> {
    sites.sites = read_sites(code.object->getMemBufferRef(), module);
    sites.digest = code_digest(code.object->getMemBufferRef());
    return {};
  });
  if (!done) return done.errors();
  return sites;
}

Expected<std::string> print_llvm(LlvmCode& code) {
  std::string text;
  const Expected<void> done = code.guarded([&]() -> Expected<void> {
    llvm::raw_string_ostream stream(text);
    code.module->print(stream, nullptr);
    return {};
  });
  if (!done) return done.errors();
  return text;
}

Expected<std::string> print_assembly(LlvmCode& code) {
  code.forget_analyses();
  std::string text;
  const Expected<void> done = code.guarded([&]() -> Expected<void> {
    auto made = make_assembly(*code.module, code.machine);
    if (!made) return made.errors();
    text = std::move(*made);
    return {};
  });
  if (!done) return done.errors();
  return text;
}

std::string processor_identity() { return host_identity(); }

Isa processor_isa() { return widest_isa(); }

bool runs_portable(Isa isa) { return has_class(isa); }

}  // namespace quern::cpu::emit
