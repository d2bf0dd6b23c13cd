// SPDX-License-Identifier: Apache-2.0
#include "machine.hpp"

#include <algorithm>

#include "thread.hpp"

namespace quern::oracle {
namespace {

void store(std::span<std::byte> bytes, std::size_t offset, std::uint64_t value, unsigned size) {
  std::memcpy(bytes.data() + offset, &value, size);
}

std::uint64_t align_up(std::uint64_t value, std::uint64_t align) {
  return (value + align - 1) / align * align;
}

}  // namespace

Machine::Machine(Program program) : program_(std::move(program)) {
  prepare(program_);
  for (const Variable& variable : program_.variables) {
    if (variable.space != Space::global && variable.space != Space::constant) continue;
    const std::uint64_t address = allocate(variable.size());
    symbols_[variable.name] = address;
    for (std::size_t i = 0; i < variable.values.size(); ++i)
      store(memory(address), i * variable.type.bytes(), variable.values[i], variable.type.bytes());
    for (const auto& [index, function] : variable.functions)
      store(memory(address), index * 8, program_.address_of(function), 8);
  }
}

std::uint64_t Machine::allocate(std::size_t size_bytes) {
  const std::uint64_t address = next_address_;
  buffers_[address].resize(size_bytes);
  next_address_ = align_up(address + size_bytes + 0x10000, 256);
  return address;
}

std::span<std::byte> Machine::memory(std::uint64_t address) { return buffers_.at(address); }

std::byte* Machine::translate(std::uint64_t address, std::size_t size) {
  auto next = buffers_.upper_bound(address);
  if (next == buffers_.begin()) return nullptr;
  auto& [begin, bytes] = *std::prev(next);
  const std::uint64_t offset = address - begin;
  return offset <= bytes.size() && size <= bytes.size() - offset ? bytes.data() + offset : nullptr;
}

Result Machine::launch(const std::string& kernel, const Launch& launch, std::span<const std::byte> params) {
  const Function* function = program_.find(kernel);
  if (function == nullptr || !function->defined) throw Unsupported("oracle: no kernel " + kernel);
  std::uint64_t steps = 0;
  std::vector<std::unique_ptr<Block>> blocks;
  for (std::uint32_t z = 0; z < launch.grid[2]; ++z)
    for (std::uint32_t y = 0; y < launch.grid[1]; ++y)
      for (std::uint32_t x = 0; x < launch.grid[0]; ++x) {
        blocks.push_back(
            std::make_unique<Block>(*this, *function, launch, std::array{x, y, z}, params, steps));
        if (launch.all_blocks_at_once) continue;
        if (const Result result = run(blocks, launch, steps); result.outcome != Outcome::ok) return result;
        blocks.clear();
      }
  return run(blocks, launch, steps);
}

Result Machine::run(const std::vector<std::unique_ptr<Block>>& blocks, const Launch& launch,
                    const std::uint64_t& steps) {
  for (;;) {
    bool done = true;
    bool progress = false;
    for (const std::unique_ptr<Block>& block : blocks) try {
        const Block::Round round = block->run_round();
        done &= round.done;
        progress |= round.progress;
      } catch (const Fault& fault) {
        return {fault.outcome, block->place()};
      }
    if (done) return {};
    if (!progress) return {Outcome::deadlock, "threads wait for each other"};
    if (steps > launch.max_steps) return {Outcome::too_long, "the step limit is reached"};
  }
}

Block::Block(Machine& machine, const Function& kernel, const Launch& launch_,
             std::array<std::uint32_t, 3> index_, std::span<const std::byte> params, std::uint64_t& steps)
    : launch(launch_), index(index_), machine_(machine), steps_(steps) {
  layout_shared(kernel);
  const unsigned count = launch.block[0] * launch.block[1] * launch.block[2];
  threads_.resize(count);
  for (unsigned i = 0; i < count; ++i) {
    Thread& thread = threads_[i];
    thread.block = this;
    thread.linear = i;
    thread.index = {i % launch.block[0], i / launch.block[0] % launch.block[1],
                    i / launch.block[0] / launch.block[1]};
    Frame frame;
    frame.function = &kernel;
    frame.registers.resize(kernel.registers.size());
    for (const Variable& param : kernel.params) {
      if (param.offset + param.size() > params.size())
        throw Unsupported("oracle: the parameter buffer is too short");
      const auto* begin = params.data() + param.offset;
      frame.params[param.name].assign(begin, begin + param.size());
    }
    for (const Variable& local : kernel.locals)
      if (local.space == Space::param)
        frame.params[local.name].resize(std::max<std::size_t>(frame.params[local.name].size(), local.size()));
    thread.local.resize(kernel.local_bytes);
    thread.frames.push_back(std::move(frame));
  }
}

// Static shared variables follow one another. Dynamic ones come after them, all at the same address.
void Block::layout_shared(const Function& kernel) {
  std::uint64_t at = 0;
  std::vector<const Variable*> dynamic;
  const auto place = [&](const Variable& variable) {
    if (variable.space != Space::shared || shared_symbols_.contains(variable.name)) return;
    if (variable.count == 0) return dynamic.push_back(&variable);
    at = align_up(at, std::max(1u, variable.align));
    shared_symbols_[variable.name] = at;
    at += variable.size();
  };
  for (const Variable& variable : machine_.program().variables) place(variable);
  for (const Variable& variable : kernel.locals) place(variable);
  for (const Function& function : machine_.program().functions)
    if (!function.entry)
      for (const Variable& variable : function.locals) place(variable);
  at = align_up(at, 16);
  for (const Variable* variable : dynamic) shared_symbols_[variable->name] = at;
  shared_static_bytes = at;
  shared_.resize(at + launch.dynamic_shared_bytes);
}

std::byte* Block::memory(Thread& thread, Space space, std::uint64_t address, std::size_t size) {
  if (space == Space::generic) {
    if (address >= kSharedWindow) return memory(thread, Space::shared, address - kSharedWindow, size);
    if (address >= kLocalWindow) return memory(thread, Space::local, address - kLocalWindow, size);
    space = Space::global;
  }
  if (address % size != 0) throw Fault{Outcome::misaligned};
  std::byte* found = nullptr;
  if (space == Space::shared || space == Space::local) {
    std::vector<std::byte>& bytes = space == Space::shared ? shared_ : thread.local;
    if (address <= bytes.size() && size <= bytes.size() - address) found = bytes.data() + address;
  } else {
    found = machine_.translate(address, size);
  }
  if (found == nullptr) throw Fault{Outcome::illegal_address};
  return found;
}

Space Block::symbol_space(Thread& thread, const std::string& name) const {
  if (shared_symbols_.contains(name)) return Space::shared;
  for (const Variable& local : thread.frames.back().function->locals)
    if (local.name == name) return local.space;
  return machine_.symbols_.contains(name) ? Space::global : Space::param;
}

std::uint64_t Block::symbol_address(Thread& thread, const std::string& name, bool generic) {
  if (const auto found = shared_symbols_.find(name); found != shared_symbols_.end())
    return found->second + (generic ? kSharedWindow : 0);
  const std::vector<Variable>& locals = thread.frame().function->locals;
  for (auto local = locals.rbegin(); local != locals.rend(); ++local)
    if (local->name == name && local->space == Space::local)
      return thread.frame().local_base + local->offset + (generic ? kLocalWindow : 0);
  if (const auto found = machine_.symbols_.find(name); found != machine_.symbols_.end()) return found->second;
  throw Unsupported("oracle: the address of " + name);
}

Block::Round Block::run_round() {
  constexpr unsigned kTurn = 500;  // instructions
  Round round;
  for (Thread& thread : threads_) {
    who_ = &thread;
    for (unsigned i = 0; i < kTurn && thread.state == Thread::State::running; ++i) {
      current_ = thread.frame().pc < thread.frame().function->body.size()
                     ? &thread.frame().function->body[thread.frame().pc]
                     : nullptr;
      step(thread);
      round.progress = true;
      ++steps_;
    }
    round.done &= thread.state == Thread::State::exited;
  }
  round.progress |= run_warp_operations();
  for (unsigned id = 0; id < arrived_.size(); ++id) round.progress |= release_barrier(id);
  return round;
}

std::string Block::place() const {
  return (current_ != nullptr ? current_->text : std::string("end")) + ", thread " +
         std::to_string(who_->linear);
}

void Block::step(Thread& thread) {
  Frame& frame = thread.frame();
  if (frame.pc >= frame.function->body.size()) {
    thread.state = Thread::State::exited;
    return;
  }
  const Instruction& instruction = frame.function->body[frame.pc];
  if (instruction.guard >= 0) {
    const bool on = (frame.registers[static_cast<std::size_t>(instruction.guard)] & 1) != 0;
    if (on == instruction.guard_negated) {
      ++frame.pc;
      return;
    }
  }
  if (instruction.kind != Instruction::Kind::ordinary) {
    if (instruction.kind == Instruction::Kind::barrier && instruction.has("arrive"))
      return arrive(thread, instruction);
    thread.state = instruction.kind == Instruction::Kind::barrier ? Thread::State::at_barrier
                                                                  : Thread::State::at_warp_operation;
    return;
  }
  if (instruction.handler == nullptr) throw Unsupported("oracle: " + instruction.text);
  ++frame.pc;
  instruction.handler(thread, instruction);
}

/// The number of threads that `thread` counts for at a barrier: itself and, if it is the first live thread of
/// its warp, the lanes that are not live. A barrier counts whole warps.
unsigned Block::warp_share(const Thread& thread) const {
  unsigned living = 0, before = 0;
  for (const Thread& other : threads_) {
    if (other.warp() != thread.warp() || other.state == Thread::State::exited) continue;
    ++living;
    before += other.linear < thread.linear ? 1 : 0;
  }
  return before == 0 ? 1 + 32 - living : 1;
}

void Block::arrive(Thread& thread, const Instruction& instruction) {
  arrived_.at(thread.get(instruction.operands[0], {'u', 32})) += warp_share(thread);
  ++thread.frame().pc;
}

/// Releases the threads that wait at barrier `id` if all expected threads have arrived.
bool Block::release_barrier(unsigned id) {
  const auto instruction_of = [](Thread& thread) -> const Instruction& {
    return thread.frame().function->body[thread.frame().pc];
  };
  std::vector<Thread*> waiting;
  bool everybody = true;
  std::uint64_t expected = 0, come = arrived_[id];
  for (Thread& thread : threads_) {
    if (thread.state == Thread::State::exited) continue;
    bool here = thread.state == Thread::State::at_barrier;
    if (here) {
      const Instruction& instruction = instruction_of(thread);
      const std::size_t first = instruction.has("red") ? 1 : 0;
      const std::size_t last = instruction.operands.size() - first;  // after it: the predicate of bar.red
      here = thread.get(instruction.operands[first], {'u', 32}) == id;
      if (here && last > first + 1) expected = thread.get(instruction.operands[first + 1], {'u', 32});
    }
    everybody &= here;
    if (!here) continue;
    waiting.push_back(&thread);
  }
  if (expected != 0)
    for (const Thread* thread : waiting) come += warp_share(*thread);
  if (waiting.empty() || (expected == 0 ? !everybody : come < expected)) return false;
  std::uint64_t count = 0;
  for (Thread* thread : waiting)
    if (instruction_of(*thread).has("red"))
      count += thread->get_pred(instruction_of(*thread).operands.back()) ? 1 : 0;
  for (Thread* thread : waiting) {
    const Instruction& instruction = instruction_of(*thread);
    if (instruction.has("popc"))
      thread->set(instruction.operands[0], count);
    else if (instruction.has("and"))
      thread->set(instruction.operands[0], count == waiting.size() ? 1 : 0);
    else if (instruction.has("or"))
      thread->set(instruction.operands[0], count > 0 ? 1 : 0);
    ++thread->frame().pc;
    thread->state = Thread::State::running;
  }
  arrived_[id] = 0;
  return true;
}

std::uint32_t Block::member_mask(Thread& thread, const Instruction& instruction) {
  if (instruction.opcode == "activemask") return 1u << thread.lane();
  // vote and shfl without .sync are accepted only if all lanes of the warp run them together.
  if ((instruction.opcode == "vote" || instruction.opcode == "shfl") && !instruction.has("sync")) return ~0u;
  return static_cast<std::uint32_t>(thread.get(instruction.operands.back(), {'u', 32}));
}

// A warp operation runs when every live lane of its member mask has arrived.
bool Block::run_warp_operations() {
  bool progress = false;
  for (Thread& thread : threads_) {
    if (thread.state != Thread::State::at_warp_operation) continue;
    const Instruction& instruction = thread.frame().function->body[thread.frame().pc];
    const std::uint32_t mask = member_mask(thread, instruction);
    std::vector<Thread*> members;
    bool complete = true;
    for (unsigned lane = 0; lane < 32; ++lane) {
      const std::size_t at = thread.warp() * 32u + lane;
      if ((mask >> lane & 1) == 0 || at >= threads_.size() || threads_[at].state == Thread::State::exited)
        continue;
      Thread& other = threads_[at];
      const auto same = [&](const Instruction& others) {
        return &others == &instruction || (instruction.opcode == "bar" && others.opcode == "bar");
      };
      const bool here = other.state == Thread::State::at_warp_operation &&
                        same(other.frame().function->body[other.frame().pc]) &&
                        member_mask(other, other.frame().function->body[other.frame().pc]) == mask;
      complete &= here;
      members.push_back(&other);
    }
    if (!complete) continue;
    warp_operation(members, instruction, mask);
    for (Thread* member : members) {
      ++member->frame().pc;
      member->state = Thread::State::running;
    }
    progress = true;
  }
  return progress;
}

}  // namespace quern::oracle
