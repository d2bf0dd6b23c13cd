// SPDX-License-Identifier: Apache-2.0
// PTX as data: the parser makes it, the verifier checks it, the printer writes it and the CPU device reads
// it. Source for every rule: NVIDIA, "Parallel Thread Execution ISA", version 9.0; sections are cited by
// title.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "ptx/isa.hpp"

namespace quern::ptx {

/// A position in the PTX text; lines and columns count from 1.
struct TextPosition {
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  friend bool operator==(const TextPosition&, const TextPosition&) = default;
};

/// The position of an instruction in the author's source (`.loc`). `file` is an index into Module::files (the
/// number of a `.file`); line 0: not known. `inlined_at` is an index into Function::locations, or kNoIndex.
struct SourceLocation {
  std::uint32_t file = 0;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::string function_name;  ///< from `function_name` in .loc; empty if it has none
  std::uint32_t inlined_at = 0xffffffffu;
  friend bool operator==(const SourceLocation&, const SourceLocation&) = default;
};

inline constexpr std::uint32_t kNoIndex = 0xffffffffu;

/// A `.reg` variable of one function. Names are unique within Function::registers: a name that an inner scope
/// declares again has its own entry, and the printer renames it.
struct Register {
  std::string name;  ///< with its leading '%', if it has one
  Type type = Type::none;
  std::uint8_t vector = 1;  ///< 2 or 4 for `.v2`/`.v4` registers
  friend bool operator==(const Register&, const Register&) = default;
};

/// One initialiser element: a plain number (bits, already in the element type) or the address of a symbol.
struct Initializer {
  std::uint64_t bits = 0;
  std::string symbol;       ///< empty for a number
  std::int64_t addend = 0;  ///< the value is symbol + addend
  bool generic = false;     ///< generic(symbol)
  std::uint64_t mask = 0;   ///< mask() operator: the byte of the address; 0 for the whole address
  friend bool operator==(const Initializer&, const Initializer&) = default;
};

enum class Linkage : std::uint8_t { none, extern_, visible, weak, common };

/// A variable in a state space: module-level, function-level (.local, .shared, .param of a call) or a
/// parameter.
struct Variable {
  std::string name;
  Space space = Space::none;
  Type type = Type::none;
  std::uint8_t vector = 1;
  Linkage linkage = Linkage::none;
  /// in bytes; as written, otherwise the natural alignment of the type
  std::uint32_t align = 0;
  std::vector<std::uint64_t> extents;    ///< array dimensions; empty for a scalar; a first 0 means "[]"
  std::vector<Initializer> initializer;  ///< flattened, row-major; empty if the variable is zero
  std::optional<Space> pointer_space;    ///< `.ptr .space .align` on a kernel parameter
  std::uint32_t pointer_align = 0;
  std::string attributes;  ///< inside `.attribute(...)`: ".managed"
  TextPosition position;
  std::uint64_t element_count() const noexcept;  ///< 1 for a scalar, 0 for an unsized array
  std::uint64_t size_bytes() const noexcept;     ///< element_count * vector * size of type
  friend bool operator==(const Variable&, const Variable&) = default;
};

/// The kind of object that a symbol operand names.
enum class SymbolKind : std::uint8_t {
  module_variable,    ///< index into Module::variables
  function_variable,  ///< index into Function::variables (.local, .shared, call .param declared in the body)
  parameter,          ///< index into Function::parameters
  return_parameter,   ///< index into Function::returns
  function,           ///< index into Module::functions
  label,              ///< index into Function::labels
  branch_table,       ///< index into Function::branch_tables
  call_prototype,     ///< index into Function::prototypes
};
struct SymbolRef {
  SymbolKind kind = SymbolKind::module_variable;
  std::uint32_t index = kNoIndex;
  friend bool operator==(const SymbolRef&, const SymbolRef&) = default;
};

struct Operand;

/// `%r1`; `negated` for `!%p1` in setp/selp-like positions and `-%r1` in video instructions.
struct RegisterOperand {
  std::uint32_t index = kNoIndex;  ///< into Function::registers
  bool negated = false;
  /// the component that the register's suffix selects, numbered as in selector.hpp; -1: no suffix
  std::int16_t component = -1;
  friend bool operator==(const RegisterOperand&, const RegisterOperand&) = default;
};
/// An integer constant: the bits of a 64-bit two's complement number. `is_unsigned`: the text has the suffix
/// U, or the value is above INT64_MAX.
struct IntegerOperand {
  std::uint64_t bits = 0;
  bool is_unsigned = false;
  friend bool operator==(const IntegerOperand&, const IntegerOperand&) = default;
};
/// A floating-point constant. `bits` are those of a double (0d or decimal text), or of a single (0f) if
/// `single` is set.
struct FloatOperand {
  std::uint64_t bits = 0;
  bool single = false;
  friend bool operator==(const FloatOperand&, const FloatOperand&) = default;
};
/// A symbol's address (plus a constant), or a label, function, table or prototype.
struct SymbolOperand {
  SymbolRef symbol;
  std::int64_t offset = 0;
  friend bool operator==(const SymbolOperand&, const SymbolOperand&) = default;
};
/// `[%rd1+8]`, `[symbol+8]`, `[16]`.
struct AddressOperand {
  std::uint32_t register_index = kNoIndex;  ///< kNoIndex where the base is a symbol or absent
  std::optional<SymbolRef> symbol;
  std::int64_t offset = 0;
  friend bool operator==(const AddressOperand&, const AddressOperand&) = default;
};
/// `%tid.x`, `%laneid`, `WARP_SZ`, ...
struct SpecialOperand {
  SpecialRegister which = SpecialRegister::tid_x;
  friend bool operator==(const SpecialOperand&, const SpecialOperand&) = default;
};
/// `{%f1, %f2}`; also the lists of a call: `(retval)`, `(param0, param1)`.
struct VectorOperand {
  std::vector<Operand> elements;
  friend bool operator==(const VectorOperand&, const VectorOperand&) noexcept;
};
/// `%p1|%p2`, `%r1|%p1`.
struct PairOperand {
  std::vector<Operand> elements;  ///< exactly two
  friend bool operator==(const PairOperand&, const PairOperand&) noexcept;
};
/// `[tex, {%f1, %f2}]`, `[tensor_map, {%r1, %r2}]`: an address of several parts, as in textures and tensor
/// copies.
struct BracketOperand {
  std::vector<Operand> elements;
  friend bool operator==(const BracketOperand&, const BracketOperand&) noexcept;
};
/// `_`
struct SinkOperand {
  friend bool operator==(const SinkOperand&, const SinkOperand&) = default;
};

struct Operand {
  std::variant<SinkOperand, RegisterOperand, IntegerOperand, FloatOperand, SymbolOperand, AddressOperand,
               SpecialOperand, VectorOperand, PairOperand, BracketOperand>
      value;
  template <class T>
  const T* as() const noexcept {
    return std::get_if<T>(&value);
  }
  friend bool operator==(const Operand&, const Operand&) = default;
};

/// `@%p1` / `@!%p1`
struct Guard {
  std::uint32_t register_index = kNoIndex;
  bool negated = false;
  friend bool operator==(const Guard&, const Guard&) = default;
};

using ModifierSet = std::bitset<kModifierCount>;

/// One instruction. `opcode`, `modifiers` and `types` are as written. `form` is the row of isa.def that it
/// matches; the verifier sets it (before that: kNoForm). Operands are in the order of the text, destination
/// first. The operands of `call` are: {return list (VectorOperand, may be empty)}, {callee: SymbolOperand or
/// RegisterOperand}, {arguments: VectorOperand}, and for an indirect call the prototype or table as a fourth.
struct Instruction {
  Opcode opcode{};
  std::uint16_t form = kNoForm;
  ModifierSet modifiers;
  std::vector<Modifier> modifier_order;  ///< for the printer; includes repeats
  std::vector<Type> types;               ///< dotted types in order: cvt.rn.f32.s32 -> {f32, s32}
  std::uint32_t type_positions =
      0;  ///< bit i: the i-th dotted word is a type (prmt.b32.f4e: 0b01), for the printer
  std::optional<Guard> guard;
  std::vector<Operand> operands;
  TextPosition position;              ///< of the opcode in the PTX text
  std::uint32_t location = kNoIndex;  ///< index into Function::locations

  bool has(Modifier modifier) const noexcept { return modifiers.test(static_cast<std::size_t>(modifier)); }
  /// The type at `index` of `types`; Type::none if there are fewer.
  Type type(std::size_t index = 0) const noexcept { return index < types.size() ? types[index] : Type::none; }
  /// The state space that the modifiers name (ld/st/atom/...); Space::none means generic.
  Space space() const noexcept;
  /// 1, 2, 4 or 8 from .v2/.v4/.v8.
  unsigned vector_count() const noexcept;
  friend bool operator==(const Instruction&, const Instruction&) = default;
};

struct Label {
  std::string name;
  std::uint32_t position =
      0;  ///< index into Function::body of the instruction it precedes (== size: the end)
  TextPosition text_position;
  friend bool operator==(const Label&, const Label&) = default;
};
struct Pragma {
  std::string text;
  std::uint32_t position = 0;  ///< index into Function::body
  friend bool operator==(const Pragma&, const Pragma&) = default;
};
/// `.branchtargets` or `.calltargets`
struct BranchTable {
  std::string name;
  std::vector<SymbolRef> targets;
  std::uint32_t position = 0;
  friend bool operator==(const BranchTable&, const BranchTable&) = default;
};
/// `.callprototype`
struct CallPrototype {
  std::string name;
  std::vector<Variable> returns;
  std::vector<Variable> parameters;
  bool noreturn = false;
  std::uint32_t position = 0;
  friend bool operator==(const CallPrototype&, const CallPrototype&) = default;
};

/// `.maxntid` and similar directives; 0 or empty if not given.
struct PerformanceDirectives {
  std::array<std::uint32_t, 3> maxntid{};
  std::array<std::uint32_t, 3> reqntid{};
  std::uint32_t minnctapersm = 0;
  std::uint32_t maxnctapersm = 0;
  std::uint32_t maxnreg = 0;
  std::vector<std::string> others;  ///< directives kept for the printer (".maxclusterrank 8", ...)
  friend bool operator==(const PerformanceDirectives&, const PerformanceDirectives&) = default;
};

/// A `.func` or `.entry`.
struct Function {
  std::string name;
  bool entry = false;
  bool defined = false;  ///< false for a declaration
  bool noreturn = false;
  Linkage linkage = Linkage::none;
  PerformanceDirectives performance;
  std::string attributes;  ///< inside `.attribute(...)`
  /// .func only; .reg or .param space. A return or parameter in .reg space also has an entry of its name in
  /// `registers`.
  std::vector<Variable> returns;
  std::vector<Variable> parameters;  ///< .entry: Space::param; .func: .param or .reg
  std::vector<Register> registers;
  std::vector<Variable> variables;
  std::vector<Label> labels;
  std::vector<BranchTable> branch_tables;
  std::vector<CallPrototype> prototypes;
  std::vector<Pragma> pragmas;
  std::vector<SourceLocation> locations;
  std::vector<Instruction> body;
  TextPosition position;
  friend bool operator==(const Function&, const Function&) = default;
};

struct SourceFile {
  std::uint32_t number = 0;
  std::string path;
  std::string rest;  ///< timestamp and size, as written
  friend bool operator==(const SourceFile&, const SourceFile&) = default;
};

/// `.alias name, target;`: both functions.
struct Alias {
  std::string name;
  std::string target;
  friend bool operator==(const Alias&, const Alias&) = default;
};

struct Module {
  std::uint32_t version_major = 0;
  std::uint32_t version_minor = 0;
  std::uint32_t sm = 0;                     ///< 89 for sm_89
  char sm_suffix = '\0';                    ///< 'a' or 'f' for sm_90a, sm_100f
  std::vector<std::string> target_options;  ///< texmode_unified, debug, map_f64_to_f32
  std::uint32_t address_size = 64;
  TextPosition address_size_position;  ///< of the directive; line 0 if there is none
  std::vector<SourceFile> files;
  std::vector<Variable> variables;
  std::vector<Function> functions;
  std::vector<std::string> sections;  ///< .section blocks, kept as text for the printer
  std::vector<std::string> pragmas;   ///< of the module itself
  std::vector<Alias> aliases;

  /// The entry or function called `name`, or null.
  const Function* find_function(std::string_view name) const noexcept;
  /// The function with a body that a reference to `function` means: the function itself, or the target of an
  /// alias; kNoIndex if there is only a declaration.
  std::uint32_t definition_of(std::uint32_t function) const noexcept;
  friend bool operator==(const Module&, const Module&) = default;
};

/// True if the two modules are equal except for positions in their texts.
bool equal_ignoring_positions(Module a, Module b);

}  // namespace quern::ptx
