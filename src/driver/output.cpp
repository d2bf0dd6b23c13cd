// SPDX-License-Identifier: Apache-2.0
#include "driver/output.hpp"

#include <exception>
#include <string>
#include <utility>

#include "base/handler_slot.hpp"
#include "base/log.hpp"
#include "base/thread_annotations.hpp"
#include "quern/printf.hpp"

namespace quern {
namespace driver {
namespace {

using PrintSlot = base::HandlerSlot<void(const DevicePrint&)>;
PrintSlot& print_slot() {
  static auto* const slot = new PrintSlot;
  return *slot;
}

int take_record(const QuernCpuLogRecord* given) noexcept try {
  LogRecord record{static_cast<LogLevel>(given->level), given->text, {}};
  for (std::size_t i = 0; i < given->field_count; ++i)
    record.fields.push_back({given->fields[i].name, given->fields[i].value});
  return base::offer_log(record) ? 1 : 0;
} catch (...) {  // no memory
  return 0;
}

void warn_of_handler(const DevicePrint& print, std::string_view what) {
  base::log({LogLevel::warning,
             "the handler of device printf threw" + std::string(what),
             {{"kernel", std::string(print.kernel)}}});
}

int take_print(const QuernCpuPrint* given) noexcept try {
  const DevicePrint print{{given->text, given->text_bytes}, given->kernel, given->context};
  try {
    return print_slot().visit([&](const PrintfHandler& handler) { handler(print); }) ? 1 : 0;
  } catch (const std::exception& error) {
    warn_of_handler(print, std::string(": ") + error.what());
  } catch (...) {
    warn_of_handler(print, " what is no std::exception");
  }
  return 1;
} catch (...) {  // no memory to report it
  return 1;
}

/// Remembers a session whose printf output no handler receives.
struct OwnStdout {
  base::Mutex mutex;
  std::string device QUERN_GUARDED_BY(mutex);  ///< of the first such session; empty if there is none
  bool warned QUERN_GUARDED_BY(mutex) = false;
};
OwnStdout& own_stdout() {
  static auto* const instance = new OwnStdout;
  return *instance;
}

void warn_of_own_stdout() {
  if (print_slot().empty()) return;
  OwnStdout& own = own_stdout();
  std::string device;
  {
    const base::LockGuard lock(own.mutex);
    if (own.device.empty() || std::exchange(own.warned, true)) return;
    device = own.device;
  }
  base::log({LogLevel::warning,
             "the printf handler does not see what kernels on " + device +
                 " print: the CUDA driver writes it to stdout itself",
             {{"device", device}}});
}

}  // namespace

void take_output(const QuernCpuPlugin& plugin) noexcept {
  plugin.set_log_sink(&take_record);
  plugin.set_print_sink(&take_print);
}

void note_own_stdout(std::string_view device) {
  {
    OwnStdout& own = own_stdout();
    const base::LockGuard lock(own.mutex);
    if (own.device.empty()) own.device = device;
  }
  warn_of_own_stdout();
}

}  // namespace driver

PrintfHandler set_printf_handler(PrintfHandler handler) {
  PrintfHandler former = driver::print_slot().exchange(std::move(handler));
  driver::warn_of_own_stdout();
  return former;
}

}  // namespace quern
