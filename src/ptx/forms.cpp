// SPDX-License-Identifier: Apache-2.0
#include "ptx/forms.hpp"

#include <algorithm>
#include <charconv>
#include <map>
#include <optional>

namespace quern::ptx {
namespace {

struct FormRow {
  Opcode opcode;
  std::string_view words;
  std::string_view operands;
  std::uint32_t version;
  std::uint32_t sm;
  Lowering lowering;
};
constexpr FormRow kFormRows[] = {
#define QUERN_PTX_FORM(opcode, words, operands, version, sm, lowering) \
  {Opcode::opcode, words, operands, version, sm, Lowering::lowering},
#include "ptx/isa.def"
};

constexpr std::string_view kRefusals[] = {
#define QUERN_PTX_LOWERING(name, why) why,
#include "ptx/isa.def"
};

struct SetRow {
  std::string_view name;
  std::string_view words;
};
constexpr SetRow kSetRows[] = {
#define QUERN_PTX_WORDS(name, words) {#name, words},
#include "ptx/isa.def"
};

struct NeedsRow {
  std::string_view word;
  WordNeeds needs;
};
constexpr NeedsRow kNeedsRows[] = {
#define QUERN_PTX_NEEDS(word, version, sm) {word, {version, sm}},
#include "ptx/isa.def"
};

struct RemovedRow {
  Opcode opcode;
  std::string_view of;
  std::string_view words;
  std::uint32_t version;
  std::uint32_t sm;
};
constexpr RemovedRow kRemovedRows[] = {
#define QUERN_PTX_REMOVED(opcode, of, words, version, sm) {Opcode::opcode, of, words, version, sm},
#include "ptx/isa.def"
};

constexpr std::size_t kOpcodeCount = 0
#define QUERN_PTX_OPCODE(name, text) +1
#include "ptx/isa.def"
    ;

// Calls `visit` for each part of `text` between `separator`s. Does not call it for an empty text.
template <class Visit>
void split(std::string_view text, char separator, Visit visit) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(separator), text.size());
    if (end > 0) visit(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

std::optional<std::size_t> word_named(std::string_view word) noexcept {
  if (const auto type = type_named(word)) return word_index(*type);
  if (const auto modifier = modifier_named(word)) return word_index(*modifier);
  return std::nullopt;
}

bool accept(std::string_view& text, std::string_view prefix) noexcept {
  if (!text.starts_with(prefix)) return false;
  text.remove_prefix(prefix.size());
  return true;
}

}  // namespace

class FormTableBuilder {
 public:
  FormTable build();

 private:
  void defect(std::string_view place, std::string_view what);
  void defect(const FormRow& row, std::string_view what);
  WordSet words_of(std::string_view place, std::string_view alternatives);
  std::uint16_t set_of(const FormRow& row, std::string_view alternatives);
  Form form(const FormRow& row);
  OperandSpec spec(const FormRow& row, std::string_view text);
  static bool role(std::string_view& text, OperandSpec& into);
  static bool values(std::string_view& text, OperandSpec& into);
  static bool type(std::string_view& text, OperandSpec& into);
  static void flags(std::string_view& text, OperandSpec& into);

  FormTable table_;
  std::map<std::string_view, std::uint16_t> set_by_text_;
};

void FormTableBuilder::defect(std::string_view place, std::string_view what) {
  table_.defects_ += std::string(place) + ": " + std::string(what) + "\n";
}

void FormTableBuilder::defect(const FormRow& row, std::string_view what) {
  defect(std::string(name(row.opcode)) + " \"" + std::string(row.words) + "\" \"" +
             std::string(row.operands) + "\"",
         what);
}

WordSet FormTableBuilder::words_of(std::string_view place, std::string_view alternatives) {
  WordSet set;
  split(alternatives, '|', [&](std::string_view word) {
    if (word[0] != '$') {
      const std::optional<std::size_t> index = word_named(word);
      if (index) return static_cast<void>(set.set(*index));
      return defect(place, "unknown word");
    }
    const auto known = std::find_if(std::begin(kSetRows), std::end(kSetRows),
                                    [&](const SetRow& s) { return s.name == word.substr(1); });
    if (known == std::end(kSetRows)) return defect(place, "unknown set");
    split(known->words, '|', [&](std::string_view member) {
      const std::optional<std::size_t> index = word_named(member);
      if (index) return static_cast<void>(set.set(*index));
      defect(place, "unknown word in a set");
    });
  });
  return set;
}

std::uint16_t FormTableBuilder::set_of(const FormRow& row, std::string_view alternatives) {
  const auto [found, fresh] =
      set_by_text_.try_emplace(alternatives, static_cast<std::uint16_t>(table_.sets_.size()));
  if (fresh)
    table_.sets_.push_back(
        words_of(std::string(name(row.opcode)) + " \"" + std::string(row.words) + "\"", alternatives));
  return found->second;
}

bool FormTableBuilder::role(std::string_view& text, OperandSpec& into) {
  static constexpr std::pair<char, Role> kRoles[] = {
      {'d', Role::destination}, {'s', Role::source}, {'i', Role::immediate}, {'a', Role::address},
      {'l', Role::label},       {'t', Role::table},  {'u', Role::unpack},    {'k', Role::pack},
      {'h', Role::policy},      {'z', Role::sink},   {'x', Role::anything}};
  for (const auto& [letter, role] : kRoles) {
    if (text.empty() || text[0] != letter) continue;
    into.role = role;
    text.remove_prefix(1);
    if (role == Role::immediate) return values(text, into);
    if (accept(text, "v")) into.count = OperandSpec::kAsModifier;
    if (accept(text, "n")) into.count = OperandSpec::kAnyVector;
    if (!text.empty() && text[0] >= '1' && text[0] <= '8') {
      into.count = static_cast<std::uint8_t>(text[0] - '0');
      text.remove_prefix(1);
    }
    return true;
  }
  return false;
}

// Parses "i", "i16" or "i4/8/16".
bool FormTableBuilder::values(std::string_view& text, OperandSpec& into) {
  for (std::uint8_t& value : into.values) {
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error != std::errc()) break;
    text.remove_prefix(static_cast<std::size_t>(end - text.data()));
    accept(text, "/");
  }
  return true;
}

bool FormTableBuilder::type(std::string_view& text, OperandSpec& into) {
  if (!accept(text, ":")) return true;
  static constexpr std::string_view kDotted = "TUVW";
  TypeRule& rule = into.type;
  if (accept(text, "wT")) {
    rule.kind = TypeRule::Kind::wide;
  } else if (accept(text, "address")) {
    rule.kind = TypeRule::Kind::address;
  } else if (accept(text, "any")) {
    rule.kind = TypeRule::Kind::any;
  } else if (!text.empty() && kDotted.find(text[0]) != std::string_view::npos) {
    rule.kind = TypeRule::Kind::dotted;
    rule.index = static_cast<std::uint8_t>(kDotted.find(text[0]));
    text.remove_prefix(1);
  } else {
    const std::size_t end = std::min(text.find_first_of("~@%_|&!=.#"), text.size());
    const std::optional<Type> fixed = type_named(text.substr(0, end));
    if (!fixed) return false;
    rule.kind = TypeRule::Kind::fixed;
    rule.type = *fixed;
    text.remove_prefix(end);
  }
  return true;
}

void FormTableBuilder::flags(std::string_view& text, OperandSpec& into) {
  for (bool more = true; more;) {
    more = false;
    const std::pair<std::string_view, bool*> kFlags[] = {
        {"~", &into.relaxed},      {"!", &into.negatable},     {"_", &into.sinkable}, {"@", &into.symbol},
        {"%", &into.special},      {"=", &into.register_only}, {".", &into.selector}, {"#", &into.lanes},
        {"|", &into.pair_allowed}, {"&", &into.pair_required}};
    for (const auto& [letter, flag] : kFlags) {
      if (accept(text, letter)) *flag = more = true;
    }
  }
  into.pair_allowed = into.pair_allowed || into.pair_required;
}

OperandSpec FormTableBuilder::spec(const FormRow& row, std::string_view text) {
  OperandSpec made;
  made.optional = accept(text, "?");
  if (!role(text, made) || !type(text, made)) defect(row, "unknown operand");
  flags(text, made);
  if (!text.empty()) defect(row, "unknown flag of an operand");
  return made;
}

Form FormTableBuilder::form(const FormRow& row) {
  Form made;
  made.opcode = row.opcode;
  made.words = row.words;
  made.operands = row.operands;
  made.version = row.version;
  made.sm = row.sm;
  made.lowering = row.lowering;
  split(row.words, ' ', [&](std::string_view slot) {
    if (slot == "*") {
      made.any_words = true;
      return;
    }
    const bool optional = accept(slot, "?");
    made.slots.push_back({set_of(row, slot), optional});
  });
  split(row.operands, ' ', [&](std::string_view text) {
    if (text == "*") {
      made.any_operands = true;
      return;
    }
    made.specs.push_back(spec(row, text));
  });
  return made;
}

FormTable FormTableBuilder::build() {
  std::vector<std::vector<const FormRow*>> by_opcode(kOpcodeCount);
  for (const FormRow& row : kFormRows) by_opcode[static_cast<std::size_t>(row.opcode)].push_back(&row);
  for (const std::vector<const FormRow*>& rows : by_opcode) {
    table_.first_.push_back(static_cast<std::uint16_t>(table_.forms_.size()));
    for (const FormRow* row : rows) table_.forms_.push_back(form(*row));
  }
  table_.first_.push_back(static_cast<std::uint16_t>(table_.forms_.size()));
  table_.needs_.resize(kWordCount);
  for (const NeedsRow& row : kNeedsRows) {
    const std::optional<std::size_t> word = word_named(row.word);
    if (word) table_.needs_[*word] = row.needs;
    if (!word) table_.defects_ += "unknown word " + std::string(row.word) + "\n";
  }
  for (const RemovedRow& row : kRemovedRows) {
    const std::string place = std::string(name(row.opcode)) + ", removed";
    table_.removals_.push_back(
        {row.opcode, words_of(place, row.of), words_of(place, row.words), row.version, row.sm});
  }
  return std::move(table_);
}

std::string_view refusal(Lowering lowering) noexcept { return kRefusals[static_cast<std::size_t>(lowering)]; }

const FormTable& FormTable::instance() {
  static const FormTable table = FormTableBuilder().build();
  return table;
}

bool FormTable::allows(const Form& form, Modifier modifier) const noexcept {
  return std::any_of(form.slots.begin(), form.slots.end(),
                     [&](const WordSlot& slot) { return sets_[slot.set].test(word_index(modifier)); });
}

std::size_t FormTable::first_form(Opcode opcode) const noexcept {
  return first_[static_cast<std::size_t>(opcode)];
}

std::span<const Form> FormTable::forms_of(Opcode opcode) const noexcept {
  const std::size_t first = first_form(opcode);
  const std::size_t last = first_[static_cast<std::size_t>(opcode) + 1];
  return std::span<const Form>(forms_).subspan(first, last - first);
}

}  // namespace quern::ptx
