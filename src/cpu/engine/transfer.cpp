// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "cpu/engine/jobs.hpp"

namespace quern::cpu::engine {

void run(const TransferJob& job) noexcept {
  if (job.source != nullptr) {
    std::memmove(job.destination, job.source, job.bytes);  // a copy within one allocation may overlap
  } else if (job.pattern_bytes == 1) {
    std::memset(job.destination, static_cast<int>(job.pattern & 0xff), job.bytes);
  } else if (job.pattern_bytes == 2) {
    std::fill_n(reinterpret_cast<std::uint16_t*>(job.destination), job.bytes / 2,
                static_cast<std::uint16_t>(job.pattern));
  } else {
    std::fill_n(reinterpret_cast<std::uint32_t*>(job.destination), job.bytes / 4, job.pattern);
  }
}

}  // namespace quern::cpu::engine
