// SPDX-License-Identifier: Apache-2.0
#include "session/backends.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <system_error>

#include "base/columns.hpp"
#include "base/dynamic_library.hpp"
#include "base/env.hpp"
#include "compile/ptx/ptx_author.hpp"
#include "compile/source/line_map.hpp"
#include "runtime/context/context.hpp"
#include "session/gate.hpp"

namespace quern::session {
namespace {

constexpr const char* kDeviceHint =
    "devices are auto, cpu, cuda and cuda:N; `quern devices` lists those of this machine";

/// A driver's threads and handlers may outlive every object of ours, so its code stays mapped.
void keep_loaded(const std::string& path) {
  static_cast<void>(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

void take_start_error(void* user, const char* code, const char*, std::uint32_t, std::uint32_t,
                      const char* message, const char*, const char* hint) {
  static_cast<Diagnostics*>(user)->push_back(make_diagnostic(code, message, hint));
}

Expected<std::shared_ptr<const runtime::Driver>> start(runtime::Driver driver, const char* what) {
  const std::string path = driver.path;
  const QuernCpuPlugin* const plugin = driver.plugin;
  try {
    std::shared_ptr<const runtime::Driver> started = runtime::initialise(std::move(driver));
    if (runtime::device_count(*started) > 0) return started;
  } catch (const Error& error) {
    Diagnostics reasons;  // more specific than a CUresult
    if (plugin != nullptr && error.code() == ErrorCode::out_of_memory)
      plugin->start_errors(&take_start_error, &reasons);
    if (!reasons.empty()) return reasons;
    return make_diagnostic("device-missing", error.what(), "");
  }
  return make_diagnostic("device-missing", fmt::format("{} ({}) has no device", what, path),
                         "check CUDA_VISIBLE_DEVICES and the driver");
}

Diagnostic failed_choice(const DeviceChoice& choice, const std::string& reason, std::string hint) {
  const std::string from = choice.origin.empty() ? std::string() : fmt::format(" ({})", choice.origin);
  return make_diagnostic("device-missing",
                         fmt::format("cannot open device '{}'{}: {}", choice.text, from, reason),
                         std::move(hint));
}

/// The same for the reasons why the driver could not be opened: if files cannot be opened, that does not mean
/// that a device is missing.
Diagnostic failed_choice(const DeviceChoice& choice, const Diagnostic& why, const std::string& hint) {
  Diagnostic failed = failed_choice(choice, why.message, hint);
  if (why.code == base::kTooManyFiles) failed.code = why.code;
  return failed;
}

Expected<Device> open_ordinal(const DeviceChoice& choice,
                              const std::shared_ptr<const runtime::Driver>& driver) {
  try {
    const int count = runtime::device_count(*driver);
    if (choice.ordinal < count) return runtime::open_device(driver, choice.ordinal);
    return failed_choice(choice,
                         fmt::format("there {} {} such device{}, numbered from 0", count == 1 ? "is" : "are",
                                     count, count == 1 ? "" : "s"),
                         kDeviceHint);
  } catch (const Error& error) {
    return failed_choice(choice, error.what(), kDeviceHint);
  }
}

/// Adds the errors of one of several attempts as notes.
void add_notes(Diagnostic& diagnostic, const char* what, const Diagnostics& errors) {
  for (const Diagnostic& error : errors)
    diagnostic.notes.push_back({{}, fmt::format("{}: {}", what, error.message)});
}

/// The CPU device's name for the text that it is given.
constexpr std::string_view kUnnamed = "<ptx>";
/// Characters of a word of PTX beside letters and digits.
constexpr std::string_view kPtxWords = ".%$:";

struct Collected {
  std::string_view ptx;
  const abi::KernelSource& source;
  Diagnostics diagnostics = {};
  std::string text = {};
  std::vector<PassTime>* times = nullptr;
};

bool is_generated(const abi::KernelSource& source) { return source.language != abi::Language::ptx; }

/// The device gets a text without a name.
std::string shown_file(const std::string& named, const abi::KernelSource& source) {
  if (!named.empty() && named != kUnnamed) return named;
  return is_generated(source) ? "<generated PTX>" : source.file_name;
}

/// The line of the source that has this number in messages. Directives of CUDA C++ are comments in the other
/// languages.
std::optional<std::string_view> line_of(const Span& span, const abi::KernelSource& source) {
  const bool directives = source.language == abi::Language::cuda;
  const compile::LineMap map(source.text, source.file_name, directives);
  return map.text_of(span.file, span.line);
}

/// Notes are transported behind the message.
std::vector<Note> take_notes(std::string& message) {
  constexpr std::string_view kNote = "\nnote: ";
  std::vector<Note> notes;
  for (std::size_t at = message.rfind(kNote); at != std::string::npos; at = message.rfind(kNote)) {
    notes.insert(notes.begin(), {{}, message.substr(at + kNote.size())});
    message.resize(at);
  }
  return notes;
}

/// Shows the author of generated PTX the source line that it was made from.
void show_author(Diagnostic& diagnostic, const Collected& collected) {
  const std::uint32_t ptx_line = diagnostic.span.line;
  const std::optional<Span> place = compile::author_place(collected.ptx, ptx_line);
  if (!place) {
    diagnostic.notes.push_back(
        {{},
         fmt::format("the PTX does not say which line of {} this was made of", collected.source.file_name)});
    return;
  }
  std::string_view line = diagnostic.source_line;
  line.remove_prefix(std::min(line.find_first_not_of(" \t"), line.size()));
  diagnostic.notes.push_back({{},
                              fmt::format("it is line {} of the PTX that was made of it{}{}", ptx_line,
                                          line.empty() ? "" : ": ", line)});
  diagnostic.span = *place;
  diagnostic.source_line.clear();
}

void collect_diagnostic(void* user, const char* code, const char* file, std::uint32_t line,
                        std::uint32_t column, const char* message, const char* source_line,
                        const char* hint) {
  auto& collected = *static_cast<Collected*>(user);
  const auto text = [](const char* value) { return std::string(value != nullptr ? value : ""); };
  Diagnostic diagnostic = make_diagnostic(text(code), text(message), text(hint));
  diagnostic.span = {text(file), line, column, 0};
  diagnostic.source_line = text(source_line);
  diagnostic.notes = take_notes(diagnostic.message);
  const bool of_ptx = diagnostic.span.file == kUnnamed;
  if (of_ptx && line != 0 && is_generated(collected.source)) show_author(diagnostic, collected);
  // For Kernel Python the locations hold columns of the CUDA C++ that was made of it.
  if (collected.source.language == abi::Language::python) diagnostic.span.column = 0;
  // Wrong usage is no matter of the file.
  if (diagnostic.code != "usage") diagnostic.span.file = shown_file(diagnostic.span.file, collected.source);
  if (diagnostic.source_line.empty())
    diagnostic.source_line = line_of(diagnostic.span, collected.source).value_or("");
  base::cover_word(diagnostic.span, diagnostic.source_line, is_generated(collected.source) ? "" : kPtxWords);
  collected.diagnostics.push_back(std::move(diagnostic));
}

void collect_text(void* user, const char* text, std::size_t size) {
  static_cast<Collected*>(user)->text.append(text, size);
}

void collect_time(void* user, const char* name, std::uint32_t runs, std::uint64_t nanoseconds) {
  static_cast<Collected*>(user)->times->push_back(
      {name, runs, std::chrono::nanoseconds(static_cast<std::int64_t>(nanoseconds))});
}

}  // namespace

Expected<DeviceChoice> read_device_choice(const std::string& text) {
  DeviceChoice choice;
  choice.text = text;
  if (choice.text.empty())
    if (const std::optional<std::string> named = base::env("QUERN_DEVICE")) {
      choice.text = *named;
      choice.origin = "from QUERN_DEVICE";
    }
  if (choice.text.empty() || choice.text == "auto") {
    choice.text = "auto";
    return choice;
  }
  const std::size_t colon = choice.text.find(':');
  const std::string kind = choice.text.substr(0, colon);
  bool good = kind == "cpu" || kind == "cuda";
  if (colon != std::string::npos) {
    const char* begin = choice.text.c_str() + colon + 1;
    const char* end = choice.text.c_str() + choice.text.size();
    const auto [stop, error] = std::from_chars(begin, end, choice.ordinal);
    good = good && error == std::errc() && stop == end && choice.ordinal >= 0;
  }
  if (!good)
    return make_diagnostic(
        "device-name",
        fmt::format("'{}'{} names no device", choice.text, choice.origin.empty() ? "" : " " + choice.origin),
        kDeviceHint);
  choice.kind = kind == "cpu" ? DeviceKind::cpu : DeviceKind::cuda;
  return choice;
}

Expected<std::shared_ptr<const runtime::Driver>> open_cuda_driver() {
  Expected<driver::LoadedDriver> loaded = driver::load_libcuda();
  if (!loaded) return std::move(loaded).errors();
  keep_loaded(loaded->library.path());
  return start({loaded->table, DeviceKind::cuda, loaded->library.path(), 0, nullptr}, "the CUDA driver");
}

Expected<std::shared_ptr<const runtime::Driver>> open_cpu_driver() {
  Expected<driver::LoadedPlugin> loaded = driver::load_cpu_plugin();
  if (!loaded) return std::move(loaded).errors();
  keep_loaded(loaded->library.path());
  loaded->plugin->keep_host_memory();
  loaded->plugin->set_generate_sink(&runtime::tell_generation);
  return start({loaded->table, DeviceKind::cpu, loaded->library.path(), 0, loaded->plugin}, "the CPU device");
}

Expected<Device> choose_device(const DeviceChoice& choice) {
  Diagnostics cuda_errors;
  if (choice.kind != DeviceKind::cpu) {
    Expected<std::shared_ptr<const runtime::Driver>> cuda = open_cuda_driver();
    if (cuda) return open_ordinal(choice, *cuda);
    cuda_errors = std::move(cuda).errors();
  }
  if (choice.kind == DeviceKind::cuda) {
    const std::string& hint = cuda_errors.front().hint;
    return failed_choice(
        choice, cuda_errors.front(),
        hint.empty() ? "open Session(\"cpu\") or set QUERN_DEVICE=cpu to run on the CPU device" : hint);
  }
  Expected<std::shared_ptr<const runtime::Driver>> cpu = open_cpu_driver();
  if (cpu) return open_ordinal(choice, *cpu);
  if (choice.kind == DeviceKind::cpu)
    return failed_choice(choice, cpu.errors().front(), cpu.errors().front().hint);
  Diagnostic nothing =
      failed_choice(choice, "there is neither a CUDA device nor the CPU device", cpu.errors().front().hint);
  add_notes(nothing, "CUDA", cuda_errors);
  add_notes(nothing, "CPU device", cpu.errors());
  return nothing;
}

Expected<const QuernCpuPlugin*> open_plugin() {
  Expected<driver::LoadedPlugin> loaded = driver::load_cpu_plugin();
  if (!loaded) return std::move(loaded).errors();
  keep_loaded(loaded->library.path());
  return loaded->plugin;
}

Diagnostics check_ptx(const QuernCpuPlugin& plugin, std::string_view ptx, const abi::KernelSource& source) {
  Collected collected{.ptx = ptx, .source = source};
  plugin.check_ptx(ptx.data(), ptx.size(), &collect_diagnostic, &collected);
  return std::move(collected.diagnostics);
}

Expected<std::string> plugin_stage(const QuernCpuPlugin& plugin, const std::string& ptx,
                                   const abi::KernelSource& source, const std::string& kernel,
                                   const std::uint32_t (&block)[3], const std::string& stage,
                                   std::vector<PassTime>* times) {
  Collected collected{.ptx = ptx, .source = source, .times = times};
  if (plugin.timed_stage_text(ptx.data(), ptx.size(), kernel.c_str(), block, stage.c_str(), &collect_text,
                              times != nullptr ? &collect_time : nullptr, &collect_diagnostic,
                              &collected) == 0)
    return std::move(collected.text);
  if (collected.diagnostics.empty())
    collected.diagnostics.push_back(make_diagnostic(
        "stage-missing", fmt::format("the CPU device gave no {} text of kernel {}", stage, kernel),
        "try another stage"));
  return std::move(collected.diagnostics);
}

}  // namespace quern::session
