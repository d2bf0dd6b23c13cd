// SPDX-License-Identifier: Apache-2.0
// The whole command line, declared with CLI11. It is in one file, because CLI11 costs seconds of compile time
// wherever it is included.
#include "options.hpp"

#include <CLI/CLI.hpp>
#include <quern/quern.hpp>

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <sstream>
#include <string_view>
#include <utility>

#include "command.hpp"
#include "commands.hpp"
#include "terminal/output.hpp"

namespace quern::cli {
namespace {

constexpr char kMark = '\x1f';  // no argument begins with a control character

/// CLI11 replaces numbers that are too large by the largest number.
std::string whole_number(const std::string& text) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error == std::errc::result_out_of_range) return text + " is too large";
  if (error != std::errc() || end != text.data() + text.size()) return text + " is not a whole number";
  return {};
}

void add_constant_option(CLI::App& app, std::vector<std::string>& bindings) {
  app.add_option(
         "--bind", bindings,
         "Give a module-level name of Kernel Python a value, new or instead of the file's: N=16, TABLE=x.npy")
      ->allow_extra_args(false)
      ->type_name("NAME=ARG");
}

void add_progress_option(CLI::App& command, ProgressWish& wish) {
  command.add_flag_callback(
      "--progress", [&wish] { wish = ProgressWish::always; },
      "Show what takes longer than half a second also where stderr is no terminal");
  command.add_flag_callback(
      "--no-progress", [&wish] { wish = ProgressWish::never; }, "Show no progress on a terminal either");
}

/// The library reads the variable when it opens the first session.
void add_remote_option(CLI::App& app) {
  app.add_option_function<std::string>(
         "--remote", [](const std::string& servers) { ::setenv("QUERN_REMOTE", servers.c_str(), 1); },
         "Compile through a server: unix:PATH, http://HOST:PORT, https://HOST:PORT (also QUERN_REMOTE)")
      ->type_name("URL");
}

void add_load_options(CLI::App& app, LoadOptions& options) {
  add_remote_option(app);
  app.add_option("-D,--define", options.defines, "Define a macro: NAME or NAME=VALUE")
      ->allow_extra_args(false)
      ->type_name("NAME[=VALUE]");
  app.add_option("-I,--include", options.include_dirs, "Search a directory for included files")
      ->allow_extra_args(false)
      ->type_name("DIR");
  app.add_option("--option", options.options, "Give NVRTC an option: --option=--fmad=false")
      ->allow_extra_args(false)
      ->type_name("NVRTC_OPTION");
  app.add_flag("--fastmath", options.fastmath,
               "Allow approximate division, square root and functions (NVRTC's --use_fast_math)");
}

void add_launch_options(CLI::App& command, RunSettings& settings) {
  command
      .add_option("--grid", settings.launch.grid,
                  "Blocks: 64, 16x16 or 8x8x4; without it they cover the first array")
      ->type_name("G");
  command.add_option("--block", settings.launch.block, "Threads of a block (default 256)")->type_name("B");
  command.add_flag("--cooperative", settings.launch.cooperative,
                   "Launch so that the whole grid can synchronise");
  command.add_option("--shared", settings.launch.shared_bytes, "Dynamic shared memory of a block")
      ->check(whole_number)
      ->type_name("BYTES");
  command.add_flag("--stream", settings.launch.own_stream, "Launch on a stream of its own");
  add_constant_option(command, settings.launch.bind);
  command
      .add_option(
          "--sig", settings.launch.signature,
          "Compile a Kernel Python kernel for these argument types, \"float32, float32[::1]\", instead of "
          "those of the arguments")
      ->type_name("TYPES");
  command
      .add_option("--device", settings.device, "cpu, cuda, cuda:N or auto (default: QUERN_DEVICE, else auto)")
      ->type_name("DEVICE");
}

void add_output_options(CLI::App& command, RunSettings& settings) {
  command
      .add_option("--save", settings.save,
                  "Write an array to a file afterwards: NAME=FILE.npy, NAME a parameter's name or #0")
      ->allow_extra_args(false)
      ->type_name("NAME=FILE.npy");
  command.add_option("--show", settings.show, "Write a 2-D array as a picture: --show image NAME=FILE.png")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->type_name("image NAME=FILE.png");
  command.add_option("--repeat", settings.repeat, "Launch N more times and time those")
      ->check(whole_number)
      ->type_name("N");
  command.add_flag("--time", settings.time, "Print median, minimum and throughput");
  command.add_flag("--quiet", settings.quiet, "Print errors only");
  command.add_flag("--json", settings.json,
                   "Print one JSON document on stdout; what kernels print goes to stderr");
  add_progress_option(command, settings.progress);
}

void add_run(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("run", "Compile a kernel, launch it, and print what its arrays hold");
  auto settings = std::make_shared<RunSettings>();
  command->add_option("file", settings->file, "A .py, .cu or .ptx file, with ::KERNEL where it has several")
      ->required()
      ->type_name("FILE[::KERNEL]");
  command
      ->add_option("args", settings->launch.args,
                   "Arguments in the kernel's order, or NAME=ARG: 3, -2.5, true, float32(2), x.npy, "
                   "'x.npy[::2, 1:]', x.npy.T, "
                   "value(x.npy), zeros(1024, float32), ones, empty, full((4,4), 7, int32), arange(0, 10, 1, "
                   "float32), linspace, "
                   "random((n,), float32, seed=1), #2 (the length of argument 2)")
      ->type_name("ARG");
  add_launch_options(*command, *settings);
  add_load_options(*command, settings->load);
  add_output_options(*command, *settings);
  command->callback([&action, settings] {
    for (std::string& word : settings->launch.args) word = unmark_negative(word);
    action = [settings] { return run_command(*settings); };
  });
}

/// Returns an error, or empty text if this is the name of a stage, with or without "=PASS".
std::string check_stage(const std::string& text) {
  const std::string stage = text.substr(0, text.find('='));
  return stage_named(stage) ? "" : "the stages are cuda, ptx, simt, llvm and asm, and not '" + stage + "'";
}

void add_compile(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("compile", "Show what each stage makes of a kernel; no device is needed");
  auto settings = std::make_shared<CompileSettings>();
  command
      ->add_option("file", settings->file,
                   "A .py, .cu or .ptx file, with ::KERNEL where a stage shows one of several")
      ->required()
      ->type_name("FILE[::KERNEL]");
  command
      ->add_option(
          "--emit", settings->emit,
          "cuda, ptx (default), simt, llvm or asm; simt=PASS or llvm=PASS: the kernel as this pass of "
          "the CPU device's compiler leaves it (a wrong name lists them)")
      ->check(check_stage)
      ->type_name("STAGE[=PASS]");
  command->add_flag("--time-passes", settings->time_passes,
                    "Print how long each pass of the CPU device's compiler took instead of the text (simt, "
                    "llvm, asm)");
  command
      ->add_option("--block", settings->block,
                   "The block that simt, llvm and asm are specialised on (default 256)")
      ->type_name("B");
  command->add_option("-o,--output", settings->output, "Write to a file instead of stdout")->type_name("OUT");
  command
      ->add_option("--sig", settings->stage.signature,
                   "The argument types of a Kernel Python kernel: \"float32, float32[::1]\" (default: its "
                   "decorator's)")
      ->type_name("TYPES");
  add_constant_option(*command, settings->launch.bind);
  add_load_options(*command, settings->stage.load);
  command->add_flag("--json", settings->json, "Print one JSON document on stdout");
  add_progress_option(*command, settings->progress);
  command->callback([&action, settings] { action = [settings] { return compile_command(*settings); }; });
}

void add_test(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("test", "Run the cases of *.case.toml files on every device there is");
  auto settings = std::make_shared<TestSettings>();
  command->add_option("paths", settings->paths, "Case files, or folders that hold some (default kernels)")
      ->type_name("PATH");
  command->add_option("--device", settings->device, "On this device only")->type_name("DEVICE");
  add_remote_option(*command);
  command->add_option("-k", settings->word, "Only cases whose file or name holds WORD")->type_name("WORD");
  command->add_option("-j,--jobs", settings->jobs, "Run N cases at a time")
      ->check(CLI::Range(1u, 256u))
      ->type_name("N");
  command->add_option("--junit", settings->junit, "Write the results as JUnit XML")->type_name("FILE");
  command->add_flag("--quiet", settings->quiet, "Print failures and the sum only");
  command->add_flag("--json", settings->json,
                    "Print one JSON document on stdout; what kernels print goes to stderr");
  add_progress_option(*command, settings->progress);
  command->callback([&action, settings] { action = [settings] { return test_command(*settings); }; });
}

void add_bench(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("bench", "Time the cases that are marked `bench`, after checking their results");
  auto settings = std::make_shared<BenchSettings>();
  command->add_option("paths", settings->paths, "Case files, or folders that hold some (default kernels)")
      ->type_name("PATH");
  command->add_option("--device", settings->device, "On this device only")->type_name("DEVICE");
  add_remote_option(*command);
  command->add_option("-k", settings->word, "Only cases whose file or name holds WORD")->type_name("WORD");
  command->add_option("--seconds", settings->seconds, "Launch each case for about that long (default 0.5)")
      ->check(CLI::Range(0.0, 3600.0))
      ->type_name("S");
  command->add_option("--repeat", settings->least, "Launch each case at least N times (default 5)")
      ->check(CLI::Range(1u, 100'000u))
      ->type_name("N");
  command
      ->add_option("--compare", settings->compare,
                   "Show the ratio to the medians of an earlier --json document")
      ->type_name("FILE.json");
  command->add_flag("--json", settings->json,
                    "Print one JSON document on stdout; what kernels print goes to stderr");
  add_progress_option(*command, settings->progress);
  command->callback([&action, settings] { action = [settings] { return bench_command(*settings); }; });
}

using CacheCommand = int (*)(const CacheSettings&);

/// `words`: how many it takes, at least and at most.
CLI::App* add_cache_command(CLI::App& cache, Action& action, const std::shared_ptr<CacheSettings>& settings,
                            const char* name, const char* description, CacheCommand run) {
  CLI::App* command = cache.add_subcommand(name, description);
  command->add_flag("--json", settings->json, "Print one JSON document on stdout");
  command->callback([&action, settings, run] { action = [settings, run] { return run(*settings); }; });
  return command;
}

void add_key_option(CLI::App& command, CacheSettings& settings) {
  command
      .add_option("--key", settings.key,
                  "The key file of bundles: signs with its first key, refuses what none of its keys signed")
      ->envname("QUERN_CACHE_BUNDLE_KEY")
      ->type_name("FILE");
}

void add_warm(CLI::App& cache, Action& action, const std::shared_ptr<CacheSettings>& settings) {
  CLI::App* warm = add_cache_command(
      cache, action, settings, "warm",
      "Compile all .cu and .py files below a folder, for this cache or for a bundle", &cache_warm_command);
  warm->add_option("folder", settings->words, "The folder")
      ->required()
      ->expected(1)
      ->check(CLI::ExistingDirectory)
      ->type_name("DIR");
  warm->add_option("-o,--output", settings->output, "Write a bundle instead of filling the cache")
      ->type_name("FILE");
  warm->add_option(
          "--target", settings->targets,
          "cpu, cpu:baseline, cpu:avx2, cpu:avx512, compute_89, sm_90 (default cpu); several allowed")
      ->allow_extra_args(false)
      ->type_name("TARGET");
  warm->add_option("--block", settings->blocks,
                   "A bundle's machine code for the CPU device is for blocks of this shape; several allowed")
      ->allow_extra_args(false)
      ->type_name("B");
  warm->add_option(
          "--sig", settings->signatures,
          "The argument types of a Kernel Python kernel: \"saxpy=float32, float32[::1]\"; FILE::KERNEL names "
          "one of several")
      ->allow_extra_args(false)
      ->type_name("KERNEL=TYPES");
  add_key_option(*warm, *settings);
  warm->add_option("-j,--jobs", settings->jobs, "Threads that compile (default: one a processor)")
      ->check(CLI::Range(1u, 1024u))
      ->type_name("N");
  add_load_options(*warm, settings->stage.load);
}

void add_cache(CLI::App& app, Action& action) {
  CLI::App* cache = app.add_subcommand("cache", "Look at the compile cache on disk, fill it and empty it");
  cache->require_subcommand(1);
  auto settings = std::make_shared<CacheSettings>();
  add_cache_command(*cache, action, settings, "stats",
                    "Say where it is, how large it may become and how large it is", &cache_stats_command);
  CLI::App* list = add_cache_command(*cache, action, settings, "list",
                                     "List its entries, the last used first", &cache_list_command);
  list->add_option("--bundle", settings->bundle, "List the entries of a bundle instead")->type_name("FILE");
  add_key_option(*list, *settings);
  CLI::App* why = add_cache_command(*cache, action, settings, "why",
                                    "Say why FILE is not in it, or what differs between two requests",
                                    &cache_why_command);
  why->add_option(
         "what", settings->words,
         "A kernel file, with ::KERNEL where it needs one; or two, or the first digits of entries' keys")
      ->required()
      ->expected(1, 2)
      ->type_name("FILE|KEY");
  why->add_option("--sig", settings->stage.signature, "The argument types of a Kernel Python kernel")
      ->type_name("TYPES");
  add_constant_option(*why, settings->launch.bind);
  add_key_option(*why, *settings);
  add_load_options(*why, settings->stage.load);
  CLI::App* verify = add_cache_command(*cache, action, settings, "verify",
                                       "Read all entries, and set damaged ones aside", &cache_verify_command);
  verify->add_option("bundle", settings->bundle, "A bundle to read instead")->type_name("FILE");
  add_key_option(*verify, *settings);
  add_cache_command(*cache, action, settings, "clear", "Remove all entries", &cache_clear_command);
  add_warm(*cache, action, settings);
}

void add_devices(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("devices", "List the devices that kernels can run on");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON document on stdout");
  command->callback([&action, json] { action = [json] { return devices_command(*json); }; });
}

void add_doctor(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand(
      "doctor", "Say what was found where on this machine, what is missing, and how to get it");
  auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print one JSON document on stdout");
  command->callback([&action, json] { action = [json] { return doctor_command(*json); }; });
}

/// The service parses its own options, including --help.
void add_serve(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("serve",
                                         "Compile kernels for other processes and machines, over HTTP; --top "
                                         "shows what it does; --help shows its options");
  command->prefix_command();
  command->set_help_flag();
  command->callback([&action, command] {
    std::vector<std::string> words = command->remaining();
    for (std::string& word : words) word = unmark_negative(word);
    action = [words] { return serve_command(words); };
  });
}

void add_top(CLI::App& app, Action& action) {
  CLI::App* command = app.add_subcommand("top", "Show what compile services do, again and again");
  auto settings = std::make_shared<TopSettings>();
  command
      ->add_option(
          "servers", settings->servers,
          "unix:PATH, http://HOST:PORT or https://HOST:PORT, several separated by commas (default: "
          "QUERN_REMOTE); token and certificates are those of QUERN_REMOTE_TOKEN_FILE and its relatives")
      ->type_name("URL");
  command->add_option("--interval", settings->interval_s, "Seconds between two readings (default 1)")
      ->check(CLI::Range(0.1, 3600.0))
      ->type_name("S");
  command->add_option("--count", settings->count, "End after N readings")
      ->check(CLI::Range(1u, 1'000'000'000u))
      ->type_name("N");
  command->add_flag("--once", settings->once, "Read once and end")->excludes("--count");
  command->add_flag("--json", settings->json, "Print each reading as a JSON document on a line of stdout");
  command->callback([&action, settings] { action = [settings] { return top_command(*settings); }; });
}

/// `command`: the arguments after "--", which belong to the other program.
void add_exec(CLI::App& app, Action& action, const std::vector<std::string>& command) {
  CLI::App* exec = app.add_subcommand(
      "exec", "Run another program, which finds the CPU device as the CUDA driver libcuda.so.1");
  auto settings = std::make_shared<ExecSettings>();
  exec->add_option(
          "command", settings->command,
          "The program and its arguments, behind \"--\"; the exit status is the program's, or 128 and the "
          "number of the signal that ended it")
      ->type_name("-- COMMAND [ARG ...]");
  exec->add_flag(
      "--stats", settings->stats,
      "Say on stderr afterwards which driver functions the program called how often, and which are "
      "missing");
  exec->add_flag("--print-env", settings->print_env,
                 "Print the variables that the program would get, for a shell, and run nothing")
      ->excludes("--stats");
  exec->callback([&action, settings, command] {
    settings->command.insert(settings->command.end(), command.begin(), command.end());
    action = [settings] { return exec_command(*settings); };
  });
}

/// Removes the arguments after "--" of `quern exec`, and returns them.
std::vector<std::string> take_command(std::vector<std::string>& words) {
  if (words.empty() || words[0] != "exec") return {};
  const auto mark = std::find(words.begin(), words.end(), "--");
  if (mark == words.end()) return {};
  std::vector<std::string> command(mark + 1, words.end());
  words.erase(mark, words.end());
  return command;
}

void add_commands(CLI::App& app, Action& action, const std::vector<std::string>& command) {
  app.require_subcommand(1);
  app.set_help_all_flag("--help-all", "Print the help of all commands");
  app.set_version_flag("--version", "quern " + std::string(version()));
  add_run(app, action);
  add_compile(app, action);
  add_test(app, action);
  add_bench(app, action);
  add_cache(app, action);
  add_exec(app, action, command);
  add_serve(app, action);
  add_top(app, action);
  add_devices(app, action);
  add_doctor(app, action);
}

/// For a misspelt command, CLI11 only says that one is required.
void check_command(const CLI::App& app, const std::vector<std::string>& words) {
  if (words.empty() || words[0].starts_with('-')) return;
  std::string commands;
  for (const CLI::App* each : app.get_subcommands([](const CLI::App*) { return true; })) {
    if (each->get_name() == words[0]) return;
    commands += (commands.empty() ? "" : ", ") + each->get_name();
  }
  throw Error(ErrorCode::usage, "there is no command '" + words[0] + "'\nhint: the commands are " + commands +
                                    "; quern --help says what they do");
}

}  // namespace

std::string mark_negative(const std::string& word) {
  if (word.size() < 2 || word[0] != '-') return word;
  const std::string_view rest = std::string_view(word).substr(1);
  const bool number = std::isdigit(static_cast<unsigned char>(rest[0])) != 0 || rest[0] == '.' ||
                      rest == "inf" || rest == "nan";
  return number ? kMark + word : word;
}

std::string unmark_negative(const std::string& word) {
  return !word.empty() && word[0] == kMark ? word.substr(1) : word;
}

Action read_options(std::vector<std::string> words) {
  CLI::App app("Compiles GPU kernels at run time and runs them on a GPU or on the CPU.", "quern");
  Action action;
  const std::vector<std::string> command = take_command(words);
  add_commands(app, action, command);
  check_command(app, words);
  for (std::string& word : words) word = mark_negative(word);
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the end
  try {
    app.parse(words);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) {  // --help, --version
      std::ostringstream text;
      app.exit(error, text, text);
      print_text(text.str());
      return [] { return kDone; };
    }
    throw Error(ErrorCode::usage, std::string(error.what()) +
                                      "\nhint: quern --help shows the commands, quern COMMAND --help "
                                      "its options and arguments");
  }
  return action;
}

}  // namespace quern::cli
