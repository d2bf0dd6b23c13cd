// SPDX-License-Identifier: Apache-2.0
// A thread of the oracle and its block.
#pragma once

#include <cstring>
#include <optional>

#include "machine.hpp"

namespace quern::oracle {

struct Fault {
  Outcome outcome;
};

class Block;

/// One activation of a function: its registers and the bytes of its parameters and .param variables.
struct Frame {
  const Function* function = nullptr;
  std::size_t pc = 0;
  std::vector<std::uint64_t> registers;
  std::map<std::string, std::vector<std::byte>> params;
  const Instruction* call = nullptr;  ///< the caller's instruction; null in a kernel
  std::uint64_t local_base = 0;
};

struct Thread {
  enum class State : std::uint8_t { running, at_barrier, at_warp_operation, exited } state = State::running;
  Block* block = nullptr;
  std::array<std::uint32_t, 3> index{};
  unsigned linear = 0;
  std::vector<Frame> frames;
  std::vector<std::byte> local;
  bool carry = false;

  unsigned lane() const { return linear % 32; }
  unsigned warp() const { return linear / 32; }
  Frame& frame() { return frames.back(); }

  /// The operand's bits as a `type`: constants are converted to it, registers truncated to its width.
  std::uint64_t get(const Operand& operand, Type type);
  void set(const Operand& operand, std::uint64_t bits);
  double get_f64(const Operand& operand);
  float get_f32(const Operand& operand);
  bool get_pred(const Operand& operand) { return get(operand, {'p', 1}) != 0; }
};

/// Null if the oracle does not know the instruction.
Handler find_handler(const Instruction& instruction);
bool is_warp_operation(const Instruction& instruction);
/// Sets kind and handler of every instruction. The block executes barriers and warp operations.
void prepare(Program& program);

class Block {
 public:
  Block(Machine& machine, const Function& kernel, const Launch& launch, std::array<std::uint32_t, 3> index,
        std::span<const std::byte> params, std::uint64_t& steps);
  /// Runs each thread for one turn. Throws Fault.
  struct Round {
    bool done = true;       ///< all threads have exited
    bool progress = false;  ///< some thread made progress
  };
  Round run_round();
  /// The location of a fault.
  std::string place() const;

  std::byte* memory(Thread& thread, Space space, std::uint64_t address, std::size_t size);
  std::uint64_t symbol_address(Thread& thread, const std::string& name, bool generic);
  Space symbol_space(Thread& thread, const std::string& name) const;
  const Program& program() const { return machine_.program(); }

  const Launch& launch;
  std::array<std::uint32_t, 3> index;
  std::uint64_t shared_static_bytes = 0;

 private:
  void step(Thread& thread);
  bool release_barrier(unsigned id);
  void arrive(Thread& thread, const Instruction& instruction);
  unsigned warp_share(const Thread& thread) const;
  bool run_warp_operations();
  void warp_operation(const std::vector<Thread*>& members, const Instruction& instruction,
                      std::uint32_t mask);
  static std::uint32_t member_mask(Thread& thread, const Instruction& instruction);
  void layout_shared(const Function& kernel);

  Machine& machine_;
  std::vector<Thread> threads_;
  std::vector<std::byte> shared_;
  std::array<unsigned, 16> arrived_{};  ///< threads that arrived at a barrier without waiting
  const Instruction* current_ = nullptr;
  const Thread* who_ = nullptr;
  std::map<std::string, std::uint64_t> shared_symbols_;
  std::uint64_t& steps_;
};

inline std::uint64_t mask_of(unsigned bits) {
  return bits >= 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << bits) - 1;
}
inline std::int64_t sign_extend(std::uint64_t value, unsigned bits) {
  return static_cast<std::int64_t>(value << (64 - bits)) >> (64 - bits);
}
template <class To, class From>
To bits_as(From from) {
  static_assert(sizeof(To) == sizeof(From));
  To to;
  std::memcpy(&to, &from, sizeof to);
  return to;
}

}  // namespace quern::oracle
