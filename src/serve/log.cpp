// SPDX-License-Identifier: Apache-2.0
#include "serve/log.hpp"

#include <fcntl.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <ctime>
#include <nlohmann/json.hpp>

#include "quern/log.hpp"

namespace quern::serve {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kLevelNames[] = {"info", "warning", "error"};
constexpr spdlog::level::level_enum kLevels[] = {spdlog::level::info, spdlog::level::warn,
                                                 spdlog::level::err};

spdlog::logger& logger() {
  static const std::shared_ptr<spdlog::logger> each = [] {
    auto made = spdlog::stderr_logger_mt("quern-serve");
    made->set_pattern("%v");
    made->flush_on(spdlog::level::info);
    return made;
  }();
  return *each;
}

std::string now_text() {
  const auto now = std::chrono::system_clock::now();
  const auto ms =
      std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch()).count() % 1000;
  return fmt::format("{:%Y-%m-%dT%H:%M:%S}.{:03}Z", fmt::gmtime(std::chrono::system_clock::to_time_t(now)),
                     ms);
}

}  // namespace

void log_event(Level level, std::string_view event, LogFields fields) {
  const auto index = static_cast<std::size_t>(level);
  Json line = {{"time", now_text()}, {"level", kLevelNames[index]}, {"event", event}};
  for (const auto& [name, value] : fields)
    std::visit([&, key = std::string(name)](const auto& each) { line[key] = each; }, value);
  logger().log(kLevels[index], "{}", line.dump(-1, ' ', true, Json::error_handler_t::replace));
}

Expected<void> log_to(const std::string& file) {
  const int opened = ::open(file.c_str(), O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC, 0600);
  const bool good = opened >= 0 && ::dup2(opened, STDERR_FILENO) >= 0;
  const int reason = errno;
  if (opened >= 0) ::close(opened);
  if (good) return {};
  Diagnostic diagnostic;
  diagnostic.code = "io";
  diagnostic.message = fmt::format("cannot open the log file {}: {}", file, std::strerror(reason));
  diagnostic.hint = "name a file in a folder that the server's user may write to";
  return diagnostic;
}

void take_over_log() {
  set_log_handler([](const LogRecord& record) {
    if (record.level == LogLevel::debug) return;
    const Level level = record.level == LogLevel::error     ? Level::error
                        : record.level == LogLevel::warning ? Level::warning
                                                            : Level::info;
    log_event(level, "message", {{"text", record.text}});
  });
}

}  // namespace quern::serve
