// SPDX-License-Identifier: Apache-2.0
#include <cstdlib>
#include <string>
#include <vector>

#include "../../support/captured_output.hpp"
#include "support.hpp"

using namespace c;
using quern::test::output_of;

namespace {

// printf("n is %d\n", n) and assert(0), as nvcc compiles them.
constexpr const char* kTalkPtx = R"(.version 6.0
.target sm_50
.address_size 64
.extern .func (.param .b32 r) vprintf(.param .b64 format, .param .b64 arguments);
.extern .func __assertfail(.param .b64 m, .param .b64 f, .param .b32 l, .param .b64 n, .param .b64 s);
.global .align 1 .b8 text[9] = {110, 32, 105, 115, 32, 37, 100, 10, 0};
.global .align 1 .b8 word[2] = {120, 0};
.visible .entry talk(.param .u32 n)
{
  .local .align 8 .b8 frame[8];
  .reg .b32 %r<3>; .reg .b64 %d<5>;
  ld.param.u32 %r1, [n];
  mov.u64 %d1, frame; cvta.local.u64 %d2, %d1; st.local.u32 [frame], %r1;
  mov.u64 %d3, text; cvta.global.u64 %d4, %d3;
  { .param .b64 a; .param .b64 b; .param .b32 c; st.param.b64 [a], %d4; st.param.b64 [b], %d2;
    call (c), vprintf, (a, b); ld.param.b32 %r2, [c]; }
  ret;
}
.visible .entry fail()
{
  .reg .b64 %d<3>;
  mov.u64 %d1, word; cvta.global.u64 %d2, %d1;
  { .param .b64 a; .param .b64 b; .param .b32 l; .param .b64 n; .param .b64 s;
    st.param.b64 [a], %d2; st.param.b64 [b], %d2; st.param.b32 [l], 12; st.param.b64 [n], %d2; st.param.b64 [s], 1;
    call __assertfail, (a, b, l, n, s); }
  ret;
}
)";

struct Log {
  std::vector<QuernLogLevel> levels;
  std::vector<std::string> texts;
  std::vector<std::string> fields;  ///< "name=value"
  static void take(void* user, const QuernLogRecord* record) {
    auto& log = *static_cast<Log*>(user);
    CHECK(record->struct_bytes == sizeof(QuernLogRecord));
    if (record->level > QUERN_LOG_WARNING) return;
    log.levels.push_back(record->level);
    log.texts.emplace_back(record->text);
    for (std::size_t i = 0; i < record->field_count; ++i)
      log.fields.push_back(std::string(record->fields[i].name) + "=" + record->fields[i].value);
  }
};
struct Prints {
  std::vector<std::string> texts;
  std::string kernel;
  void* context = nullptr;
  static void take(void* user, const QuernDevicePrint* print) {
    auto& prints = *static_cast<Prints*>(user);
    CHECK(print->struct_bytes == sizeof(QuernDevicePrint));
    CHECK(print->text[print->text_bytes] == '\0');
    prints.texts.emplace_back(print->text, print->text_bytes);
    prints.kernel = print->kernel;
    prints.context = print->context;
  }
};

void talk(QuernSession session, std::uint32_t n) {
  const Kernel kernel = kernel_of(session, kTalkPtx, "talk");
  QUERN_GOOD(launch(kernel, launch_of(1, 1), {scalar_argument(QUERN_UINT32, &n)}));
  QUERN_GOOD(quern_session_synchronize(session));
}

}  // namespace

TEST_CASE("what kernels print goes to a function of C's, and back to stdout") {
  const Session session = open_cpu();
  Prints prints;
  QUERN_GOOD(quern_set_printf_handler(&Prints::take, &prints));
  CHECK(output_of([&] { talk(session, 7); }) == "");
  QUERN_GOOD(quern_set_printf_handler(nullptr, nullptr));
  CHECK(output_of([&] { talk(session, 8); }) == "n is 8\n");
  CHECK(prints.texts == std::vector<std::string>{"n is 7\n"});
  CHECK(prints.kernel == "talk");
  void* context = nullptr;
  QUERN_GOOD(quern_session_context(session, &context));
  CHECK(prints.context == context);
}

TEST_CASE("messages go to a function of C's with level and fields, and back to stderr") {
  Log log;
  QuernStatus status = QUERN_OK;
  const auto fail = [&] {
    Session session;
    QUERN_GOOD(quern_session_open_isolated("cpu", session.place()));
    const Kernel kernel = kernel_of(session, kTalkPtx, "fail");
    QUERN_GOOD(launch(kernel, launch_of(1, 1), {}));
    status = quern_session_synchronize(session);
  };
  QUERN_GOOD(quern_set_log_handler(&Log::take, &log));
  CHECK(output_of(fail) == "");
  CHECK(status == QUERN_DEVICE_FAULT);
  QUERN_GOOD(quern_set_log_handler(nullptr, nullptr));
  const std::string line = "x:12: x: block: [0,0,0], thread: [0,0,0] Assertion `x` failed.";
  CHECK(output_of(fail) == line + "\n");
  REQUIRE(log.texts.size() == 1);
  CHECK(log.levels[0] == QUERN_LOG_ERROR);
  CHECK(log.texts[0] == line);
  CHECK(log.fields == std::vector<std::string>{"device=quern CPU device", "kernel=fail", "file=x", "line=12",
                                               "block=[0,0,0]", "thread=[0,0,0]"});
}
