// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>

#include "base/slot_table.hpp"

namespace quern::cpu::device {

/// The kind of object that a handle names; part of the handle, so that a stream is never taken for a module.
enum class HandleKind : std::uint8_t {
  context = 1,
  module,
  function,
  stream,
  event,
  link,
  library,
  kernel,
  mem_pool,
  graph,
  graph_node,
  graph_exec,
  user_object
};

/// The handle of an object: `Handle`, its C type, and `kKind`. Specialised beside each object.
template <class Object>
struct HandleTraits;

/// Objects of one kind under opaque C handles (index, generation and kind; never an address).
/// Thread-compatible.
template <class Object>
class HandleTable {
 public:
  using Pointer = std::shared_ptr<Object>;
  using Handle = typename HandleTraits<Object>::Handle;

  Handle insert(Pointer object) { return encode(slots_.insert(std::move(object))); }
  /// Null for a handle that is stale, of another kind, or invented.
  Pointer find(Handle handle) {
    const Pointer* found = is_mine(handle) ? slots_.find(decode(handle)) : nullptr;
    return found == nullptr ? nullptr : *found;
  }
  Pointer remove(Handle handle) {
    if (!is_mine(handle)) return nullptr;
    std::optional<Pointer> removed = slots_.remove(decode(handle));
    return removed ? std::move(*removed) : nullptr;
  }
  template <class Visit>
  void for_each(Visit&& visit) {
    slots_.for_each([&](std::uint64_t slot, Pointer& object) { visit(encode(slot), object); });
  }

  /// True if it is the handle of such an object, or was one.
  static bool is_mine(Handle handle) noexcept {
    return (reinterpret_cast<std::uint64_t>(handle) & ((1u << kKindBits) - 1)) ==
           static_cast<std::uint64_t>(kKind);
  }

 private:
  static constexpr unsigned kKindBits = 6;
  static constexpr HandleKind kKind = HandleTraits<Object>::kKind;
  static Handle encode(std::uint64_t slot) noexcept {
    return reinterpret_cast<Handle>((slot << kKindBits) | static_cast<std::uint64_t>(kKind));
  }
  static std::uint64_t decode(Handle handle) noexcept {
    return reinterpret_cast<std::uint64_t>(handle) >> kKindBits;
  }
  base::SlotTable<Pointer> slots_;
};

}  // namespace quern::cpu::device
