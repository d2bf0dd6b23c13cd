// SPDX-License-Identifier: Apache-2.0
// Lowers "Asynchronous copy" and "mbarrier". The copy instruction itself copies the data, which PTX allows.
// So waiting for the copy has no effect.
#include "cpu/lower/instructions/async.hpp"

#include "cpu/lower/instructions/rows.hpp"

namespace quern::cpu::lower {
namespace {

using In = const ptx::Instruction&;
using ir::BlockId;
using ir::Op;
using ir::Type;
using ir::Value;
using M = ptx::Modifier;

// --- cp.async

/// A copy of `bytes` (4, 8 or 16) from global to shared memory.
class Copy {
 public:
  Copy(Translator& t, const Address& to, const Address& from, std::uint32_t bytes)
      : t_(t), to_(to), from_(from), bytes_(bytes), word_(bytes == 4 ? Type::i32 : Type::i64) {}

  void all() {
    const std::uint32_t count = words();
    const Value load = t_.emit(Op::load, word_, {from_.base}, attributes(from_, count), from_.offset);
    std::vector<Value> values{load};
    if (count > 1) {
      values.clear();
      for (std::uint32_t i = 0; i < count; ++i) values.push_back(t_.emit(Op::extract, word_, {load}, {}, i));
    }
    store(std::move(values));
  }

  void zeros() { store(std::vector<Value>(words(), t_.constant(word_, 0))); }

  /// Copies the first `given` bytes and writes zeros after them. Does not read the other bytes.
  void some(Value given) {
    const Variable byte = t_.builder().new_variable(Type::i8);
    std::vector<Value> values(words(), t_.constant(word_, 0));
    for (std::uint32_t i = 0; i < bytes_; ++i) {
      t_.write_variable(byte, t_.constant(Type::i8, 0));
      const BlockId inside = t_.new_block();
      const BlockId after = t_.new_block();
      t_.branch_if(t_.compare(ir::Icmp::ugt, given, t_.constant(Type::i32, i)), inside, after);
      t_.set_block(inside);
      t_.write_variable(byte, t_.emit(Op::load, Type::i8, {from_.base},
                                      {.space = from_.space, .alignment = 1}, from_.offset + i));
      t_.branch(after);
      t_.set_block(after);
      const std::uint32_t size = ir::byte_size(word_);
      const Value wide = t_.resize(t_.read_variable(byte), word_, false);
      const Value placed = t_.emit(Op::shl, word_, {wide, t_.constant(Type::i32, i % size * 8)});
      values[i / size] = t_.emit(Op::or_, word_, {values[i / size], placed});
    }
    store(std::move(values));
  }

 private:
  std::uint32_t words() const { return bytes_ == 16 ? 2 : 1; }
  ir::Attributes attributes(const Address& address, std::uint32_t count) const {
    return {.space = address.space, .count = static_cast<std::uint8_t>(count), .alignment = bytes_};
  }
  void store(std::vector<Value> values) {
    const auto count = static_cast<std::uint32_t>(values.size());
    values.insert(values.begin(), to_.base);
    t_.emit(Op::store, Type::none, std::move(values), attributes(to_, count), to_.offset);
  }

  Translator& t_;
  Address to_;
  Address from_;
  std::uint32_t bytes_;
  Type word_;
};

/// Copies everything, or writes zeros if `skip` is true.
void copy_unless(Translator& t, Copy copy, Value skip) {
  const BlockId none = t.new_block();
  const BlockId whole = t.new_block();
  const BlockId after = t.new_block();
  t.branch_if(skip, none, whole);
  t.set_block(none);
  copy.zeros();
  t.branch(after);
  t.set_block(whole);
  copy.all();
  t.branch(after);
  t.set_block(after);
}

void copy_given(Translator& t, Copy copy, Value given, std::uint32_t bytes) {
  const BlockId part = t.new_block();
  const BlockId whole = t.new_block();
  const BlockId after = t.new_block();
  t.branch_if(t.compare(ir::Icmp::uge, given, t.constant(Type::i32, bytes)), whole, part);
  t.set_block(part);
  copy.some(given);
  t.branch(after);
  t.set_block(whole);
  copy.all();
  t.branch(after);
  t.set_block(after);
}

// cp.async [to], [from], size {, bytes to read | predicate not to read} {, cache policy}
void copy(Translator& t, In in) {
  const auto to = address_in(t, t.operand(in, 0), ir::Space::shared);
  const auto from = address_in(t, t.operand(in, 1), ir::Space::global);
  const auto* size = t.operand(in, 2).as<ptx::IntegerOperand>();
  if (!to || !from) return;
  if (size == nullptr) return t.refuse("the size of the copy is not a constant");
  const auto bytes = static_cast<std::uint32_t>(size->bits);
  Copy copy(t, *to, *from, bytes);
  const std::size_t policy = in.has(M::L2_cache_hint) ? 1 : 0;
  if (in.operands.size() == 3 + policy) return copy.all();
  const ptx::Operand& third = t.operand(in, 3);
  if (t.register_type(third) == ptx::Type::pred) return copy_unless(t, copy, t.read(third, ptx::Type::pred));
  if (const auto* given = third.as<ptx::IntegerOperand>()) {
    if (given->bits >= bytes) return copy.all();
    if (given->bits == 0) return copy.zeros();
  }
  copy_given(t, copy, t.read(third, ptx::Type::u32), bytes);
}

// --- mbarrier. Bits of the object: 0 to 19 the arrivals that the phase still waits for; 20 to 39 the
// arrivals with which a phase begins; 40 to 61 the transaction bytes that it still waits for (negative if
// bytes arrive before they are expected); 63 the parity of the phase. An arrival is one atomic operation on
// the object; the old value is what the PTX ISA calls the state. The operand has the arrivals and the change
// of bytes in the same bits.

constexpr std::uint64_t kMaxCount = 0xfffff;
constexpr std::uint32_t kExpectedShift = 20;
constexpr std::uint32_t kTransactionShift = 40;
constexpr std::uint64_t kTransactionMask = 0x3fffff;
constexpr std::uint32_t kPhaseShift = 63;

ir::Attributes object_attributes(const Address& address) {
  return {.space = address.space, .scope = ir::Scope::cta, .alignment = 8};
}

std::optional<Address> object(Translator& t, In in, std::size_t index) {
  return address_in(t, t.operand(in, index), ir_space(in.space()));
}

void initialise(Translator& t, In in) {
  const auto address = object(t, in, 0);
  if (!address) return;
  const Value count =
      t.emit(Op::and_, Type::i64,
             {t.resize(t.read(in, 1, ptx::Type::u32), Type::i64, false), t.constant(Type::i64, kMaxCount)});
  const Value expected = t.emit(Op::shl, Type::i64, {count, t.constant(Type::i32, kExpectedShift)});
  const Value word = t.emit(Op::or_, Type::i64, {count, expected});
  t.emit(Op::store, Type::none, {address->base, word}, object_attributes(*address), address->offset);
}

void arrive_at(Translator& t, const Address& address, Value count, bool drops, const ptx::Operand* state) {
  ir::Attributes attr = object_attributes(address);
  attr.atomic = drops ? ir::AtomicOp::arrive_drop : ir::AtomicOp::arrive;
  attr.semantics = ir::Semantics::release;
  attr.unused_result = state == nullptr;
  const Value old =
      t.emit(Op::atomic, Type::i64, {address.base, t.resize(count, Type::i64, false)}, attr, address.offset);
  if (state != nullptr) t.write(*state, old);
}

// mbarrier.arrive state, [object] {, count}. With .expect_tx [object], bytes: the bytes are expected before
// the arrival.
void arrive(Translator& t, In in) {
  const auto address = object(t, in, 1);
  if (!address) return;
  const bool expects = in.has(M::expect_tx);
  if (expects) change_transactions(t, *address, t.read(in, 2, ptx::Type::u32), Transaction::expected);
  const bool counts = !expects && in.operands.size() > 2;
  const Value count = counts ? t.read(in, 2, ptx::Type::u32) : t.constant(Type::i32, 1);
  const ptx::Operand& state = t.operand(in, 0);
  arrive_at(t, *address, count, in.has(M::arrive_drop), t.is_sink(state) ? nullptr : &state);
}

void transaction(Translator& t, In in) {
  const auto address = object(t, in, 0);
  if (!address) return;
  change_transactions(t, *address, t.read(in, 1, ptx::Type::u32),
                      in.has(M::expect_tx) ? Transaction::expected : Transaction::complete);
}

/// The parity of the object's current phase.
Value phase_of(Translator& t, Value word) {
  return t.resize(t.emit(Op::lshr, Type::i64, {word, t.constant(Type::i32, kPhaseShift)}), Type::i32, false);
}

// The phase of `state` (or of a parity) is complete if the object is in another phase.
void test_wait(Translator& t, In in) {
  const auto address = object(t, in, 1);
  if (!address) return;
  ir::Attributes attr = object_attributes(*address);
  attr.semantics = ir::Semantics::acquire;
  const Value word = t.emit(Op::load, Type::i64, {address->base}, attr, address->offset);
  const Value one = t.constant(Type::i32, 1);
  const Value asked = in.has(M::parity) ? t.emit(Op::and_, Type::i32, {t.read(in, 2, ptx::Type::u32), one})
                                        : phase_of(t, t.read(in, 2, ptx::Type::b64));
  t.write(in, t.compare(ir::Icmp::ne, phase_of(t, word), asked));
}

void pending_count(Translator& t, In in) {
  const Value state = t.read(in, 1, ptx::Type::b64);
  t.write(in,
          t.resize(t.emit(Op::and_, Type::i64, {state, t.constant(Type::i64, kMaxCount)}), Type::i32, false));
}

void mbarrier(Translator& t, In in) {
  if (in.has(M::init)) return initialise(t, in);
  if (in.has(M::inval)) return;
  if (in.has(M::arrive) || in.has(M::arrive_drop)) return arrive(t, in);
  if (in.has(M::expect_tx) || in.has(M::complete_tx)) return transaction(t, in);
  if (in.has(M::test_wait) || in.has(M::try_wait)) return test_wait(t, in);
  if (in.has(M::pending_count)) return pending_count(t, in);
  t.refuse("this operation on an mbarrier is not implemented");
}

// The pending count of the object is incremented and, since the copies are complete, decremented at once;
// with .noinc it is only decremented.
void arrive_after_copies(Translator& t, In in) {
  if (!in.has(M::noinc)) return;
  const auto address = object(t, in, 0);
  if (address) arrive_at(t, *address, t.constant(Type::i32, 1), false, nullptr);
}

void cp(Translator& t, In in) {
  if (in.has(M::commit_group) || in.has(M::wait_group) || in.has(M::wait_all)) return;
  if (in.has(M::mbarrier)) return arrive_after_copies(t, in);
  copy(t, in);
}

constexpr Row kRows[] = {
    {ptx::Opcode::cp, Kind::effect, cp},
    {ptx::Opcode::mbarrier, Kind::effect, mbarrier},
};

}  // namespace

void change_transactions(Translator& t, const Address& object, Value bytes, Transaction what) {
  const Value wide = t.resize(bytes, Type::i64, false);
  const Value change =
      what == Transaction::expected ? wide : t.emit(Op::isub, Type::i64, {t.constant(Type::i64, 0), wide});
  const Value field = t.emit(Op::and_, Type::i64, {change, t.constant(Type::i64, kTransactionMask)});
  const Value operand = t.emit(Op::shl, Type::i64, {field, t.constant(Type::i32, kTransactionShift)});
  arrive_at(t, object, operand, false, nullptr);
}

std::span<const Row> async_rows() { return kRows; }

}  // namespace quern::cpu::lower
