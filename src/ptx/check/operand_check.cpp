// SPDX-License-Identifier: Apache-2.0
#include "ptx/check/operand_check.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "ptx/printer.hpp"
#include "ptx/selector.hpp"

namespace quern::ptx {
namespace {

bool is_integer(TypeKind kind) noexcept { return kind == TypeKind::unsigned_ || kind == TypeKind::signed_; }
bool is_bits_or_integer(TypeKind kind) noexcept { return kind == TypeKind::bits || is_integer(kind); }

Type widened(Type type) noexcept {
  switch (type) {
    case Type::u16:
      return Type::u32;
    case Type::s16:
      return Type::s32;
    case Type::u32:
      return Type::u64;
    case Type::s32:
      return Type::s64;
    default:
      return Type::none;
  }
}

// Special registers that have 32 bits now, had 16 before PTX 2.0, and may still be read as 16 bits.
bool had_sixteen_bits(SpecialRegister which) noexcept {
  return which <= SpecialRegister::ntid_w ||
         (which >= SpecialRegister::ctaid_x && which <= SpecialRegister::nctaid_w);
}

bool special_fits(SpecialRegister which, Type type) noexcept {
  const Type own = ptx::type(which);
  if (own == Type::pred || type == Type::pred) return own == type;
  if (!is_bits_or_integer(kind(type))) return false;
  if (bit_size(type) == 16) return had_sixteen_bits(which);
  return bit_size(own) == bit_size(type) || (which == SpecialRegister::gridid && bit_size(type) == 32);
}

bool wants_operand(const OperandSpec& spec, const Instruction& instruction) noexcept {
  return spec.role != Role::policy || instruction.has(Modifier::L2_cache_hint);
}

// True if the operand follows the rules of plain accesses on immediate addresses and on spaces.
bool is_access(Opcode opcode) noexcept {
  return opcode == Opcode::ld || opcode == Opcode::st || opcode == Opcode::atom || opcode == Opcode::red ||
         opcode == Opcode::ldu;
}

// Names the operand that a form needs, to follow "must be" in a message.
std::string_view wanted_operand(const OperandSpec* spec) noexcept {
  switch (spec == nullptr ? Role::anything : spec->role) {
    case Role::destination:
      return spec->count == OperandSpec::kOne ? "a register" : "a vector of registers";
    case Role::source:
      return spec->register_only                ? "a register"
             : spec->count == OperandSpec::kOne ? "a register or a constant"
                                                : "a vector";
    case Role::immediate:
      return "an integer constant";
    case Role::address:
      return "an address in brackets";
    case Role::label:
      return "a label";
    case Role::table:
      return "a table of labels";
    case Role::unpack:
    case Role::pack:
      return "a vector of registers";
    case Role::policy:
      return "a cache policy in a 64-bit register";
    case Role::sink:
      return "'_'";
    case Role::anything:
      break;
  }
  return "something else";
}

struct FixedText {
  FaultKind kind;
  std::string_view text;
};
// Messages that depend on the kind of fault only. Each follows "operand 2 of 'add.s32'".
constexpr FixedText kFixedTexts[] = {
    {FaultKind::wrong_special, "cannot be a special register; mov it to a register first"},
    {FaultKind::sink, "cannot be '_'"},
    {FaultKind::negation, "cannot be negated"},
    {FaultKind::selector, "cannot select a byte or half"},
    {FaultKind::vector_length, "has the wrong number of elements"},
    {FaultKind::immediate_address, "is a plain number; only .local has such addresses"},
    {FaultKind::address_type, "must be based on an integer register"},
    {FaultKind::address_space, "stands in another state space"},
    {FaultKind::written_parameter, "is a parameter, which cannot be written"},
};

std::string_view fixed_text(FaultKind kind) noexcept {
  const auto* row = std::ranges::find(kFixedTexts, kind, &FixedText::kind);
  return row != std::end(kFixedTexts) ? row->text : "does not fit";
}

}  // namespace

bool register_fits(Type reg, Type type, bool wider) noexcept {
  const TypeKind have = kind(reg);
  const TypeKind want = kind(type);
  if (reg == Type::pred || type == Type::pred) return reg == type;
  if (want == TypeKind::packed || type == Type::bf16 || type == Type::tf32) {
    const bool same_width = have == TypeKind::bits && bit_size(reg) == bit_size(type);
    return reg == type || same_width ||
           (wider && type == Type::bf16 && have == TypeKind::bits && bit_size(reg) > 16);
  }
  const bool size_fits = wider ? bit_size(reg) >= bit_size(type) : bit_size(reg) == bit_size(type);
  if (want == TypeKind::bits) return size_fits && have != TypeKind::opaque;
  if (is_integer(want)) return size_fits && is_bits_or_integer(have);
  if (want == TypeKind::floating) return reg == type || (have == TypeKind::bits && size_fits);
  return reg == type;
}

WordList words_of(const Instruction& instruction) noexcept {
  WordList list;
  const auto add = [&list](std::size_t word) {
    if (list.count < list.words.size()) list.words[list.count++] = static_cast<std::uint16_t>(word);
  };
  for (const Type type : instruction.types) add(word_index(type));
  for (const Modifier modifier : instruction.modifier_order) add(word_index(modifier));
  return list;
}

WordFit fit_words(const FormTable& table, const Form& form, const WordList& words) noexcept {
  WordFit fit;
  std::uint32_t filled = 0;
  std::size_t next_type_slot = 0;  // modifiers may be in any order, types may not
  for (std::size_t i = 0; i < words.count; ++i) {
    const std::uint16_t word = words.words[i];
    std::size_t slot = word < kTypeCount ? next_type_slot : 0;
    while (slot < form.slots.size() &&
           (((filled >> slot) & 1u) != 0 || !table.set(form.slots[slot].set).test(word)))
      ++slot;
    if (slot < form.slots.size()) {
      filled |= 1u << slot;
      if (word < kTypeCount) next_type_slot = slot + 1;
    } else if (!form.any_words && fit.misfits++ == 0) {
      fit.first_misfit = word;
    }
  }
  for (std::size_t slot = 0; slot < form.slots.size() && !fit.missing; ++slot) {
    if (((filled >> slot) & 1u) == 0 && !form.slots[slot].optional) fit.missing = form.slots[slot].set;
  }
  return fit;
}

bool OperandCheck::fault(FaultKind kind, Type wanted) {
  fault_.kind = kind;
  fault_.wanted = wanted;
  return false;
}

Type OperandCheck::wanted(const TypeRule& rule) const noexcept {
  switch (rule.kind) {
    case TypeRule::Kind::dotted:
      return instruction_.type(rule.index);
    case TypeRule::Kind::wide:
      return widened(instruction_.type(0));
    case TypeRule::Kind::fixed:
      return rule.type;
    case TypeRule::Kind::address:
    case TypeRule::Kind::any:
      return Type::none;
  }
  return Type::none;
}

std::optional<Fault> OperandCheck::check(const Form& form) {
  if (form.any_operands) return std::nullopt;
  const std::vector<Operand>& operands = instruction_.operands;
  const auto wanted_count = static_cast<std::size_t>(
      std::count_if(form.specs.begin(), form.specs.end(),
                    [this](const OperandSpec& s) { return wants_operand(s, instruction_); }));
  const auto optional_count = static_cast<std::size_t>(
      std::count_if(form.specs.begin(), form.specs.end(), [](const OperandSpec& s) { return s.optional; }));
  if (operands.size() > wanted_count || operands.size() + optional_count < wanted_count)
    return Fault{FaultKind::count, 0, Type::none, nullptr};
  std::size_t left_out = wanted_count - operands.size();
  std::size_t next = 0;
  for (const OperandSpec& spec : form.specs) {
    if (!wants_operand(spec, instruction_)) continue;
    if (spec.optional && left_out > 0) {
      --left_out;
      continue;
    }
    fault_.operand = next;
    fault_.spec = &spec;
    if (!operand(spec, operands[next++])) return fault_;
  }
  return std::nullopt;
}

// Checks a pair `a|b`, or a single operand.
bool OperandCheck::operand(const OperandSpec& spec, const Operand& operand) {
  const auto* pair = operand.as<PairOperand>();
  if (pair == nullptr) return spec.pair_required ? fault(FaultKind::pair) : whole(spec, operand);
  if (!spec.pair_allowed) return fault(FaultKind::pair);
  OperandSpec predicate;
  predicate.role = Role::destination;
  predicate.sinkable = spec.sinkable;
  return whole(spec, pair->elements[0]) && single(predicate, pair->elements[1], Type::pred);
}

bool OperandCheck::whole(const OperandSpec& spec, const Operand& operand) {
  switch (spec.role) {
    case Role::anything:
      return true;
    case Role::sink:
      return operand.as<SinkOperand>() != nullptr || fault(FaultKind::wrong_kind);
    case Role::unpack:
    case Role::pack:
      return packed(spec, operand);
    case Role::address:
      return address(operand);
    case Role::policy:
      return operand.as<RegisterOperand>() != nullptr ? single(spec, operand, Type::b64)
                                                      : fault(FaultKind::wrong_kind);
    case Role::immediate:
      return immediate(spec, operand);
    case Role::label:
    case Role::table: {
      const auto* symbol = operand.as<SymbolOperand>();
      const SymbolKind kind = spec.role == Role::label ? SymbolKind::label : SymbolKind::branch_table;
      return (symbol != nullptr && symbol->symbol.kind == kind) || fault(FaultKind::wrong_kind);
    }
    case Role::destination:
    case Role::source:
      break;
  }
  const Type type = wanted(spec.type);
  if (spec.count == OperandSpec::kOne) return single(spec, operand, type);
  const bool as_modifier = spec.count == OperandSpec::kAsModifier;
  const std::size_t length = as_modifier ? instruction_.vector_count() : spec.count;
  if (as_modifier && length == 1) return single(spec, operand, type);
  return vector(spec, operand, spec.count == OperandSpec::kAnyVector ? 0 : length, type);
}

bool OperandCheck::immediate(const OperandSpec& spec, const Operand& operand) {
  if (const auto* special = operand.as<SpecialOperand>())
    return special->which == SpecialRegister::WARP_SZ || fault(FaultKind::wrong_kind);
  const auto* integer = operand.as<IntegerOperand>();
  if (integer == nullptr) return fault(FaultKind::wrong_kind);
  if (spec.values[0] == 0) return true;
  const bool known = std::find(spec.values.begin(), spec.values.end(), integer->bits) != spec.values.end();
  return (known && integer->bits != 0) || fault(FaultKind::wrong_value);
}

// Checks `{a, b}` with `length` elements (0: any number), or a vector register with as many elements.
bool OperandCheck::vector(const OperandSpec& spec, const Operand& operand, std::size_t length, Type type) {
  if (const auto* whole_register = operand.as<RegisterOperand>()) {
    const Register& declared = function_.registers[whole_register->index];
    if (declared.vector != length || whole_register->component >= 0) return fault(FaultKind::vector_length);
    return register_fits(declared.type, type, spec.relaxed) || fault(FaultKind::wrong_type, type);
  }
  const auto* vector = operand.as<VectorOperand>();
  if (vector == nullptr) return fault(FaultKind::wrong_kind);
  if (length != 0 && vector->elements.size() != length) return fault(FaultKind::vector_length);
  OperandSpec element = spec;
  element.sinkable = spec.role == Role::destination;
  std::uint32_t bits = 0;
  for (const Operand& part : vector->elements) {
    if (!single(element, part, type)) return false;
    const auto* reg = part.as<RegisterOperand>();
    if (reg == nullptr) continue;
    const std::uint32_t own = bit_size(function_.registers[reg->index].type);
    if (bits != 0 && own != bits) return fault(FaultKind::vector_mixed);
    bits = own;
  }
  return true;
}

// For mov.b64 {lo, hi}, a and mov.b64 d, {lo, hi}: the parts together have as many bits as the whole. The
// parts may also be those of a vector register.
bool OperandCheck::packed(const OperandSpec& spec, const Operand& operand) {
  static constexpr std::pair<std::uint32_t, Type> kParts[] = {
      {8, Type::b8}, {16, Type::b16}, {32, Type::b32}, {64, Type::b64}};
  const auto* vector = operand.as<VectorOperand>();
  const auto* whole_register = operand.as<RegisterOperand>();
  if (vector == nullptr && (whole_register == nullptr || whole_register->component >= 0))
    return fault(FaultKind::wrong_kind);
  const std::size_t count =
      vector != nullptr ? vector->elements.size() : function_.registers[whole_register->index].vector;
  if (count != 2 && count != 4)
    return fault(vector != nullptr ? FaultKind::vector_length : FaultKind::wrong_kind);
  const std::uint32_t bits = bit_size(instruction_.type(0)) / static_cast<std::uint32_t>(count);
  OperandSpec element = spec;
  element.role = spec.role == Role::unpack ? Role::destination : Role::source;
  element.sinkable = spec.role == Role::unpack;
  for (const auto& [part_bits, type] : kParts) {
    if (part_bits != bits) continue;
    if (whole_register != nullptr) {
      return register_fits(function_.registers[whole_register->index].type, type, false) ||
             fault(FaultKind::wrong_type, type);
    }
    return std::all_of(vector->elements.begin(), vector->elements.end(),
                       [&, part = type](const Operand& e) { return single(element, e, part); });
  }
  return fault(FaultKind::vector_length);
}

bool OperandCheck::single(const OperandSpec& spec, const Operand& operand, Type type) {
  if (operand.as<SinkOperand>() != nullptr) return spec.sinkable || fault(FaultKind::sink);
  if (const auto* value = operand.as<RegisterOperand>()) return reg(spec, *value, type);
  if (spec.role == Role::destination || spec.register_only) {
    const auto* value = operand.as<SymbolOperand>();
    return value != nullptr && spec.symbol ? symbol(spec, *value, type) : fault(FaultKind::wrong_kind);
  }
  if (const auto* value = operand.as<SymbolOperand>()) return symbol(spec, *value, type);
  if (const auto* value = operand.as<SpecialOperand>()) {
    if (value->which == SpecialRegister::WARP_SZ)
      return is_bits_or_integer(kind(type)) || fault(FaultKind::wrong_constant, type);
    if (!spec.special) return fault(FaultKind::wrong_special);
    return special_fits(value->which, type) || fault(FaultKind::wrong_type, type);
  }
  return constant(spec, operand, type);
}

bool OperandCheck::selects(const OperandSpec& spec, std::int16_t component) const {
  if (!spec.lanes) return spec.selector && component < kPairs;
  const unsigned lanes = name(instruction_.opcode).back() == '2' ? 2 : 4;
  return spec.role == Role::destination ? lane_mask(component, lanes).has_value()
                                        : lane_sources(component, lanes, 0).has_value();
}

bool OperandCheck::reg(const OperandSpec& spec, const RegisterOperand& reg, Type type) {
  const Register& declared = function_.registers[reg.index];
  if (reg.negated && !spec.negatable) return fault(FaultKind::negation);
  if (reg.component >= kBytes && !selects(spec, reg.component)) return fault(FaultKind::selector);
  if (declared.vector > 1 && reg.component < 0) return fault(FaultKind::wrong_kind);
  if (spec.type.kind == TypeRule::Kind::any && type == Type::none) return true;
  if (spec.type.kind == TypeRule::Kind::address && type == Type::none) {
    const bool fits =
        register_fits(declared.type, Type::u64, false) || register_fits(declared.type, Type::u32, false);
    return fits || fault(FaultKind::wrong_type, Type::u64);
  }
  return register_fits(declared.type, type, spec.relaxed) || fault(FaultKind::wrong_type, type);
}

// A single-precision constant fits types of 32 bits, any other floating-point constant fits types of 64.
bool OperandCheck::constant(const OperandSpec& spec, const Operand& operand, Type type) {
  const TypeKind want = kind(type);
  if (const auto* number = operand.as<FloatOperand>()) {
    const bool as_bits = want == TypeKind::bits && bit_size(type) == (number->single ? 32u : 64u);
    return type == Type::f32 || type == Type::f64 || as_bits || fault(FaultKind::wrong_constant, type);
  }
  if (operand.as<IntegerOperand>() == nullptr) return fault(FaultKind::wrong_kind, type);
  const bool untyped = type == Type::none && spec.type.kind != TypeRule::Kind::dotted;
  return untyped || is_bits_or_integer(want) || type == Type::pred || fault(FaultKind::wrong_constant, type);
}

bool OperandCheck::symbol(const OperandSpec& spec, const SymbolOperand& symbol, Type type) {
  const SymbolKind kind = symbol.symbol.kind;
  const bool addressable = kind == SymbolKind::module_variable || kind == SymbolKind::function_variable ||
                           kind == SymbolKind::parameter || kind == SymbolKind::return_parameter ||
                           kind == SymbolKind::function;
  if (!spec.symbol || !addressable) return fault(FaultKind::wrong_kind);
  return bit_size(type) >= 32 || fault(FaultKind::wrong_type, type);
}

bool OperandCheck::address(const Operand& operand) {
  const auto* address = operand.as<AddressOperand>();
  if (address == nullptr) return fault(FaultKind::wrong_kind);
  if (address->symbol) return address_symbol(*address->symbol);
  if (address->register_index == kNoIndex) {
    return !is_access(instruction_.opcode) || instruction_.space() == Space::local ||
           fault(FaultKind::immediate_address);
  }
  const Register& base = function_.registers[address->register_index];
  const bool fits = base.vector == 1 && is_bits_or_integer(kind(base.type)) && bit_size(base.type) >= 16;
  return fits || fault(FaultKind::address_type);
}

// A symbol can be accessed in its own space, or by an instruction that names no space.
bool OperandCheck::address_symbol(const SymbolRef& symbol) {
  const Variable* variable = nullptr;
  if (symbol.kind == SymbolKind::module_variable) variable = &module_.variables[symbol.index];
  if (symbol.kind == SymbolKind::function_variable) variable = &function_.variables[symbol.index];
  if (symbol.kind == SymbolKind::parameter) variable = &function_.parameters[symbol.index];
  if (symbol.kind == SymbolKind::return_parameter) variable = &function_.returns[symbol.index];
  if (variable == nullptr) return fault(FaultKind::wrong_kind);
  if (!is_access(instruction_.opcode)) return true;
  const Space space = instruction_.space();
  if (space != Space::none && space != variable->space) return fault(FaultKind::address_space);
  const bool writes = instruction_.opcode == Opcode::st && symbol.kind == SymbolKind::parameter;
  return !writes || fault(FaultKind::written_parameter);
}

std::string OperandCheck::register_type(const Operand& operand) const {
  if (const auto* pair = operand.as<PairOperand>()) return register_type(pair->elements[0]);
  if (const auto* vector = operand.as<VectorOperand>(); vector != nullptr && !vector->elements.empty())
    return register_type(vector->elements[0]);
  if (const auto* special = operand.as<SpecialOperand>())
    return fmt::format("{} is .{}", name(special->which), name(type(special->which)));
  const auto* value = operand.as<RegisterOperand>();
  if (value == nullptr) return "it has another type";
  const Register& declared = function_.registers[value->index];
  return fmt::format("'{}' is .{}", declared.name, name(declared.type));
}

std::string OperandCheck::describe(const Fault& fault) const {
  const std::string which =
      fmt::format("operand {} of '{}'", fault.operand + 1, instruction_name(instruction_));
  switch (fault.kind) {
    case FaultKind::count:
      return fmt::format("'{}' does not have {} operands", instruction_name(instruction_),
                         instruction_.operands.size());
    case FaultKind::wrong_kind:
      return fmt::format("{} must be {}", which, wanted_operand(fault.spec));
    case FaultKind::wrong_type:
      return fmt::format("{} must go with .{}, but {}", which, name(fault.wanted),
                         register_type(instruction_.operands[fault.operand]));
    case FaultKind::wrong_constant:
      return fmt::format("{} is no constant of type .{}", which, name(fault.wanted));
    case FaultKind::wrong_value:
      return fmt::format(
          "{} must be {}", which,
          fmt::join(fault.spec->values.begin(),
                    std::find(fault.spec->values.begin(), fault.spec->values.end(), 0), " or "));
    case FaultKind::pair:
      return fmt::format("{} {} be a pair 'a|b'", which, fault.spec->pair_required ? "must" : "cannot");
    case FaultKind::vector_mixed:
      return fmt::format("the elements of {} have different sizes", which);
    case FaultKind::wrong_special:
    case FaultKind::sink:
    case FaultKind::negation:
    case FaultKind::selector:
    case FaultKind::vector_length:
    case FaultKind::immediate_address:
    case FaultKind::address_type:
    case FaultKind::address_space:
    case FaultKind::written_parameter:
      break;
  }
  return fmt::format("{} {}", which, fixed_text(fault.kind));
}

}  // namespace quern::ptx
