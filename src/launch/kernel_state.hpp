// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "quern/kernel.hpp"

namespace quern::launch {

class LoadedKernel;

/// The state behind a Kernel: loaded code, or a kernel that is compiled for its arguments. Thread-safe.
class KernelState {
 public:
  virtual ~KernelState() = default;

  virtual const std::string& name() const noexcept = 0;
  virtual const std::string& signature_text() const noexcept = 0;
  virtual const std::vector<Parameter>& parameters() const noexcept = 0;
  virtual KernelInfo info() const = 0;
  /// The code if it is loaded; null if it is compiled for its arguments.
  virtual const LoadedKernel* loaded() const noexcept = 0;
  /// The code for arguments of these types; null: this object's own code.
  virtual std::shared_ptr<const KernelState> specialise(std::span<const Argument> arguments) const = 0;
  /// The same for the types of a signature; null: its source has the types.
  virtual std::shared_ptr<const KernelState> specialise(std::string_view signature) const = 0;
  virtual std::vector<std::string> specialisations() const = 0;
  /// Does everything that the first launch with such blocks would do before the kernel runs.
  virtual void prepare(const Dim3& block) const = 0;
  virtual void launch(const LaunchConfig& config, std::span<const Argument> arguments) const = 0;
};

}  // namespace quern::launch
