// SPDX-License-Identifier: Apache-2.0
// Checks and times the rows of the table, and prints one line a row: its name, its words, the milliseconds of
// the best native function and of the kernel, the limit of their ratio. tools/bench --styles, --third and
// --fourth run it on one thread and on all, and print the table.
#include <quern/quern.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>
#include <thread>

#include "data.hpp"
#include "row.hpp"

namespace quern::bench {
namespace {

using Clock = std::chrono::steady_clock;

struct Options {
  std::size_t threads = std::thread::hardware_concurrency();
  double milliseconds = 600;  ///< of measurement for each row
  std::regex filter{""};
  bool all_natives = false;  ///< print the times of each on stderr
  std::string set = "second";
};

constexpr double kNever = 1e30;

struct Times {
  std::vector<double> natives;
  double better = kNever, quern = kNever;
};

/// A row's kernel with its arrays on the device.
class DeviceRun {
 public:
  DeviceRun(const Session& session, const Row& row, const Kernel& kernel, const HostData& data)
      : session_(session), row_(row), kernel_(kernel), data_(data) {
    std::size_t array = 0;
    for (const Slot& slot : row.slots)
      if (slot.use != Slot::Use::number) {
        arrays_.push_back(session.device_array(std::span(slot.shape), slot.dtype));
        const std::size_t bytes = arrays_.back().buffer().size_bytes();
        arrays_.back().buffer().copy_from_host({data.arrays()[array++].data(), bytes});
      }
    array = 0;
    for (const Slot& slot : row.slots)
      if (slot.use == Slot::Use::number)
        arguments_.push_back(number(slot));
      else
        arguments_.emplace_back(arrays_[array++]);
  }

  void run() const {
    kernel_({.grid = row_.grid, .block = row_.block, .shared_bytes = row_.shared_bytes}).launch(arguments_);
    session_.synchronize();
  }
  void restore() const {
    for (const HostData::State& state : data_.states())
      arrays_[state.array].buffer().copy_from_host(state.first);
  }
  void copy_to(const HostData& data) const {
    for (std::size_t i = 0; i < arrays_.size(); ++i) {
      const DeviceBuffer& buffer = arrays_[i].buffer();
      buffer.copy_to_host({data.arrays()[i].data(), buffer.size_bytes()});
    }
  }

 private:
  static Argument number(const Slot& slot) {
    switch (slot.dtype) {
      case Dtype::float32:
        return Argument(static_cast<float>(slot.value));
      case Dtype::float64:
        return Argument(slot.value);
      case Dtype::uint32:
        return Argument(static_cast<std::uint32_t>(slot.value));
      default:
        return Argument(static_cast<std::int32_t>(slot.value));
    }
  }

  const Session& session_;
  const Row& row_;
  Kernel kernel_;
  const HostData& data_;
  std::vector<DeviceNDArray> arrays_;
  std::vector<Argument> arguments_;
};

bool agree(const Row& row, const char* what, const HostData& got, const HostData& expected) {
  const std::string difference = got.difference(expected);
  if (difference.empty()) return true;
  std::fprintf(stderr, "styles-bench: %s: %s differs: %s\n", row.name, what, difference.c_str());
  return false;
}

/// Checks the native functions against the reference and against each other, on one thread and on all.
bool check_natives(const Row& row, const HostData& expected, const HostData& start, std::size_t threads) {
  bool right = true;
  if (row.reference != nullptr) {
    const HostData plain(row), native(row);
    plain.run(row.reference, row.checked_pieces, 1);
    native.run(row.natives.front(), row.checked_pieces, 1);
    right = agree(row, "the native function", native, plain);
  }
  expected.run(row.natives.front(), row.pieces, 1);
  std::vector<Native> others(row.natives.begin() + 1, row.natives.end());
  if (row.better != nullptr) others.push_back(row.better);
  for (std::size_t i = 0; i < others.size() && right; ++i) {
    const HostData other(row);
    other.run(others[i], row.pieces, threads);
    right = agree(row, ("native function " + std::to_string(i + 1)).c_str(), other, expected);
  }
  start.run(row.natives.front(), row.pieces, threads);
  return right && agree(row, "the native function on all threads", start, expected);
}

template <class Function>
double milliseconds_of(Function function) {
  const Clock::time_point begin = Clock::now();
  function();
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

/// Takes turns, so that what else the machine does falls on all alike; the shortest times count. The kernel
/// runs after each native function: all find the caches as the other side left them. A native function that
/// followed another one would find a part of their arrays there.
Times measure(const Row& row, const DeviceRun& device, const HostData& host, const Options& options) {
  Times best{.natives = std::vector<double>(row.natives.size(), kNever)};
  const auto take = [&](double& shortest, Native native) {
    host.restore();
    shortest = std::min(shortest, milliseconds_of([&] { host.run(native, row.pieces, options.threads); }));
  };
  const auto take_kernel = [&] {
    device.restore();
    best.quern = std::min(best.quern, milliseconds_of([&] { device.run(); }));
  };
  const Clock::time_point begin = Clock::now();
  for (int turn = 0; turn < 3 || std::chrono::duration<double, std::milli>(Clock::now() - begin).count() <
                                     options.milliseconds;
       ++turn) {
    for (std::size_t i = 0; i < row.natives.size(); ++i) {
      take(best.natives[i], row.natives[i]);
      take_kernel();
    }
    if (row.better != nullptr) {
      take(best.better, row.better);
      take_kernel();
    }
  }
  return best;
}

/// Loads each file once.
class Modules {
 public:
  explicit Modules(const Session& session) : session_(session) {}
  Kernel kernel(const Row& row) {
    auto found = modules_.find(row.file);
    if (found == modules_.end())
      found =
          modules_.emplace(row.file, session_.load_file(std::string(QUERN_STYLE_KERNELS) + "/" + row.file))
              .first;
    return found->second.kernel(row.entry);
  }

 private:
  const Session& session_;
  std::map<std::string, Module> modules_;
};

bool run_row(const Session& session, Modules& modules, const Row& row, const Options& options) {
  const HostData host(row), expected(row);
  const DeviceRun device(session, row, modules.kernel(row), host);
  if (!check_natives(row, expected, host, options.threads)) return false;
  device.run();
  const HostData got(row);
  device.copy_to(got);
  if (!agree(row, "the kernel", got, expected)) return false;
  const Times times = measure(row, device, host, options);
  const std::string better = row.better == nullptr ? "" : std::to_string(times.better);
  std::printf("%s\t%s\t%.4f\t%.4f\t%g\t%s\n", row.name, row.what, std::ranges::min(times.natives),
              times.quern, row.limit, better.c_str());
  if (options.all_natives)
    for (const double native : times.natives) std::fprintf(stderr, "%s: native %.4f\n", row.name, native);
  std::fflush(stdout);
  return true;
}

using Table = std::vector<Row> (*)();

const std::map<std::string, std::vector<Table>> kSets{
    {"second", {sum_rows, map_rows, tile_rows, counting_rows, integer_rows, atomic_rows}},
    {"third", {third_rows}},
    {"fourth", {fourth_rows}},
};

bool run_all(const Options& options) {
  const auto set = kSets.find(options.set);
  if (set == kSets.end()) throw std::invalid_argument("no set of rows is called " + options.set);
  const Session session("cpu");
  Modules modules(session);
  bool right = true;
  for (const Table rows : set->second)
    for (const Row& row : rows())
      if (std::regex_search(row.name, options.filter))
        right = run_row(session, modules, row, options) && right;
  return right;
}

}  // namespace
}  // namespace quern::bench

int main(int count, char** words) {
  quern::bench::Options options;
  for (int i = 1; i + 1 < count; i += 2) {
    const std::string word = words[i];
    if (word == "--threads") options.threads = std::stoul(words[i + 1]);
    if (word == "--milliseconds") options.milliseconds = std::stod(words[i + 1]);
    if (word == "--all-natives") options.all_natives = std::string(words[i + 1]) == "1";
    if (word == "--filter") options.filter = words[i + 1];
    if (word == "--set") options.set = words[i + 1];
  }
  ::setenv("QUERN_CPU_WORKERS", std::to_string(options.threads).c_str(), 1);
  ::setenv("QUERN_CPU_TIER", "good", 0);  // no row times quick code
  try {
    return quern::bench::run_all(options) ? 0 : 1;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "styles-bench: %s\n", error.what());
    return 1;
  }
}
