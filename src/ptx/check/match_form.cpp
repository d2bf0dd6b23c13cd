// SPDX-License-Identifier: Apache-2.0
#include "ptx/check/match_form.hpp"

#include "ptx/check/operand_check.hpp"
#include "ptx/ptx.hpp"

namespace quern::ptx {

bool is_available(const Form& form, const Module& module) noexcept {
  const std::uint32_t version = module.version_major * 10 + module.version_minor;
  return form.version <= version && (form.sm >= kOnly || form.sm <= module.sm);
}

std::uint16_t match_form(const Module& module, const Function& function, const Instruction& instruction) {
  const FormTable& table = FormTable::instance();
  const std::span<const Form> forms = table.forms_of(instruction.opcode);
  const WordList words = words_of(instruction);
  OperandCheck operands(module, function, instruction);
  for (std::size_t i = 0; i < forms.size(); ++i)
    if (fit_words(table, forms[i], words).fits() && is_available(forms[i], module) &&
        !operands.check(forms[i]))
      return static_cast<std::uint16_t>(table.first_form(instruction.opcode) + i);
  return kNoForm;
}

}  // namespace quern::ptx
