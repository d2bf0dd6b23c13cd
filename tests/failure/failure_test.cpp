// SPDX-License-Identifier: Apache-2.0
// In every scenario, every driver call of the layer fails once. Checks that nothing leaks, nothing is
// released twice, either an error is reported or the values are correct, and later work succeeds.
#include <doctest/doctest.h>

#include <cstdio>
#include <cstdlib>
#include <string>

#include "audit.hpp"
#include "device.hpp"
#include "driver/function_facts.hpp"
#include "host_memory.hpp"
#include "scenarios.hpp"
#include "session/state.hpp"

using namespace quern;
using namespace quern::failure;

namespace {

enum class Outcome { right, wrong, reported, other_error, no_host_memory, not_opened };

struct Run {
  Outcome outcome = Outcome::not_opened;
  std::string text;
  int result = 0;  ///< of the DriverError
  std::weak_ptr<const runtime::Context> context;
};

/// Runs one scenario with a separate session and drops everything at the end.
Run run(const Scenario& scenario) {
  Run run;
  try {
    const Session session = AuditedDevice::get().open_session();
    run.context = session.default_stream().context()->weak_from_this();
    run.outcome = scenario.run(session) ? Outcome::right : Outcome::wrong;
  } catch (const DriverError& error) {
    run.outcome = Outcome::reported;
    run.text = error.what();
    run.result = error.result();
  } catch (const Error& error) {
    run.outcome = Outcome::other_error;
    run.text = error.what();
  }
  return run;
}

/// The same, while this thread's host memory is exhausted at its `nth` allocation (0: never).
Run run_short(const Scenario& scenario, std::uint64_t nth, bool for_good) {
  const ShortOfMemory scope(nth, for_good);
  Run run;
  try {
    const Session session = AuditedDevice::get().open_session();
    run.outcome = scenario.run(session) ? Outcome::right : Outcome::wrong;
  } catch (const std::bad_alloc&) {
    ShortOfMemory::end();
    run.outcome = Outcome::no_host_memory;
  } catch (const Error& error) {
    ShortOfMemory::end();
    run.outcome = Outcome::other_error;
    run.text = error.what();
  }
  return run;
}

/// The calls that release something. If one fails, that one resource is lost, and the loss is reported. A
/// release needs its context, so it may fail while it makes the context current.
bool is_release(const std::string& call) {
  const driver::FunctionFacts* const function = driver::find_function(call);
  return function != nullptr && (function->releases != driver::DriverObject::none ||
                                 function->creates == driver::DriverObject::current);
}

std::string live_text() {
  std::string text;
  for (const auto& [what, handle] : audit().live) text += what + " ";
  return text;
}

/// The resources of a lost context end with it. Here the loss is only simulated, so this function releases
/// them.
void reset_context() {
  const driver::DriverTable& real = AuditedDevice::get().plugin.table;
  CUcontext none = nullptr;
  while (real.cuCtxPopCurrent_v2(&none) == CUDA_SUCCESS) {
  }
  real.cuDevicePrimaryCtxReset_v2(0);
  clear_audit();
}

std::uint64_t calls_of(const Scenario& scenario) {
  driver::FailingTable& table = *AuditedDevice::get().table;
  const std::uint64_t before = table.call_count();
  const Run whole = run(scenario);
  REQUIRE_MESSAGE(whole.outcome == Outcome::right, whole.text);
  REQUIRE_MESSAGE(audit().live.empty(), live_text());
  REQUIRE(audit().wrong.empty());
  return table.call_count() - before;
}

/// Runs every call only if requested (tools/check_memory), since that takes a minute or two.
std::uint64_t step() { return std::getenv("QUERN_FAILURE_ALL") != nullptr ? 1 : 28; }

void check_later_work() {
  const Run after = run(scenarios()[0]);
  CHECK_MESSAGE(after.outcome == Outcome::right, after.text);
}

}  // namespace

TEST_CASE("each driver call of each scenario fails once, with each kind of error") {
  driver::FailingTable& table = *AuditedDevice::get().table;
  std::uint64_t rounds = 0, reported = 0;
  for (const Scenario& scenario : scenarios()) {
    const std::uint64_t calls = calls_of(scenario);
    for (const CUresult result :
         {CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_INVALID_VALUE, CUDA_ERROR_NOT_SUPPORTED})
      for (std::uint64_t nth = 1 + rounds % step(); nth <= calls; nth += step()) {
        const std::uint64_t before = table.call_count();
        REQUIRE(table.fail_call(nth, result));
        const Run one = run(scenario);
        table.clear_failures();
        const auto trace = table.trace();
        const std::size_t at = trace.size() - static_cast<std::size_t>(table.call_count() - before) + nth - 1;
        const std::string call = at < trace.size() ? trace[at] : "?";
        CAPTURE(scenario.name);
        CAPTURE(nth);
        CAPTURE(call);
        CAPTURE(one.text);
        CAPTURE(static_cast<int>(result));
        ++rounds;
        reported += one.outcome == Outcome::reported;
        CHECK(one.outcome != Outcome::wrong);
        if (one.outcome == Outcome::reported) CHECK(one.result == static_cast<int>(result));
        CHECK(one.context.expired());
        CHECK(audit().wrong.empty());
        CHECK_MESSAGE(audit().live.size() <= (is_release(call) ? 1 : 0), live_text());
        reset_context();
      }
    check_later_work();
    clear_audit();
  }
  std::printf("failure run: %llu rounds in %zu scenarios, %llu reported, the others came out right\n",
              static_cast<unsigned long long>(rounds), scenarios().size(),
              static_cast<unsigned long long>(reported));
}

TEST_CASE(
    "a context that is lost at any call ends in that error, without a crash or a hang, and a new session "
    "works") {
  driver::FailingTable& table = *AuditedDevice::get().table;
  std::uint64_t rounds = 0, reported = 0;
  for (const Scenario& scenario : scenarios()) {
    const std::uint64_t calls = calls_of(scenario);
    for (const CUresult result : {CUDA_ERROR_ILLEGAL_ADDRESS, CUDA_ERROR_LAUNCH_FAILED})
      for (std::uint64_t nth = 1 + rounds % step(); nth <= calls; nth += step()) {
        table.fail_from(nth, result);
        const Run one = run(scenario);
        table.clear_failures();
        CAPTURE(scenario.name);
        CAPTURE(nth);
        CAPTURE(static_cast<int>(result));
        CAPTURE(one.text);
        ++rounds;
        reported += one.outcome == Outcome::reported;
        CHECK(one.outcome != Outcome::wrong);
        if (one.outcome == Outcome::reported) CHECK(one.result == static_cast<int>(result));
        // The context releases the device's memory. Nothing that the layer created remains.
        CHECK(one.context.expired());
        CHECK(audit().wrong.empty());
        reset_context();
      }
    check_later_work();
  }
  std::printf("lost contexts: %llu rounds in %zu scenarios, %llu reported, the others came out right\n",
              static_cast<unsigned long long>(rounds), scenarios().size(),
              static_cast<unsigned long long>(reported));
}

TEST_CASE("host memory that runs out at any allocation of the layer's leaks nothing and ends nothing") {
  std::uint64_t rounds = 0, reported = 0;
  for (const Scenario& scenario : scenarios()) {
    if (scenario.compiles) continue;  // skips tens of thousands of allocations that the layer does not make
    (void)calls_of(scenario);         // creates the objects that exist once in a process
    REQUIRE(run_short(scenario, 0, false).outcome == Outcome::right);
    const std::uint64_t allocations = ShortOfMemory::count();
    for (const bool for_good : {false, true})
      for (std::uint64_t nth = 1 + rounds % (2 * step()); nth <= allocations; nth += 2 * step() - 1) {
        const Run one = run_short(scenario, nth, for_good);
        CAPTURE(scenario.name);
        CAPTURE(nth);
        CAPTURE(for_good);
        CAPTURE(one.text);
        ++rounds;
        reported += one.outcome != Outcome::right;
        CHECK(one.outcome != Outcome::wrong);
        CHECK(audit().wrong.empty());
        CHECK_MESSAGE(audit().live.empty(), live_text());
        clear_audit();
      }
    check_later_work();
    CHECK_MESSAGE(audit().live.empty(), live_text());
    clear_audit();
  }
  std::printf(
      "short of host memory: %llu rounds in %zu scenarios, %llu reported, the others came out right\n",
      static_cast<unsigned long long>(rounds), scenarios().size(), static_cast<unsigned long long>(reported));
}
