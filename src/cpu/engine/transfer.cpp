// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/engine/fault.hpp"
#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {
namespace {

/// For a row of one aligned word: streams may wait for the value (ValueJob), and must not see half of it.
template <class Word>
bool store_at_once(const TransferJob& job, std::byte* destination, const std::byte* source) noexcept {
  if (job.bytes != sizeof(Word) || reinterpret_cast<std::uintptr_t>(destination) % sizeof(Word) != 0)
    return false;
  Word value = 0;
  if (source != nullptr)
    std::memcpy(&value, source, sizeof value);
  else if (job.pattern_bytes == sizeof value)
    value = static_cast<Word>(job.pattern);
  else
    return false;
  __atomic_store_n(reinterpret_cast<Word*>(destination), value, __ATOMIC_RELEASE);
  return true;
}

void run_row(const TransferJob& job, std::byte* destination, const std::byte* source) noexcept {
  if (store_at_once<std::uint32_t>(job, destination, source)) return;
  if (store_at_once<std::uint64_t>(job, destination, source)) return;
  if (source != nullptr) {
    std::memmove(destination, source, job.bytes);  // a copy within one allocation may overlap
  } else if (job.pattern_bytes == 1) {
    std::memset(destination, static_cast<int>(job.pattern & 0xff), job.bytes);
  } else if (job.pattern_bytes == 2) {
    std::fill_n(reinterpret_cast<std::uint16_t*>(destination), job.bytes / 2,
                static_cast<std::uint16_t>(job.pattern));
  } else {
    std::fill_n(reinterpret_cast<std::uint32_t*>(destination), job.bytes / 4, job.pattern);
  }
}

void run_rows(const TransferJob& job) noexcept {
  const Strides& to = job.destination_strides;
  const Strides& from = job.source_strides;
  for (std::uint64_t slice = 0; slice < job.slices; ++slice) {
    std::byte* const destination = job.destination + slice * to.slice_bytes;
    const std::byte* const source = job.source == nullptr ? nullptr : job.source + slice * from.slice_bytes;
    for (std::uint64_t row = 0; row < job.rows; ++row)
      run_row(job, destination + row * to.row_bytes,
              source == nullptr ? nullptr : source + row * from.row_bytes);
  }
}

bool has_registered(const std::array<Range, 2>& memory) noexcept {
  return memory[0].bytes != 0 || memory[1].bytes != 0;
}

bool is_met(const ValueJob& job) noexcept {
  std::uint64_t now = 0;
  std::uint64_t wrapped = 0;  // the sign of (now - value) decides "at least"
  if (job.bytes == 8) {
    now = __atomic_load_n(reinterpret_cast<const std::uint64_t*>(job.address), __ATOMIC_ACQUIRE);
    wrapped = (now - job.value) >> 63;
  } else {
    const auto word = __atomic_load_n(reinterpret_cast<const std::uint32_t*>(job.address), __ATOMIC_ACQUIRE);
    now = word;
    wrapped = (word - static_cast<std::uint32_t>(job.value)) >> 31;
  }
  switch (job.relation) {
    case ValueJob::Relation::at_least:
      return wrapped == 0;
    case ValueJob::Relation::equal:
      return now == job.value;
    case ValueJob::Relation::any_bit:
      return (now & job.value) != 0;
    case ValueJob::Relation::no_nor_bit: {
      const std::uint64_t bits = job.bytes == 8 ? ~std::uint64_t{0} : 0xffffffffu;
      return (~(now | job.value) & bits) != 0;
    }
  }
  return true;
}

}  // namespace

bool run(const TransferJob& job) noexcept {
  if (has_registered(job.registered))
    return survive(
        job.registered, [](void* all) { run_rows(*static_cast<const TransferJob*>(all)); },
        const_cast<TransferJob*>(&job));
  run_rows(job);
  return true;
}

Awaited look(const ValueJob& job) noexcept {
  struct Look {
    const ValueJob& job;
    bool met = false;
  } here{job};
  const auto look = [](void* all) {
    auto& at = *static_cast<Look*>(all);
    at.met = is_met(at.job);
  };
  if (!has_registered(job.registered))
    look(&here);
  else if (!survive(job.registered, look, &here))
    return Awaited::lost;
  return here.met ? Awaited::passed : Awaited::ahead;
}

}  // namespace quern::cpu::engine
