// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "quern/smart_array.hpp"
#include "quern/stream.hpp"
#include "runtime/context/context.hpp"

namespace quern::runtime {

/// The last work on the device side in a stream that copies do not wait for by themselves.
struct StreamUse {
  CUstream stream = nullptr;
  Event end;
  bool pending = false;  ///< false: has ended, and the event may be reused
};

struct SmartState {
  std::shared_ptr<Context> context;
  ElementType element;
  Layout layout;
  std::optional<NDArray> host;
  std::optional<DeviceNDArray> device;
  std::vector<StreamUse> uses;  ///< reused: launches after the first make no events
  bool host_current = false;
  bool device_current = false;
};

/// Adopts the array (`copy`: a copy of it), first placed on that side.
SmartArray make_smart(const std::shared_ptr<Context>& context, const NDArray& array, bool copy, Where where);
SmartArray make_smart(const std::shared_ptr<Context>& context, const DeviceNDArray& array, bool copy,
                      Where where);
SmartArray make_smart(const std::shared_ptr<Context>& context, Shape shape, const ElementType& element,
                      Order order, Where where);

/// Called before a launch writes to the device side, which is up to date: from here on the host's side is out
/// of date, even if a later step fails.
void expect_writes(SmartState& state) noexcept;
/// Work that is queued on `stream` uses the device side: copies wait for it.
void remember_use(SmartState& state, StreamView stream);

}  // namespace quern::runtime
