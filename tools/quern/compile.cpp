// SPDX-License-Identifier: Apache-2.0
#include "argument.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "files.hpp"
#include "job.hpp"
#include "output.hpp"
#include "work_bar.hpp"

namespace quern::cli {
int compile_command(const CompileSettings& settings) {
  keep_off_document(settings.output);
  const auto [file, kernel] = split_kernel(settings.file);
  StageOptions options = settings.stage;
  options.kernel = kernel;
  options.load.constants = parse_constants(settings.launch);
  const auto block = parse_dimensions(settings.block, "--block");
  options.block = Dim3(block[0], block[1], block[2]);
  WorkBar bar(settled(settings.progress, false, settings.json));
  options.progress = bar.handler();
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
    print_text(text.ends_with('\n') ? text : text + "\n");
  }
  return kDone;
}

}  // namespace quern::cli
