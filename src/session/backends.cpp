// SPDX-License-Identifier: Apache-2.0
#include "session/backends.hpp"

#include <dlfcn.h>
#include <fmt/format.h>

#include <charconv>
#include <filesystem>
#include <system_error>

#include "base/env.hpp"
#include "session/gate.hpp"

namespace quern::session {
namespace {

constexpr const char* kDeviceHint =
    "devices are auto, cpu, cuda and cuda:N; `quern devices` lists those of this machine";

/// A driver's threads and handlers may outlive every object of ours, so its code stays mapped.
void keep_loaded(const std::string& path) {
  static_cast<void>(dlopen(path.c_str(), RTLD_NOW | RTLD_NOLOAD | RTLD_NODELETE));
}

Expected<std::shared_ptr<const runtime::Driver>> start(runtime::Driver driver, const char* what) {
  const std::string path = driver.path;
  try {
    std::shared_ptr<const runtime::Driver> started = runtime::initialise(std::move(driver));
    if (runtime::device_count(*started) > 0) return started;
  } catch (const Error& error) {
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

/// What one attempt of several came to, as a note.
void add_notes(Diagnostic& diagnostic, const char* what, const Diagnostics& errors) {
  for (const Diagnostic& error : errors)
    diagnostic.notes.push_back({{}, fmt::format("{}: {}", what, error.message)});
}

struct Collected {
  Diagnostics diagnostics;
  std::string text;
  std::string file_name;
};

/// What the device calls `named`, in words of who loaded `loaded`: the device sees a text without a name, and
/// in it the paths that NVRTC made of names.
std::string shown_file(const std::string& named, const std::string& loaded) {
  namespace fs = std::filesystem;
  const fs::path extension = fs::path(loaded).extension();
  const bool is_source = extension == ".cu" || extension == ".py";
  if (named.empty() || named.front() == '<') return is_source ? "<generated PTX>" : loaded;
  std::error_code unknown;  // of a path that is none, for instance
  const bool same = fs::weakly_canonical(named, unknown) == fs::weakly_canonical(loaded, unknown);
  return same && !unknown ? loaded : named;
}

void collect_diagnostic(void* user, const char* code, const char* file, std::uint32_t line,
                        std::uint32_t column, const char* message, const char* source_line,
                        const char* hint) {
  auto& collected = *static_cast<Collected*>(user);
  const auto text = [](const char* value) { return std::string(value != nullptr ? value : ""); };
  Diagnostic diagnostic = make_diagnostic(text(code), text(message), text(hint));
  diagnostic.span = {text(file), line, column, 0};
  if (!collected.file_name.empty())
    diagnostic.span.file = shown_file(diagnostic.span.file, collected.file_name);
  diagnostic.source_line = text(source_line);
  collected.diagnostics.push_back(std::move(diagnostic));
}

void collect_text(void* user, const char* text, std::size_t size) {
  static_cast<Collected*>(user)->text.append(text, size);
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
        choice, cuda_errors.front().message,
        hint.empty() ? "use --device cpu or QUERN_DEVICE=cpu to run on the CPU device" : hint);
  }
  Expected<std::shared_ptr<const runtime::Driver>> cpu = open_cpu_driver();
  if (cpu) return open_ordinal(choice, *cpu);
  if (choice.kind == DeviceKind::cpu)
    return failed_choice(choice, cpu.errors().front().message, cpu.errors().front().hint);
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

Diagnostics check_ptx(const QuernCpuPlugin& plugin, std::string_view ptx, const std::string& file_name) {
  Collected collected;
  collected.file_name = file_name;
  plugin.check_ptx(ptx.data(), ptx.size(), &collect_diagnostic, &collected);
  return std::move(collected.diagnostics);
}

Expected<std::string> plugin_stage(const QuernCpuPlugin& plugin, const std::string& ptx,
                                   const std::string& file_name, const std::string& kernel,
                                   const std::uint32_t (&block)[3], const std::string& stage) {
  Collected collected;
  collected.file_name = file_name;
  if (plugin.stage_text(ptx.data(), ptx.size(), kernel.c_str(), block, stage.c_str(), &collect_text,
                        &collect_diagnostic, &collected) == 0)
    return std::move(collected.text);
  if (collected.diagnostics.empty())
    collected.diagnostics.push_back(make_diagnostic(
        "stage-missing", fmt::format("the CPU device gave no {} text of kernel {}", stage, kernel),
        "try another stage"));
  return std::move(collected.diagnostics);
}

}  // namespace quern::session
