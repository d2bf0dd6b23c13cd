// SPDX-License-Identifier: Apache-2.0
// The table of instructions: maps each form of isa.def to a row of its family.
#include "cpu/lower/instructions/rows.hpp"

#include <fmt/format.h>

#include <map>
#include <utility>
#include <vector>

#include "ptx/forms.hpp"

namespace quern::cpu::lower {
namespace {

using Key = std::pair<ptx::Lowering, ptx::Opcode>;

struct Family {
  ptx::Lowering lowering;
  std::span<const Row> (*rows)();
};
constexpr Family kFamilies[] = {
    {ptx::Lowering::integer, integer_rows}, {ptx::Lowering::floating, floating_rows},
    {ptx::Lowering::compare, compare_rows}, {ptx::Lowering::convert, convert_rows},
    {ptx::Lowering::move, move_rows},       {ptx::Lowering::memory, memory_rows},
    {ptx::Lowering::atomic, atomic_rows},   {ptx::Lowering::warp, warp_rows},
    {ptx::Lowering::control, control_rows}, {ptx::Lowering::field, field_rows},
    {ptx::Lowering::video, video_rows},     {ptx::Lowering::asynchronous, async_rows},
    {ptx::Lowering::bulk, bulk_rows},
};

std::map<Key, const Row*> all_rows() {
  std::map<Key, const Row*> rows;
  for (const Family& family : kFamilies)
    for (const Row& row : family.rows()) rows.emplace(Key(family.lowering, row.opcode), &row);
  return rows;
}

/// Returns the row for each form of isa.def.
std::vector<const Row*> rows_of_forms() {
  const std::map<Key, const Row*> rows = all_rows();
  std::vector<const Row*> found;
  for (const ptx::Form& form : ptx::FormTable::instance().all()) {
    const auto at = rows.find(Key(form.lowering, form.opcode));
    found.push_back(at == rows.end() ? nullptr : at->second);
  }
  return found;
}

}  // namespace

const Row* row_of(std::uint16_t form) {
  static const std::vector<const Row*> rows = rows_of_forms();
  return form < rows.size() ? rows[form] : nullptr;
}

std::string row_defects() {
  std::map<Key, const Row*> unused = all_rows();
  const std::map<Key, const Row*> rows = unused;
  std::string defects;
  for (const ptx::Form& form : ptx::FormTable::instance().all()) {
    const Key key(form.lowering, form.opcode);
    unused.erase(key);
    if (ptx::refusal(form.lowering).empty() && !rows.contains(key))
      defects += fmt::format("'{} {}' has no row in the family that isa.def names\n", ptx::name(form.opcode),
                             form.words);
  }
  for (const auto& [key, row] : unused)
    defects += fmt::format("no form of '{}' is lowered by the family that has a row of it\n",
                           ptx::name(row->opcode));
  return defects;
}

}  // namespace quern::cpu::lower
