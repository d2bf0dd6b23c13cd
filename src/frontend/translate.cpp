// SPDX-License-Identifier: Apache-2.0
#include "frontend/translate.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/thread.hpp"
#include "frontend/codegen/emit.hpp"

namespace quern::frontend {
namespace {

constexpr std::size_t kMostBytes = std::size_t{16} << 20;
constexpr std::size_t kWidestLine = 120;
constexpr std::uint32_t kMostBlankLines = 3;  // larger gaps become a #line directive

Diagnostic failure(const std::string& file, std::string code, std::string message, std::string hint) {
  Diagnostic diagnostic;
  diagnostic.code = std::move(code);
  diagnostic.span.file = file;
  diagnostic.message = std::move(message);
  diagnostic.hint = std::move(hint);
  return diagnostic;
}

/// The state of one translation.
class Translation {
 public:
  Translation(const abi::KernelSource& source, std::span<const abi::Constant> constants)
      : text_(with_newlines(source.text)),
        source_(text_, source.file_name),
        report_(source_),
        names_(source_, types_, report_, constants),
        program_(names_) {}

  std::vector<Declaration*> kernels() { return names_.kernels(); }

  Expected<CudaSource> run(const std::string& entry, const std::string& signature) {
    if (report_.failed()) return report_.take();
    Expected<Declaration*> kernel = choose(entry);
    if (!kernel) return std::move(kernel).errors();
    if (names_.report_doubt((*kernel)->name, (*kernel)->place)) return report_.take();
    names_.report_errors(**kernel);
    names_.compile_as_of(**kernel);
    const Function* function = names_.body_of(**kernel);
    std::vector<Type> types;
    if (!choose_types(**kernel, *function, signature, types)) return report_.take();
    const Specialisation* specialisation = program_.kernel(**kernel, types);
    if (report_.failed() || specialisation == nullptr) return report_.take();
    CudaSource result;
    result.text = emit(*specialisation);
    result.entry = unit_.function_names.at(specialisation);
    options(**kernel, result.options);
    result.log = report_.take();
    return result;
  }

  Report& report() { return report_; }
  Names& names() { return names_; }

 private:
  std::string kernel_names() {
    std::string text;
    for (const Declaration* kernel : kernels())
      text += (text.empty() ? "" : ", ") + std::string(kernel->name);
    return text;
  }

  Expected<Declaration*> choose(const std::string& entry) {
    const std::vector<Declaration*> all = kernels();
    const std::string& file = source_.file_name();
    if (all.empty()) return without_kernel(entry);
    if (entry.empty()) {
      if (all.size() == 1) return all.front();
      return failure(file, "kernel-choice",
                     fmt::format("{} has {} kernels, and none was named", file, all.size()),
                     fmt::format("it has {}; name one in StageOptions::kernel", kernel_names()));
    }
    for (Declaration* kernel : all)
      if (kernel->name == entry) return kernel;
    for (const HiddenKernel& hidden : names_.hidden_kernels())
      if (hidden.name == entry) return without_kernel(entry);
    const Declaration* other = names_.find(entry);
    std::string hint = fmt::format("it has {}; choose one of these", kernel_names());
    if (other != nullptr)
      hint = other->role == Role::device
                 ? fmt::format("'{}' is a device function; kernels have @cuda.jit without device=True", entry)
                 : fmt::format("'{}' is a function of the host program; decorate it with @cuda.jit", entry);
    return failure(file, "unknown-kernel", fmt::format("{} has no kernel '{}'", file, entry), hint);
  }

  /// Returns the error for a file that has no kernel of that name at its level, or no kernel at all. Lists
  /// those inside functions.
  Diagnostic without_kernel(const std::string& entry) {
    for (const HiddenKernel& hidden : names_.hidden_kernels()) {
      if (!entry.empty() && hidden.name != entry) continue;
      names_.report().error(
          hidden.place, "unknown-kernel",
          hidden.in_function
              ? fmt::format("kernel '{}' stands inside a function: it exists only once Python runs that",
                            hidden.name)
              : fmt::format("kernel '{}' stands in a block that importing the file does not run",
                            hidden.name),
          hidden.in_function
              ? "define it at the file's own level; what it takes from the function becomes an argument"
              : "define it outside of the block");
    }
    Diagnostics said = names_.report().take();
    if (!said.empty()) return said.front();
    const std::string& file = source_.file_name();
    return failure(file, "unknown-kernel", fmt::format("{} has no kernel", file),
                   "a kernel is a function with @cuda.jit above it");
  }

  bool choose_types(const Declaration& kernel, const Function& function, const std::string& signature,
                    std::vector<Type>& types) {
    const std::size_t count = function.parameters.size();
    if (kernel.broken) return !report_.failed();
    SignatureTypes given;
    if (!signature.empty() || (kernel.signatures.empty() && count == 0)) {
      if (!names_.read_signature_text(signature, "the signature", kernel.place, given)) return false;
    } else if (kernel.signatures.empty()) {
      report_.error(kernel.place, "signature",
                    fmt::format("'{}' is specialised on its argument types, and none are given", kernel.name),
                    "give them as a signature, \"float32[::1], int32\", or in the decorator: "
                    "@cuda.jit(\"void(float32[::1], int32)\")");
      return false;
    } else {
      given = kernel.signatures.front();
    }
    if (given.result != nullptr && given.result != types_.none)
      report_.error(kernel.place, "signature", "a kernel returns void", "write void(...)");
    if (given.parameters.size() == 1 && given.parameters[0] == types_.none) given.parameters.clear();
    if (given.parameters.size() != count)
      report_.error(kernel.place, "signature",
                    fmt::format("'{}' takes {} argument{}, and the signature has {}", kernel.name, count,
                                count == 1 ? "" : "s", given.parameters.size()),
                    "give one type for each parameter");
    if (!signature.empty() && !kernel.signatures.empty()) return fit(kernel, given, types);
    types = std::move(given.parameters);
    return !report_.failed();
  }

  /// If the decorator gives signatures, converts arguments to the first one that accepts them.
  bool fit(const Declaration& kernel, const SignatureTypes& given, std::vector<Type>& types) {
    for (const bool exact : {true, false})
      for (const SignatureTypes& declared : kernel.signatures) {
        bool good = declared.parameters.size() == given.parameters.size();
        for (std::size_t i = 0; good && i < given.parameters.size(); ++i)
          good = exact ? given.parameters[i] == declared.parameters[i]
                       : converts(given.parameters[i], declared.parameters[i]);
        if (!good) continue;
        types = declared.parameters;
        return !report_.failed();
      }
    std::string wanted, list;
    for (const Type type : kernel.signatures.front().parameters)
      wanted += (wanted.empty() ? "" : ", ") + text_of(type);
    for (const Type type : given.parameters) list += (list.empty() ? "" : ", ") + text_of(type);
    report_.error(kernel.place, "signature", fmt::format("'{}' does not take ({})", kernel.name, list),
                  fmt::format("its decorator says ({})", wanted));
    return false;
  }

  void options(const Declaration& kernel, std::vector<std::string>& out) const {
    if (kernel.options.fastmath) out.emplace_back("--use_fast_math");
    if (kernel.options.lineinfo || kernel.options.debug) out.emplace_back("-lineinfo");
    if (kernel.options.max_registers > 0)
      out.push_back(fmt::format("--maxrregcount={}", kernel.options.max_registers));
  }

  /// Gives every specialisation a unique name: the first one gets the author's.
  void name_functions() {
    std::vector<std::string> taken;
    for (const Specialisation* specialisation : program_.specialisations()) {
      const std::string plain = cpp_name(specialisation->declaration->name);
      std::string name = plain;
      for (int number = 2; std::find(taken.begin(), taken.end(), name) != taken.end(); ++number)
        name = fmt::format("{}_{}", plain, number);
      taken.push_back(name);
      unit_.function_names[specialisation] = name;
    }
  }

  std::string emit(const Specialisation& kernel) {
    unit_.source = &source_;
    unit_.types = &types_;
    unit_.names = &names_;
    unit_.debug = kernel.declaration->options.debug;
    name_functions();
    std::vector<std::vector<Line>> functions;
    CppText prototypes;
    for (const Specialisation* specialisation : program_.specialisations()) {
      Emitter emitter(unit_, *specialisation);
      if (specialisation->recursive) prototypes += emitter.header() + ";\n";
      functions.push_back(emitter.function());
    }
    const CppText head = declarations();
    Headers headers = head.headers();
    headers |= prototypes.headers();
    for (const auto& [symbol, prototype] : unit_.linked) headers |= prototype.headers();
    if (unit_.debug) headers |= DeviceHeader::debug;
    std::string body;
    for (const std::vector<Line>& function : functions) {
      body += '\n';
      append(function, body);
      for (const Line& line : function) headers |= line.text.headers();
    }
    std::string text = banner(kernel);
    for (const std::string_view header : headers.files()) text += fmt::format("#include <{}>\n", header);
    for (const std::string& file : kernel.declaration->options.links) unit_.links.insert(file);
    for (const std::string& file : unit_.links) text += fmt::format("#include \"{}\"\n", file);
    if (!head.empty()) text += "\n" + head.str();
    for (const auto& [symbol, prototype] : unit_.linked) text += prototype.str();
    if (!prototypes.empty()) text += "\n" + prototypes.str();
    return text + body;
  }

  std::string banner(const Specialisation& kernel) const {
    std::string types;
    for (const Type type : kernel.parameters) types += (types.empty() ? "" : ", ") + text_of(type);
    return fmt::format("// {}({}) of {}\n", kernel.declaration->name, types, source_.file_name());
  }

  CppText declarations() {
    CppText text;
    if (unit_.debug)
      text +=
          cpp_text("extern \"C\" __device__ char quern_failure_file[] = {};\n", quoted(source_.file_name()));
    text += records();
    for (const auto& [name, declaration] : unit_.constants) text += declaration + "\n";
    std::vector<std::string_view> seen;
    for (const Specialisation* specialisation : program_.specialisations())
      for (const auto& [id, storage] : specialisation->storages) {
        if (storage.space != Space::constant ||
            std::find(seen.begin(), seen.end(), storage.name) != seen.end())
          continue;
        seen.push_back(storage.name);
        text += constant_array_declaration(cpp_name(storage.name), *storage.values, storage.element);
      }
    return text;
  }

  /// Emits the records that the program uses; nested records come first.
  CppText records() {
    CppText text;
    std::vector<Type> seen;
    const auto visit = [&](Type type, const auto& self) -> void {
      if (type == nullptr) return;
      if (is_array(type)) return self(type->element, self);
      if (!is_record(type) || std::find(seen.begin(), seen.end(), type) != seen.end()) return;
      seen.push_back(type);
      for (const Field& field : type->fields) self(field.type, self);
      text += record(type);
    };
    for (const Specialisation* specialisation : program_.specialisations()) {
      for (const Type type : specialisation->parameters) visit(type, visit);
      for (const Type type : specialisation->types) visit(type, visit);
      for (const auto& [id, storage] : specialisation->storages) visit(storage.element, visit);
    }
    return text;
  }

  static std::uint32_t alignment_of(Type type) {
    if (is_number(type)) return std::max(size_of(type), 1u);
    std::uint32_t widest = 1;
    for (const Field& field : type->fields) widest = std::max(widest, alignment_of(field.type));
    return widest;
  }

  /// Emits a struct with the same layout: it has explicit padding, and is packed if fields are not aligned.
  static CppText record(Type type) {
    bool aligned = true;
    for (const Field& field : type->fields) {
      const std::uint32_t natural = alignment_of(field.type);
      aligned = aligned && field.offset % natural == 0 && type->size_bytes % natural == 0;
    }
    CppText text = cpp_text("struct {}{} {{\n", aligned ? "" : "__attribute__((packed)) ", type_text(type));
    std::uint32_t at = 0;
    for (const Field& field : type->fields) {
      if (field.offset > at) text += cpp_text("  char padding{}[{}];\n", at, field.offset - at);
      std::string extents;
      for (const std::int64_t extent : field.shape) extents += fmt::format("[{}]", extent);
      text += cpp_text("  {} {}{};\n", type_text(field.type), cpp_name(field.name), extents);
      at = field.offset + size_of(field);
    }
    if (type->size_bytes > at) text += cpp_text("  char padding{}[{}];\n", at, type->size_bytes - at);
    return text + "};\n";
  }

  /// Appends the lines such that NVRTC's line numbers are those of the author: with blank lines for short
  /// gaps, and #line for others.
  void append(const std::vector<Line>& lines, std::string& text) const {
    std::uint32_t next = 0;  // number of the next line
    std::size_t width = 0;   // width of the previous line
    for (std::size_t i = 0; i < lines.size(); ++i) {
      const Line& line = lines[i];
      // Statements from one line of the author's source share a line if they fit.
      const bool joins = i > 0 && line.source != 0 && line.is_statement &&
                         line.source == lines[i - 1].source && lines[i - 1].is_statement &&
                         line.depth == lines[i - 1].depth;
      if (joins && width + 1 + line.indent() + line.text.size() <= kWidestLine) {
        text += ' ' + line.text.str();
        width += 1 + line.text.size();
        continue;
      }
      if (i > 0) text += '\n';
      if (line.source != 0 && line.source != next) {
        if (next != 0 && line.source > next && line.source - next <= kMostBlankLines)
          text.append(line.source - next, '\n');
        else if (next == 0)
          text += fmt::format("#line {} \"{}\"\n", line.source, escaped(source_.file_name()));
        else
          text += fmt::format("#line {}\n", line.source);
        next = line.source;
      }
      text += std::string(line.indent(), ' ') + line.text.str();
      width = line.indent() + line.text.size();
      ++next;
    }
    text += '\n';
  }

  static std::string escaped(std::string_view name) {
    std::string text;
    for (const char c : name) {
      if (c == '"' || c == '\\') text += '\\';
      text += c == '\n' ? ' ' : c;
    }
    return text;
  }

  /// A line may end in a carriage return alone.
  static std::string with_newlines(std::string text) {
    for (std::size_t at = text.find('\r'); at != std::string::npos; at = text.find('\r', at + 1))
      if (at + 1 == text.size() || text[at + 1] != '\n') text[at] = '\n';
    return text;
  }

  std::string text_;
  SourceText source_;
  TypeTable types_;
  Report report_;
  Names names_;
  Program program_;
  Unit unit_;
};

/// The first byte that is not part of a valid UTF-8 character; npos if there is none.
std::size_t first_beyond_utf8(std::string_view text) {
  const auto byte = [&](std::size_t at) {
    return at < text.size() ? static_cast<unsigned char>(text[at]) : 0u;
  };
  for (std::size_t at = 0; at < text.size();) {
    const unsigned first = byte(at);
    const std::size_t more = first < 0x80                    ? 0
                             : first >= 0xC2 && first < 0xE0 ? 1
                             : (first & 0xF0) == 0xE0        ? 2
                                                             : 3;
    if (first >= 0x80 && (first < 0xC2 || first > 0xF4)) return at;
    for (std::size_t i = 1; i <= more; ++i)
      if ((byte(at + i) & 0xC0) != 0x80) return at;
    const unsigned second = byte(at + 1);
    if ((first == 0xE0 && second < 0xA0) || (first == 0xED && second > 0x9F) ||
        (first == 0xF0 && second < 0x90) || (first == 0xF4 && second > 0x8F))
      return at;
    at += more + 1;
  }
  return std::string_view::npos;
}

/// True if one of the first two lines has a comment such as "# -*- coding: latin-1 -*-" that declares an
/// encoding other than UTF-8.
bool names_coding(std::string_view text) {
  for (int line = 0; line < 2; ++line) {
    const std::string_view each = text.substr(0, text.find_first_of("\r\n"));
    const std::size_t comment = each.find_first_not_of(" \t\f"), found = each.find("coding");
    if (comment != std::string_view::npos && each[comment] != '#') return false;
    if (comment != std::string_view::npos && found != std::string_view::npos && found + 6 < each.size() &&
        (each[found + 6] == ':' || each[found + 6] == '=')) {
      std::string_view name = each.substr(found + 7);
      name.remove_prefix(std::min(name.find_first_not_of(" \t"), name.size()));
      return !name.starts_with("utf");
    }
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  }
  return false;
}

Expected<void> check_text(const abi::KernelSource& source) {
  if (source.text.size() > kMostBytes)
    return failure(
        source.file_name, "source",
        fmt::format("{} has {} bytes; at most {} are read", source.file_name, source.text.size(), kMostBytes),
        "keep kernels in a file of their own");
  if (source.text.find('\0') != std::string::npos)
    return failure(source.file_name, "source",
                   fmt::format("{} holds a zero byte, so it is no Python source", source.file_name),
                   "check that the file is text (UTF-8)");
  const std::size_t wrong = first_beyond_utf8(source.text);
  if (wrong == std::string::npos || names_coding(source.text)) return {};
  Diagnostic diagnostic = failure(
      source.file_name, "source",
      fmt::format("byte 0x{:02x} is no UTF-8, and no line says how the file is coded (Python's SyntaxError)",
                  static_cast<unsigned char>(source.text[wrong])),
      "save the file as UTF-8, or write '# -*- coding: latin-1 -*-' as its first line");
  const std::string_view before = std::string_view(source.text).substr(0, wrong);
  diagnostic.span.line = 1 + static_cast<std::uint32_t>(std::count(before.begin(), before.end(), '\n'));
  diagnostic.span.column = static_cast<std::uint32_t>(wrong - (before.rfind('\n') + 1)) + 1;
  diagnostic.span.end_column = diagnostic.span.column + 1;
  return diagnostic;
}

}  // namespace

Expected<CudaSource> translate(const abi::KernelSource& source, const std::string& entry,
                               const std::string& signature, std::span<const abi::Constant> constants) {
  if (Expected<void> good = check_text(source); !good) return std::move(good).errors();
  return base::secluded([&] { return Translation(source, constants).run(entry, signature); });
}

namespace {

Expected<std::vector<KernelOutline>> outline_of(const abi::KernelSource& source,
                                                std::span<const abi::Constant> constants) {
  Translation translation(source, constants);
  std::vector<KernelOutline> result;
  for (Declaration* kernel : translation.kernels()) {
    KernelOutline each;
    each.name = kernel->name;
    for (const Parameter& parameter : translation.names().body_of(*kernel)->parameters)
      each.parameters.emplace_back(parameter.name);
    if (kernel->broken) {  // its launch reports the error
      result.push_back(std::move(each));
      continue;
    }
    for (const SignatureTypes& signature : kernel->signatures) {
      std::string text;
      for (const Type type : signature.parameters) text += (text.empty() ? "" : ", ") + text_of(type);
      each.signatures.push_back(std::move(text));
    }
    result.push_back(std::move(each));
  }
  if (translation.report().failed()) return translation.report().take();
  return result;
}

}  // namespace

Expected<std::vector<KernelOutline>> outline(const abi::KernelSource& source,
                                             std::span<const abi::Constant> constants) {
  if (Expected<void> good = check_text(source); !good) return std::move(good).errors();
  return base::secluded([&] { return outline_of(source, constants); });
}

}  // namespace quern::frontend
