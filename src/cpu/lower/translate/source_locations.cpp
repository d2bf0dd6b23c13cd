// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/source_locations.hpp"

#include <fmt/format.h>
#include <algorithm>

#include "ptx/ptx.hpp"

namespace quern::cpu::lower {

namespace {

std::string_view base_name(std::string_view path) { return path.substr(path.rfind('/') + 1); }

}  // namespace

std::uint32_t SourceLocations::add_location(const Frame& frame, std::uint32_t index, std::uint32_t ptx_line,
                                            std::uint32_t inlined_at) {
  ir::Location location{.ptx_line = ptx_line, .inlined_at = inlined_at};
  if (index < frame.function->locations.size()) {
    const ptx::SourceLocation& source = frame.function->locations[index];
    const auto& files = program_.ptx().files;
    const auto file = std::find_if(files.begin(), files.end(),
                                   [&](const ptx::SourceFile& f) { return f.number == source.file; });
    if (file != files.end()) location.file = file->path;
    location.line = source.line;
    location.column = source.column;
  }
  auto& locations = builder_.function.locations;
  locations.push_back(std::move(location));
  return static_cast<std::uint32_t>(locations.size() - 1);
}

/// Returns the location at `index` as the target of an inlined_at. The parser only accepts an inlined_at that
/// refers to an earlier location, so the chain ends.
std::uint32_t SourceLocations::scope_location(Frame& frame, std::uint32_t index, std::uint32_t ptx_line) {
  if (index >= frame.function->locations.size()) return frame.call_location;
  frame.scope_locations.resize(frame.function->locations.size(), ir::kNone);
  if (frame.scope_locations[index] == ir::kNone) {
    const std::uint32_t outer = frame.function->locations[index].inlined_at;
    const std::uint32_t inlined_at =
        outer < index ? scope_location(frame, outer, ptx_line) : frame.call_location;
    frame.scope_locations[index] = add_location(frame, index, ptx_line, inlined_at);
  }
  return frame.scope_locations[index];
}

std::uint32_t SourceLocations::locate(Frame& frame, const ptx::Instruction& instruction) {
  std::uint32_t inlined_at = frame.call_location;
  if (instruction.location < frame.function->locations.size()) {
    const std::uint32_t outer = frame.function->locations[instruction.location].inlined_at;
    if (outer < instruction.location) inlined_at = scope_location(frame, outer, instruction.position.line);
  }
  return add_location(frame, instruction.location, instruction.position.line, inlined_at);
}

void Refusals::add(const ptx::Function& function, const ptx::Instruction& instruction,
                   const std::vector<ir::Location>& locations, std::uint32_t location,
                   std::string_view reason) {
  // Report each instruction once, however often its function is inlined.
  if (!program_.refused.insert(&instruction).second) return;
  const Span ptx_line{.file = std::string(file_name_),
                      .line = instruction.position.line,
                      .column = instruction.position.column};
  Diagnostic diagnostic{.code = "ptx-unsupported"};
  diagnostic.message = fmt::format("'{}' in {} '{}' cannot run on the CPU device: {}",
                                   ptx::print(program_.ptx(), function, instruction),
                                   function.entry ? "kernel" : "function", function.name, reason);
  if (location < locations.size() && locations[location].line != 0 && !locations[location].file.empty()) {
    const ir::Location& exact = locations[location];
    const ir::Location& where = ir::author_location(locations, exact);
    diagnostic.span = {.file = where.file, .line = where.line, .column = where.column};
    diagnostic.notes.push_back(
        {ptx_line, fmt::format("the instruction is at line {} of the PTX", ptx_line.line)});
    if (&where != &exact)
      diagnostic.notes.push_back({{.file = exact.file, .line = exact.line, .column = exact.column},
                                  fmt::format("it comes from line {} of {}, which is inlined there",
                                              exact.line, base_name(exact.file))});
  } else {
    diagnostic.span = ptx_line;
  }
  diagnostics_.push_back(std::move(diagnostic));
}

}  // namespace quern::cpu::lower
