// SPDX-License-Identifier: Apache-2.0
// quern run: one kernel, its arguments, and their contents afterwards.
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>

#include "arrays/npy.hpp"
#include "arrays/picture.hpp"
#include "arrays/show.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "job.hpp"
#include "terminal/output.hpp"
#include "terminal/words.hpp"
#include "terminal/work_bar.hpp"
#include "values.hpp"

namespace quern::cli {
namespace {

/// An output to be written: NAME=FILE.
struct Output {
  std::string name;
  std::string file;
  bool picture = false;
};

struct Times {
  std::vector<double> ms;
  double minimum() const { return *std::min_element(ms.begin(), ms.end()); }
  double median() const {
    std::vector<double> sorted = ms;
    std::sort(sorted.begin(), sorted.end());
    const std::size_t middle = sorted.size() / 2;
    return sorted.size() % 2 == 1 ? sorted[middle] : (sorted[middle - 1] + sorted[middle]) / 2;
  }
};

Output read_output(const std::string& text, const char* option, bool picture) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0 || equals + 1 == text.size())
    throw Error(ErrorCode::usage, fmt::format("{} '{}' is not of the form NAME=FILE{}\nhint: NAME is a "
                                              "parameter's name or its number, as in #0",
                                              option, text, picture ? ".png" : ".npy"));
  return {text.substr(0, equals), text.substr(equals + 1), picture};
}

std::vector<Output> read_outputs(const RunSettings& settings) {
  std::vector<Output> outputs;
  for (const std::string& text : settings.save) outputs.push_back(read_output(text, "--save", false));
  for (const auto& [kind, text] : settings.show) {
    if (kind != "image")
      throw Error(ErrorCode::usage,
                  fmt::format("--show '{}' is not known\nhint: it is --show image NAME=FILE.png", kind));
    outputs.push_back(read_output(text, "--show image", true));
  }
  return outputs;
}

/// The first launch gets the arguments as given. With --repeat N, the N launches after it are timed.
Times run_launches(Job& job, std::uint64_t repeat) {
  Times times;
  const double first = job.launch();
  for (std::uint64_t i = 0; i < repeat; ++i) times.ms.push_back(job.launch());
  if (repeat == 0) times.ms.push_back(first);
  return times;
}

std::string shape_of(const Array& array) { return shape_text(array.shape); }

Json extents(const Dim3& dimensions) { return Json::array({dimensions.x, dimensions.y, dimensions.z}); }

/// The result of a run, as text and as a document.
class Report {
 public:
  Report(const Session& session, const Module& module, const Job& job, const Times& times,
         std::uint64_t launches)
      : session_(session), module_(module), job_(job), times_(times), launches_(launches) {
    for (const ArrayArgument& argument : job.arrays())
      arrays_.emplace_back(argument.name, job.fetch(argument));
  }

  void print(bool with_times) const {
    std::size_t width = 0;
    for (const auto& [name, array] : arrays_) width = std::max(width, name.size());
    for (const auto& [label, array] : arrays_) {
      const std::string line =
          fmt::format("{:<{}}  {} {}", label, width, cli::name(array.element), shape_of(array));
      const bool nested = array.shape.size() > 1;
      const std::string gap = nested ? "\n    " : "  ";
      fmt::print("{}{}{}\n", line, gap, array_text(array, nested ? 4 : line.size() + gap.size()));
    }
    print_summary();
    if (with_times) print_times();
  }

  void print_json(const std::vector<Output>& outputs) const {
    Json written = Json::object();
    for (const Output& output : outputs) written[output.name] = output.file;
    Json arguments = Json::array();
    for (const auto& [label, array] : arrays_) {
      const std::int64_t count = array.count();
      arguments.push_back(
          {{"name", label},
           {"dtype", cli::name(array.element)},
           {"shape", array.shape},
           {"first", count > 0 ? json_value(array.element, element_at(array, 0)) : Json()},
           {"last", count > 0 ? json_value(array.element, element_at(array, count - 1)) : Json()},
           {"sha256", sha256_hex(*array.bytes)}});
    }
    const KernelInfo info = job_.kernel().info();
    cli::print_json({{"kernel", job_.kernel().name()},
                     {"device", session_.device().label()},
                     {"grid", extents(job_.config().grid)},
                     {"block", extents(job_.config().block)},
                     {"compile_ms", info.compile_ms},
                     {"nvrtc_ms", info.nvrtc_ms},
                     {"load_ms", info.load_ms},
                     {"machine_code_ms", info.machine_code_ms},
                     {"kernel_min_ms", job_.runs() ? Json(times_.minimum()) : Json()},
                     {"kernel_median_ms", job_.runs() ? Json(times_.median()) : Json()},
                     {"launches", job_.runs() ? launches_ : 0},
                     {"arguments", arguments},
                     {"outputs", written},
                     {"diagnostics", to_json(module_.log())}});
  }

 private:
  void print_summary() const {
    const LaunchConfig& config = job_.config();
    const std::string ran =
        job_.runs() ? fmt::format("{} in {:.3f} ms", launches_ > 1 ? "one launch" : "ran", times_.median())
                    : kNothingRan;
    fmt::print("{} on {} ({}), grid ({}, {}, {}), block ({}, {}, {}): compiled in {:.1f} ms, {}\n",
               job_.kernel().name(), session_.device().label(), session_.device().name(), config.grid.x,
               config.grid.y, config.grid.z, config.block.x, config.block.y, config.block.z,
               job_.kernel().info().compile_ms, ran);
  }

  void print_times() const {
    std::size_t bytes = 0;
    for (const auto& [label, array] : arrays_) bytes += array.bytes->size();
    fmt::print("time of {} launch{}: median {:.4f} ms, min {:.4f} ms", times_.ms.size(),
               times_.ms.size() == 1 ? "" : "es", times_.median(), times_.minimum());
    if (times_.median() > 0)
      fmt::print(", {:.2f} GB/s of the arrays' {} bytes", static_cast<double>(bytes) / times_.median() / 1e6,
                 bytes);
    fmt::print("\n");
  }

  const Session& session_;
  const Module& module_;
  const Job& job_;
  const Times& times_;
  std::uint64_t launches_;
  std::vector<std::pair<std::string, Array>> arrays_;
};

void write(const Job& job, const Output& output) {
  const Array array = job.fetch_in_its_order(job.array(output.name));
  if (output.picture)
    write_picture(output.file, array);
  else
    write_npy(output.file, array);
}

}  // namespace

int run_command(const RunSettings& settings) {
  const std::vector<Output> outputs = read_outputs(settings);
  for (const Output& output : outputs) keep_off_document(output.file);
  // outlives everything that reports to it
  WorkBar bar(settled(settings.progress, settings.quiet, settings.json));
  const Session session{SessionOptions{settings.device}};
  session.set_progress(bar.handler());
  const auto [file, name] = split_kernel(settings.file);
  LoadOptions load = settings.load;
  if (name.find('<') != std::string::npos) load.name_expressions.push_back(name);
  load.constants = parse_constants(settings.launch);
  const Module module = session.load_file(file, load);
  if (!settings.quiet && !settings.json)
    std::fputs(coloured(with_command_words(to_string(module.log()))).c_str(), stderr);
  Kernel kernel = name.empty() ? module.kernel() : module.kernel(name);
  if (!settings.launch.signature.empty()) kernel = kernel.specialise(settings.launch.signature);
  Job job(session, std::move(kernel), settings.launch);
  for (const Output& output : outputs)
    static_cast<void>(job.array(output.name));  // reports wrong names before the work starts
  const Times times = run_launches(job, settings.repeat);
  flush_output();  // so that the kernel's output comes first
  for (const Output& output : outputs) write(job, output);
  if (settings.quiet && !settings.json) return kDone;
  const Report report(session, module, job, times, settings.repeat + 1);
  end_line();
  if (settings.json)
    report.print_json(outputs);
  else
    report.print(job.runs() && (settings.time || settings.repeat > 0));
  return kDone;
}

}  // namespace quern::cli
