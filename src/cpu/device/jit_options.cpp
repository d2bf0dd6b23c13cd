// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/jit_options.hpp"

#include <algorithm>
#include <cstring>

#include "cpu/device/failure.hpp"

namespace quern::cpu::device {
namespace {

/// cuda.h passes numbers by casting them to void*; only the low 32 bits of most options count.
std::uint32_t number(void* const& value) noexcept {
  return static_cast<std::uint32_t>(reinterpret_cast<std::uintptr_t>(value));
}

/// Targets with suffixes are a base and the architecture: CU_COMPUTE_ACCELERATED_TARGET_BASE.
constexpr std::uint32_t kArchitectureMask = 0xffff;

}  // namespace

JitOptions::JitOptions(unsigned count, CUjit_option* options, void** values) {
  require(count == 0 || (options != nullptr && values != nullptr));
  for (unsigned i = 0; i < count; ++i) {
    // Options that steer code generation for a GPU alone (cache mode, target, ...) mean nothing here and are
    // accepted.
    switch (options[i]) {
      case CU_JIT_MAX_REGISTERS:
        settings_.max_registers = number(values[i]);
        break;
      case CU_JIT_OPTIMIZATION_LEVEL:
        settings_.optimised = number(values[i]) > 0;
        break;
      case CU_JIT_TARGET:
        require((number(values[i]) & kArchitectureMask) >= CU_TARGET_COMPUTE_30);
        break;
      case CU_JIT_ERROR_LOG_BUFFER:
        error_log_.buffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES:
        error_log_.size = &values[i];
        break;
      case CU_JIT_INFO_LOG_BUFFER:
        info_log_.buffer = static_cast<char*>(values[i]);
        break;
      case CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES:
        info_log_.size = &values[i];
        break;
      case CU_JIT_WALL_TIME:
        wall_time_ = &values[i];
        break;
      default:
        require(options[i] >= 0 && options[i] < CU_JIT_NUM_OPTIONS);
        break;
    }
  }
  require(error_log_.buffer == nullptr || error_log_.size != nullptr);
  require(info_log_.buffer == nullptr || info_log_.size != nullptr);
  for (Log* log : {&error_log_, &info_log_})
    if (log->buffer != nullptr) log->capacity = number(*log->size);
}

void JitOptions::write(const Log& log, std::string_view text) {
  if (log.size == nullptr) return;
  std::size_t length = 0;
  if (log.capacity > 0) {
    length = std::min(text.size(), log.capacity - 1);
    if (length > 0) std::memcpy(log.buffer, text.data(), length);
    log.buffer[length] = '\0';
  }
  *log.size = reinterpret_cast<void*>(length);
}

void JitOptions::write_wall_time_ms(float milliseconds) const {
  if (wall_time_ == nullptr) return;
  *wall_time_ = nullptr;
  std::memcpy(wall_time_, &milliseconds, sizeof milliseconds);
}

}  // namespace quern::cpu::device
