// SPDX-License-Identifier: Apache-2.0
// Native counterparts of the kernels with atomic operations: a loop if each thread has an address of its own,
// a reduction if all threads have one address.
#include "vectors.hpp"

namespace quern::bench::QUERN_NATIVE_VARIANT {
namespace {

template <class T, class Operation>
void spread(Arrays arrays, Part part, Operation operation) {
  const T* __restrict x = array<T>(arrays, 0);
  T* __restrict to = array<T>(arrays, 1);
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) to[i] = operation(to[i], x[i]);
}

template <class T, class Operation>
void one(Arrays arrays, Part part, T neutral, Operation operation) {
#pragma clang fp reassociate(on)
  const T* x = array<T>(arrays, 0);
  T* to = array<T>(arrays, 1);
  constexpr std::size_t kParts = 8 * kLanes;
  T own[kParts];
  for (T& value : own) value = neutral;
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; i += kParts)
    for (std::size_t k = 0; k < kParts; ++k) own[k] = operation(own[k], x[i + k]);
  T mine = neutral;
  for (const T& value : own) mine = operation(mine, value);
  T seen, next;
  __atomic_load(to, &seen, __ATOMIC_RELAXED);
  do next = operation(seen, mine);
  while (!__atomic_compare_exchange(to, &seen, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
}

constexpr auto kAdd = [](auto a, auto b) { return a + b; };
constexpr auto kMin = [](auto a, auto b) { return a < b ? a : b; };
constexpr auto kMax = [](auto a, auto b) { return a > b ? a : b; };
constexpr auto kOr = [](auto a, auto b) { return a | b; };

}  // namespace

void add_spread(Arrays a, Part p) { spread<std::uint32_t>(a, p, kAdd); }
void add_one(Arrays a, Part p) { one<std::uint32_t>(a, p, 0, kAdd); }
void min_spread(Arrays a, Part p) { spread<std::int32_t>(a, p, kMin); }
void min_one(Arrays a, Part p) { one<std::int32_t>(a, p, INT32_MAX, kMin); }
void max_spread(Arrays a, Part p) { spread<std::uint32_t>(a, p, kMax); }
void max_one(Arrays a, Part p) { one<std::uint32_t>(a, p, 0, kMax); }
void or_spread(Arrays a, Part p) { spread<std::uint32_t>(a, p, kOr); }
void or_one(Arrays a, Part p) { one<std::uint32_t>(a, p, 0, kOr); }
void float_add_spread(Arrays a, Part p) { spread<float>(a, p, kAdd); }
void float_add_one(Arrays a, Part p) { one<float>(a, p, 0.0f, kAdd); }

// The operation that is swapped in is the program's own: only one by one is it the same algorithm.
void cas_one(Arrays arrays, Part part) {
  const float* x = array<float>(arrays, 0);
  float* to = array<float>(arrays, 1);
  for (std::size_t i = part.begin * 1024; i < part.end * 1024; ++i) {
    float seen, next;
    __atomic_load(to, &seen, __ATOMIC_RELAXED);
    do next = seen + x[i];
    while (!__atomic_compare_exchange(to, &seen, &next, true, __ATOMIC_RELAXED, __ATOMIC_RELAXED));
  }
}

}  // namespace quern::bench::QUERN_NATIVE_VARIANT
