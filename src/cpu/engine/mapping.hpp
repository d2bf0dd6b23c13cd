// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>

#include "base/thread_annotations.hpp"
#include "cpu/engine/memory.hpp"

namespace quern::cpu::engine {

/// Host memory that kernels see (cuMemHostRegister with DEVICEMAP). Kernels can only name what lies in the
/// window, and the host's pages cannot be made to appear there twice, so there is a shadow of them in the
/// window, and both are brought together before and after every launch: a byte that the host changed since
/// the last time goes to the shadow, one that a kernel changed goes to the host. Copies take the host's
/// memory for the shadow. So the host sees what a kernel wrote once the launch has ended, which is what the
/// Driver API promises of mapped memory. While a launch runs, only a kernel whose blocks all wait sees what
/// the host writes, and the host what such a kernel wrote (Residents in resident.cpp). Thread-safe.
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
