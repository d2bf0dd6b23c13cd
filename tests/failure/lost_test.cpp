// SPDX-License-Identifier: Apache-2.0
// A kernel's fault ends a context while sessions of other threads use it.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <deque>
#include <functional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fault_kernels.hpp"

using namespace quern;
using quern::failure::kKernels;

namespace {

constexpr std::size_t kCount = 256;

unsigned long number(const char* variable, unsigned long otherwise) {
  const char* text = std::getenv(variable);
  return text != nullptr ? std::strtoul(text, nullptr, 10) : otherwise;
}

/// Counts errors and prints the first few.
struct Complaints {
  std::atomic<int> count = 0;
  void add(const std::string& text) {
    if (count.fetch_add(1) < 5) std::fprintf(stderr, "lost_test: %s\n", text.c_str());
  }
};

void require_fault(const Error& error, Complaints& complaints) {
  const auto* of_driver = dynamic_cast<const DriverError*>(&error);
  if (error.code() != ErrorCode::device_fault || of_driver == nullptr)
    return complaints.add(std::string("another error than device_fault: ") + error.what());
  if (of_driver->result_name() != "CUDA_ERROR_ILLEGAL_ADDRESS" || of_driver->result_text().empty())
    complaints.add(std::string("the error does not tell of the fault: ") + error.what());
}

std::vector<std::uint32_t> filled(std::uint32_t first) {
  std::vector<std::uint32_t> values(kCount);
  for (std::size_t i = 0; i < kCount; ++i) values[i] = first + static_cast<std::uint32_t>(i);
  return values;
}

/// The work of one thread: a session with arrays of known contents, until a fault ends it; then a new
/// session. Calls on objects of the lost session must fail, and its host memory must not change.
class Tenant {
 public:
  Tenant(unsigned seed, bool streams, Complaints& complaints, const SessionOptions& options)
      : random_(seed), streams_(streams), complaints_(complaints), options_(options) {}

  void run(const std::atomic<bool>& stop) {
    while (!stop.load()) {
      try {
        Work work(options_, streams_);
        try {
          while (!stop.load()) step(work);
        } catch (const Error& error) {
          require_fault(error, complaints_);
          ++losses;
          inspect(work);
        }
      } catch (const Error& error) {  // the new session's context may be lost before it is ready
        require_fault(error, complaints_);
        ++losses;
      }
    }
  }

  std::atomic<unsigned long> steps = 0;
  std::atomic<unsigned long> losses = 0;

 private:
  struct Kept {
    DeviceNDArray array;
    std::uint32_t first;
  };
  struct Pinned {
    NDArray array;
    std::uint32_t first;
  };
  struct Work {
    Session session;
    std::optional<Stream> stream;
    std::optional<Kernel> add;
    std::deque<Kept> kept;
    std::deque<Pinned> pinned;
    std::deque<MappedNDArray> mapped;

    Work(const SessionOptions& options, bool streams) : session(options) {
      if (streams) stream = session.stream();
    }
  };

  std::uint32_t next() { return value_ += 1000 + static_cast<std::uint32_t>(random_() % 1000); }

  void compare(const NDArray& array, std::uint32_t first, const char* what) {
    for (std::size_t i = 0; i < kCount; ++i)
      if (array.at<std::uint32_t>(i) != first + i)
        return complaints_.add(std::string("wrong data in ") + what);
  }
  NDArray fetched(Work& work, const DeviceNDArray& array) {
    if (!work.stream) return array.copy_to_host();
    NDArray result = array.copy_to_host(*work.stream);
    work.stream->synchronize();
    return result;
  }

  void make(Work& work) {
    const std::uint32_t first = next();
    const std::vector<std::uint32_t> values = filled(first);
    if (work.stream)
      work.kept.push_back({work.session.to_device(values, *work.stream), first});
    else
      work.kept.push_back({work.session.to_device(values), first});
    if (work.kept.size() > 20) work.kept.pop_front();
  }
  void check(Work& work) {
    if (work.kept.empty()) return;
    const Kept& kept = work.kept[random_() % work.kept.size()];
    compare(fetched(work, kept.array), kept.first, "device memory");
  }
  void launch(Work& work) {
    if (work.kept.empty()) return;
    if (!work.add) work.add = work.session.load_ptx(kKernels).kernel("add");
    Kept& kept = work.kept[random_() % work.kept.size()];
    LaunchConfig config{.grid = 1, .block = kCount};
    if (work.stream) config.stream = *work.stream;
    (*work.add)(config)(kept.array, 7u);
    kept.first += 7;
  }
  void pin(Work& work) {
    const std::uint32_t first = next();
    NDArray array = work.session.pinned_array({kCount}, Dtype::uint32);
    for (std::size_t i = 0; i < kCount; ++i)
      array.at<std::uint32_t>(i) = first + static_cast<std::uint32_t>(i);
    work.pinned.push_back({array, first});
    DeviceNDArray copy = work.session.device_array({kCount}, Dtype::uint32);
    if (work.stream)
      copy.copy_to_device(array, *work.stream);
    else
      copy.copy_to_device(array);
    compare(fetched(work, copy), first, "a copy of pinned memory");
    if (work.pinned.size() > 5) work.pinned.pop_front();
  }
  void map(Work& work, bool managed) {
    const std::uint32_t first = next();
    const MappedNDArray array = managed ? work.session.managed_array({kCount}, Dtype::uint32)
                                        : work.session.mapped_array({kCount}, Dtype::uint32);
    const NDArray host = array.host();
    for (std::size_t i = 0; i < kCount; ++i)
      host.at<std::uint32_t>(i) = first + static_cast<std::uint32_t>(i);
    work.mapped.push_back(array);
    if (!work.add) work.add = work.session.load_ptx(kKernels).kernel("add");
    (*work.add)({.grid = 1, .block = kCount})(array, 3u);
    work.session.synchronize();
    compare(host, first + 3, managed ? "managed memory" : "mapped memory");
    if (work.mapped.size() > 5) work.mapped.pop_front();
  }
  void scope(Work& work) {
    const std::uint32_t first = next();
    std::vector<std::uint32_t> values = filled(first);
    const PinnedScope pinned = work.session.pinned({NDArray::view(values)});
    const DeviceNDArray array = work.session.device_array({kCount}, Dtype::uint32);
    const NDArray view = NDArray::view(values);
    if (work.stream) {
      array.copy_to_device(view, *work.stream);
      work.stream->synchronize();
    } else {
      array.copy_to_device(view);
    }
    compare(fetched(work, array), first, "a copy of memory that was pinned for a scope");
  }
  void callback(Work& work) {
    if (!work.stream) return;
    // Only the target of the copy outlives the synchronisation.
    auto target = std::make_unique<std::atomic<int>>(0);
    work.stream->add_callback([where = target.get()] { where->fetch_add(1); });
    try {
      work.stream->synchronize();
    } catch (const Error&) {
      target.reset();
      throw;
    }
    if (*target != 1) complaints_.add("a callback did not run before the stream was waited for");
  }
  void pool(Work& work) {
    work.session.set_allocator(random_() % 2 == 0 ? work.session.caching_pool() : nullptr);
    for (int i = 0; i < 3; ++i) make(work);
  }

  void step(Work& work) {
    ++steps;
    switch (random_() % 12) {
      case 0:
      case 1:
      case 2:
        return make(work);
      case 3:
      case 4:
      case 5:
        return check(work);
      case 6:
      case 7:
        return launch(work);
      case 8:
        return pin(work);
      case 9:
        return map(work, random_() % 2 == 0);
      case 10:
        return random_() % 2 == 0 ? scope(work) : callback(work);
      default:
        return pool(work);
    }
  }

  template <class Call>
  void must_refuse(Call&& call, const char* what) {
    try {
      call();
      complaints_.add(std::string("not refused after a fault: ") + what);
    } catch (const Error& error) {
      require_fault(error, complaints_);
    }
  }
  /// Everything of a lost session returns the fault, however many sessions were opened since.
  void inspect(Work& work) {
    if (random_() % 2 == 0) std::this_thread::yield();
    for (const Kept& kept : work.kept) must_refuse([&] { kept.array.copy_to_host(); }, "a copy to the host");
    must_refuse([&] { work.session.device_array({kCount}); }, "an allocation");
    must_refuse([&] { work.session.synchronize(); }, "a synchronization");
    if (work.stream) must_refuse([&] { work.stream->synchronize(); }, "a stream");
    if (work.add && !work.kept.empty())
      must_refuse([&] { (*work.add)({.grid = 1, .block = kCount})(work.kept.front().array, 1u); },
                  "a launch");
    for (const Pinned& pinned : work.pinned)
      compare(pinned.array, pinned.first, "pinned memory of a lost session");
    for (const MappedNDArray& mapped : work.mapped) mapped.host().at<std::uint32_t>(0) = 1;
  }

  std::mt19937 random_;
  const bool streams_;
  Complaints& complaints_;
  const SessionOptions& options_;
  std::uint32_t value_ = 0;
};

void fault_once(Complaints& complaints, const SessionOptions& options) {
  try {
    const Session session(options);
    const Kernel wild = session.load_ptx(kKernels).kernel("wild");
    wild({.grid = 1, .block = 32})();
    session.synchronize();
    complaints.add("a wild store was not noticed");
  } catch (const Error& error) {
    require_fault(error, complaints);
  }
}

unsigned long steps_of(const std::deque<Tenant>& tenants) {
  unsigned long steps = 0;
  for (const Tenant& tenant : tenants) steps += tenant.steps;
  return steps;
}

/// Runs `threads` tenants while `faults` kernels end the context that they share.
void stress(unsigned threads, unsigned long faults, bool streams) {
  Complaints complaints;
  const SessionOptions options{.device = "cpu"};
  std::atomic<bool> stop = false;
  std::deque<Tenant> tenants;
  for (unsigned i = 0; i < threads; ++i)
    tenants.emplace_back(static_cast<unsigned>(faults) * 100 + i, streams, complaints, options);
  std::vector<std::thread> running;
  for (Tenant& tenant : tenants) running.emplace_back([&] { tenant.run(stop); });
  for (unsigned long i = 0; i < faults; ++i) {
    // The faults may be over before a tenant's thread runs.
    const unsigned long steps_before = steps_of(tenants);
    while (steps_of(tenants) < steps_before + threads) std::this_thread::yield();
    fault_once(complaints, options);
  }
  stop = true;
  for (std::thread& thread : running) thread.join();
  CHECK(complaints.count == 0);
  const unsigned long steps = steps_of(tenants);
  unsigned long losses = 0;
  for (const Tenant& tenant : tenants) losses += tenant.losses;
  CHECK(losses > 0);
  std::printf("lost: %u threads, %lu faults, %s: %lu steps, %lu sessions lost\n", threads, faults,
              streams ? "streams" : "no streams", steps, losses);
  const Session after(options);
  CHECK(after.memory_stats().total().live_count == 0);
}

/// Runs `threads` tenants with separate contexts. None is lost, whatever happens to the primary context.
void stress_isolated(unsigned threads, unsigned long faults) {
  Complaints complaints;
  const SessionOptions isolated{.device = "cpu", .isolated = true};
  std::atomic<bool> stop = false;
  std::deque<Tenant> tenants;
  for (unsigned i = 0; i < threads; ++i) tenants.emplace_back(i, i % 2 == 0, complaints, isolated);
  std::vector<std::thread> running;
  for (Tenant& tenant : tenants) running.emplace_back([&] { tenant.run(stop); });
  for (unsigned long i = 0; i < faults; ++i)
    fault_once(complaints, i % 2 == 0 ? SessionOptions{.device = "cpu"} : isolated);
  stop = true;
  for (std::thread& thread : running) thread.join();
  CHECK(complaints.count == 0);
  for (const Tenant& tenant : tenants) CHECK(tenant.losses == 0);
}

}  // namespace

TEST_CASE("sessions of other threads meet a fault as an error, and nothing of it reaches their successors") {
  const unsigned long faults = number("QUERN_TEST_FAULTS", 240) / 6;
  for (const unsigned threads : {2u, 6u, 8u})
    for (const bool streams : {false, true}) stress(threads, faults, streams);
}

TEST_CASE("isolated sessions do not notice faults of others") {
  stress_isolated(6, number("QUERN_TEST_FAULTS", 240) / 6);
}
