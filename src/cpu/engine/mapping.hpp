// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/thread_annotations.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::engine {

/// Host memory that kernels can access (cuMemHostRegister with DEVICEMAP). Kernels can only address the
/// window, and the host's pages cannot be mapped there a second time, so the window has a shadow of them, and
/// both are synchronised before and after every launch: a byte that the host changed since the last time is
/// copied to the shadow, one that a kernel changed is copied to the host. Copies use the host's memory
/// instead of the shadow. So the host sees a kernel's writes once the launch has ended, as the Driver API
/// promises for mapped memory. While a launch runs, only a kernel whose blocks all wait sees the host's
/// writes, and the host sees those of such a kernel (Residents in resident.cpp). Thread-safe.
class Mapping {
 public:
  Mapping(std::byte* host, std::shared_ptr<Allocation> shadow);

  std::byte* host() const noexcept { return host_; }
  const std::shared_ptr<Allocation>& shadow() const noexcept { return shadow_; }
  void bring_together() noexcept QUERN_EXCLUDES(mutex_);

 private:
  std::byte* const host_;
  const std::shared_ptr<Allocation> shadow_;
  base::Mutex mutex_;
  std::unique_ptr<std::byte[]> agreed_ QUERN_GUARDED_BY(mutex_);  ///< the last contents that both sides had
};

}  // namespace quern::cpu::engine
