// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/lower.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "cpu/abi/limits.hpp"
#include "cpu/lower/instructions/rows.hpp"
#include "cpu/lower/translate/program.hpp"

namespace quern::cpu::lower {
namespace {

Diagnostic no_such_kernel(const ptx::Module& module, std::string_view kernel, std::string_view file_name) {
  Diagnostic diagnostic{.code = "ptx-unsupported", .span = {.file = std::string(file_name)}};
  diagnostic.message = fmt::format("there is no kernel '{}' with a body in this module", kernel);
  std::string names;
  for (const ptx::Function& function : module.functions) {
    if (function.entry && function.defined) names += (names.empty() ? "" : ", ") + function.name;
  }
  diagnostic.hint = names.empty() ? "the module has no kernels" : "its kernels are: " + names;
  return diagnostic;
}

/// Returns the error for a kernel that needs more memory than available, with the location of the kernel.
Diagnostic too_much(const ptx::Function& entry, const ir::Function& kernel, std::string_view file_name,
                    std::string_view code, std::string message, std::string_view hint) {
  Diagnostic diagnostic{
      .code = std::string(code),
      .span = {.file = std::string(file_name), .line = entry.position.line, .column = entry.position.column},
      .message = std::move(message),
      .hint = std::string(hint)};
  if (const auto known =
          std::find_if(kernel.locations.begin(), kernel.locations.end(),
                       [](const ir::Location& at) { return at.line != 0 && !at.file.empty(); });
      known != kernel.locations.end()) {
    const ir::Location& first = ir::author_location(kernel.locations, *known);
    diagnostic.span = {.file = first.file, .line = first.line, .column = first.column};
  }
  return diagnostic;
}

Diagnostic too_much_shared(const ptx::Function& entry, const ir::Function& kernel, std::uint64_t bytes,
                           std::string_view file_name) {
  return too_much(
      entry, kernel, file_name, "shared-too-large",
      fmt::format("kernel '{}' declares {} bytes of shared memory ({:#x}); a block may have {} ({:#x})",
                  entry.name, bytes, bytes, ir::kMaxStaticSharedBytes, ir::kMaxStaticSharedBytes),
      "make an array 'extern __shared__' and give its size at the launch, where a kernel may have more");
}

/// Returns the error for local memory, with the variables of the kernel and of the functions that it calls.
Diagnostic too_much_local(const ptx::Function& entry, const ir::Function& kernel,
                          std::string_view file_name) {
  return too_much(
      entry, kernel, file_name, "local-too-large",
      fmt::format("the local memory of kernel '{}' is larger than the {} bytes ({:#x}) that a "
                  "thread may have",
                  entry.name, ir::kMaxThreadLocalBytes, ir::kMaxThreadLocalBytes),
      "make the threads' local arrays smaller, or keep them in device memory, a part for each thread");
}

/// Returns an error if the kernel must run in clusters of several thread blocks.
std::optional<Diagnostic> find_cluster(const ptx::Function& entry, std::string_view file_name) {
  constexpr std::string_view kDirective = ".reqnctapercluster";
  for (const std::string& directive : entry.performance.others) {
    if (!directive.starts_with(kDirective)) continue;
    std::uint64_t blocks = 1;
    std::uint64_t extent = 0;
    for (const char c : directive.substr(kDirective.size()) + ",") {
      if (c >= '0' && c <= '9')
        extent = std::min<std::uint64_t>(extent * 10 + static_cast<unsigned>(c - '0'), 1u << 16);
      if (c == ',') blocks *= std::max<std::uint64_t>(std::exchange(extent, 0), 1);
    }
    if (blocks == 1) continue;
    return Diagnostic{
        .code = "ptx-unsupported",
        .span = {.file = std::string(file_name),
                 .line = entry.position.line,
                 .column = entry.position.column},
        .message =
            fmt::format("kernel '{}' needs clusters of {} thread blocks, which the CPU device does not have",
                        entry.name, blocks),
        .hint = "compile it without cluster dimensions"};
  }
  return std::nullopt;
}

/// Returns an error if a function passes a structure by value that is too large for the memory of a thread.
std::optional<Diagnostic> find_large_param(const ptx::Module& module, std::string_view file_name) {
  for (const ptx::Function& function : module.functions)
    for (const std::vector<ptx::Variable>* list :
         {&function.parameters, &function.returns, &function.variables})
      for (const ptx::Variable& variable : *list)
        if (variable.space == ptx::Space::param && variable.size_bytes() > ir::kMaxThreadLocalBytes)
          return Diagnostic{
              .code = "local-too-large",
              .span = {.file = std::string(file_name),
                       .line = variable.position.line,
                       .column = variable.position.column},
              .message = fmt::format("parameter {} of {} bytes is larger than the {} bytes of local memory "
                                     "that a thread may have",
                                     variable.name, variable.size_bytes(), ir::kMaxThreadLocalBytes),
              .hint = "pass a pointer to it"};
  return std::nullopt;
}

}  // namespace

Expected<void> check_parameters(const ptx::Module& module, std::string_view file_name) {
  if (std::optional<Diagnostic> large = find_large_param(module, file_name)) return *std::move(large);
  return {};
}

Expected<const ptx::Function*> find_kernel(const ptx::Module& module, std::string_view kernel,
                                           std::string_view file_name) {
  const ptx::Function* entry = module.find_function(kernel);
  if (entry == nullptr || !entry->entry || !entry->defined) return no_such_kernel(module, kernel, file_name);
  return entry;
}

Expected<Translation> translate(const ptx::Module& module, const ptx::Function& entry,
                                std::string_view file_name, CallForm calls) {
  if (module.address_size != 64) {
    return Diagnostic{
        .code = "ptx-unsupported",
        .span = {.file = std::string(file_name)},
        .message = fmt::format("kernel '{}' cannot run on the CPU device: its module has 32-bit addresses",
                               entry.name),
        .hint = "compile it with '.address_size 64'"};
  }
  if (std::optional<Diagnostic> cluster = find_cluster(entry, file_name)) return *std::move(cluster);
  Program program(module, static_cast<std::uint32_t>(&entry - module.functions.data()));
  Translation result;
  Diagnostics errors;
  // The list grows during the loop if functions are not inlined: translating a function finds the recursive
  // functions that it calls.
  for (std::size_t i = 0; i < program.functions().size(); ++i) {
    FunctionBuilder builder;
    Translator(program, builder, file_name, errors, &row_of, calls).translate(program.functions()[i]);
    if (!errors.empty()) continue;
    if (builder.function.local_bytes > ir::kMaxThreadLocalBytes)
      return too_much_local(entry, builder.function, file_name);
    result.builders.push_back(std::move(builder));
  }
  if (!errors.empty()) return errors;
  if (program.declared_shared_bytes > ir::kMaxStaticSharedBytes)
    return too_much_shared(entry, result.builders[0].function, program.declared_shared_bytes, file_name);
  result.symbols = std::move(program.symbols);
  result.static_shared_bytes = program.static_shared_bytes;
  return result;
}

ir::Module collect_functions(Translation translation) {
  ir::Module module;
  for (FunctionBuilder& builder : translation.builders)
    module.functions.push_back(std::move(builder.function));
  module.symbols = std::move(translation.symbols);
  module.static_shared_bytes = translation.static_shared_bytes;
  return module;
}

}  // namespace quern::cpu::lower
