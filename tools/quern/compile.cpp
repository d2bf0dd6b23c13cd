// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <chrono>
#include <string>
#include <vector>

#include "arrays/argument.hpp"
#include "arrays/files.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "job.hpp"
#include "terminal/output.hpp"
#include "terminal/work_bar.hpp"

namespace quern::cli {
namespace {

double milliseconds(std::chrono::nanoseconds time) {
  return std::chrono::duration<double, std::milli>(time).count();
}

Json to_json(const std::vector<PassTime>& times) {
  Json rows = Json::array();
  for (const PassTime& row : times)
    rows.push_back({{"name", row.name}, {"runs", row.runs}, {"ms", milliseconds(row.time)}});
  return rows;
}

std::string to_text(const std::vector<PassTime>& times) {
  std::string text = fmt::format("{:28} {:>5} {:>10}\n", "pass", "runs", "ms");
  std::chrono::nanoseconds sum{0};
  for (const PassTime& row : times) {
    text += fmt::format("{:28} {:5} {:10.3f}\n", row.name, row.runs, milliseconds(row.time));
    sum += row.time;
  }
  return text + fmt::format("{:28} {:5} {:10.3f}\n", "all", "", milliseconds(sum));
}

}  // namespace

int compile_command(const CompileSettings& settings) {
  keep_off_document(settings.output);
  const auto [file, kernel] = split_kernel(settings.file);
  StageOptions options = settings.stage;
  options.kernel = kernel;
  options.load.constants = parse_constants(settings.launch);
  const auto block = parse_dimensions(settings.block, "--block");
  options.block = Dim3(block[0], block[1], block[2]);
  const std::size_t equals = settings.emit.find('=');
  if (equals != std::string::npos) options.pass = settings.emit.substr(equals + 1);
  if (equals != std::string::npos && options.pass.empty())
    throw Error(ErrorCode::usage,
                "--emit " + settings.emit + " names no pass: write --emit STAGE, or --emit STAGE=PASS");
  std::vector<PassTime> times;
  if (settings.time_passes) options.pass_times = &times;
  WorkBar bar(settled(settings.progress, false, settings.json));
  options.progress = bar.handler();
  const std::string text = stage_text(file, *stage_named(settings.emit.substr(0, equals)), options);
  if (!settings.output.empty()) write_whole_file(settings.output, text);
  if (settings.json) {
    Json document = {{"file", file}, {"kernel", kernel}, {"stage", settings.emit}};
    if (settings.output.empty())
      document["text"] = text;
    else
      document["output"] = settings.output;
    if (settings.time_passes) document["passes"] = to_json(times);
    print_json(document);
  } else if (settings.time_passes) {
    print_text(to_text(times));
  } else if (settings.output.empty()) {
    print_text(text.ends_with('\n') ? text : text + "\n");
  }
  return kDone;
}

}  // namespace quern::cli
