// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstdint>
#include <memory>
#include <string_view>
#include <utility>

#include "quern/stream.hpp"
#include "runtime/device/driver.hpp"
#include "runtime/work/context_fault.hpp"

namespace quern::runtime {

class Context;

/// A context of the driver: its handle, its device, and the fault that ended it, if any. The classes that a
/// Context consists of refer to this base of it. Thread-safe.
class DriverContext {
 public:
  DriverContext(const DriverContext&) = delete;
  DriverContext& operator=(const DriverContext&) = delete;

  const Driver& driver() const noexcept { return *device_->driver; }
  const driver::DriverTable& api() const noexcept { return device_->driver->api; }
  const DeviceState& device() const noexcept { return *device_; }
  const std::shared_ptr<const DeviceState>& device_state() const noexcept { return device_; }
  CUcontext handle() const noexcept { return handle_; }
  /// A view of a stream of this context.
  StreamView view_of(CUstream stream) const noexcept { return {&self_, stream}; }

  /// Throws DriverError unless `result` is CUDA_SUCCESS. A fault is recorded: the context is lost, and no
  /// object of it is released any more (its addresses may belong to another context by then). `attempted` is
  /// a string or a function that makes one; the function is called only for a failure.
  template <class Text>
  void check(CUresult result, std::string_view call, const Text& attempted) const {
    if (result == CUDA_SUCCESS) [[likely]]
      return;
    if constexpr (std::invocable<const Text&>)
      fail(result, call, attempted());
    else
      fail(result, call, attempted);
  }
  [[noreturn]] void fail(CUresult result, std::string_view call, std::string_view attempted) const;
  /// Records `result` if it is a fault, and returns whether it is one.
  bool note_fault(CUresult result) const noexcept;

  const std::shared_ptr<ContextFault>& fault() const noexcept { return fault_; }
  bool lost() const noexcept { return fault_->happened(); }
  /// Throws DriverError if the context is lost. CurrentContext calls it, so other code that calls the driver
  /// need not.
  void require_alive() const { fault_->require_none(api()); }
  /// After a fault: returns when the driver has finished the queued work, so that it no longer accesses the
  /// memory of that work. False in a callback, which cannot wait for itself.
  bool settle() const noexcept;
  /// Frees page-locked or managed memory of this lost context, if the driver lets it outlive the context.
  void release_lost_host_memory(void* address) const noexcept;

 protected:
  /// `self`: the Context that this is the base of.
  DriverContext(std::shared_ptr<const DeviceState> device, CUcontext handle, Context& self)
      : device_(std::move(device)), handle_(handle), self_(self) {}
  ~DriverContext() = default;

 private:
  const std::shared_ptr<const DeviceState> device_;
  const CUcontext handle_;
  Context& self_;
  const std::shared_ptr<ContextFault> fault_ = std::make_shared<ContextFault>();
};

/// Makes a context current on this thread for a scope and prevents its reset meanwhile; costs one driver call
/// if it is already current. Throws DriverError for a lost context.
class CurrentContext {
 public:
  explicit CurrentContext(const DriverContext& context)
      : CurrentContext(context.driver(), context.handle(), *context.fault()) {}
  CurrentContext(const Driver& driver, CUcontext handle, ContextFault& fault);
  ~CurrentContext();
  CurrentContext(const CurrentContext&) = delete;
  CurrentContext& operator=(const CurrentContext&) = delete;

  /// The number of this thread's scopes that are inside that context.
  static std::uint32_t depth(const ContextFault& fault) noexcept;

 private:
  const Driver& driver_;
  ContextFault& fault_;
  const CurrentContext* const outer_;  ///< of this thread
  bool pushed_ = false;
};

/// For work in one context that uses memory of another one as well: prevents the reset of the other one
/// meanwhile. Throws DriverError if the other one is lost.
class ContextUse {
 public:
  explicit ContextUse(const DriverContext& context) : fault_(*context.fault()) {
    fault_.enter(context.api());
  }
  ~ContextUse() { fault_.leave(); }
  ContextUse(const ContextUse&) = delete;
  ContextUse& operator=(const ContextUse&) = delete;

 private:
  ContextFault& fault_;
};

}  // namespace quern::runtime
