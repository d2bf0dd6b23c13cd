// SPDX-License-Identifier: Apache-2.0
// component: runtime
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "quern/export.hpp"

namespace quern {

namespace runtime {
struct DeviceState;
}

enum class DeviceKind : std::uint8_t { cpu, cuda };

/// A device that kernels can run on: a view, copied freely, immutable, thread-safe. All numbers come from the
/// device's driver (cuDeviceGetAttribute); the CPU device has its own.
class QUERN_API Device {
 public:
  explicit Device(std::shared_ptr<const runtime::DeviceState> state) : state_(std::move(state)) {}

  DeviceKind kind() const noexcept;
  /// Its number among the devices of its kind, from 0.
  int ordinal() const noexcept;
  /// The name for `SessionOptions::device` and QUERN_DEVICE: "cpu", "cuda:0".
  std::string label() const;
  /// The driver's name for it: "NVIDIA H200".
  const std::string& name() const noexcept;
  /// Compute capability as one number, major * 10 + minor: 90.
  int compute_capability() const noexcept;
  /// cuDriverGetVersion: 13000 is CUDA 13.0.
  int driver_version() const noexcept;
  std::size_t total_memory_bytes() const noexcept;
  int multiprocessor_count() const noexcept;
  int warp_size() const noexcept;
  std::uint32_t max_threads_per_block() const noexcept;
  /// The largest block and the largest grid along x, y, z.
  std::array<std::uint32_t, 3> max_block() const noexcept;
  std::array<std::uint32_t, 3> max_grid() const noexcept;
  /// Shared memory that a block may use by default, and the most that a kernel may request, in bytes.
  std::size_t shared_bytes_per_block() const noexcept;
  std::size_t max_shared_bytes_per_block() const noexcept;
  bool cooperative_launch() const noexcept;
  /// The library that drives it, for messages: the path of libcuda.so.1 or of the CPU device's plug-in.
  const std::string& driver_path() const noexcept;

  const std::shared_ptr<const runtime::DeviceState>& state() const noexcept { return state_; }

 private:
  std::shared_ptr<const runtime::DeviceState> state_;
};

}  // namespace quern
