// SPDX-License-Identifier: Apache-2.0
// Shared by the functions of the C ABI: handles, statuses, and a guard that lets no exception leave.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <variant>

#include "base/slot_table.hpp"
#include "base/thread_annotations.hpp"
#include "quern/driver_error.hpp"
#include "quern/error.hpp"
#include "quern/quern.h"
#include "quern/quern.hpp"
#include "session/c_abi/structs.hpp"

namespace quern::session::c_abi {

/// An array and the strings that quern_array_describe() returns pointers to.
struct ArrayObject {
  explicit ArrayObject(DeviceNDArray of)
      : array(std::move(of)), description(array.cuda_array_interface()), element(array.element()) {}
  const DeviceNDArray array;
  const CudaArrayInterface description;
  const CElement element;
};
struct EventObject {
  std::shared_ptr<Event> event;
  Session session;
};
struct StreamObject {
  std::shared_ptr<Stream> owner;  ///< null: the program's own
  StreamView view;
  std::optional<Session> session;  ///< nothing: the default stream of the work's context
};
/// Page-locked host memory.
struct PinObject {
  std::shared_ptr<const PinnedScope> lock;  ///< of memory of the program's own
  NDArray memory;                           ///< owned if the driver made it
};
struct Deferral {
  std::shared_ptr<DeferredCleanup> scope;
};
/// Work in the background.
class PendingObject {
 public:
  explicit PendingObject(Preparation work) : work_(std::move(work)) {}
  explicit PendingObject(PendingModule work) : work_(std::move(work)) {}
  ~PendingObject() {
    if (keeps_on_) std::visit([](auto& work) { std::move(work).detach(); }, work_);
  }
  PendingObject(const PendingObject&) = delete;
  PendingObject& operator=(const PendingObject&) = delete;

  const Pending& pending() const noexcept {
    return std::visit([](const auto& work) -> const Pending& { return work; }, work_);
  }
  const PendingModule* module() const noexcept { return std::get_if<PendingModule>(&work_); }
  const Preparation* preparation() const noexcept { return std::get_if<Preparation>(&work_); }
  /// Other threads may still wait for it: the last reference releases it.
  void keep_on() noexcept { keeps_on_ = true; }

 private:
  std::variant<Preparation, PendingModule> work_;
  std::atomic<bool> keeps_on_{false};
};
using PendingHandle = std::shared_ptr<PendingObject>;
using CompiledHandle = std::shared_ptr<const CompiledSource>;
using Object = std::variant<Session, Module, Kernel, std::shared_ptr<ArrayObject>, SmartArray, StreamObject,
                            EventObject, PinObject, Deferral, PendingHandle, CompiledHandle>;

struct Table {
  base::Mutex mutex;
  base::SlotTable<Object> slots QUERN_GUARDED_BY(mutex);
};
/// Handles outlive every static object of the program that uses them.
Table& table();

/// This thread's latest error. Without memory for its text, the text is that host memory is exhausted.
struct LastError {
  std::string text;
  int driver_result = 0;
  std::shared_ptr<const DeviceFault> fault;  ///< null if no fault is known
  bool exhausted = false;
  std::string_view view() const noexcept {
    return exhausted ? "host memory is exhausted" : std::string_view(text);
  }
};
LastError& last_error();

inline QuernStatus fail(QuernStatus status, std::string_view text, int driver_result = 0,
                        std::shared_ptr<const DeviceFault> fault = nullptr) noexcept {
  LastError& error = last_error();
  error.driver_result = driver_result;
  error.fault = std::move(fault);
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

inline QuernStatus status_of(ErrorCode code) {
  if (code == ErrorCode::cancelled)
    return QUERN_CANCELLED;  // the number after that of QUERN_INTERNAL was taken
  return static_cast<QuernStatus>(static_cast<int>(code) + 1);
}
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
  } catch (const DriverError& error) {
    return fail(status_of(error.code()), error.what(), error.result(), error.shared_fault());
  } catch (const Error& error) {
    return fail(status_of(error.code()), error.what());
  } catch (const std::bad_alloc&) {
    return fail(QUERN_OUT_OF_MEMORY, "host memory is exhausted");
  } catch (const std::exception& error) {
    return fail(QUERN_INTERNAL, error.what());
  } catch (...) {
    return fail(QUERN_INTERNAL, "an exception was thrown that is not derived from std::exception");
  }
}

/// The options of a source, its file name included.
LoadOptions load_options_of(const QuernSource& source);
SourceLanguage language_of(QuernLanguage language);
/// Throws Error(not_found): "there is no kernel 3; there are 2".
[[noreturn]] void refuse_index(const char* what, std::size_t index, std::size_t count);

/// `text` into a caller's buffer, cut to `bytes` with a NUL; `needed` may be null.
void give_text(std::string_view text, char* buffer, std::size_t bytes, std::size_t* needed);

inline std::uint64_t insert(Object object) {
  Table& all = table();
  const base::LockGuard lock(all.mutex);
  return all.slots.insert(std::move(object));
}

#define QUERN_BAD_HANDLE_TEXT(kind) \
  "the handle names no " kind ": it was released, is of another kind, or is invalid"
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
inline constexpr const char* kBadHandle<SmartArray> = QUERN_BAD_HANDLE_TEXT("smart array");
template <>
inline constexpr const char* kBadHandle<StreamObject> = QUERN_BAD_HANDLE_TEXT("stream");
template <>
inline constexpr const char* kBadHandle<EventObject> = QUERN_BAD_HANDLE_TEXT("event");
template <>
inline constexpr const char* kBadHandle<PinObject> = QUERN_BAD_HANDLE_TEXT("page-locked memory");
template <>
inline constexpr const char* kBadHandle<Deferral> = QUERN_BAD_HANDLE_TEXT("deferral");
template <>
inline constexpr const char* kBadHandle<PendingHandle> = QUERN_BAD_HANDLE_TEXT("work in the background");
template <>
inline constexpr const char* kBadHandle<CompiledHandle> = QUERN_BAD_HANDLE_TEXT("compiled source");
#undef QUERN_BAD_HANDLE_TEXT

/// A copy, since another thread may release the handle meanwhile.
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
/// The stream and its owner, since another thread may release the handle while work is queued.
inline StreamObject stream_of(QuernStream handle) {
  return handle.id == 0 ? StreamObject{} : find<StreamObject>(handle.id);
}
inline QuernArray insert_array(DeviceNDArray array) {
  return {insert(std::make_shared<ArrayObject>(std::move(array)))};
}

}  // namespace quern::session::c_abi
