// SPDX-License-Identifier: Apache-2.0
// Updates that are gathered in the worker's windows (abi/pending.hpp), and accesses that come after them.
#include <llvm/IR/Intrinsics.h>

#include <array>
#include <optional>

#include "cpu/abi/pending.hpp"
#include "cpu/abi/state.hpp"
#include "cpu/emit/operations/atomic/atomic.hpp"
#include "cpu/emit/operations/atomic/settle.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using engine::PendingOp;
using engine::PendingWindow;
using ir::AtomicOp;
using llvm::Value;
namespace Intrinsic = llvm::Intrinsic;

PendingOp pending_op(AtomicOp op) {
  struct Row {
    AtomicOp from;
    PendingOp to;
  };
  static constexpr Row kRows[] = {{AtomicOp::add, PendingOp::add},   {AtomicOp::and_, PendingOp::and_},
                                  {AtomicOp::or_, PendingOp::or_},   {AtomicOp::xor_, PendingOp::xor_},
                                  {AtomicOp::smin, PendingOp::smin}, {AtomicOp::smax, PendingOp::smax},
                                  {AtomicOp::umin, PendingOp::umin}, {AtomicOp::umax, PendingOp::umax},
                                  {AtomicOp::fadd, PendingOp::fadd}};
  for (const Row& row : kRows)
    if (row.from == op) return row.to;
  throw Defect("an atomic operation that cannot be gathered");
}

/// The fields of one of the worker's windows.
class Window {
 public:
  Window(Context& c, unsigned index) : c_(c), b_(c.builder()), index_(index) {}

  Value* first() { return load(offsetof(PendingWindow, first), b_.getInt64Ty()); }
  Value* bytes() { return load(offsetof(PendingWindow, bytes), b_.getInt64Ty()); }
  Value* memory() { return load(offsetof(PendingWindow, memory), b_.getPtrTy()); }
  void count_hit() {
    Value* const hits = load(offsetof(PendingWindow, hits), b_.getInt32Ty());
    b_.CreateAlignedStore(b_.CreateAdd(hits, b_.getInt32(1)), field(offsetof(PendingWindow, hits)),
                          llvm::Align(4));
  }
  /// Returns true if it is time to ask for another window.
  Value* count_miss() {
    Value* const patience = load(offsetof(PendingWindow, patience), b_.getInt32Ty());
    Value* const left = b_.CreateSub(patience, b_.getInt32(1));
    b_.CreateAlignedStore(left, field(offsetof(PendingWindow, patience)), llvm::Align(4));
    return b_.CreateICmpEQ(left, b_.getInt32(0));
  }

 private:
  Value* field(std::uint64_t offset) {
    return b_.CreateConstInBoundsGEP1_64(
        b_.getInt8Ty(), c_.worker(),
        offsetof(engine::WorkerState, pending) + index_ * sizeof(PendingWindow) + offset);
  }
  Value* load(std::uint64_t offset, llvm::Type* type) {
    return b_.CreateAlignedLoad(type, field(offset), llvm::Align(type->isIntegerTy(32) ? 4 : 8));
  }

  Context& c_;
  llvm::IRBuilder<>& b_;
  unsigned index_;
};

void emit_if(Context& c, Value* condition, const std::function<void()>& then) {
  emit_either(
      c, condition, "pending", [&]() -> Value* { return then(), nullptr; },
      []() -> Value* { return nullptr; });
}

/// The operation on a pending value. No other thread accesses it.
Value* update_pending(const Access& access, Value* pointer, Value* operand) {
  llvm::IRBuilder<>& b = access.context.builder();
  const llvm::Align align(access.element_bytes);
  Value* const old = b.CreateAlignedLoad(operand->getType(), pointer, align);
  b.CreateAlignedStore(combine(b, access.inst.attr.atomic, old, operand, nullptr), pointer, align);
  return old;
}

unsigned window_of(const Access& access) { return access.inst.attr.gathers - 1u; }

void emit_miss(const Access& access, Window& window, const std::function<Value*()>& lowest,
               const std::function<Value*()>& highest) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  emit_if(c, window.count_miss(), [&] {
    const auto op = static_cast<std::uint32_t>(pending_op(access.inst.attr.atomic));
    call_helper(c, "quern_cpu_open_pending", b.getVoidTy(),
                {c.worker(), b.getInt32(window_of(access)), b.getInt32(op), b.getInt32(access.element_bytes),
                 lowest(), highest()},
                Touches::anything);
  });
}

/// The least or the greatest address of a running lane.
Value* extreme(Context& c, Value* addresses, Intrinsic::ID reduction) {
  llvm::IRBuilder<>& b = c.builder();
  if (!c.full()) {
    Value* const any = extract_lane(c, addresses, first_lane(c));
    addresses = b.CreateSelect(c.mask(), addresses, splat(c, any));
  }
  return b.CreateIntrinsic(reduction, {addresses->getType()}, {addresses});
}

/// True for each lane whose distance from the window's start is less than its size.
Value* lanes_inside(Context& c, Value* distances, Value* bytes) {
  return c.builder().CreateICmpULT(distances, splat(c, bytes));
}

// --- accesses after gathered updates

Value* scalar_inside(Context& c, Window& window, Value* address) {
  llvm::IRBuilder<>& b = c.builder();
  return b.CreateICmpULT(b.CreateSub(address, window.first()), window.bytes());
}

/// True if the window contains all of [start, start + bytes).
Value* range_inside(Context& c, Window& window, Value* start, std::uint64_t bytes) {
  llvm::IRBuilder<>& b = c.builder();
  Value* const distance = b.CreateSub(start, window.first());
  Value* const size = window.bytes();
  Value* const fits = b.CreateICmpULE(b.getInt64(bytes), b.CreateSub(size, distance));
  return b.CreateAnd(b.CreateICmpULT(distance, size), fits);
}

/// True if the window contains an address of [start, start + bytes).
Value* range_meets(Context& c, Window& window, Value* start, std::uint64_t bytes) {
  llvm::IRBuilder<>& b = c.builder();
  Value* const distance = b.CreateSub(start, window.first());
  Value* const begins = b.CreateICmpULT(distance, window.bytes());
  Value* const contains = b.CreateICmpULT(b.CreateNeg(distance), b.getInt64(bytes));
  return b.CreateOr(begins, contains);
}

/// Returns true if the access of a running lane is in one of the windows.
Value* meets_any(const Access& access, std::uint32_t windows) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const std::optional<Span> span = span_of(access);
  Value* address = nullptr;
  if (access.layout.kind == LayoutKind::uniform)
    address = b.CreatePtrToInt(uniform_pointer(access), b.getInt64Ty());
  else if (span)
    address = b.CreatePtrToInt(advance(c, base_pointers(access)[0], span->first), b.getInt64Ty());
  else
    address = absolute_addresses(c, lane_pointers(access), 0);
  Value* met = b.getFalse();
  for (unsigned index = 0; index < engine::kPendingWindows; ++index) {
    if ((windows >> index & 1) == 0) continue;
    Window window(c, index);
    Value* here = nullptr;
    if (access.layout.kind == LayoutKind::uniform) {
      here = scalar_inside(c, window, address);
    } else if (span) {
      here = range_meets(c, window, address, static_cast<std::uint64_t>(span->end - span->first));
    } else {
      Value* lanes = lanes_inside(c, b.CreateSub(address, splat(c, window.first())), window.bytes());
      if (!c.full()) lanes = b.CreateAnd(lanes, c.mask());
      here = b.CreateICmpNE(mask_to_bits(c, lanes), b.getInt32(0));
    }
    met = b.CreateOr(met, here);
  }
  return met;
}

/// Returns true if one of the windows has pending updates.
Value* any_pending(Context& c, std::uint32_t windows) {
  llvm::IRBuilder<>& b = c.builder();
  Value* bytes = b.getInt64(0);
  for (unsigned index = 0; index < engine::kPendingWindows; ++index)
    if ((windows >> index & 1) != 0) bytes = b.CreateOr(bytes, Window(c, index).bytes());
  return b.CreateICmpNE(bytes, b.getInt64(0));
}

ir::Type accessed_type(const ir::Function& function, ir::Value value) {
  return function[value].op == ir::Op::load ? function[value].type : function[function[value].args[1]].type;
}

}  // namespace

std::optional<Span> span_of(const Access& access) {
  const Layout& layout = access.layout;
  const bool constant = layout.kind == LayoutKind::segments || layout.kind == LayoutKind::strided;
  if (!constant || layout.base_lanes.size() != 1) return std::nullopt;
  Span span{INT64_MAX, INT64_MIN};
  for (const std::int64_t distance : layout.distances) {
    span.first = std::min(span.first, distance);
    span.end = std::max(span.end, distance + access.bytes());
  }
  return span;
}

bool is_gathered(const Access& access) { return access.inst.attr.gathers != 0 && needs_lock(access); }

void emit_gathered(const Access& access, const std::function<void()>& direct) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Window window(c, window_of(access));
  Value* const addresses = absolute_addresses(c, lane_pointers(access), 0);
  Value* const distances = b.CreateSub(addresses, splat(c, window.first()));
  Value* inside = lanes_inside(c, distances, window.bytes());
  if (!c.full()) inside = b.CreateOr(inside, b.CreateNot(c.mask()));
  Value* const all = b.CreateICmpEQ(mask_to_bits(c, inside), b.getInt32(kAllLanes));
  const auto gather = [&]() -> Value* {
    window.count_hit();
    Value* const offsets = b.CreateTrunc(distances, llvm::FixedVectorType::get(b.getInt32Ty(), kWarpSize));
    emit_lanes_at(
        access, LanePlaces(c, {window.memory(), offsets, 1}),
        [&](Value* pointer, Value* operand, Value*) { return update_pending(access, pointer, operand); });
    return nullptr;
  };
  const auto miss = [&]() -> Value* {
    emit_miss(
        access, window, [&] { return extreme(c, addresses, Intrinsic::vector_reduce_umin); },
        [&] { return extreme(c, addresses, Intrinsic::vector_reduce_umax); });
    direct();
    return nullptr;
  };
  emit_either(c, all, "gathered", gather, miss);
}

bool gathers_neighbours(const Access& access) {
  return is_gathered(access) && access.inst.attr.same_places && is_consecutive(access) && span_of(access);
}

void emit_gathered_neighbours(const Access& access, const std::function<void()>& direct) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Window window(c, window_of(access));
  const Span span = *span_of(access);
  const auto bytes = static_cast<std::uint64_t>(span.end - span.first);
  Value* const start = b.CreatePtrToInt(advance(c, base_pointers(access)[0], span.first), b.getInt64Ty());
  const auto gather = [&]() -> Value* {
    window.count_hit();
    Value* const first = window.first();
    Value* const memory = window.memory();
    emit_consecutive_at(access, [&](Value* pointer) {
      return b.CreateGEP(b.getInt8Ty(), memory,
                         b.CreateSub(b.CreatePtrToInt(pointer, b.getInt64Ty()), first));
    });
    return nullptr;
  };
  const auto miss = [&]() -> Value* {
    emit_miss(
        access, window, [&] { return start; },
        [&] { return b.CreateAdd(start, b.getInt64(bytes - access.element_bytes)); });
    direct();
    return nullptr;
  };
  emit_either(c, range_inside(c, window, start, bytes), "gathered", gather, miss);
}

void emit_gathered_once(const Access& access, Value* operand) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Window window(c, window_of(access));
  Value* const pointer = uniform_pointer(access);
  Value* const address = b.CreatePtrToInt(pointer, b.getInt64Ty());
  Value* const distance = b.CreateSub(address, window.first());
  const auto gather = [&]() -> Value* {
    window.count_hit();
    update_pending(access, b.CreateGEP(b.getInt8Ty(), window.memory(), distance), operand);
    return nullptr;
  };
  const auto miss = [&]() -> Value* {
    emit_miss(access, window, [&] { return address; }, [&] { return address; });
    update(access, pointer, operand, nullptr);
    return nullptr;
  };
  emit_either(c, b.CreateICmpULT(distance, window.bytes()), "gathered", gather, miss);
}

void settle(Context& c, ir::Value value) {
  const ir::Inst& inst = c.function()[value];
  if (inst.attr.settles == 0) return;
  llvm::IRBuilder<>& b = c.builder();
  Value* const needed =
      inst.attr.settles_all
          ? any_pending(c, inst.attr.settles)
          : meets_any(Access(c, value, accessed_type(c.function(), value)), inst.attr.settles);
  emit_if(c, needed, [&] {
    call_helper(c, "quern_cpu_apply_pending", b.getVoidTy(), {c.worker(), b.getInt32(inst.attr.settles)},
                Touches::anything);
  });
}

}  // namespace quern::cpu::emit
