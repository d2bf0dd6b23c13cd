// SPDX-License-Identifier: Apache-2.0
#include "command.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <cstdio>
#include <cstdlib>

#include "terminal/output.hpp"
#include "terminal/words.hpp"

template class nlohmann::basic_json<nlohmann::ordered_map>;

namespace quern::cli {
namespace {

bool use_colour() {
  const char* no_color = std::getenv("NO_COLOR");
  return isatty(STDERR_FILENO) != 0 && (no_color == nullptr || *no_color == '\0');
}

void replace_word(std::string& text, const std::string& word, const char* colour) {
  for (std::size_t at = text.find(word); at != std::string::npos; at = text.find(word, at)) {
    const std::string painted = std::string(colour) + word + "\x1b[0m";
    text.replace(at, word.size(), painted);
    at += painted.size();
  }
}

/// A hint for errors whose message does not contain one; empty for kinds whose messages always contain one.
std::string_view general_hint(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage:
      return "quern --help shows the commands, quern COMMAND --help its options and arguments";
    case ErrorCode::compile:
      return "correct the source at the place that is named first; later errors may follow from it";
    case ErrorCode::io:
      return "check the file's name and that it can be read or written";
    case ErrorCode::out_of_memory:
      return "use smaller arrays, or fewer at a time";
    case ErrorCode::device_fault:
    case ErrorCode::not_found:
    case ErrorCode::driver:
    case ErrorCode::unsupported:
    case ErrorCode::internal:
    case ErrorCode::cancelled:
      break;
  }
  return {};
}

const char* word_of(MemoryAccess access) {
  switch (access) {
    case MemoryAccess::none:
      break;
    case MemoryAccess::load:
      return "load";
    case MemoryAccess::store:
      return "store";
    case MemoryAccess::atomic:
      return "atomic";
  }
  return "";
}

/// Omits unknown facts.
Json fault_document(const DeviceFault& fault) {
  Json row = {{"kernel", fault.kernel}, {"grid", fault.grid}, {"block_dim", fault.block_dim}};
  if (fault.block) row["block"] = *fault.block;
  if (fault.thread) row["thread"] = *fault.thread;
  if (fault.threads) row["threads"] = {fault.threads->first, fault.threads->second};
  if (!fault.file.empty()) row["file"] = fault.file;
  if (fault.line != 0) row[fault.file.empty() ? "ptx_line" : "line"] = fault.line;
  if (fault.address) row["address"] = *fault.address;
  if (fault.access != MemoryAccess::none) row["access"] = word_of(fault.access);
  if (fault.access_bytes != 0) row["access_bytes"] = fault.access_bytes;
  if (!fault.space.empty()) row["space"] = fault.space;
  return row;
}

Json error_document(ErrorCode code, const std::string& message, const Error* error) {
  const Diagnostics diagnostics = error != nullptr ? error->diagnostics() : Diagnostics{};
  Json document = {{"code", to_string(code)}, {"message", message}, {"diagnostics", to_json(diagnostics)}};
  const auto* const by_driver = dynamic_cast<const DriverError*>(error);
  if (by_driver != nullptr && by_driver->fault().known())
    document["fault"] = fault_document(by_driver->fault());
  return {{"error", document}};
}

}  // namespace

std::string coloured(const std::string& message) {
  if (!use_colour()) return message;
  std::string text = message;
  replace_word(text, "error:", "\x1b[1;31m");
  replace_word(text, "warning:", "\x1b[1;35m");
  replace_word(text, "hint:", "\x1b[1;36m");
  replace_word(text, "note:", "\x1b[1m");
  return text;
}

int report(const std::exception& problem, bool json) {
  const auto* error = dynamic_cast<const Error*>(&problem);
  const ErrorCode code = error != nullptr ? error->code() : ErrorCode::internal;
  std::string message = with_command_words(problem.what());
  while (message.ends_with('\n')) message.pop_back();
  constexpr std::string_view kPrefix = "error: ";
  const bool placeless = message.starts_with(kPrefix);
  if (placeless) message.erase(0, kPrefix.size());
  if (message.find("\nhint: ") == std::string::npos && !general_hint(code).empty())
    message += fmt::format("\nhint: {}", general_hint(code));
  // Diagnostics begin with their location, followed by their kind.
  const std::string_view first = std::string_view(message).substr(0, message.find('\n'));
  const bool diagnoses = code == ErrorCode::compile || (error != nullptr && !error->diagnostics().empty());
  const bool says_error =
      !placeless && ((diagnoses && first.find(": error: ") != std::string_view::npos) ||
                     (code == ErrorCode::compile && message.find("error: ") != std::string::npos));
  end_line();
  std::fprintf(stderr, "%s\n", coloured(says_error ? message : "error: " + message).c_str());
  if (json) print_json(error_document(code, message, error));
  return code == ErrorCode::usage ? kWrongUsage : kFailed;
}

void print_json(const Json& document) {
  // Texts from outside need not be UTF-8.
  print_document(document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n");
}

Json to_json(const Diagnostics& diagnostics) {
  Json rows = Json::array();
  for (const Diagnostic& diagnostic : diagnostics) {
    Json notes = Json::array();
    for (const Note& note : diagnostic.notes)
      notes.push_back({{"file", note.span.file},
                       {"line", note.span.line},
                       {"column", note.span.column},
                       {"message", note.message}});
    rows.push_back({{"file", diagnostic.span.file},
                    {"line", diagnostic.span.line},
                    {"column", diagnostic.span.column},
                    {"end_column", diagnostic.span.end_column},
                    {"severity", to_string(diagnostic.severity)},
                    {"code", diagnostic.code},
                    {"message", diagnostic.message},
                    {"notes", notes},
                    {"hint", in_command_words(diagnostic.hint)}});
  }
  return rows;
}

std::pair<std::string, std::string> split_kernel(const std::string& text) {
  // The name of a folder may contain "::". The file's suffix comes before the kernel's name.
  for (const char* suffix : {".cu::", ".ptx::", ".py::"})
    if (const std::size_t at = text.find(suffix); at != std::string::npos) {
      const std::size_t end = at + std::string_view(suffix).size();
      return {text.substr(0, end - 2), text.substr(end)};
    }
  const std::size_t at = text.find("::");
  if (at == std::string::npos) return {text, ""};
  return {text.substr(0, at), text.substr(at + 2)};
}

void fail_without_device() {
  static_cast<void>(Session("auto"));  // reports the error of each device
  throw Error(ErrorCode::not_found, "no device is listed\nhint: `quern doctor` says what is missing");
}

}  // namespace quern::cli
