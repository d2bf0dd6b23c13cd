// SPDX-License-Identifier: Apache-2.0
// The oracle: an independent, scalar interpreter of PTX, which runs one thread at a time. It is written from
// the PTX ISA, for correctness only, and shares no code with src/ptx and src/cpu. This header: PTX text as a
// program.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <stdexcept>
#include <string>
#include <string_view>
#include <vector>

namespace quern::oracle {

/// The oracle does not support this. That does not mean that the PTX is invalid.
struct Unsupported : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// A fundamental type: kind 'u', 's', 'b', 'f' or 'p' (predicate), and its width.
struct Type {
  char kind = 0;
  unsigned bits = 0;
  bool is(char k, unsigned b) const { return kind == k && bits == b; }
  bool is_float() const { return kind == 'f'; }
  bool is_signed() const { return kind == 's'; }
  unsigned bytes() const { return (bits + 7) / 8; }
};

enum class Space : std::uint8_t { generic, global, shared, local, constant, param };

struct Operand {
  enum class Kind : std::uint8_t {
    none,
    reg,
    integer,
    f32,
    f64,
    symbol,
    address,
    special,
    vector,
    sink
  } kind = Kind::none;
  std::uint32_t reg = 0;  ///< register index; address: base register
  bool negated = false;
  bool has_base = false;   ///< address with a register base
  std::uint64_t bits = 0;  ///< constant; address and symbol: offset
  std::string name;        ///< symbol, special register, label, function; selected part of a register (b0)
  std::vector<Operand> parts;  ///< vector, pair, list
};

struct Thread;
struct Instruction;
/// Executes an instruction in one thread.
using Handler = void (*)(Thread&, const Instruction&);

struct Instruction {
  std::string opcode;              ///< "add"
  std::vector<std::string> words;  ///< all dotted words after the opcode
  std::vector<Type> types;         ///< those of the words that are types, in order
  std::vector<Operand> operands;
  std::int64_t guard = -1;  ///< register index
  bool guard_negated = false;
  unsigned line = 0;
  std::string text;
  enum class Kind : std::uint8_t { ordinary, warp_operation, barrier } kind = Kind::ordinary;
  Handler handler = nullptr;  ///< set by prepare() for ordinary instructions that the oracle knows

  bool has(std::string_view word) const;
};

struct Variable {
  std::string name;
  Space space = Space::global;
  Type type;
  std::uint64_t count = 1;  ///< elements; 0: unsized
  unsigned align = 1;
  std::vector<std::uint64_t> values;             ///< initialiser
  std::map<std::size_t, std::string> functions;  ///< elements that are the addresses of functions
  /// Offset in the parameter list, shared block or local frame; for a parameter in registers, the first
  /// register.
  std::uint64_t offset = 0;
  std::uint64_t size() const { return count * type.bytes(); }
};

struct Function {
  std::string name;
  bool entry = false;
  bool defined = false;
  std::vector<Variable> params;  ///< inputs
  std::vector<Variable> returns;
  std::vector<Variable> locals;  ///< .local, .shared and .param variables declared inside
  std::vector<Type> registers;
  std::map<std::string, std::uint32_t> labels;
  std::vector<Instruction> body;
  std::uint64_t local_bytes = 0;
};

struct Program {
  std::vector<Variable> variables;  ///< module level
  std::vector<Function> functions;
  const Function* find(std::string_view name) const;
  /// The number that represents a function's address; 0 if no function has that name.
  std::uint64_t address_of(std::string_view function) const;
};

/// Reads PTX. Throws Unsupported with the line of unknown instructions.
Program read(std::string_view ptx);

}  // namespace quern::oracle
