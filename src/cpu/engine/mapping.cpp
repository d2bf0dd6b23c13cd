// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/mapping.hpp"

#include <algorithm>
#include <cstring>

namespace quern::cpu::engine {

Mapping::Mapping(std::byte* host, std::shared_ptr<Allocation> shadow)
    : host_(host),
      shadow_(std::move(shadow)),
      agreed_(std::make_unique_for_overwrite<std::byte[]>(shadow_->bytes)) {
  std::memcpy(shadow_->base, host_, shadow_->bytes);
  std::memcpy(agreed_.get(), host_, shadow_->bytes);
}

void Mapping::bring_together() noexcept {
  constexpr std::size_t kPiece = 4096;
  const base::LockGuard lock(mutex_);
  for (std::size_t begin = 0; begin < shadow_->bytes; begin += kPiece) {
    const std::size_t bytes = std::min<std::size_t>(kPiece, shadow_->bytes - begin);
    std::byte* const host = host_ + begin;
    std::byte* const shadow = shadow_->base + begin;
    std::byte* const agreed = agreed_.get() + begin;
    const bool host_changed = std::memcmp(host, agreed, bytes) != 0;
    if (!host_changed && std::memcmp(shadow, agreed, bytes) == 0) continue;
    for (std::size_t i = 0; i < bytes; ++i) {
      if (host[i] != agreed[i])
        shadow[i] = agreed[i] = host[i];
      else if (shadow[i] != agreed[i])
        host[i] = agreed[i] = shadow[i];
    }
  }
}

}  // namespace quern::cpu::engine
