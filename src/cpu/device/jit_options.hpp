// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "cpu/device/module/linking.hpp"

namespace quern::cpu::device {

/// The options of cuModuleLoadDataEx: two parallel arrays, values cast to pointers; some are written back.
class JitOptions {
 public:
  /// Throws Failure(CUDA_ERROR_INVALID_VALUE) for an option that cuda.h does not have, a target that never
  /// was one, or a log buffer without its size. An optimisation level above 4 counts as 4.
  JitOptions(unsigned count, CUjit_option* options, void** values);

  const ModuleSettings& settings() const noexcept { return settings_; }
  /// Put `text` into the caller's buffer, cut to its size, and its length into the size option.
  void write_error_log(std::string_view text) const { write(error_log_, text); }
  void write_info_log(std::string_view text) const { write(info_log_, text); }
  void write_wall_time_ms(float milliseconds) const;

 private:
  struct Log {
    char* buffer = nullptr;
    void** size = nullptr;
    std::size_t capacity = 0;  ///< of the buffer; what `size` says before anything is written
  };
  static void write(const Log& log, std::string_view text);

  ModuleSettings settings_;
  Log error_log_;
  Log info_log_;
  void** wall_time_ = nullptr;
};

}  // namespace quern::cpu::device
