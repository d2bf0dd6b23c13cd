// SPDX-License-Identifier: Apache-2.0
// The commands: their settings, and the function that runs each. They print the result and return an
// ExitStatus; errors are thrown. options.cpp reads the settings from the command line.
#pragma once

#include <quern/quern.hpp>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "job.hpp"
#include "terminal/progress.hpp"

namespace quern::cli {

/// quern run: one kernel, its arguments, and their contents afterwards.
struct RunSettings {
  std::string file;  ///< with ::KERNEL where it has several
  LaunchText launch;
  LoadOptions load;
  std::string device;
  std::vector<std::string> save;
  std::vector<std::pair<std::string, std::string>> show;
  std::uint64_t repeat = 0;
  bool time = false;
  bool quiet = false;
  bool json = false;
  ProgressWish progress = ProgressWish::automatic;
};
int run_command(const RunSettings& settings);

/// quern compile: a kernel's text after each stage.
struct CompileSettings {
  std::string file;
  std::string emit = "ptx";
  std::string block = "256";
  std::string output;
  StageOptions stage;
  LaunchText launch;
  bool time_passes = false;
  bool json = false;
  ProgressWish progress = ProgressWish::automatic;
};
int compile_command(const CompileSettings& settings);

/// quern test: every case on every device.
struct TestSettings {
  std::vector<std::string> paths = {"kernels"};
  std::string device;
  std::string word;
  std::string junit;
  unsigned jobs = 1;
  bool quiet = false;
  bool json = false;
  ProgressWish progress = ProgressWish::automatic;
};
int test_command(const TestSettings& settings);

/// quern bench: the cases marked `bench`, checked once and then timed.
struct BenchSettings {
  std::vector<std::string> paths = {"kernels"};
  std::string device;
  std::string word;
  std::string compare;
  double seconds = 0.5;
  std::uint64_t least = 5;
  bool json = false;
  ProgressWish progress = ProgressWish::automatic;
};
int bench_command(const BenchSettings& settings);

/// quern cache: the contents of the compile cache on disk, and the reasons for misses.
struct CacheSettings {
  std::vector<std::string> words;  ///< of `why`: a file, or two files or keys; of `warm`: a folder
  std::string bundle;              ///< of `list` and `verify`: the bundle to look at, instead of the cache
  std::string output;              ///< of `warm`: the bundle to write; empty: the cache is filled
  std::string key;                 ///< the key file of bundles
  std::vector<std::string> targets = {"cpu"};
  std::vector<std::string> blocks;
  std::vector<std::string> signatures;  ///< KERNEL=TYPES
  unsigned jobs = 0;
  StageOptions stage;
  LaunchText launch;
  bool json = false;
};
int cache_stats_command(const CacheSettings& settings);
int cache_list_command(const CacheSettings& settings);
int cache_why_command(const CacheSettings& settings);
int cache_verify_command(const CacheSettings& settings);
int cache_clear_command(const CacheSettings& settings);
int cache_warm_command(const CacheSettings& settings);

/// quern top: shows the statistics of compile services, and updates them.
struct TopSettings {
  std::vector<std::string> servers;  ///< addresses, also several in one word; empty: those in QUERN_REMOTE
  double interval_s = 1;
  std::uint64_t count = 0;  ///< readings; 0: until it is ended
  bool once = false;
  bool json = false;
};
int top_command(const TopSettings& settings);

/// quern serve: runs the compile service, which is a separate program, with these arguments. Returns only
/// with --top, which shows the server's statistics meanwhile.
int serve_command(std::vector<std::string> words);

/// quern exec: runs another program, with the CPU device as libcuda.so.1.
struct ExecSettings {
  std::vector<std::string> command;  ///< the program and its arguments
  bool print_env = false;
  bool stats = false;
};
/// Returns the program's exit status as a shell does: also 126, 127, and 128 plus a signal's number.
int exec_command(const ExecSettings& settings);

/// quern devices: those of this machine.
int devices_command(bool json);
/// quern doctor: the components found and missing, and advice.
int doctor_command(bool json);

}  // namespace quern::cli
