// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module_load.hpp"

#include <bit>
#include <chrono>
#include <cstring>

#include "cpu/device/read_ptx.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::device {
namespace {

bool lives_in_memory(const ptx::Variable& variable) noexcept {
  return (variable.space == ptx::Space::global || variable.space == ptx::Space::const_) &&
         variable.size_bytes() > 0;
}

std::uint64_t value_of(const ptx::Initializer& initializer, const ModuleObject& module) {
  if (initializer.symbol.empty()) return initializer.bits;
  const auto& functions = module.shared->ptx_by_name;
  if (const auto named = functions.find(initializer.symbol); named != functions.end()) {
    const auto index = static_cast<std::uint32_t>(named->second - module.ptx.functions.data());
    const std::uint32_t definition = module.ptx.definition_of(index);
    require(definition != ptx::kNoIndex, CUDA_ERROR_INVALID_PTX);
    return ir::function_address(definition) + static_cast<std::uint64_t>(initializer.addend);
  }
  const auto target = module.variables.find(initializer.symbol);
  require(target != module.variables.end(),
          CUDA_ERROR_INVALID_PTX);  // a .shared variable has no address at load
  std::uint64_t address = reinterpret_cast<std::uint64_t>(target->second.address) +
                          static_cast<std::uint64_t>(initializer.addend);
  if (initializer.mask != 0) address = (address & initializer.mask) >> std::countr_zero(initializer.mask);
  return address;
}

void initialise(const ptx::Variable& variable, const ModuleObject& module) {
  const ModuleVariable& target = module.variables.find(variable.name)->second;
  std::memset(target.address, 0, target.bytes);
  const std::uint64_t element_bytes = ptx::byte_size(variable.type);
  std::byte* to = target.address;
  for (const ptx::Initializer& initializer : variable.initializer) {
    if (to + element_bytes > target.address + target.bytes) return;
    const std::uint64_t bits = value_of(initializer, module);
    std::memcpy(to, &bits, std::min<std::uint64_t>(element_bytes, sizeof bits));
    to += element_bytes;
  }
}

}  // namespace

void place_variables(Driver& driver, ModuleObject& module) {
  std::uint64_t bytes = 0;
  std::vector<std::uint64_t> offsets;
  for (const ptx::Variable& variable : module.ptx.variables) {
    if (lives_in_memory(variable))
      bytes = engine::round_up(bytes, std::max<std::uint64_t>(variable.align, 16));
    offsets.push_back(bytes);
    if (lives_in_memory(variable)) bytes += variable.size_bytes();
  }
  if (bytes == 0) return;
  module.memory = driver.allocate(*module.context, engine::AllocationKind::module, bytes);
  require(module.memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  for (std::size_t i = 0; i < offsets.size(); ++i) {
    const ptx::Variable& variable = module.ptx.variables[i];
    if (lives_in_memory(variable))
      module.variables[variable.name] = {module.memory->base + offsets[i], variable.size_bytes()};
  }
  for (const ptx::Variable& variable : module.ptx.variables)
    if (lives_in_memory(variable)) initialise(variable, module);
}

std::shared_ptr<ModuleObject> load_module(Driver& driver, const std::shared_ptr<ContextState>& context,
                                          const void* image, const JitOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  engine::install_fault_handlers();  // again: a host framework may have put its own in since
  const auto refuse = [&](const Refusal& refusal) {
    options.write_info_log({});
    options.write_error_log(to_string(refusal.diagnostics));
    fail(refusal.result);
  };
  const std::variant<std::string_view, Refusal> text = text_of_image(image);
  if (const auto* refusal = std::get_if<Refusal>(&text)) refuse(*refusal);
  auto read = shared_ptx(std::get<std::string_view>(text));
  if (const auto* refusal = std::get_if<Refusal>(&read)) refuse(*refusal);

  auto module = std::make_shared<ModuleObject>(std::get<std::shared_ptr<const SharedPtx>>(std::move(read)));
  module->context = context;
  module->max_registers = options.max_registers();
  module->optimised = options.optimises();
  place_variables(driver, *module);
  options.write_error_log({});
  options.write_info_log({});
  options.write_wall_time_ms(
      std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count());
  return module;
}

}  // namespace quern::cpu::device
