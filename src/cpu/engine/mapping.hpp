// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/thread_annotations.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::engine {

/// Host memory that kernels can access (cuMemHostRegister). Kernels can only address the
/// window, and the host's pages cannot be mapped there a second time. So the window has a shadow copy, and
/// both are synchronised before and after every launch: bytes that the host has changed since the last
/// synchronisation are copied to the shadow, bytes that a kernel has changed are copied to the host. Driver
/// copies access the host's memory instead of the shadow. So the host sees a kernel's writes when the launch
/// has ended, as the Driver API promises for mapped memory. While a launch runs, its kernel sees the host's
/// writes, and the host sees the kernel's writes, only if all of its blocks wait (Residents in resident.cpp).
/// Thread-safe.
class Mapping {
 public:
  Mapping(std::byte* host, std::shared_ptr<Allocation> shadow);

  /// Copies the host's memory to the shadow, before anything else uses it. Returns false if that memory is
  /// not there.
  [[nodiscard]] bool begin() noexcept QUERN_EXCLUDES(mutex_);

  std::byte* host() const noexcept { return host_; }
  const std::shared_ptr<Allocation>& shadow() const noexcept { return shadow_; }
  /// Returns false if the host's memory is not there any more.
  [[nodiscard]] bool bring_together() noexcept QUERN_EXCLUDES(mutex_);

 private:
  /// Calls function(pointer to all sides). Returns false if the host's memory is not there any more.
  bool survive_on(void (*function)(void*)) noexcept QUERN_REQUIRES(mutex_);

  std::byte* const host_;
  const std::shared_ptr<Allocation> shadow_;
  base::Mutex mutex_;
  /// the last contents that both sides had in common
  std::unique_ptr<std::byte[]> agreed_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::cpu::engine
