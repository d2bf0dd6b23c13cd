// SPDX-License-Identifier: Apache-2.0
// A machine with little memory, while the input is worked on: `zeros((40000, 40000))` is a valid argument,
// which must end in an error.
#include "small_memory.hpp"

#include <cstddef>
#include <cstdlib>
#include <new>

bool memory_is_small = false;

void* operator new(std::size_t bytes) {
  constexpr std::size_t kMost = std::size_t{1} << 20;
  void* memory = memory_is_small && bytes > kMost ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
