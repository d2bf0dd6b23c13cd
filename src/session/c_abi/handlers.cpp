// SPDX-License-Identifier: Apache-2.0
// The C ABI: handlers of messages, of the output of kernels, and of progress.
#include <string>
#include <vector>

#include "session/c_abi/handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

static_assert(static_cast<int>(LogLevel::error) == QUERN_LOG_ERROR &&
              static_cast<int>(LogLevel::warning) == QUERN_LOG_WARNING &&
              static_cast<int>(LogLevel::info) == QUERN_LOG_INFO &&
              static_cast<int>(LogLevel::debug) == QUERN_LOG_DEBUG);

void give_record(QuernLogHandler handler, void* user, const LogRecord& record) {
  std::vector<QuernLogField> fields;
  for (const LogField& field : record.fields) fields.push_back({field.name.c_str(), field.value.c_str()});
  const QuernLogRecord given{sizeof given, static_cast<QuernLogLevel>(record.level), record.text.c_str(),
                             fields.size(), fields.data()};
  handler(user, &given);
}

void give_print(QuernPrintfHandler handler, void* user, const DevicePrint& print) {
  const std::string text(print.text);
  const std::string kernel(print.kernel);
  const QuernDevicePrint given{sizeof given, 0, text.c_str(), text.size(), kernel.c_str(), print.context};
  handler(user, &given);
}

static_assert(static_cast<int>(ProgressStage::translate) == QUERN_PROGRESS_TRANSLATE &&
              static_cast<int>(ProgressStage::generate) == QUERN_PROGRESS_GENERATE &&
              static_cast<int>(ProgressStage::copy_to_host) == QUERN_PROGRESS_COPY_TO_HOST);

bool give_progress(QuernProgressHandler handler, void* user, const Progress& progress) {
  const std::string name(progress.name);
  const QuernProgress given{sizeof given,
                            static_cast<QuernProgressStage>(progress.stage),
                            name.c_str(),
                            progress.done,
                            progress.total,
                            progress.finished ? 1 : 0,
                            0};
  return handler(user, &given) == 0;
}

}  // namespace

QuernStatus quern_set_log_handler(QuernLogHandler handler, void* user) {
  return guarded([&] {
    if (handler == nullptr) return static_cast<void>(set_log_handler({}));
    set_log_handler([=](const LogRecord& record) { give_record(handler, user, record); });
  });
}

QuernStatus quern_set_printf_handler(QuernPrintfHandler handler, void* user) {
  return guarded([&] {
    if (handler == nullptr) return static_cast<void>(set_printf_handler({}));
    set_printf_handler([=](const DevicePrint& print) { give_print(handler, user, print); });
  });
}

QuernStatus quern_session_set_progress(QuernSession session, QuernProgressHandler handler, void* user) {
  return guarded([&] {
    const Session in = session_of(session);
    if (handler == nullptr) return static_cast<void>(in.set_progress({}));
    in.set_progress([=](const Progress& progress) { return give_progress(handler, user, progress); });
  });
}
