// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "quern/argument.hpp"
#include "runtime/context.hpp"

namespace quern::launch {

/// The host arrays and SmartArrays among a launch's arguments, as device arrays for that launch. Copies run
/// on the launch's stream: where none was given, copy_back() returns when the values are there; else they are
/// there when the stream has been synchronised.
class HostArguments {
 public:
  HostArguments(const std::shared_ptr<runtime::Context>& context, StreamView stream,
                std::span<const Argument> arguments);
  HostArguments(const HostArguments&) = delete;
  HostArguments& operator=(const HostArguments&) = delete;

  std::span<const Argument> arguments() const noexcept { return arguments_; }
  void copy_back() const;

 private:
  struct Travelling {
    const HostArgument* host = nullptr;  ///< of a host array
    const SmartArray* smart = nullptr;   ///< of a SmartArray
    DeviceNDArray device;
  };
  DeviceNDArray send(const std::shared_ptr<runtime::Context>& context, const HostArgument& host) const;

  const std::optional<StreamView> stream_;
  std::deque<Travelling> travelling_;  ///< arguments_ point into it
  std::vector<Argument> arguments_;
};

}  // namespace quern::launch
