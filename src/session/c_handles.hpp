// SPDX-License-Identifier: Apache-2.0
// What the C ABI's functions share: handles, statuses, and nothing thrown across it.
#pragma once

#include <functional>
#include <memory>
#include <new>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/slot_table.hpp"
#include "base/thread_annotations.hpp"
#include "quern/error.hpp"
#include "quern/quern.h"
#include "quern/quern.hpp"

namespace quern::session::c_abi {

/// An array and what quern_array_describe() points to.
struct ArrayObject {
  DeviceNDArray array;
  CudaArrayInterface description;
};
struct EventObject {
  std::shared_ptr<Event> event;
  Session session;
};
struct StreamObject {
  std::shared_ptr<Stream> owner;  ///< null: the program's own
  StreamView view;
  Session session;
};
/// Host memory that is page-locked as long as the handle lives.
using Pin = std::shared_ptr<const PinnedScope>;
using Object =
    std::variant<Session, Module, Kernel, std::shared_ptr<ArrayObject>, StreamObject, EventObject, Pin>;

struct Table {
  base::Mutex mutex;
  base::SlotTable<Object> slots QUERN_GUARDED_BY(mutex);
};
/// Handles outlive every static object of the program that uses them.
Table& table();

/// This thread's latest error. Where there is no memory to keep it, it says so.
struct LastError {
  std::string text;
  bool exhausted = false;
  std::string_view view() const noexcept {
    return exhausted ? "host memory is exhausted" : std::string_view(text);
  }
};
LastError& last_error();

inline QuernStatus fail(QuernStatus status, std::string_view text) noexcept {
  LastError& error = last_error();
  try {
    error.text = text;
    error.exhausted = false;
  } catch (const std::bad_alloc&) {
    error.exhausted = true;
  }
  return status;
}

struct BadHandle {
  const char* text;
};

inline QuernStatus status_of(ErrorCode code) { return static_cast<QuernStatus>(static_cast<int>(code) + 1); }
static_assert(static_cast<int>(ErrorCode::usage) + 1 == QUERN_USAGE &&
              static_cast<int>(ErrorCode::internal) + 1 == QUERN_INTERNAL);
static_assert(static_cast<int>(Dtype::complex128) == QUERN_COMPLEX128);

template <class Body>
QuernStatus guarded(Body&& body) noexcept {
  try {
    body();
    return QUERN_OK;
  } catch (const BadHandle& bad) {
    return fail(QUERN_BAD_HANDLE, bad.text);
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(QUERN_OUT_OF_MEMORY, "host memory is exhausted");
  } catch (const std::exception& error) {
    return fail(QUERN_INTERNAL, error.what());
  } catch (...) {
    return fail(QUERN_INTERNAL, "something was thrown that is no exception of the standard library's");
  }
}

inline void require(bool condition, const char* message) {
  if (!condition) throw Error(ErrorCode::usage, message);
}

inline std::uint64_t insert(Object object) {
  Table& all = table();
  const base::LockGuard lock(all.mutex);
  return all.slots.insert(std::move(object));
}

#define QUERN_BAD_HANDLE_TEXT(kind) \
  "the handle names no " kind ": it was released, is of another kind, or was never given out"
template <class T>
inline constexpr const char* kBadHandle = QUERN_BAD_HANDLE_TEXT("object");
template <>
inline constexpr const char* kBadHandle<Session> = QUERN_BAD_HANDLE_TEXT("session");
template <>
inline constexpr const char* kBadHandle<Module> = QUERN_BAD_HANDLE_TEXT("module");
template <>
inline constexpr const char* kBadHandle<Kernel> = QUERN_BAD_HANDLE_TEXT("kernel");
template <>
inline constexpr const char* kBadHandle<std::shared_ptr<ArrayObject>> = QUERN_BAD_HANDLE_TEXT("array");
template <>
inline constexpr const char* kBadHandle<StreamObject> = QUERN_BAD_HANDLE_TEXT("stream");
template <>
inline constexpr const char* kBadHandle<EventObject> = QUERN_BAD_HANDLE_TEXT("event");
#undef QUERN_BAD_HANDLE_TEXT

struct GiveBack {
  void operator()(dlpack::ManagedTensorVersioned* tensor) const {
    if (tensor->deleter != nullptr) tensor->deleter(tensor);
  }
};

/// A copy: another thread may release the handle meanwhile.
template <class T>
T find(std::uint64_t id) {
  Table& all = table();
  const base::LockGuard lock(all.mutex);
  const Object* found = all.slots.find(id);
  const T* object = found != nullptr ? std::get_if<T>(found) : nullptr;
  if (object == nullptr) throw BadHandle{kBadHandle<T>};
  return *object;
}

inline Session session_of(QuernSession handle) { return find<Session>(handle.id); }
inline std::shared_ptr<ArrayObject> array_of(QuernArray handle) {
  return find<std::shared_ptr<ArrayObject>>(handle.id);
}
inline StreamView stream_of(QuernStream handle) {
  return handle.id == 0 ? StreamView() : find<StreamObject>(handle.id).view;
}

}  // namespace quern::session::c_abi
