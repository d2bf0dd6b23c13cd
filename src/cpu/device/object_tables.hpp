// SPDX-License-Identifier: Apache-2.0
// The objects that clients hold by handles.
#pragma once

#include <memory>
#include <tuple>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/failure.hpp"
#include "cpu/device/graph/handles.hpp"
#include "cpu/device/handles.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/mem_pool.hpp"
#include "cpu/device/objects.hpp"

namespace quern::cpu::device {

/// One table for each kind of object. A new kind is a HandleKind, its HandleTraits and a table here.
/// Thread-safe.
class ObjectTables {
  template <class... Objects>
  using TablesOf = std::tuple<HandleTable<Objects>...>;
  using Tables = TablesOf<ModuleObject, FunctionObject, StreamObject, EventObject, LinkObject, LibraryObject,
                          KernelObject, MemPoolObject, Graph, GraphNode, GraphExec, UserObject>;

  template <class Handle, std::size_t kIndex = 0>
  static constexpr std::size_t index_of() {
    static_assert(kIndex < std::tuple_size_v<Tables>, "no table has this type of handle");
    if constexpr (std::is_same_v<typename std::tuple_element_t<kIndex, Tables>::Handle, Handle>)
      return kIndex;
    else
      return index_of<Handle, kIndex + 1>();
  }
  template <class Handle>
  using Pointer = typename std::tuple_element_t<index_of<Handle>(), Tables>::Pointer;

 public:
  /// Throws Failure if the object's context has ended.
  template <class Object>
  typename HandleTraits<Object>::Handle add(std::shared_ptr<Object> object) QUERN_EXCLUDES(mutex_) {
    const ContextState* const owner = owner_of(*object);
    const base::LockGuard lock(mutex_);
    if (owner != nullptr) require_not_ended(*owner);
    return std::get<HandleTable<Object>>(tables_).insert(std::move(object));
  }

  /// Throws Failure(CUDA_ERROR_INVALID_HANDLE) for a handle that is stale, of another kind or invented. For
  /// one of a graph, and for a null one of a node or a user object, the result is CUDA_ERROR_INVALID_VALUE,
  /// as by the driver of a GPU.
  template <class Handle>
  Pointer<Handle> find(Handle handle) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    return known(handle, std::get<index_of<Handle>()>(tables_).find(handle));
  }

  /// The same, but null for such a handle.
  template <class Handle>
  Pointer<Handle> try_find(Handle handle) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    return std::get<index_of<Handle>()>(tables_).find(handle);
  }

  /// As find(), and the handle is stale from then on.
  template <class Handle>
  Pointer<Handle> remove(Handle handle) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    return known(handle, std::get<index_of<Handle>()>(tables_).remove(handle));
  }

  /// All objects of a kind.
  template <class Object>
  std::vector<std::shared_ptr<Object>> all() QUERN_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<Object>> found;
    const base::LockGuard lock(mutex_);
    std::get<HandleTable<Object>>(tables_).for_each(
        [&](auto, const std::shared_ptr<Object>& object) { found.push_back(object); });
    return found;
  }

  /// Takes out the objects of a kind of which `chosen` is true; the caller destroys them.
  template <class Object, class Chosen>
  std::vector<std::shared_ptr<Object>> remove_if(const Chosen& chosen) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    return take(std::get<HandleTable<Object>>(tables_), chosen);
  }

  /// Marks the context as ended and takes out the objects that end with it; the caller destroys them.
  std::vector<std::shared_ptr<void>> end(ContextState& context) QUERN_EXCLUDES(mutex_) {
    std::vector<std::shared_ptr<void>> ended;
    const auto belongs = [&](const auto& object) { return owner_of(object) == &context; };
    const base::LockGuard lock(mutex_);
    context.ended.store(true);
    std::apply(
        [&](auto&... tables) {
          const auto collect = [&](auto& table) {
            for (auto& object : take(table, belongs)) ended.push_back(std::move(object));
          };
          (collect(tables), ...);
        },
        tables_);
    return ended;
  }

 private:
  template <class Handle, class T>
  static std::shared_ptr<T> known(Handle handle, std::shared_ptr<T> object) {
    constexpr bool kIsGraph = std::is_same_v<T, Graph> || std::is_same_v<T, GraphExec>;
    constexpr bool kIsPart = std::is_same_v<T, GraphNode> || std::is_same_v<T, UserObject>;
    const bool is_value = kIsGraph || (kIsPart && handle == Handle{});
    require(object != nullptr, is_value ? CUDA_ERROR_INVALID_VALUE : CUDA_ERROR_INVALID_HANDLE);
    return object;
  }

  template <class Object, class Chosen>
  static std::vector<std::shared_ptr<Object>> take(HandleTable<Object>& table, const Chosen& chosen) {
    std::vector<typename HandleTable<Object>::Handle> handles;
    table.for_each([&](auto handle, const std::shared_ptr<Object>& object) {
      if (chosen(*object)) handles.push_back(handle);
    });
    std::vector<std::shared_ptr<Object>> taken;
    for (const auto handle : handles) taken.push_back(table.remove(handle));
    return taken;
  }

  base::Mutex mutex_;
  Tables tables_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::device
