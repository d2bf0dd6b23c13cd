// SPDX-License-Identifier: Apache-2.0
// Atomic operations of a warp, in lane order. A block runs on one worker, so shared memory needs no locked
// instruction.
#include <type_traits>

#include "cpu/emit/helpers/helper_code.hpp"
#include "cpu/ir/ir.hpp"

namespace quern::cpu::emit {
namespace {

using ir::AtomicOp;

/// std::bit_cast that is inlined in every build type.
template <class To, class From>
QUERN_INLINE To as(From value) {
  return __builtin_bit_cast(To, value);
}

// --- the representation of an operand: `Bits` in memory, `Value` in arithmetic

template <class T>
struct Integer {
  using Bits = T;
  using Value = T;
  QUERN_INLINE static Value decode(Bits bits) { return bits; }
  QUERN_INLINE static Bits encode(Value value) { return value; }
};

struct Bfloat {
  using Bits = std::uint16_t;
  using Value = float;
  QUERN_INLINE static float decode(Bits bits) { return as<float>(static_cast<std::uint32_t>(bits) << 16); }
  QUERN_INLINE static Bits encode(float value) {
    const auto bits = as<std::uint32_t>(value);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return 0x7fff;
    return static_cast<Bits>((bits + 0x7fff + ((bits >> 16) & 1)) >> 16);
  }
};

struct Half {
  using Bits = std::uint16_t;
  using Value = float;
  QUERN_INLINE static float decode(Bits bits) {
    const std::uint32_t magnitude = static_cast<std::uint32_t>(bits & 0x7fff) << 13;
    const float scaled = as<float>(magnitude) * 0x1p112f;
    const std::uint32_t finite = as<std::uint32_t>(scaled);
    const std::uint32_t chosen = magnitude >= 0x0f800000u ? magnitude | 0x7f800000u : finite;
    return as<float>(chosen | static_cast<std::uint32_t>(bits & 0x8000) << 16);
  }
  QUERN_INLINE static Bits encode(float value) {
    const auto bits = as<std::uint32_t>(value);
    const std::uint32_t magnitude = bits & 0x7fffffffu;
    const std::uint32_t sign = (bits >> 16) & 0x8000u;
    if (magnitude > 0x7f800000u) return 0x7fff;
    if (magnitude >= 0x477ff000u) return static_cast<Bits>(sign | 0x7c00u);
    // Adding 0.5 aligns a subnormal result's bits and rounds them.
    if (magnitude < 0x38800000u)
      return static_cast<Bits>(sign | (as<std::uint32_t>(as<float>(magnitude) + 0.5f) - 0x3f000000u));
    return static_cast<Bits>(sign | ((magnitude - (112u << 23) + 0xfff + ((magnitude >> 13) & 1)) >> 13));
  }
};

// --- one operation

/// Returns the state of an mbarrier (lower/async.cpp) after `change`, which contains arrivals and bytes. With
/// `drops`, later phases do not expect these arrivals.
template <class T>
QUERN_INLINE T arrived(T object, T change, bool drops) {
  constexpr T kCount = 0xfffff;
  constexpr unsigned kExpectedShift = 20;
  constexpr unsigned kBytesShift = 40;
  constexpr T kBytes = T{0x3fffff} << kBytesShift;
  constexpr T kPhase = T{1} << 63;
  const T expected = ((object >> kExpectedShift) - (drops ? change : T{0})) & kCount;
  const T pending = (object - change) & kCount;
  const T bytes = ((object & kBytes) + (change & kBytes)) & kBytes;
  const bool complete = pending == 0 && bytes == 0;
  const T phase = (complete ? ~object : object) & kPhase;
  return phase | bytes | expected << kExpectedShift | (complete ? expected : pending);
}

template <AtomicOp op, class T>
QUERN_INLINE T combine(T old, T operand, T second) {
  if constexpr (op == AtomicOp::fadd) return old + operand;
  if constexpr (op == AtomicOp::fmin) return lesser(old, operand);
  if constexpr (op == AtomicOp::fmax) return greater(old, operand);
  if constexpr (op == AtomicOp::cas) return old == operand ? second : old;
  if constexpr (op == AtomicOp::arrive) return arrived(old, operand, false);
  if constexpr (op == AtomicOp::arrive_drop) return arrived(old, operand, true);
}

template <AtomicOp op, class Kind>
QUERN_INLINE typename Kind::Bits apply(typename Kind::Bits* word, bool is_shared, typename Kind::Bits operand,
                                       typename Kind::Bits second) {
  using Bits = typename Kind::Bits;
  const auto next = [&](Bits old) QUERN_INLINE_BODY {
    return Kind::encode(
        combine<op, typename Kind::Value>(Kind::decode(old), Kind::decode(operand), Kind::decode(second)));
  };
  if (is_shared) {
    const auto address = reinterpret_cast<std::int64_t>(word);
    const Bits old = read_at<Bits>(address);
    write_at(address, next(old));
    return old;
  }
  Bits old = __atomic_load_n(word, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(word, &old, next(old), false, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
  }
  return old;
}

struct Call {
  bool is_shared;
  void* out;  ///< null: the old values are not used
  const std::int64_t* addresses;
  const void* operand;
  const void* second;
  std::uint32_t mask;
};

template <AtomicOp op, class Kind>
QUERN_INLINE void run(const Call& call) {
  using Bits = typename Kind::Bits;
  const auto* const operands = static_cast<const Bits*>(call.operand);
  const auto* const seconds = static_cast<const Bits*>(call.second);
  for_each_lane(call.mask, [&](unsigned lane) QUERN_INLINE_BODY {
    auto* const word = reinterpret_cast<Bits*>(call.addresses[lane]);  // NOLINT(performance-no-int-to-ptr)
    const Bits old = apply<op, Kind>(word, call.is_shared, operands[lane], seconds[lane]);
    if (call.out != nullptr) static_cast<Bits*>(call.out)[lane] = old;
  });
}

QUERN_INLINE void run_arrival(AtomicOp op, const Call& call) {
  using Kind = Integer<std::uint64_t>;
  if (op == AtomicOp::arrive) return run<AtomicOp::arrive, Kind>(call);
  run<AtomicOp::arrive_drop, Kind>(call);
}

template <class Kind>
QUERN_INLINE void run_real(AtomicOp op, const Call& call) {
  if (op == AtomicOp::fadd) run<AtomicOp::fadd, Kind>(call);
  if (op == AtomicOp::fmin) run<AtomicOp::fmin, Kind>(call);
  if (op == AtomicOp::fmax) run<AtomicOp::fmax, Kind>(call);
}

/// Returns the sum over the lanes of `mask`, from the lowest lane up, so that the result is always the same.
template <class Real>
QUERN_INLINE Real sum_lanes(const Real* values, std::uint32_t mask) {
  Real sum = -Real{0};
  if (mask == ~std::uint32_t{0}) {
    for (unsigned lane = 0; lane < kWarpSize; ++lane) sum += values[lane];
    return sum;
  }
  for_each_lane(mask, [&](unsigned lane) { sum += values[lane]; });
  return sum;
}

}  // namespace

extern "C" {

QUERN_KERNEL_MEMORY static void quern_cpu_atomic(std::uint32_t op, std::uint32_t type,
                                                 std::uint32_t is_shared, void* out,
                                                 const std::int64_t* addresses, const void* operand,
                                                 const void* second, std::uint32_t mask) {
  const Call call{is_shared != 0, out, addresses, operand, second, mask};
  const auto what = static_cast<AtomicOp>(op);
  switch (static_cast<AtomicType>(type)) {
    case AtomicType::b16:
      return run<AtomicOp::cas, Integer<std::uint16_t>>(call);
    case AtomicType::b64:
      return run_arrival(what, call);
    case AtomicType::f16:
      return run_real<Half>(what, call);
    case AtomicType::bf16:
      return run_real<Bfloat>(what, call);
  }
}

static float quern_cpu_sum_f32(const float* values, std::uint32_t mask) { return sum_lanes(values, mask); }
static double quern_cpu_sum_f64(const double* values, std::uint32_t mask) { return sum_lanes(values, mask); }

}  // extern "C"

std::span<const Helper> atomic_helpers() {
  static const Helper rows[] = {QUERN_HELPER(quern_cpu_atomic), QUERN_HELPER(quern_cpu_sum_f32),
                                QUERN_HELPER(quern_cpu_sum_f64)};
  return rows;
}

}  // namespace quern::cpu::emit
