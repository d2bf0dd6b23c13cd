// SPDX-License-Identifier: Apache-2.0
// quern test: every case on every device.
#include <fmt/format.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <memory>
#include <mutex>
#include <regex>
#include <thread>

#include "arrays/files.hpp"
#include "cases.hpp"
#include "command.hpp"
#include "commands.hpp"
#include "judge.hpp"
#include "terminal/output.hpp"
#include "terminal/progress.hpp"
#include "terminal/words.hpp"

namespace quern::cli {
namespace {

/// A device under test. A fault ends its context, so the session is replaced after one. Thread-safe.
class Bench {
 public:
  explicit Bench(const SessionOptions& options) : session_(options), label_(session_.device().label()) {}

  const std::string& label() const noexcept { return label_; }
  Session session() {
    const std::lock_guard lock(mutex_);
    return session_;
  }
  void replace() {
    const std::lock_guard lock(mutex_);
    session_ = Session(label_);
  }

 private:
  std::mutex mutex_;
  Session session_;
  const std::string label_;
};

/// A case on a device, with its outcome.
struct Outcome {
  const Case* of = nullptr;
  Bench* bench = nullptr;
  bool passed = false;
  bool ran = true;  ///< false where the grid is empty
  double seconds = 0;
  std::string message;
};

[[noreturn]] void fail(const std::string& message) { throw Error(ErrorCode::usage, message); }

/// Runs the case. Returns false if there was nothing to run.
bool run_case(const Session& session, const Case& of) {
  Job job(session, load_kernel(session, of.kernel, of.load, of.launch), of.launch);
  job.launch();
  if (const std::optional<std::string> wrong = wrong_result(session, of, job))
    throw Error(ErrorCode::internal, *wrong);
  return job.runs();
}

bool message_matches(const std::string& message, const std::string& pattern) {
  if (message.find(pattern) != std::string::npos) return true;
  try {
    return std::regex_search(message, std::regex(pattern));
  } catch (const std::regex_error&) {
    return false;
  }
}

void judge(Outcome& outcome) {
  const Case& of = *outcome.of;
  bool fault = false;
  try {
    outcome.ran = run_case(outcome.bench->session(), of);
    outcome.passed = !of.error.has_value();
    if (!outcome.passed)
      outcome.message = fmt::format("it succeeded, where an error with '{}' is expected", *of.error);
  } catch (const std::exception& error) {
    const auto* known = dynamic_cast<const Error*>(&error);
    fault = known != nullptr && known->code() == ErrorCode::device_fault;
    outcome.message = with_command_words(error.what());
    outcome.passed = of.error && message_matches(outcome.message, *of.error);
    if (of.error && !outcome.passed)
      outcome.message = fmt::format("its message does not hold '{}': {}", *of.error, outcome.message);
  }
  if (fault) outcome.bench->replace();  // after the case's own objects are destroyed
}

std::string title(const Outcome& outcome) {
  return fmt::format("{}: {} [{}]", outcome.of->file.string(), outcome.of->name, outcome.bench->label());
}

void print(const Outcome& outcome) {
  const std::string text = outcome.passed
                               ? fmt::format("ok      {} ({:.2f} s{}{})\n", title(outcome), outcome.seconds,
                                             outcome.ran ? "" : "; ", outcome.ran ? "" : kNothingRan)
                               : fmt::format("FAILED  {}\n        {}\n", title(outcome), outcome.message);
  end_line();
  std::fputs(text.c_str(), stdout);  // not fmt::print: a thread must not end in an exception
}

/// Runs the outcomes from `begin` to `end`, `jobs` at a time.
void run_range(std::vector<Outcome>& outcomes, std::size_t begin, std::size_t end, unsigned jobs,
               const TestSettings& settings, Progress& progress) {
  std::atomic<std::size_t> next = begin;
  const auto work = [&] {
    for (std::size_t i = next++; i < end; i = next++) {
      const auto start = std::chrono::steady_clock::now();
      judge(outcomes[i]);
      outcomes[i].seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
      const bool silent = settings.json || (settings.quiet && outcomes[i].passed);
      progress.done(title(outcomes[i]), silent ? std::function<void()>() : [&] { print(outcomes[i]); });
    }
  };
  std::vector<std::thread> threads;
  for (unsigned i = 1; i < jobs; ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
}

/// Cases that must fail are last and run one by one, since a fault ends all other work on the device.
void run_all(std::vector<Outcome>& outcomes, const TestSettings& settings) {
  std::vector<Outcome> ordered;  // not stable_partition, which uses deprecated functions of libstdc++
  for (const bool must_fail : {false, true})
    std::copy_if(outcomes.begin(), outcomes.end(), std::back_inserter(ordered),
                 [must_fail](const Outcome& o) { return o.of->error.has_value() == must_fail; });
  outcomes = std::move(ordered);
  const auto must_work =
      std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return !o.of->error; });
  const auto middle = static_cast<std::size_t>(must_work);
  Progress progress(outcomes.size(), settled(settings.progress, settings.quiet, settings.json));
  run_range(outcomes, 0, middle, settings.jobs, settings, progress);
  run_range(outcomes, middle, outcomes.size(), 1, settings, progress);
}

std::string xml(const std::string& text) {
  std::string escaped;
  for (const char c : text) {
    if (c == '&')
      escaped += "&amp;";
    else if (c == '<')
      escaped += "&lt;";
    else if (c == '>')
      escaped += "&gt;";
    else if (c == '"')
      escaped += "&quot;";
    else if (static_cast<unsigned char>(c) >= 32 || c == '\n' || c == '\t')
      escaped += c;
  }
  return escaped;
}

std::string junit_text(const std::vector<Outcome>& outcomes, std::size_t failed) {
  std::string text = fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuite name=\"quern\" tests=\"{}\" failures=\"{}\">\n",
      outcomes.size(), failed);
  for (const Outcome& outcome : outcomes) {
    text += fmt::format("  <testcase classname=\"{}\" name=\"{} [{}]\" time=\"{:.3f}\"",
                        xml(outcome.of->file.string()), xml(outcome.of->name), outcome.bench->label(),
                        outcome.seconds);
    text +=
        outcome.passed ? "/>\n" : fmt::format("><failure>{}</failure></testcase>\n", xml(outcome.message));
  }
  return text + "</testsuite>\n";
}

Json document(const std::vector<Outcome>& outcomes, std::size_t failed) {
  Json rows = Json::array();
  for (const Outcome& outcome : outcomes)
    rows.push_back({{"file", outcome.of->file.string()},
                    {"name", outcome.of->name},
                    {"device", outcome.bench->label()},
                    {"status", outcome.passed ? "passed" : "failed"},
                    {"seconds", outcome.seconds},
                    {"message", outcome.passed ? "" : outcome.message}});
  return {{"passed", outcomes.size() - failed}, {"failed", failed}, {"cases", rows}};
}

std::vector<std::unique_ptr<Bench>> open_benches(const TestSettings& settings) {
  std::vector<std::unique_ptr<Bench>> benches;
  if (!settings.device.empty()) {
    benches.push_back(std::make_unique<Bench>(SessionOptions{settings.device}));
    return benches;
  }
  for (const Device& device : devices())
    benches.push_back(std::make_unique<Bench>(SessionOptions{device.label()}));
  if (benches.empty()) fail_without_device();
  return benches;
}

std::vector<Case> read_all(const TestSettings& settings) {
  std::vector<Case> cases;
  for (const std::string& path : settings.paths)
    for (const std::filesystem::path& file : find_case_files(path))
      for (Case& of : read_cases(file))
        if (settings.word.empty() ||
            (of.file.string() + ": " + of.name).find(settings.word) != std::string::npos)
          cases.push_back(std::move(of));
  if (cases.empty())
    fail(
        "there are no cases to run: the paths hold no *.case.toml file whose cases match\nhint: check PATH "
        "and -k");
  return cases;
}

}  // namespace

int test_command(const TestSettings& settings) {
  keep_off_document(settings.junit);
  const std::vector<Case> cases = read_all(settings);
  const std::vector<std::unique_ptr<Bench>> benches = open_benches(settings);
  std::vector<Outcome> outcomes;
  for (const std::unique_ptr<Bench>& bench : benches)
    for (const Case& of : cases) outcomes.push_back({&of, bench.get()});
  run_all(outcomes, settings);
  std::size_t failed = 0;
  for (const Outcome& outcome : outcomes) failed += outcome.passed ? 0 : 1;
  if (!settings.junit.empty()) write_whole_file(settings.junit, junit_text(outcomes, failed));
  end_line();
  if (settings.json)
    print_json(document(outcomes, failed));
  else
    fmt::print("{} passed, {} failed\n", outcomes.size() - failed, failed);
  return failed == 0 ? kDone : kFailed;
}

}  // namespace quern::cli
