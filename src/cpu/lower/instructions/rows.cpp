// SPDX-License-Identifier: Apache-2.0
// The table of instructions, put together from the families' tables.
#include "cpu/lower/instructions/rows.hpp"

#include <vector>

namespace quern::cpu::lower {
namespace {

bool on_floats(ptx::Type type) {
  return ptx::kind(type) == ptx::TypeKind::floating || ptx::kind(half_of(type)) == ptx::TypeKind::floating;
}

class Index {
 public:
  Index() {
    for (const Row& row : integer_rows()) set(0, row);
    for (const Row& row : floating_rows()) set(1, row);
    for (const auto rows : {compare_rows(), convert_rows(), move_rows(), memory_rows(), atomic_rows(),
                            warp_rows(), control_rows(), field_rows(), video_rows(), async_rows()}) {
      for (const Row& row : rows) {
        set(0, row);
        set(1, row);
      }
    }
  }

  const Row* find(std::size_t which, ptx::Opcode opcode) const {
    const auto index = static_cast<std::size_t>(opcode);
    return index < rows_[which].size() ? rows_[which][index] : nullptr;
  }

 private:
  void set(std::size_t which, const Row& row) {
    const auto index = static_cast<std::size_t>(row.opcode);
    if (index >= rows_[which].size()) rows_[which].resize(index + 1);
    rows_[which][index] = &row;
  }

  std::vector<const Row*> rows_[2];
};

}  // namespace

const Row* row_of(const ptx::Instruction& instruction) {
  static const Index index;
  return index.find(on_floats(instruction.type()) ? 1 : 0, instruction.opcode);
}

}  // namespace quern::cpu::lower
