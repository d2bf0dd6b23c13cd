// SPDX-License-Identifier: Apache-2.0
// Threads work in sessions of their own, while kernels of others fault: each gets the fault as an error,
// opens a new session and continues. No thread ever reads another's data, and isolated sessions are not
// affected.
#include <atomic>
#include <deque>
#include <optional>
#include <quern/quern.hpp>
#include <string>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr std::size_t kCount = 512;
constexpr int kFaults = 60;
constexpr const char* kWild = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry wild()
{
  .reg .b64 %d;
  mov.u64 %d, 64;
  st.global.u32 [%d], 1;
  ret;
})";

/// The numbers that array `serial` of thread `thread` holds.
std::vector<std::uint32_t> numbers(unsigned thread, unsigned serial) {
  std::vector<std::uint32_t> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i)
    values[i] = (thread << 28) + serial * 1024 + static_cast<std::uint32_t>(i);
  return values;
}

bool is_fault(const quern::Error& error) {
  const auto* of_driver = dynamic_cast<const quern::DriverError*>(&error);
  return error.code() == quern::ErrorCode::device_fault && of_driver != nullptr &&
         of_driver->result_name() == "CUDA_ERROR_ILLEGAL_ADDRESS";
}

class Tenant {
 public:
  Tenant(unsigned thread, bool streams, const quern::SessionOptions& options)
      : thread_(thread), streams_(streams), options_(options) {}

  void run(const std::atomic<bool>& stop) {
    while (!stop) try {
        work(stop);
      } catch (const quern::Error& error) {
        EXPECT(is_fault(error));
        ++losses;
      }
  }
  unsigned rounds = 0, losses = 0;

 private:
  struct Kept {
    quern::DeviceArray<std::uint32_t> array;
    unsigned serial;
  };

  void work(const std::atomic<bool>& stop) {
    const quern::Session session(options_);
    const std::optional<quern::Stream> stream = streams_ ? std::optional(session.stream()) : std::nullopt;
    std::deque<Kept> kept;
    for (; !stop; ++rounds) {
      const unsigned serial = ++serial_;
      if (stream)
        kept.push_back({session.to_device(numbers(thread_, serial), *stream), serial});
      else
        kept.push_back({session.to_device(numbers(thread_, serial)), serial});
      if (kept.size() > 50) kept.pop_front();
      const Kept& one = kept[rounds * 7 % kept.size()];
      std::vector<std::uint32_t> back(kCount);
      if (stream) {
        one.array.copy_to_host(back, *stream);
        stream->synchronize();
      } else {
        one.array.copy_to_host(back);
      }
      EXPECT(back == numbers(thread_, one.serial));
    }
  }

  const unsigned thread_;
  const bool streams_;
  const quern::SessionOptions options_;
  unsigned serial_ = 0;
};

void fault_once() {
  try {
    const quern::Session session("cpu");
    session.load_ptx(kWild).kernel("wild")({.grid = 1, .block = 32})();
    session.synchronize();
    EXPECT(false);  // a wild store was not noticed
  } catch (const quern::Error& error) {
    EXPECT(is_fault(error));
  }
}

}  // namespace

int main() {
  const quern::SessionOptions shared{.device = "cpu"}, isolated{.device = "cpu", .isolated = true};
  std::deque<Tenant> tenants;
  for (unsigned thread = 0; thread < 6; ++thread) tenants.emplace_back(thread, thread % 2 == 0, shared);
  for (unsigned thread = 6; thread < 8; ++thread) tenants.emplace_back(thread, thread % 2 == 0, isolated);
  std::atomic<bool> stop = false;
  std::vector<std::thread> threads;
  for (Tenant& tenant : tenants) threads.emplace_back([&] { tenant.run(stop); });
  for (int i = 0; i < kFaults; ++i) fault_once();
  stop = true;
  for (std::thread& thread : threads) thread.join();
  unsigned losses = 0;
  for (std::size_t i = 0; i < tenants.size(); ++i) {
    if (i < 6) losses += tenants[i].losses;
    if (i >= 6) EXPECT(tenants[i].losses == 0);
  }
  EXPECT(losses > 0);
  std::puts("ok");
}
