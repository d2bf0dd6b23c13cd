// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <memory>
#include <memory_resource>
#include <optional>
#include <span>
#include <vector>

#include "quern/argument.hpp"
#include "runtime/context/context.hpp"

namespace quern::launch {

/// The host arrays and SmartArrays among a launch's arguments, as device arrays for that launch. Copies run
/// on the launch's stream: if none was given, copy_back() returns when the values have arrived; otherwise
/// they have arrived when the stream has been synchronised. Up to kInline arguments are stored in the object:
/// SmartArrays that are on the device already need no heap memory.
class HostArguments {
 public:
  HostArguments(const std::shared_ptr<runtime::Context>& context, StreamView stream,
                std::span<const Argument> arguments);
  HostArguments(const HostArguments&) = delete;
  HostArguments& operator=(const HostArguments&) = delete;

  std::span<const Argument> arguments() const noexcept { return arguments_; }
  /// Called before the launch: the side that it may write to counts as up to date from then on, even if a
  /// later step fails.
  void expect_writes() const noexcept;
  void copy_back() const;

 private:
  struct DeviceCopy {
    const HostArgument* host = nullptr;  ///< of a host array
    const SmartArray* smart = nullptr;   ///< of a SmartArray
    DeviceNDArray device;
  };
  DeviceNDArray send(const std::shared_ptr<runtime::Context>& context, const HostArgument& host) const;

  static constexpr std::size_t kInline = 12;
  static constexpr std::size_t kInlineBytes = kInline * (sizeof(DeviceCopy) + sizeof(Argument)) + 64;

  const std::optional<StreamView> stream_;
  alignas(std::max_align_t) std::array<std::byte, kInlineBytes> inline_;
  std::pmr::monotonic_buffer_resource memory_{inline_.data(), inline_.size()};
  std::pmr::vector<DeviceCopy> device_copies_ =
      std::pmr::vector<DeviceCopy>(&memory_);  ///< arguments_ point into it
  // Not in braces: these would make a list with an argument that is an address.
  std::pmr::vector<Argument> arguments_ = std::pmr::vector<Argument>(&memory_);
};

}  // namespace quern::launch
