// SPDX-License-Identifier: Apache-2.0
#include "cpu/engine/mapping.hpp"

#include <atomic>
#include <cstdint>
#include <cstring>

#include "cpu/engine/fault.hpp"

namespace quern::cpu::engine {
namespace {

/// Returns all ones in every byte in which `a` and `b` differ.
template <class Word>
Word differing_bytes(Word a, Word b) {
  Word mask = 0;
  for (std::size_t i = 0; i < sizeof(Word); ++i) {
    const auto byte = static_cast<Word>(static_cast<Word>(0xff) << (8 * i));
    if (((a ^ b) & byte) != 0) mask = static_cast<Word>(mask | byte);
  }
  return mask;
}

/// Synchronises one word. Host and kernels may write concurrently: no write is lost or torn. A later write is
/// copied at the next synchronisation.
template <class Word>
void bring_word(Word& host, Word& shadow, Word& agreed) {
  const std::atomic_ref<Word> at_host(host), at_shadow(shadow);
  Word by_host = at_host.load(std::memory_order_acquire);
  Word by_kernel = at_shadow.load(std::memory_order_acquire);
  if (by_host == agreed && by_kernel == agreed) return;
  const Word from_host = differing_bytes(by_host, agreed);
  const auto blend = [&](Word other) {
    return static_cast<Word>((by_host & from_host) | (other & ~from_host));
  };
  const Word both = blend(by_kernel);
  if (both != by_host) {
    Word expected = by_host;
    if (!at_host.compare_exchange_strong(expected, both, std::memory_order_acq_rel)) return;
  }
  if (from_host != 0)
    while (!at_shadow.compare_exchange_weak(by_kernel, blend(by_kernel), std::memory_order_acq_rel)) {
    }
  agreed = both;
}

/// Processes as many whole words as `bytes` contains. Returns the number of bytes processed.
template <class Word>
std::size_t bring_words(std::byte* host, std::byte* shadow, std::byte* agreed, std::size_t bytes) {
  if (reinterpret_cast<std::uintptr_t>(host) % sizeof(Word) != 0) return 0;
  const std::size_t end = bytes / sizeof(Word) * sizeof(Word);
  for (std::size_t at = 0; at < end; at += sizeof(Word))
    bring_word(*reinterpret_cast<Word*>(host + at), *reinterpret_cast<Word*>(shadow + at),
               *reinterpret_cast<Word*>(agreed + at));
  return end;
}

struct Sides {
  std::byte* host = nullptr;
  std::byte* shadow = nullptr;
  std::byte* agreed = nullptr;
  std::size_t bytes = 0;
};

void copy_host(void* all) {
  const auto& sides = *static_cast<const Sides*>(all);
  std::memcpy(sides.agreed, sides.host, sides.bytes);
  std::memcpy(sides.shadow, sides.agreed, sides.bytes);
}

void bring_all(void* all) {
  const auto& sides = *static_cast<const Sides*>(all);
  std::size_t done = 0;
  const auto bring = [&]<class Word>(Word) {
    done +=
        bring_words<Word>(sides.host + done, sides.shadow + done, sides.agreed + done, sides.bytes - done);
  };
  bring(std::uint64_t{});  // a value that is written at once is copied at once
  bring(std::uint32_t{});
  bring(std::uint16_t{});
  bring(std::uint8_t{});
}

}  // namespace

Mapping::Mapping(std::byte* host, std::shared_ptr<Allocation> shadow)
    : host_(host),
      shadow_(std::move(shadow)),
      agreed_(std::make_unique_for_overwrite<std::byte[]>(shadow_->bytes)) {}

bool Mapping::begin() noexcept {
  const base::LockGuard lock(mutex_);
  return survive_on(&copy_host);
}

bool Mapping::bring_together() noexcept {
  const base::LockGuard lock(mutex_);
  return survive_on(&bring_all);
}

bool Mapping::survive_on(void (*function)(void*)) noexcept {
  Sides sides{host_, shadow_->base, agreed_.get(), shadow_->bytes};
  const Range hosts{host_, shadow_->bytes};
  return survive({&hosts, 1}, function, &sides);
}

}  // namespace quern::cpu::engine
