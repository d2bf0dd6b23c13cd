// SPDX-License-Identifier: Apache-2.0
// Atomic operations in regions of memory that may belong to the worker (abi/bias.hpp).
#include "cpu/abi/bias.hpp"
#include "cpu/abi/state.hpp"
#include "cpu/emit/operations/atomic/atomic.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using engine::BiasView;
using llvm::Value;

/// The fields of the worker that concern its regions.
class View {
 public:
  explicit View(Context& c) : c_(c), b_(c.builder()) {}

  Value* load(std::uint64_t offset, llvm::Type* type) {
    return b_.CreateAlignedLoad(type, field(offset), llvm::Align(8));
  }
  /// Returns true if the region of `address` belongs to the worker.
  Value* owns(Value* address) {
    Value* const owners = load(offsetof(BiasView, owners), b_.getPtrTy());
    Value* const mask = load(offsetof(BiasView, mask), b_.getInt64Ty());
    Value* const index = b_.CreateAnd(b_.CreateLShr(address, engine::kBiasRegionBits), mask);
    Value* const entry = b_.CreateAlignedLoad(b_.getInt64Ty(), b_.CreateGEP(b_.getInt64Ty(), owners, index),
                                              llvm::Align(8), true);
    return b_.CreateICmpEQ(entry, load(offsetof(BiasView, tag), b_.getInt64Ty()));
  }
  /// Begins or ends a section.
  void count_section() {
    Value* const section = field(offsetof(BiasView, section));
    Value* const old = b_.CreateAlignedLoad(b_.getInt64Ty(), section, llvm::Align(8), true);
    b_.CreateAlignedStore(b_.CreateAdd(old, b_.getInt64(1)), section, llvm::Align(8), true);
    compiler_barrier(c_);
  }

 private:
  Value* field(std::uint64_t offset) {
    return b_.CreateConstInBoundsGEP1_64(b_.getInt8Ty(), c_.worker(),
                                         offsetof(engine::WorkerState, bias) + offset);
  }

  Context& c_;
  llvm::IRBuilder<>& b_;
};

}  // namespace

bool is_biased(const Access& access) { return access.inst.attr.biased && needs_lock(access); }

bool has_owned(const Access& access) {
  const std::optional<Span> span = access.context.full() ? span_of(access) : std::nullopt;
  return span && span->end - span->first <= static_cast<std::int64_t>(engine::kBiasRegionBytes);
}

Value* emit_owned(const Access& access, const Side& locked) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  const Span span = *span_of(access);
  Value* const first = b.CreatePtrToInt(advance(c, base_pointers(access)[0], span.first), b.getInt64Ty());
  Value* const last = b.CreateAdd(first, b.getInt64(static_cast<std::uint64_t>(span.end - span.first - 1)));
  View view(c);
  view.count_section();
  Value* const owns = emit_either(
      c, b.CreateAnd(view.owns(first), view.owns(last)), "owns", [&] { return b.getTrue(); },
      [&] {
        return call_helper(c, "quern_cpu_own", b.getInt1Ty(), {c.worker(), first, last}, Touches::anything);
      });
  const auto plain = [&] {
    Access own = access;
    own.exclusive = true;
    compiler_barrier(c);
    Value* const old = is_consecutive(own) ? emit_consecutive(own) : emit_lanes(own);
    compiler_barrier(c);
    view.count_section();
    return old;
  };
  return emit_either(c, owns, "owned", plain, locked);
}

void emit_unbias(const Access& access) {
  Context& c = access.context;
  Value* const addresses = spill(c, lane_addresses(access));
  call_helper(c, "quern_cpu_unbias", c.builder().getVoidTy(), {c.worker(), addresses, c.mask_bits()},
              Touches::anything);
  release(c, {addresses});
}

}  // namespace quern::cpu::emit
