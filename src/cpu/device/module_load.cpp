// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/module_load.hpp"

#include <bit>
#include <chrono>
#include <cstdint>
#include <cstring>

#include "base/file.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::device {
namespace {

bool lives_in_memory(const ptx::Variable& variable) noexcept {
  return (variable.space == ptx::Space::global || variable.space == ptx::Space::const_) &&
         variable.size_bytes() > 0;
}

bool is_managed(const ptx::Variable& variable) {
  return lives_in_memory(variable) && variable.attributes.find(".managed") != std::string::npos;
}

/// Variables side by side, each where its alignment allows.
struct Layout {
  std::vector<std::pair<const ptx::Variable*, std::uint64_t>> offsets;
  std::uint64_t bytes = 0;

  void add(const ptx::Variable& variable) {
    bytes = engine::round_up(bytes, std::max<std::uint64_t>(variable.align, 16));
    offsets.emplace_back(&variable, bytes);
    bytes += variable.size_bytes();
  }
};

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

/// `value` gives the bits of an initializer.
template <class Value>
void initialise(const ptx::Variable& variable, const ModuleVariable& target, const Value& value) {
  std::memset(target.address, 0, target.bytes);
  const std::uint64_t element_bytes = ptx::byte_size(variable.type);
  std::byte* to = target.address;
  for (const ptx::Initializer& initializer : variable.initializer) {
    if (to + element_bytes > target.address + target.bytes) return;
    const std::uint64_t bits = value(initializer);
    std::memcpy(to, &bits, std::min<std::uint64_t>(element_bytes, sizeof bits));
    to += element_bytes;
  }
}

}  // namespace

std::shared_ptr<const ManagedVariables> place_managed(Driver& driver, const ContextState& context,
                                                      const ptx::Module& ptx) {
  auto managed = std::make_shared<ManagedVariables>();
  Layout layout;
  for (const ptx::Variable& variable : ptx.variables)
    if (is_managed(variable)) layout.add(variable);
  if (layout.bytes == 0) return managed;
  constexpr std::uint64_t kNoContext = 0;
  managed->memory = driver.memory().allocate(
      {layout.bytes, engine::AllocationKind::managed, context.device, kNoContext, 0});
  require(managed->memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  for (const auto& [variable, offset] : layout.offsets) {
    const ModuleVariable place{managed->memory->base + offset, variable->size_bytes()};
    managed->places[variable->name] = place;
    initialise(*variable, place, [&](const ptx::Initializer& initializer) {
      // The address of another variable differs between contexts.
      require(initializer.symbol.empty(), CUDA_ERROR_INVALID_PTX);
      return initializer.bits;
    });
  }
  return managed;
}

void place_variables(Driver& driver, ModuleObject& module) {
  Layout layout;
  for (const ptx::Variable& variable : module.ptx.variables) {
    if (module.managed != nullptr && is_managed(variable))
      module.variables[variable.name] = module.managed->places.find(variable.name)->second;
    else if (lives_in_memory(variable))
      layout.add(variable);
  }
  if (layout.bytes == 0) return;
  module.memory = driver.allocate(*module.context, engine::AllocationKind::module, layout.bytes);
  require(module.memory != nullptr, CUDA_ERROR_OUT_OF_MEMORY);
  for (const auto& [variable, offset] : layout.offsets)
    module.variables[variable->name] = {module.memory->base + offset, variable->size_bytes()};
  for (const auto& [variable, offset] : layout.offsets)
    initialise(*variable, module.variables.find(variable->name)->second,
               [&](const ptx::Initializer& initializer) { return value_of(initializer, module); });
}

std::string read_file(const char* name) {
  Expected<std::string> content = base::read_regular_file(name, UINT64_MAX);
  if (!content) fail(CUDA_ERROR_FILE_NOT_FOUND, content.errors().front().message);
  return *std::move(content);
}

ReadPtx read_image(const Image& image, const JitOptions& options) {
  const auto refuse = [&](const Refusal& refusal) {
    options.write_info_log({});
    options.write_error_log(to_string(refusal.diagnostics));
    fail(refusal.result);
  };
  const std::variant<ImageText, Refusal> text = text_of_image(image);
  if (const auto* refusal = std::get_if<Refusal>(&text)) refuse(*refusal);
  auto read = shared_ptx(std::get<ImageText>(text).view());
  if (const auto* refusal = std::get_if<Refusal>(&read)) refuse(*refusal);
  return std::get<ReadPtx>(std::move(read));
}

std::shared_ptr<ModuleObject> load_module(Driver& driver, const std::shared_ptr<ContextState>& context,
                                          const Image& image, const JitOptions& options) {
  const auto start = std::chrono::steady_clock::now();
  engine::install_fault_handlers();  // again: a host framework may have put its own in since
  auto module = std::make_shared<ModuleObject>(read_image(image, options));
  module->context = context;
  module->settings = options.settings();
  place_variables(driver, *module);
  options.write_error_log({});
  options.write_info_log({});
  options.write_wall_time_ms(
      std::chrono::duration<float, std::milli>(std::chrono::steady_clock::now() - start).count());
  return module;
}

}  // namespace quern::cpu::device
