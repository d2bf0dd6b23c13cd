// SPDX-License-Identifier: Apache-2.0
// component: base
#pragma once

#include <cstdint>
#include <stdexcept>
#include <string>
#include <string_view>

#include "quern/diagnostic.hpp"
#include "quern/export.hpp"

namespace quern {

/// The kind of an error; one word each, stable, also printed by `--json` as "code".
enum class ErrorCode : std::uint8_t {
  usage,          ///< the caller's arguments do not fit
  compile,        ///< source, NVRTC or PTX was refused
  not_found,      ///< a file, kernel, device or library does not exist
  driver,         ///< a driver call failed (DriverError)
  out_of_memory,  ///< device memory is exhausted (OutOfMemory)
  device_fault,   ///< a kernel's fault ended its context
  io,             ///< a file could not be read or written
  unsupported,    ///< understood, but not available here
  internal,       ///< a defect of quern's own
  cancelled,      ///< work that was waited for was cancelled (Stream::cancel)
};

QUERN_API std::string_view to_string(ErrorCode code) noexcept;

/// Base class of quern's exceptions. `what()` is the whole message: what was attempted, on what, what the
/// limit was, and what to do. `diagnostics()` holds the parts for compile errors (otherwise empty).
class QUERN_API Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message);
  Error(ErrorCode code, const std::string& message, Diagnostics diagnostics);

  ErrorCode code() const noexcept { return code_; }
  const Diagnostics& diagnostics() const noexcept { return diagnostics_; }

 private:
  ErrorCode code_;
  Diagnostics diagnostics_;
};

/// An invalid source, name expression or PTX; `what()` is `to_string(diagnostics)`.
class QUERN_API CompileError : public Error {
 public:
  explicit CompileError(Diagnostics diagnostics);
};

}  // namespace quern
