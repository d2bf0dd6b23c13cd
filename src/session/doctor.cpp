// SPDX-License-Identifier: Apache-2.0
#include "quern/doctor.hpp"

#include <fmt/format.h>

#include "base/env.hpp"
#include "cache/disk_store.hpp"
#include "cache/store_folder.hpp"
#include "compile/compiler.hpp"
#include "session/backends.hpp"

namespace quern {
namespace session {
namespace {

struct VariableRow {
  const char* name;
  const char* meaning;
};
constexpr VariableRow kVariables[] = {
    {"QUERN_DEVICE", "the device to use: auto, cpu, cuda or cuda:N"},
    {"QUERN_CPU_PLUGIN", "the CPU device's library (libquern-cpu.so)"},
    {"QUERN_LIBCUDA", "the CUDA driver's library, instead of the system's libcuda.so.1"},
    {"QUERN_CPU_WORKERS", "threads of the CPU device; default: the process's CPU affinity"},
    {"QUERN_CPU_COMPUTE_CAPABILITY", "what the CPU device reports, 7.5 to 12.0 as in 9.0; default 8.9"},
    {"QUERN_CPU_TIMEOUT", "seconds after which the CPU device ends a kernel; default: never"},
    {"QUERN_CPU_MEMORY", "memory of the CPU device, as in 512M or 4G"},
    {"QUERN_CPU_ADDRESSES",
     "auto, wide or compact: how many addresses the CPU device reserves; compact checks more"},
    {"QUERN_CPU_DEVICES", "how many CPU devices there are, 1 to 16; default 1"},
    {"QUERN_CPU_ISA", "baseline, avx2 or avx512: the most that the CPU device uses of the processor"},
    {"QUERN_EXEC", "1: the process is run by quern exec, which sets this"},
    {"NUMBA_CUDA_DRIVER", "Numba's name of the driver's library; quern exec sets it where it is set"},
    {"QUERN_CALL_COUNTS", "the file in which quern exec counts the driver calls of a program"},
    {"QUERN_CPU_DISPATCH", "1: the CPU device runs every kernel through its dispatcher, for its tests"},
    {"QUERN_CPU_TIER", "the machine code that the CPU device makes: quick code first (auto), good or quick"},
    {"QUERN_NVRTC", "the NVRTC library to use, and no other"},
    {"QUERN_CACHE", "0: no compile cache on disk; ro: it is only read; default 1"},
    {"QUERN_CACHE_DIR", "folder of the compile cache; default: quern in XDG_CACHE_HOME or ~/.cache"},
    {"QUERN_CACHE_MAXSIZE", "bound of the compile cache, as in 512M or 4G; default 1G"},
    {"QUERN_CACHE_BUNDLES", "bundles of compiled kernels, separated by colons"},
    {"QUERN_CACHE_BUNDLE_KEY", "a file with the keys that bundles must be sealed with"},
    {"QUERN_CACHE_BUNDLE_TOOLKIT", "any: use bundles without comparing their toolkit with the one here"},
    {"XDG_CACHE_HOME", "the parent of the compile cache's folder, unless QUERN_CACHE_DIR is set"},
    {"QUERN_REMOTE", "compile servers, tried in turn: unix:PATH, http://HOST:PORT, https://HOST:PORT"},
    {"QUERN_REMOTE_ONLY", "1: this machine must not compile itself"},
    {"QUERN_REMOTE_TIMEOUT", "seconds that a compile server may take to answer; default 90"},
    {"QUERN_REMOTE_TOKEN_FILE", "a file with the token that compile servers require"},
    {"QUERN_REMOTE_CA", "PEM file of the authority of compile servers; default: the system's"},
    {"QUERN_REMOTE_CERT", "PEM file of the certificate to show to compile servers"},
    {"QUERN_REMOTE_KEY", "PEM file of that certificate's key"},
    {"QUERN_HIDE_TOOLKIT", "1: ignore installed CUDA toolkits"},
    {"QUERN_MAX_PENDING_DEALLOCS_COUNT",
     "pending releases at most; one more performs all; 0: none is pending; default 10"},
    {"QUERN_MAX_PENDING_DEALLOCS_RATIO",
     "share of the device's memory in pending releases at most; default 0.2"},
    {"QUERN_LEAK_REPORT", "1: list the resources that are live when the process ends"},
    {"QUERN_TRACK_ALLOCATIONS", "1: record for that list where each allocation was made"},
    {"NUMBA_CUDA_MAX_PENDING_DEALLOCS_COUNT", "the same, Numba's name; QUERN_... wins"},
    {"NUMBA_CUDA_MAX_PENDING_DEALLOCS_RATIO", "the same, Numba's name; QUERN_... wins"},
    {"CUDA_HOME", "where a CUDA toolkit is"},
    {"CUDA_PATH", "where a CUDA toolkit is, after CUDA_HOME"},
    {"CUDA_VISIBLE_DEVICES", "the GPUs that the CUDA driver shows"},
    {"CUDA_LAUNCH_BLOCKING", "1: each launch waits for its kernel (the CUDA driver's)"},
    {"CUDA_MODULE_LOADING",
     "EAGER: the CUDA driver loads libraries into all contexts at once; LAZY, the default: when they are "
     "needed"},
    {"CUDA_CACHE_DISABLE", "1: the CUDA driver keeps no machine code of PTX"},
    {"NO_COLOR", "set: no colour in messages"},
};

std::string joined(const std::vector<std::string>& parts, const char* separator) {
  std::string text;
  for (const std::string& part : parts) text += (text.empty() ? "" : separator) + part;
  return text;
}

std::string candidate_text(const compile::Candidate& candidate) {
  std::string text = candidate.origin;
  if (!candidate.path.empty()) text += ": " + candidate.path;
  text += fmt::format(" ({}{}{})", to_string(candidate.state), candidate.reason.empty() ? "" : ": ",
                      candidate.reason);
  return text;
}

Finding missing(std::string subject, const Diagnostics& errors) {
  const Diagnostic& error = errors.front();
  return {Finding::State::missing, std::move(subject), error.message, error.hint, {}};
}

bool find_cuda(std::vector<Finding>& findings) {
  const Expected<std::shared_ptr<const runtime::Driver>> driver = open_cuda_driver();
  if (!driver) {
    findings.push_back(missing("CUDA driver", driver.errors()));
    findings.back().state = Finding::State::info;  // quern runs without one
    return false;
  }
  findings.push_back({Finding::State::good,
                      "CUDA driver",
                      fmt::format("{}, CUDA {}.{}, {} device(s)", (*driver)->path, (*driver)->version / 1000,
                                  (*driver)->version % 1000 / 10, runtime::device_count(**driver)),
                      "",
                      {}});
  return true;
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::uint64_t kMany = std::uint64_t{10} << 30;
  return bytes >= kMany ? fmt::format("{} GiB", bytes >> 30) : fmt::format("{} MiB", bytes >> 20);
}

/// Adds the address space that the CPU device has reserved.
void add_reservation(std::vector<Finding>& findings, const QuernCpuPlugin& plugin) {
  std::uint64_t bytes = 0;
  int is_compact = 0;
  if (plugin.reservation(&bytes, &is_compact) != 0) return;
  findings.push_back({Finding::State::good,
                      "addresses",
                      fmt::format("{} reserved by the CPU device, {}", bytes_text(bytes),
                                  is_compact != 0 ? "compact: every address is checked" : "wide"),
                      "",
                      {}});
}

bool find_cpu_device(std::vector<Finding>& findings) {
  const Expected<std::shared_ptr<const runtime::Driver>> driver = open_cpu_driver();
  if (!driver) {
    findings.push_back(missing("CPU device", driver.errors()));
    return false;
  }
  const QuernCpuPlugin& plugin = *(*driver)->plugin;
  findings.push_back(
      {Finding::State::good,
       "CPU device",
       fmt::format("{}, {}, {} worker(s)", (*driver)->path, plugin.isa(), plugin.worker_count()),
       "",
       {}});
  add_reservation(findings, plugin);
  return true;
}

bool find_compiler(std::vector<Finding>& findings) {
  compile::Compiler compiler;
  const compile::ToolkitReport report = compiler.toolkit();
  Finding nvrtc{Finding::State::good,
                "NVRTC",
                fmt::format("{}, version {}", report.nvrtc_path, report.nvrtc_version),
                "",
                {}};
  if (!report.found)
    nvrtc = {Finding::State::missing, "NVRTC", report.missing.message, report.missing.hint, {}};
  for (const compile::Candidate& candidate : report.nvrtc_candidates)
    nvrtc.looked_at.push_back(candidate_text(candidate));
  findings.push_back(std::move(nvrtc));
  Finding headers{
      Finding::State::good,
      "CUDA headers",
      fmt::format("{}, version {}", joined(report.include_directories, " and "), report.headers_version),
      "",
      {}};
  if (report.include_directories.empty())
    headers = {Finding::State::missing,
               "CUDA headers",
               "cuda_fp16.h and its like were not found; kernels that include none work",
               "install a CUDA toolkit, or run tools/setup",
               {}};
  for (const compile::Candidate& candidate : report.header_candidates)
    headers.looked_at.push_back(candidate_text(candidate));
  findings.push_back(std::move(headers));
  return report.found;
}

void find_cache(std::vector<Finding>& findings) {
  const Expected<cache::DiskStoreOptions> options = cache::store_options_of_environment();
  if (!options) {
    findings.push_back({Finding::State::info, "compile cache", options.errors().front().message, "", {}});
    return;
  }
  const Expected<cache::File> folder = cache::open_store_root(
      options->directory, options->read_only ? cache::FolderUse::read : cache::FolderUse::write);
  if (!folder && folder.errors().front().code != "cache-absent") {
    const Diagnostic& error = folder.errors().front();
    findings.push_back({Finding::State::broken, "compile cache", error.message, error.hint, {}});
  } else {
    findings.push_back({Finding::State::good,
                        "compile cache",
                        fmt::format("{}{}, at most {}", options->directory,
                                    options->read_only ? ", read-only" : "", bytes_text(options->max_bytes)),
                        "",
                        {}});
  }
}

}  // namespace
}  // namespace session

DoctorReport doctor() {
  DoctorReport report;
  const bool compiler = session::find_compiler(report.findings);
  session::find_cache(report.findings);
  const bool cpu = session::find_cpu_device(report.findings);
  const bool cuda = session::find_cuda(report.findings);
  report.ready = compiler && (cpu || cuda);
  for (const session::VariableRow& row : session::kVariables)
    report.environment.push_back({row.name, base::env(row.name).value_or(""), row.meaning});
  return report;
}

std::string nvrtc_library() { return compile::Compiler().toolkit().nvrtc_path; }

}  // namespace quern
