// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>
#include <vector>

namespace quern::base {

/// Objects under handles that are index + generation, so that a stale or invented handle is recognised, never
/// followed. A handle is never 0. Thread-compatible: the owner locks.
template <class T>
class SlotTable {
 public:
  using Handle = std::uint64_t;

  Handle insert(T value) {
    if (free_.empty()) {
      free_.reserve(slots_.size() + 1);  // so that remove() needs no memory
      slots_.emplace_back();
      free_.push_back(static_cast<std::uint32_t>(slots_.size() - 1));
    }
    const std::uint32_t index = free_.back();
    free_.pop_back();
    Slot& slot = slots_[index];
    slot.value.emplace(std::move(value));
    return make(index, slot.generation);
  }

  T* find(Handle handle) noexcept {
    const std::uint32_t index = static_cast<std::uint32_t>(handle & 0xffffffffu) - 1;
    if (index >= slots_.size()) return nullptr;
    Slot& slot = slots_[index];
    return slot.value && make(index, slot.generation) == handle ? &*slot.value : nullptr;
  }

  /// Takes the object out; its handle is dead from then on.
  std::optional<T> remove(Handle handle) {
    if (find(handle) == nullptr) return std::nullopt;
    const std::uint32_t index = static_cast<std::uint32_t>(handle & 0xffffffffu) - 1;
    Slot& slot = slots_[index];
    std::optional<T> value = std::move(slot.value);
    slot.value.reset();
    slot.generation = (slot.generation + 1) & kGenerationMask;
    free_.push_back(index);
    return value;
  }

  std::size_t size() const noexcept { return slots_.size() - free_.size(); }

  template <class F>
  void for_each(F&& visit) {
    for (std::uint32_t i = 0; i < slots_.size(); ++i)
      if (slots_[i].value) visit(make(i, slots_[i].generation), *slots_[i].value);
  }

 private:
  // 20 bits of generation keep a handle below 2^52, away from canonical kernel addresses and small integers
  // alike.
  static constexpr std::uint32_t kGenerationMask = 0xfffff;
  struct Slot {
    std::optional<T> value;
    std::uint32_t generation = 1;
  };
  static Handle make(std::uint32_t index, std::uint32_t generation) noexcept {
    return (static_cast<Handle>(generation) << 32) | (index + 1u);
  }
  std::vector<Slot> slots_;
  std::vector<std::uint32_t> free_;
};

}  // namespace quern::base
