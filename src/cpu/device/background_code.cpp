// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/background_code.hpp"

#include <sched.h>

#include <algorithm>
#include <atomic>
#include <thread>
#include <utility>

#include "base/thread_annotations.hpp"
#include "cpu/device/module/code_cache.hpp"
#include "quern/error.hpp"

namespace quern::cpu::device {
namespace {

/// The number of codes that are being made, or wait for a thread.
std::atomic<int> open_count{0};

/// Counts from begin() on until the work has ended, or was never queued.
class Open {
 public:
  Open() noexcept { ++open_count; }
  ~Open() { --open_count; }
  Open(const Open&) = delete;
  Open& operator=(const Open&) = delete;
};

/// Lets a part of the processors' number of threads compile at a time: the others are for launches.
class Turn {
 public:
  Turn() {
    Turns& turns = all();
    const base::LockGuard lock(turns.mutex);
    turns.freed.wait(turns.mutex, [&]() QUERN_NO_THREAD_SAFETY_ANALYSIS { return turns.left > 0; });
    --turns.left;
  }
  ~Turn() {
    Turns& turns = all();
    {
      const base::LockGuard lock(turns.mutex);
      ++turns.left;
    }
    turns.freed.notify_all();
  }
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

 private:
  struct Turns {
    base::Mutex mutex;
    base::ConditionVariable freed;
    unsigned left QUERN_GUARDED_BY(mutex) = std::clamp(std::thread::hardware_concurrency() / 2, 1U,
                                                       base::kMostBackgroundThreads);
  };
  /// Never destroyed: threads compile until the process ends.
  static Turns& all() {
    static auto* const turns = new Turns;
    return *turns;
  }
};

/// A launching thread may have real-time priority, which its threads inherit. Where the system refuses,
/// nothing is lost.
void take_usual_priority() noexcept {
  const sched_param usual{};
  static_cast<void>(::sched_setscheduler(0, SCHED_BATCH, &usual));
}

}  // namespace

std::shared_ptr<const BackgroundCode> BackgroundCode::begin(std::shared_ptr<const SharedPtx> ptx,
                                                            std::string kernel,
                                                            const Specialisation& specialisation) {
  auto made = std::make_shared<Made>();
  const auto open = std::make_shared<const Open>();
  auto work = [made, open, ptx = std::move(ptx), kernel = std::move(kernel), specialisation] {
    take_usual_priority();
    const Turn turn;
    const auto code = shared_code(
        ptx->digest, kernel, specialisation,
        [&] { return compile_image(ptx->module, kernel, specialisation); }, Maker::background);
    if (code) made->code = *code;
  };
  try {
    auto task = base::run_in_background("make machine code", std::move(work));
    return std::shared_ptr<const BackgroundCode>(new BackgroundCode(std::move(made), std::move(task)));
  } catch (const Error&) {
    return nullptr;
  }
}

void wait_for_background_code(std::chrono::steady_clock::time_point end) noexcept {
  constexpr std::chrono::milliseconds kPoll{1};
  while (open_count.load() != 0 && std::chrono::steady_clock::now() < end) std::this_thread::sleep_for(kPoll);
}

}  // namespace quern::cpu::device
