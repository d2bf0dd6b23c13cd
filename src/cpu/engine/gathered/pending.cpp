// SPDX-License-Identifier: Apache-2.0
// Windows of gathered updates (cpu/abi/pending.hpp): when they are worthwhile, and how their values reach
// memory.
#include <algorithm>
#include <bit>
#include <limits>
#include <type_traits>

#include "cpu/abi/state.hpp"

namespace quern::cpu::engine {
namespace {

/// The longest wait, in warps outside a window, before the next attempt to open one.
constexpr std::uint32_t kMaxPatience = 1u << 16;
constexpr std::uint64_t kLineBytes = 64;
/// The least number of gathered warps between two forced applications that makes gathering worthwhile.
constexpr std::uint32_t kLeastHits = 4;

template <class T>
T identity_of(PendingOp op) {
  using Signed = std::make_signed_t<T>;
  switch (op) {
    case PendingOp::add:
    case PendingOp::or_:
    case PendingOp::xor_:
    case PendingOp::umax:
      return 0;
    case PendingOp::and_:
    case PendingOp::umin:
      return std::numeric_limits<T>::max();
    case PendingOp::smin:
      return static_cast<T>(std::numeric_limits<Signed>::max());
    case PendingOp::smax:
    case PendingOp::fadd:  // -0
      return static_cast<T>(std::numeric_limits<Signed>::min());
  }
  __builtin_unreachable();
}

/// Replaces the value at `place` by the least (or greatest) of it and `value`, as `precedes` orders them.
template <class T, class Precedes>
void choose(T* place, T value, Precedes precedes) {
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  while (precedes(value, old) &&
         !__atomic_compare_exchange_n(place, &old, value, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED)) {
  }
}

/// Adds floating-point numbers, which are given by their bits.
template <class T>
void add_reals(T* place, T value) {
  using Real = std::conditional_t<sizeof(T) == 4, float, double>;
  T old = __atomic_load_n(place, __ATOMIC_RELAXED);
  T next = 0;
  do next = std::bit_cast<T>(std::bit_cast<Real>(old) + std::bit_cast<Real>(value));
  while (!__atomic_compare_exchange_n(place, &old, next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

template <class T>
void apply(PendingOp op, T* place, T value) {
  using Signed = std::make_signed_t<T>;
  const auto as_signed = [](T number) { return static_cast<Signed>(number); };
  switch (op) {
    case PendingOp::add:
      __atomic_fetch_add(place, value, __ATOMIC_RELAXED);
      return;
    case PendingOp::and_:
      __atomic_fetch_and(place, value, __ATOMIC_RELAXED);
      return;
    case PendingOp::or_:
      __atomic_fetch_or(place, value, __ATOMIC_RELAXED);
      return;
    case PendingOp::xor_:
      __atomic_fetch_xor(place, value, __ATOMIC_RELAXED);
      return;
    case PendingOp::smin:
      return choose(place, value, [&](T a, T b) { return as_signed(a) < as_signed(b); });
    case PendingOp::smax:
      return choose(place, value, [&](T a, T b) { return as_signed(a) > as_signed(b); });
    case PendingOp::umin:
      return choose(place, value, [](T a, T b) { return a < b; });
    case PendingOp::umax:
      return choose(place, value, [](T a, T b) { return a > b; });
    case PendingOp::fadd:
      return add_reals(place, value);
  }
}

template <class T>
void clear(PendingWindow& window) {
  std::fill_n(reinterpret_cast<T*>(window.memory), window.bytes / sizeof(T), identity_of<T>(window.op));
}

/// Applies the values of a window and sets them to the identity. Returns the number of elements applied.
template <class T>
std::uint64_t apply_all(PendingWindow& window) {
  constexpr std::uint64_t kLine = kLineBytes / sizeof(T);
  const T identity = identity_of<T>(window.op);
  T* const values = reinterpret_cast<T*>(window.memory);
  T* const places = reinterpret_cast<T*>(window.first);  // NOLINT(performance-no-int-to-ptr)
  const std::uint64_t count = window.bytes / sizeof(T);
  std::uint64_t applied = 0;
  for (std::uint64_t line = 0; line < count; line += kLine) {
    const std::uint64_t end = std::min(line + kLine, count);
    T differences = 0;
    for (std::uint64_t i = line; i < end; ++i) differences |= values[i] ^ identity;
    if (differences == 0) continue;
    for (std::uint64_t i = line; i < end; ++i) {
      if (values[i] == identity) continue;
      apply(window.op, places + i, values[i]);
      values[i] = identity;
      ++applied;
    }
  }
  return applied;
}

std::uint64_t apply_values(PendingWindow& window) {
  if (window.hits == 0) return 0;
  return window.element_bytes == 4 ? apply_all<std::uint32_t>(window) : apply_all<std::uint64_t>(window);
}

/// Asks later, and later each time.
void lose_patience(PendingWindow& window) {
  window.next_patience = std::min(window.next_patience * 2, kMaxPatience);
  window.patience = window.next_patience;
}

/// Applies a window's values because the kernel needs them now. Closes the window if too few warps were
/// gathered for the cost of it.
void force(PendingWindow& window) {
  if (window.bytes == 0) return;
  const std::uint64_t cost = apply_values(window) + window.bytes / kLineBytes / 8;
  const bool worthwhile = window.hits >= kLeastHits && std::uint64_t{window.hits} * 8 >= cost;
  window.hits = 0;
  if (worthwhile) {
    window.next_patience = 1;
    return;
  }
  window.bytes = 0;
  lose_patience(window);
}

}  // namespace

extern "C" {

void quern_cpu_open_pending(WorkerState* state, std::uint32_t index, std::uint32_t op,
                            std::uint32_t element_bytes, std::uint64_t lowest, std::uint64_t highest) {
  PendingWindow& window = state->pending[index];
  force(window);
  const PendingPlace place = place_pending(*state, index, lowest, highest + element_bytes);
  if (place.bytes == 0) {
    window.bytes = 0;
    return lose_patience(window);
  }
  window.op = static_cast<PendingOp>(op);
  window.element_bytes = element_bytes;
  window.first = place.first;
  window.bytes = place.bytes;
  window.memory = place.memory;
  window.hits = 0;
  window.patience = 1;
  element_bytes == 4 ? clear<std::uint32_t>(window) : clear<std::uint64_t>(window);
}

void quern_cpu_apply_pending(WorkerState* state, std::uint32_t windows) {
  for (std::uint32_t index = 0; index < kPendingWindows; ++index)
    if ((windows >> index & 1) != 0) force(state->pending[index]);
}

}  // extern "C"

void apply_all_pending(WorkerState& worker) noexcept {
  for (PendingWindow& window : worker.pending) {
    if (window.bytes == 0) continue;
    apply_values(window);
    window.hits = 0;
  }
}

}  // namespace quern::cpu::engine
