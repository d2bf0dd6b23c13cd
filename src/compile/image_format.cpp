// SPDX-License-Identifier: Apache-2.0
#include "compile/image_format.hpp"

#include <fmt/format.h>

#include "compile/ptx/entries.hpp"

namespace quern::compile {
namespace {

using base::ByteReader;
using base::ByteWriter;

// The fewest bytes that one element of a list takes: its numbers and its texts' lengths.
constexpr std::size_t kTextBytes = 8;
constexpr std::size_t kSpanBytes = kTextBytes + 12;
constexpr std::size_t kParameterBytes = 3 * kTextBytes + 14;
constexpr std::size_t kEntryBytes = 3 * kTextBytes + 12;
constexpr std::size_t kVariableBytes = 2 * kTextBytes;
constexpr std::size_t kNoteBytes = kSpanBytes + kTextBytes;
constexpr std::size_t kDiagnosticBytes = 1 + kSpanBytes + 5 * kTextBytes;

void write(ByteWriter& writer, const abi::EntryInfo& entry) {
  writer.text(entry.name).text(entry.lowered_name).count(entry.parameters.size());
  for (const abi::ParameterInfo& parameter : entry.parameters)
    writer.text(parameter.name)
        .text(parameter.type)
        .number(parameter.offset)
        .number(parameter.size)
        .number(parameter.align)
        .flag(parameter.pointer)
        .flag(parameter.read_only)
        .text(parameter.pointee);
  writer.number(entry.static_shared_bytes).number(entry.max_threads);
}

abi::EntryInfo read_entry(ByteReader& reader) {
  abi::EntryInfo entry;
  entry.name = reader.string();
  entry.lowered_name = reader.string();
  entry.parameters.resize(reader.count(kParameterBytes));
  for (abi::ParameterInfo& parameter : entry.parameters) {
    parameter.name = reader.string();
    parameter.type = reader.string();
    parameter.offset = reader.number<std::uint32_t>();
    parameter.size = reader.number<std::uint32_t>();
    parameter.align = reader.number<std::uint32_t>();
    parameter.pointer = reader.flag();
    parameter.read_only = reader.flag();
    parameter.pointee = reader.string();
  }
  entry.static_shared_bytes = reader.number<std::uint64_t>();
  entry.max_threads = reader.number<std::uint32_t>();
  return entry;
}

void write(ByteWriter& writer, const Span& span) {
  writer.text(span.file).number(span.line).number(span.column).number(span.end_column);
}

Span read_span(ByteReader& reader) {
  Span span;
  span.file = reader.string();
  span.line = reader.number<std::uint32_t>();
  span.column = reader.number<std::uint32_t>();
  span.end_column = reader.number<std::uint32_t>();
  return span;
}

Diagnostic refusal(const char* code, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.message = std::move(message);
  return diagnostic;
}

std::string_view view(const std::vector<std::byte>& bytes) {
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

}  // namespace

void write_diagnostics(ByteWriter& writer, const Diagnostics& diagnostics) {
  writer.count(diagnostics.size());
  for (const Diagnostic& diagnostic : diagnostics) {
    writer.number(static_cast<std::uint8_t>(diagnostic.severity)).text(diagnostic.code);
    write(writer, diagnostic.span);
    writer.text(diagnostic.message).count(diagnostic.notes.size());
    for (const Note& note : diagnostic.notes) {
      write(writer, note.span);
      writer.text(note.message);
    }
    writer.text(diagnostic.hint).text(diagnostic.source_line);
  }
}

Diagnostics read_diagnostics(ByteReader& reader) {
  Diagnostics diagnostics(reader.count(kDiagnosticBytes));
  for (Diagnostic& diagnostic : diagnostics) {
    diagnostic.severity = reader.enumerator(Severity::error);
    diagnostic.code = reader.string();
    diagnostic.span = read_span(reader);
    diagnostic.message = reader.string();
    diagnostic.notes.resize(reader.count(kNoteBytes));
    for (Note& note : diagnostic.notes) {
      note.span = read_span(reader);
      note.message = reader.string();
    }
    diagnostic.hint = reader.string();
    diagnostic.source_line = reader.string();
  }
  return diagnostics;
}

std::string write_image(const abi::PtxImage& image) {
  ByteWriter writer;
  writer.number(kImageFormatVersion).text(image.ptx).text(view(image.machine_code));
  writer.count(image.entries.size());
  for (const abi::EntryInfo& entry : image.entries) write(writer, entry);
  writer.count(image.variables.size());
  for (const abi::VariableInfo& variable : image.variables)
    writer.text(variable.name).text(variable.lowered_name);
  writer.text(image.cuda_source).flag(image.of_python);
  write_diagnostics(writer, image.log);
  writer.real(image.compile_ms);
  return writer.take();
}

Expected<abi::PtxImage> read_image(std::string_view bytes) {
  ByteReader reader(bytes);
  if (const auto version = reader.number<std::uint32_t>(); reader.good() && version != kImageFormatVersion)
    return refusal("image-version", fmt::format("the compiled code has format {}, and this quern reads {}",
                                                version, kImageFormatVersion));
  abi::PtxImage image;
  image.ptx = reader.string();
  const std::string_view code = reader.text();
  const auto* const first = reinterpret_cast<const std::byte*>(code.data());
  image.machine_code.assign(first, first + code.size());
  image.entries.resize(reader.count(kEntryBytes));
  for (abi::EntryInfo& entry : image.entries) entry = read_entry(reader);
  image.variables.resize(reader.count(kVariableBytes));
  for (abi::VariableInfo& variable : image.variables) {
    variable.name = reader.string();
    variable.lowered_name = reader.string();
  }
  image.cuda_source = reader.string();
  image.of_python = reader.flag();
  image.log = read_diagnostics(reader);
  image.compile_ms = reader.real();
  if (!reader.good() || !reader.at_end())
    return refusal("image-damaged", "the compiled code is damaged: its parts do not fit into its bytes");
  note_python_facts(image);  // not stored, so that stored images keep their format
  return image;
}

}  // namespace quern::compile
