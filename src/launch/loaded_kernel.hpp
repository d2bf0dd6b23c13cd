// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <atomic>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "abi/kernel_request.hpp"
#include "launch/failure_check.hpp"
#include "launch/kernel_state.hpp"
#include "launch/signature.hpp"
#include "quern/kernel.hpp"
#include "runtime/context/module.hpp"

namespace quern::launch {

/// The parameters in the form of the public API.
std::vector<Parameter> public_parameters(const abi::EntryInfo& entry);

/// One kernel of a loaded module, with the facts that launches need. Immutable except for the raised
/// shared-memory limit; thread-safe.
class LoadedKernel final : public KernelState {
 public:
  using Image = std::shared_ptr<const abi::PtxImage>;

  /// `entry` is one of `image->entries`. Throws DriverError, and Error(internal) if driver and compiler
  /// disagree about the parameters.
  LoadedKernel(std::shared_ptr<runtime::Module> module, Image image, const abi::EntryInfo& entry,
               std::shared_ptr<const std::string> cuda_source);

  const std::string& name() const noexcept override { return entry_.name; }
  const std::string& signature_text() const noexcept override { return signature_.text; }
  const Signature& signature() const noexcept { return signature_; }
  const std::vector<Parameter>& parameters() const noexcept override { return parameters_; }
  KernelInfo info() const override;
  std::shared_ptr<const KernelState> specialise(std::span<const Argument>) const override { return nullptr; }
  std::shared_ptr<const KernelState> specialise(std::string_view) const override { return nullptr; }
  std::vector<std::string> specialisations() const override { return {}; }
  void launch(const LaunchConfig& config, std::span<const Argument> arguments) const override;
  void prepare(const Dim3& block) const override;
  const LoadedKernel* loaded() const noexcept override { return this; }
  std::uint32_t active_blocks(std::uint32_t block, std::size_t shared_bytes) const;
  std::uint32_t suggested_block(std::size_t shared_bytes, std::uint32_t limit) const;
  std::uint64_t resident_blocks(std::uint32_t block, std::size_t shared_bytes) const;
  CUfunction handle() const noexcept { return function_.handle; }
  const std::shared_ptr<runtime::Module>& module() const noexcept { return module_; }
  const abi::PtxImage& image() const noexcept { return *image_; }
  CUmodule module_handle() const noexcept { return module_->handle(); }

 private:
  void launch_packed(const LaunchConfig& config, std::span<const Argument> arguments) const;
  void check_memory(std::span<const Argument> arguments) const;
  runtime::InFlight::Work to_keep(CUstream stream, std::span<const Argument> arguments) const;
  void check_parameters() const;
  void check_timeout(std::chrono::nanoseconds timeout) const;
  void check_block(const LaunchConfig& config) const;
  void check_grid(const LaunchConfig& config) const;
  void check_shared(const LaunchConfig& config) const;
  void allow_shared(std::size_t bytes) const;
  CUresult start(const LaunchConfig& config, CUstream stream, void** parameters) const;
  [[noreturn]] void fail(const LaunchConfig& config, CUresult result) const;

  const std::shared_ptr<runtime::Module> module_;
  const Image image_;
  const abi::EntryInfo& entry_;  // in image_
  const std::shared_ptr<const std::string> cuda_source_;
  const runtime::Function function_;
  const Signature signature_;
  std::vector<Parameter> parameters_;
  std::optional<FailureCheck> failure_check_;  ///< of debug builds
  mutable std::atomic<std::size_t> allowed_shared_bytes_;
  mutable std::atomic<std::uint32_t> suggested_block_{0};  ///< 0: not queried yet
};

}  // namespace quern::launch
