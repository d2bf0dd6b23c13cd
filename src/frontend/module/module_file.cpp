// SPDX-License-Identifier: Apache-2.0
#include "frontend/module/module_file.hpp"

#include "frontend/syntax/lexer.hpp"

namespace quern::frontend {
namespace {

// Maps alternative import paths of a module to its own path.
struct Alias {
  std::string_view from;
  std::string_view to;
};
constexpr Alias kAliases[] = {{"numba_cuda.numba.cuda", "numba.cuda"},
                              {"numba.core.types", "numba.types"},
                              {"numba.cuda.types", "numba.types"}};

}  // namespace

std::string canonical(std::string path) {
  for (const Alias& alias : kAliases)
    if (path == alias.from || (path.starts_with(alias.from) && path[alias.from.size()] == '.'))
      return std::string(alias.to) + path.substr(alias.from.size());
  return path;
}

ModuleFile::ModuleFile(const SourceText& text_of_file, TypeTable& type_table, Report& report_of_file)
    : source(text_of_file),
      types(type_table),
      report(report_of_file),
      tokens(read_tokens(text_of_file, report_of_file)) {}

std::size_t ModuleFile::end_of_statement(std::size_t at) const {
  while (tokens[at].kind != Tok::newline && tokens[at].kind != Tok::end && tokens[at].kind != Tok::dedent)
    ++at;
  if (tokens[at].kind == Tok::newline) ++at;
  if (tokens[at].kind != Tok::indent) return at;
  std::size_t nesting = 0;
  do {
    if (tokens[at].kind == Tok::indent) ++nesting;
    if (tokens[at].kind == Tok::dedent) --nesting;
    if (tokens[at].kind == Tok::end) return at;
    ++at;
  } while (nesting > 0);
  return at;
}

std::string ModuleFile::dotted(std::size_t& at) const {
  std::string path;
  while (tokens[at].kind == Tok::name || tokens[at].kind == Tok::dot || tokens[at].kind == Tok::ellipsis) {
    path += text(at);
    ++at;
  }
  return path;
}

Binding* ModuleFile::meant(std::string_view name) const {
  Binding* binding = timeline.find(name, now);
  return binding != nullptr && binding->kind != Binding::Kind::deleted ? binding : nullptr;
}

}  // namespace quern::frontend
