// SPDX-License-Identifier: Apache-2.0
// component: base
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "quern/export.hpp"

namespace quern {

enum class Severity : std::uint8_t { note, warning, error };

/// A stretch of source text. Lines and columns count from 1, columns in characters (of UTF-8), where tabs are
/// one; 0 means "not known". `file` and `line` follow `#line` directives. `end_column` is one past the last
/// character on `line` (0: only a point is known).
struct Span {
  std::string file;
  std::uint32_t line = 0;
  std::uint32_t column = 0;
  std::uint32_t end_column = 0;

  bool known() const noexcept { return line != 0; }
  friend bool operator==(const Span&, const Span&) = default;
};

/// Another place or fact that belongs to a diagnostic.
struct Note {
  Span span;
  std::string message;
};

/// One message about the author's source, PTX, arguments or files. `code` is a short stable word such as
/// "ptx-unsupported"; `hint` gives advice and may be empty.
struct Diagnostic {
  Severity severity = Severity::error;
  std::string code;
  Span span;
  std::string message;
  std::vector<Note> notes;
  std::string hint;
  std::string source_line;  ///< the text of `span.line`, where known
};

using Diagnostics = std::vector<Diagnostic>;

/// True if any of `diagnostics` is an error.
QUERN_API bool has_error(const Diagnostics& diagnostics) noexcept;

/// `file:line:column: error: message`, the source line with a caret under it, notes and hint; ends with a
/// newline.
QUERN_API std::string to_string(const Diagnostic& diagnostic);
QUERN_API std::string to_string(const Diagnostics& diagnostics);

QUERN_API std::string_view to_string(Severity severity) noexcept;

}  // namespace quern
