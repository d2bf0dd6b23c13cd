// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <cstdint>
#include <memory>

#include "quern/device_array.hpp"
#include "quern/export.hpp"
#include "quern/ndarray.hpp"
#include "quern/where.hpp"

namespace quern {

namespace runtime {
struct SmartState;
}

/// An array that is on the host, on the device, or on both, and is copied only when a side that is out of
/// date is requested (Numba's SmartArray). Copies of this object share it. A kernel launch uses its device
/// side and marks that as changed: two launches in a row cost one transfer. Made by Session::smart_array().
/// Thread-compatible.
class QUERN_API SmartArray {
 public:
  explicit SmartArray(std::shared_ptr<runtime::SmartState> state) : state_(std::move(state)) {}

  /// The representation on that side, updated if necessary. Report a write to it by mark_changed().
  NDArray host() const;
  DeviceNDArray device() const;
  /// Reports a write to that side: that side is then up to date, even if it was out of date before. The other
  /// side is updated now if the program holds it beyond this object, otherwise when it is requested.
  /// `stream`: the stream of work on the device side; copies wait for it, for every kind of stream.
  void mark_changed(Where where, StreamView stream = {}) const;
  /// True if that side exists and is up to date: requesting it copies nothing.
  bool is_current(Where where) const noexcept;

  const ElementType& element() const noexcept;
  const Layout& layout() const noexcept;

  const std::shared_ptr<runtime::SmartState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<runtime::SmartState> state_;
};

}  // namespace quern
