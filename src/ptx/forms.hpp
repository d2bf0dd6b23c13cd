// SPDX-License-Identifier: Apache-2.0
// isa.def as a table that can be searched: slots of words, operand specifications, and their requirements.
#pragma once

#include <array>
#include <bitset>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ptx/module.hpp"

namespace quern::ptx {

/// if this is added to a form's `sm`, the form exists only for the 'a' variant of exactly that target.
inline constexpr std::uint32_t kOnly = 1000;

/// Types and modifiers have one numbering, in which types come first.
inline constexpr std::size_t kTypeCount = 1
#define QUERN_PTX_TYPE(name, text, bits, kind) +1
#include "ptx/words.def"
    ;
inline constexpr std::size_t kWordCount = kTypeCount + kModifierCount;
using WordSet = std::bitset<kWordCount>;
inline std::size_t word_index(Type type) noexcept { return static_cast<std::size_t>(type); }
inline std::size_t word_index(Modifier modifier) noexcept {
  return kTypeCount + static_cast<std::size_t>(modifier);
}

struct WordSlot {
  std::uint16_t set = 0;  ///< index into FormTable::sets
  bool optional = false;
};

enum class Role : std::uint8_t {
  destination,
  source,
  immediate,
  address,
  label,
  table,
  unpack,
  pack,
  policy,
  sink,
  anything
};

/// The rule that gives an operand's type for an instruction.
struct TypeRule {
  enum class Kind : std::uint8_t { dotted, wide, fixed, address, any };
  Kind kind = Kind::any;
  std::uint8_t index = 0;  ///< index of the dotted type
  Type type = Type::none;  ///< the type if `kind` is `fixed`
};

struct OperandSpec {
  static constexpr std::uint8_t kOne = 0;  ///< a plain operand
  /// as .v2, .v4 or .v8 says; without these a plain operand
  static constexpr std::uint8_t kAsModifier = 254;
  static constexpr std::uint8_t kAnyVector = 255;
  Role role = Role::anything;
  std::uint8_t count = kOne;  ///< kOne, kAsModifier, or the length of a vector
  TypeRule type;
  std::array<std::uint8_t, 3> values{};  ///< an immediate must be one of these; unused ones are 0
  bool optional = false;
  bool relaxed = false;        ///< flag ~ of isa.def, as the flags below
  bool negatable = false;      ///< !
  bool sinkable = false;       ///< _
  bool pair_allowed = false;   ///< | or &
  bool pair_required = false;  ///< &
  bool symbol = false;         ///< @
  bool special = false;        ///< %
  bool register_only = false;  ///< =
  bool selector = false;       ///< .
  bool lanes = false;          ///< #
};

/// The family of instructions by which the CPU device lowers a form, or the reason why it is rejected.
enum class Lowering : std::uint8_t {
#define QUERN_PTX_LOWERING(name, why) name,
#include "ptx/isa.def"
};
/// Returns the reason why the CPU device rejects the forms; empty if it lowers them.
std::string_view refusal(Lowering lowering) noexcept;

struct Form {
  Opcode opcode{};
  std::string_view words;  ///< as written in isa.def
  std::string_view operands;
  std::uint32_t version = 0;  ///< 62 means 6.2
  std::uint32_t sm = 0;
  Lowering lowering{};
  std::vector<WordSlot> slots;
  bool any_words = false;
  bool any_operands = false;
  std::vector<OperandSpec> specs;
};

/// The version and target that a word requires in any instruction.
struct WordNeeds {
  std::uint16_t version = 0;
  std::uint16_t sm = 0;
};

/// From `version` on, targets from `sm` on have only those forms of the opcode that contain one of `words`.
struct Removal {
  Opcode opcode{};
  WordSet of;     ///< concerns only forms that contain one of these; if it is empty, all
  WordSet words;  ///< not empty
  std::uint32_t version = 0;
  std::uint32_t sm = 0;
};

class FormTable {
 public:
  /// The table. The first call creates it; it never changes.
  static const FormTable& instance();

  /// The forms of one opcode, contiguous and in the order of isa.def; the first has index
  /// `first_form(opcode)`.
  std::span<const Form> forms_of(Opcode opcode) const noexcept;
  std::size_t first_form(Opcode opcode) const noexcept;
  std::span<const Form> all() const noexcept { return forms_; }
  const WordSet& set(std::uint16_t index) const noexcept { return sets_[index]; }
  /// True if instructions of the form may have the modifier.
  bool allows(const Form& form, Modifier modifier) const noexcept;
  WordNeeds needs(std::size_t word) const noexcept { return needs_[word]; }
  std::span<const Removal> removals() const noexcept { return removals_; }
  /// Errors in isa.def itself; empty if there are none. A test checks this.
  const std::string& defects() const noexcept { return defects_; }

 private:
  friend class FormTableBuilder;
  std::vector<Form> forms_;
  std::vector<std::uint16_t> first_;  ///< index of the first form by opcode, with one more element at the end
  std::vector<WordSet> sets_;
  std::vector<WordNeeds> needs_;
  std::vector<Removal> removals_;
  std::string defects_;
};

}  // namespace quern::ptx
