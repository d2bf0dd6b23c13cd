// SPDX-License-Identifier: Apache-2.0
#include "host_memory.hpp"

#include <cstdlib>
#include <new>

namespace quern::failure {
namespace {

struct State {
  bool armed = false;
  bool for_good = false;
  int driver_depth = 0;
  std::uint64_t nth = 0;
  std::uint64_t count = 0;
};
thread_local State state;

bool fails() noexcept {
  if (!state.armed || state.driver_depth > 0) return false;
  ++state.count;
  return state.nth != 0 && (state.for_good ? state.count >= state.nth : state.count == state.nth);
}

void* allocate(std::size_t bytes, std::size_t alignment) {
  const std::size_t whole = (bytes + alignment - 1) / alignment * alignment;
  void* const memory = fails() ? nullptr : std::aligned_alloc(alignment, whole == 0 ? alignment : whole);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

ShortOfMemory::ShortOfMemory(std::uint64_t nth, bool for_good) noexcept {
  state.nth = nth;
  state.for_good = for_good;
  state.count = 0;
  state.armed = true;
}
ShortOfMemory::~ShortOfMemory() { end(); }
std::uint64_t ShortOfMemory::count() noexcept { return state.count; }
void ShortOfMemory::end() noexcept { state.armed = false; }

void in_driver(bool begins) noexcept { state.driver_depth += begins ? 1 : -1; }

}  // namespace quern::failure

void* operator new(std::size_t bytes) {
  return quern::failure::allocate(bytes, __STDCPP_DEFAULT_NEW_ALIGNMENT__);
}
void* operator new(std::size_t bytes, std::align_val_t alignment) {
  return quern::failure::allocate(bytes, static_cast<std::size_t>(alignment));
}
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept {
  return quern::failure::fails() ? nullptr : std::malloc(bytes == 0 ? 1 : bytes);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }
