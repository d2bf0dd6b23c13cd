// SPDX-License-Identifier: Apache-2.0
// Finds the handles in the arguments of driver calls, according to the columns `creates` and `releases` of
// functions.def.
#pragma once

#include <bit>
#include <cstdint>
#include <type_traits>

#include "driver/driver_table.hpp"
#include "driver/function_facts.hpp"

namespace quern::test {

/// The type of the object's handle; void: each thread has one such object, which needs no handle.
template <driver::DriverObject>
struct HandleOf;
#define QUERN_HANDLE(object, handle)              \
  template <>                                     \
  struct HandleOf<driver::DriverObject::object> { \
    using type = handle;                          \
  }
QUERN_HANDLE(memory, CUdeviceptr);
QUERN_HANDLE(pooled, CUdeviceptr);
QUERN_HANDLE(host, void*);
QUERN_HANDLE(registered, void*);
QUERN_HANDLE(stream, CUstream);
QUERN_HANDLE(event, CUevent);
QUERN_HANDLE(module, CUmodule);
QUERN_HANDLE(link, CUlinkState);
QUERN_HANDLE(library, CUlibrary);
QUERN_HANDLE(context, CUcontext);
QUERN_HANDLE(primary, CUdevice);
QUERN_HANDLE(current, void);
#undef QUERN_HANDLE

/// The first of `arguments` of type T; null if there is none.
template <class T, class... Args>
const T* argument_of_type(const Args&... arguments) {
  const T* found = nullptr;
  const auto look = [&](const auto& argument) {
    if constexpr (std::is_same_v<std::remove_cvref_t<decltype(argument)>, T>)
      if (found == nullptr) found = &argument;
  };
  (look(arguments), ...);
  return found;
}

template <class T>
std::uint64_t handle_bits(T handle) {
  if constexpr (std::is_pointer_v<T>)
    return std::bit_cast<std::uintptr_t>(handle);
  else
    return static_cast<std::uint64_t>(handle);
}

/// The handle of the object that a successful call with these arguments created or released: the result that
/// it wrote, otherwise the handle that it received.
template <driver::DriverObject kObject, class... Args>
std::uint64_t handle_in(const Args&... arguments) {
  using Handle = typename HandleOf<kObject>::type;
  if constexpr (std::is_void_v<Handle>) {
    return 0;
  } else if constexpr ((std::is_same_v<Args, Handle*> || ...)) {
    return handle_bits(**argument_of_type<Handle*>(arguments...));
  } else {
    static_assert((std::is_same_v<Args, Handle> || ...),
                  "the function has no argument for this kind of object");
    return handle_bits(*argument_of_type<Handle>(arguments...));
  }
}

}  // namespace quern::test
