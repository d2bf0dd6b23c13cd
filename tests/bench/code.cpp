// SPDX-License-Identifier: Apache-2.0
// Measures the time from PTX to a kernel's result: for a new text, for the same text again, in another
// session, and in a second process, which finds the machine code on disk.
#include <fmt/format.h>
#include <stdlib.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <string_view>

namespace {

using namespace quern;

constexpr int kRepeats = 5;

struct Times {
  double cold = 1e30, again = 1e30, session = 1e30, process = 1e30;
};

double now_ms() {
  return std::chrono::duration<double, std::milli>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

/// Returns the kernel's text with a part that no process has seen before.
std::string text_of(const std::string& kernel, const std::string& mark) {
  std::stringstream text;
  text << std::ifstream(std::string(QUERN_PTX) + "/" + kernel + ".ptx").rdbuf() << "// " << mark << '\n';
  return text.str();
}

/// Milliseconds to load and launch; memory is allocated before.
double load_and_launch(const Session& session, const std::string& kernel, const std::string& text) {
  const auto a = session.device_array<float>(256), b = session.device_array<float>(256),
             c = session.device_array<float>(256);
  session.synchronize();
  const double start = now_ms();
  const Module module = session.load_ptx(text);
  if (kernel == "saxpy")
    module.kernel("saxpy")({.grid = 1, .block = {16, 16}})(256, 2.0f, a, b);
  else
    module.kernel("matmul")({.grid = 1, .block = {16, 16}})(a, b, c, 16);
  session.synchronize();
  return now_ms() - start;
}

double in_second_process(const std::string& kernel, const std::string& mark) {
  const std::string self = std::filesystem::read_symlink("/proc/self/exe");
  FILE* const output = ::popen(("'" + self + "' " + kernel + " " + mark).c_str(), "r");
  std::array<char, 64> line{};
  if (output == nullptr || std::fgets(line.data(), line.size(), output) == nullptr) std::exit(1);
  if (::pclose(output) != 0) std::exit(1);
  return std::strtod(line.data(), nullptr);
}

Times measure(const std::string& kernel) {
  Times least;
  for (int repeat = 0; repeat < kRepeats; ++repeat) {
    const std::string mark = std::to_string(repeat), text = text_of(kernel, mark);
    const Session session("cpu"), other({.device = "cpu", .isolated = true});
    least.cold = std::min(least.cold, load_and_launch(session, kernel, text));
    least.again = std::min(least.again, load_and_launch(session, kernel, text));
    least.session = std::min(least.session, load_and_launch(other, kernel, text));
    least.process = std::min(least.process, in_second_process(kernel, mark));
  }
  return least;
}

void row(const std::string& name, double ms, double cold, double limit) {
  fmt::print("{:<40}{:>10.3f}{:>10.2f}{:>8.3f}{:>8.2f}  {}\n", name, ms, cold, ms / cold, limit,
             ms / cold <= limit ? "ok" : "MISSED");
}

}  // namespace

int main(int argc, char** argv) {
  if (argc == 3) {
    const Session session("cpu");
    fmt::print("{}\n", load_and_launch(session, argv[1], text_of(argv[1], argv[2])));
    return 0;
  }
  std::string folder = (std::filesystem::temp_directory_path() / "quern-bench-XXXXXX").string();
  if (::mkdtemp(folder.data()) == nullptr) return 1;
  ::setenv("QUERN_CACHE", "1", 1);
  ::setenv("QUERN_CACHE_DIR", (folder + "/cache").c_str(), 1);
  fmt::print("{:<40}{:>10}{:>10}{:>8}{:>8}\n", "from PTX to the first result, ms", "known", "new", "ratio",
             "limit");
  for (const std::string kernel : {"saxpy", "matmul"}) {
    const Times times = measure(kernel);
    row(kernel + ", same text again", times.again, times.cold, 0.05);
    row(kernel + ", another session", times.session, times.cold, 0.05);
    row(kernel + ", second process", times.process, times.cold, 0.5);
  }
  std::filesystem::remove_all(folder);
}
