// SPDX-License-Identifier: Apache-2.0
// Checks a module against isa.def and the targets.
#include <fmt/format.h>

#include <algorithm>

#include "ptx/check/barrier_check.hpp"
#include "ptx/check/call_check.hpp"
#include "ptx/check/match_form.hpp"
#include "ptx/check/operand_check.hpp"
#include "ptx/parse/report.hpp"
#include "ptx/printer.hpp"

namespace quern::ptx {
namespace {

struct TargetRow {
  std::uint32_t sm;
  std::uint32_t version;  ///< the first .version that supports it
};
// Source of the targets: "Release Notes".
constexpr TargetRow kTargets[] = {{10, 10},  {11, 10},  {12, 12}, {13, 12}, {20, 20},  {21, 20},  {30, 31},
                                  {32, 40},  {35, 31},  {37, 41}, {50, 40}, {52, 41},  {53, 42},  {60, 50},
                                  {61, 50},  {62, 50},  {70, 60}, {72, 61}, {75, 63},  {80, 70},  {86, 71},
                                  {87, 74},  {88, 90},  {89, 78}, {90, 78}, {100, 86}, {101, 86}, {103, 88},
                                  {110, 90}, {120, 87}, {121, 88}};

std::string version_text(std::uint32_t version) { return fmt::format("{}.{}", version / 10, version % 10); }

std::string target_text(std::uint32_t sm) {
  return sm >= kOnly ? fmt::format("sm_{}a", sm - kOnly) : fmt::format("sm_{}", sm);
}

class Verifier {
 public:
  Verifier(Module& module, std::string_view file, const Limits& limits)
      : module_(module), report_({}, file, limits.max_errors), table_(FormTable::instance()) {}

  Expected<void> run();

 private:
  void check_target();
  void check_function(Function& function);
  void check_parameters(const Function& function);
  void check_instruction(const Function& function, Instruction& instruction);
  bool check_needs(const Instruction& instruction, const Form& form, const WordList& words);
  bool check_removed(const Instruction& instruction, const WordList& words);
  bool check_vector(const Instruction& instruction);
  std::optional<std::string> check_more(const Function& function, const Instruction& instruction) const;
  const Form* closer(const Form* best, const Form& other) const;
  void report_words(const Instruction& instruction, const WordList& words);
  std::string set_text(const WordSet& set) const;
  std::string word_text(std::size_t word) const;
  void error(std::string_view code, const Instruction& instruction, std::string message,
             std::string hint = {}) {
    report_.error(code, instruction.position, std::move(message), std::move(hint));
  }

  Module& module_;
  Report report_;
  const FormTable& table_;
  std::uint32_t version_ = 0;
};

Expected<void> Verifier::run() {
  version_ = module_.version_major * 10 + module_.version_minor;
  check_target();
  for (Function& function : module_.functions) check_function(function);
  if (!report_.empty()) return std::move(report_).take();
  return {};
}

void Verifier::check_target() {
  const TextPosition start{1, 1};
  const TargetRow* row = nullptr;
  for (const TargetRow& candidate : kTargets) {
    if (candidate.sm == module_.sm) row = &candidate;
  }
  if (row == nullptr)
    return report_.error(kVersion, start,
                         fmt::format("'.target sm_{}' is no architecture that is known here", module_.sm));
  const std::uint32_t needed = module_.sm_suffix == 'f'                       ? std::max(row->version, 88u)
                               : module_.sm == 90 && module_.sm_suffix == 'a' ? 80
                                                                              : row->version;
  if (version_ < needed) {
    report_.error(kVersion, start,
                  fmt::format("'.target sm_{}' needs '.version {}' or later; the module says {}", module_.sm,
                              version_text(needed), version_text(version_)));
  }
}

/// Kernel parameters may have 4,352 bytes, from PTX 8.1 on 32,764. Source: NVIDIA, "PTX ISA", "Kernel
/// Function Parameters".
void Verifier::check_parameters(const Function& function) {
  constexpr std::uint64_t kMostOfOld = 4352, kMost = 32764;
  std::uint64_t end = 0;
  for (const Variable& variable : function.parameters) {
    const std::uint64_t align = std::max(1u, variable.align);
    end = (end + align - 1) / align * align + variable.size_bytes();
    if (end <= (version_ >= 81 ? kMost : kMostOfOld)) continue;
    return report_.error(
        kForm, variable.position,
        fmt::format("parameters of kernel '{}' take more than {} bytes", function.name,
                    version_ >= 81 ? kMost : kMostOfOld),
        end <= kMost ? "write .version 8.1 or later, or pass a pointer" : "pass a pointer to what is large");
  }
}

void Verifier::check_function(Function& function) {
  if (function.entry) check_parameters(function);
  for (Instruction& instruction : function.body) {
    if (report_.full()) return;
    check_instruction(function, instruction);
  }
}

void Verifier::check_instruction(const Function& function, Instruction& instruction) {
  if (instruction.guard && function.registers[instruction.guard->register_index].type != Type::pred) {
    return error(kForm, instruction,
                 fmt::format("the guard '{}' is no predicate",
                             function.registers[instruction.guard->register_index].name));
  }
  const std::span<const Form> forms = table_.forms_of(instruction.opcode);
  const WordList words = words_of(instruction);
  OperandCheck operands(module_, function, instruction);
  std::optional<Fault> best;
  const Form* unmet = nullptr;
  for (std::size_t i = 0; i < forms.size(); ++i) {
    if (!fit_words(table_, forms[i], words).fits()) continue;
    const std::optional<Fault> fault = operands.check(forms[i]);
    if (fault) {
      const bool farther = !best || (best->kind == FaultKind::count && fault->kind != FaultKind::count) ||
                           (fault->kind != FaultKind::count && fault->operand > best->operand);
      if (farther) best = fault;
      continue;
    }
    const bool enough = is_available(forms[i], module_);
    if (!enough && (unmet != nullptr || i + 1 < forms.size())) {
      unmet = closer(unmet, forms[i]);
      continue;
    }
    unmet = nullptr;
    if (!check_needs(instruction, forms[i], words) || !check_removed(instruction, words) ||
        !check_vector(instruction))
      return;
    instruction.form = static_cast<std::uint16_t>(table_.first_form(instruction.opcode) + i);
    if (const std::optional<std::string> problem = check_more(function, instruction))
      error(kForm, instruction, *problem);
    return;
  }
  if (unmet != nullptr) {
    check_needs(instruction, *unmet, words);
  } else if (best) {
    error(kForm, instruction, operands.describe(*best));
  } else {
    report_words(instruction, words);
  }
}

/// Checks rules that isa.def does not express.
std::optional<std::string> Verifier::check_more(const Function& function,
                                                const Instruction& instruction) const {
  switch (instruction.opcode) {
    case Opcode::call:
      return check_call(module_, function, instruction);
    case Opcode::bar:
    case Opcode::barrier:
      return check_barrier(instruction);
    default:
      return std::nullopt;
  }
}

/// Chooses between two forms that need a newer target or version than the module has. A form whose version
/// suffices is preferred, then the one for the older target.
const Form* Verifier::closer(const Form* best, const Form& other) const {
  if (best == nullptr) return &other;
  const auto distance = [&](const Form& form) { return std::pair(form.version > version_, form.sm); };
  return distance(other) < distance(*best) ? &other : best;
}

bool Verifier::check_needs(const Instruction& instruction, const Form& form, const WordList& words) {
  std::uint32_t version = form.version;
  std::uint32_t sm = form.sm;
  for (std::size_t i = 0; i < words.count; ++i) {
    const WordNeeds needs = table_.needs(words.words[i]);
    version = std::max<std::uint32_t>(version, needs.version);
    sm = std::max<std::uint32_t>(sm, needs.sm);
  }
  const bool has_target =
      sm >= kOnly ? module_.sm >= sm - kOnly && module_.sm_suffix != '\0' : module_.sm >= sm;
  if (!has_target) {
    const std::string_view more = sm >= kOnly ? "" : " or higher";
    error(kVersion, instruction,
          fmt::format("'{}' needs '.target {}'{}; the module says sm_{}", instruction_name(instruction),
                      target_text(sm), more, module_.sm));
    return false;
  }
  if (version > version_) {
    error(kVersion, instruction,
          fmt::format("'{}' needs '.version {}' or later; the module says {}", instruction_name(instruction),
                      version_text(version), version_text(version_)));
    return false;
  }
  return true;
}

bool Verifier::check_removed(const Instruction& instruction, const WordList& words) {
  for (const Removal& removal : table_.removals()) {
    if (removal.opcode != instruction.opcode || version_ < removal.version || module_.sm < removal.sm)
      continue;
    const auto has_one_of = [&](const WordSet& set) {
      return std::any_of(words.words.begin(), words.words.begin() + words.count,
                         [&](std::size_t word) { return set.test(word); });
    };
    if (has_one_of(removal.words) || (removal.of.any() && !has_one_of(removal.of))) continue;
    error(kVersion, instruction,
          fmt::format("'{}' without {}{} is not in '.version {}' and later for '.target sm_{}' and higher",
                      instruction_name(instruction), removal.words.count() > 1 ? "one of " : "",
                      set_text(removal.words), version_text(removal.version), removal.sm));
    return false;
  }
  return true;
}

// Source: "Vectors". A vector has at most 128 bits, or 256 in global memory from sm_100 on.
bool Verifier::check_vector(const Instruction& instruction) {
  const unsigned count = instruction.vector_count();
  const Opcode opcode = instruction.opcode;
  const bool moves =
      opcode == Opcode::ld || opcode == Opcode::st || opcode == Opcode::ldu || opcode == Opcode::mov;
  const std::uint32_t bits = count * bit_size(instruction.type());
  if (count == 1 || !moves || bits <= 128) return true;
  const Space space = instruction.space();
  const bool in_global =
      (opcode == Opcode::ld || opcode == Opcode::st) && (space == Space::none || space == Space::global);
  const bool wide =
      bits == 256 && bit_size(instruction.type()) <= 64 && module_.sm >= 100 && version_ >= 88 && in_global;
  if (!wide)
    error(kForm, instruction,
          fmt::format("'{}' moves {} bits; the limit is 128", instruction_name(instruction), bits));
  return wide;
}

std::string Verifier::word_text(std::size_t word) const {
  const std::string_view text =
      word < kTypeCount ? name(static_cast<Type>(word)) : name(static_cast<Modifier>(word - kTypeCount));
  return fmt::format("'.{}'", text);
}

std::string Verifier::set_text(const WordSet& set) const {
  constexpr std::size_t kMost = 8;
  std::string text;
  std::size_t count = 0;
  for (std::size_t word = 0; word < kWordCount && count <= kMost; ++word) {
    if (!set.test(word)) continue;
    text += count++ == kMost ? ", ..." : fmt::format("{}{}", text.empty() ? "" : ", ", word_text(word));
  }
  return text;
}

// Reports the extra or missing words with respect to the nearest form; no form has exactly these words.
void Verifier::report_words(const Instruction& instruction, const WordList& words) {
  std::optional<WordFit> nearest;
  for (const Form& form : table_.forms_of(instruction.opcode)) {
    const WordFit fit = fit_words(table_, form, words);
    const auto cost = [](const WordFit& f) { return 2 * f.misfits + (f.missing ? 1 : 0); };
    if (!nearest || cost(fit) < cost(*nearest)) nearest = fit;
  }
  const std::string text = instruction_name(instruction);
  if (!nearest)
    return error(kForm, instruction, fmt::format("'{}' is not among the instruction forms known here", text));
  if (nearest->misfits > 0) {
    return error(kForm, instruction,
                 fmt::format("{} does not go with '{}'", word_text(nearest->first_misfit), text));
  }
  error(kForm, instruction,
        fmt::format("'{}' needs one of {}", text, set_text(table_.set(*nearest->missing))));
}

}  // namespace

Expected<void> verify(Module& module, std::string_view file_name, const Limits& limits) {
  return Verifier(module, file_name, limits).run();
}

}  // namespace quern::ptx
