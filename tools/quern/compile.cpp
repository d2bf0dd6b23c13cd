// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <cstdio>
#include <memory>

#include "argument.hpp"
#include "command.hpp"
#include "files.hpp"
#include "job.hpp"

namespace quern::cli {
namespace {

struct Settings {
  std::string file;
  std::string emit = "ptx";
  std::string block = "256";
  std::string output;
  StageOptions stage;
  LaunchText launch;
  bool json = false;
};

int run_compile(const Settings& settings) {
  const auto [file, kernel] = split_kernel(settings.file);
  StageOptions options = settings.stage;
  options.kernel = kernel;
  options.load.constants = parse_constants(settings.launch);
  const auto block = parse_dimensions(settings.block, "--block");
  options.block = Dim3(block[0], block[1], block[2]);
  const std::string text = stage_text(file, *stage_named(settings.emit), options);
  if (!settings.output.empty()) write_whole_file(settings.output, text);
  if (settings.json) {
    Json document = {{"file", file}, {"kernel", kernel}, {"stage", settings.emit}};
    if (settings.output.empty())
      document["text"] = text;
    else
      document["output"] = settings.output;
    print_json(document);
  } else if (settings.output.empty()) {
    std::fwrite(text.data(), 1, text.size(), stdout);
    if (!text.ends_with('\n')) std::fputc('\n', stdout);
  }
  return kDone;
}

}  // namespace

void add_compile(CLI::App& app, Action& action) {
  CLI::App* command =
      app.add_subcommand("compile", "Show what each stage makes of a kernel; no device is needed");
  auto settings = std::make_shared<Settings>();
  command
      ->add_option("file", settings->file,
                   "A .py, .cu or .ptx file, with ::KERNEL where a stage shows one of several")
      ->required()
      ->type_name("FILE[::KERNEL]");
  command->add_option("--emit", settings->emit, "cuda, ptx (default), simt, llvm or asm")
      ->check(CLI::IsMember({"cuda", "ptx", "simt", "llvm", "asm"}))
      ->type_name("STAGE");
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
  command->add_flag("--json", settings->json, "Print one JSON document");
  command->callback([&action, settings] { action = [settings] { return run_compile(*settings); }; });
}

}  // namespace quern::cli
