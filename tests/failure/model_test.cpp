// SPDX-License-Identifier: Apache-2.0
// Several threads make random calls. A model knows the context of each object, and whether a fault has ended
// it.
#include <doctest/doctest.h>
#include <quern/quern.hpp>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "fault_kernels.hpp"

using namespace quern;
using quern::failure::kKernels;

namespace {

constexpr std::int64_t kCount = 64;

/// The lifetime of one context.
struct Epoch {
  enum State : int { alive, ending, lost };  ///< ending: a fault has been caused; calls may fail or not
  std::atomic<int> state = alive;
};

struct Place {
  Session session;
  std::shared_ptr<Epoch> epoch;
  std::mutex mutex;  ///< guards `kernels`
  std::optional<Module> kernels;
  explicit Place(const SessionOptions& options) : session(options) {}
};

struct TrackedArray {
  std::shared_ptr<Place> place;
  DeviceNDArray array;
  std::mutex mutex;  ///< guards what the array holds
  std::uint32_t value = 0;
  bool known = true;  ///< false: a call that writes it ended in an error
  TrackedArray(std::shared_ptr<Place> in, DeviceNDArray made, std::uint32_t holds)
      : place(std::move(in)), array(std::move(made)), value(holds) {}
};

class Model {
 public:
  std::atomic<int> wrong = 0;
  std::atomic<unsigned long> refused = 0, good = 0;

  void complain(const std::string& text) {
    if (wrong.fetch_add(1) < 8) std::fprintf(stderr, "model_test: %s\n", text.c_str());
  }

  std::shared_ptr<Place> open(bool isolated) {
    auto place = std::make_shared<Place>(SessionOptions{.device = "cpu", .isolated = isolated});
    const std::lock_guard lock(mutex_);
    for (const std::shared_ptr<Place>& other : places_)
      if (context_of(*other) == context_of(*place)) place->epoch = other->epoch;
    if (place->epoch == nullptr) place->epoch = std::make_shared<Epoch>();
    places_.push_back(place);  // kept until the end, so that no context reuses the address of another
    return place;
  }
  std::shared_ptr<Place> some_place(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    if (places_.empty()) return nullptr;
    const std::size_t recent = std::min<std::size_t>(places_.size(), 12);
    return places_[places_.size() - 1 - random() % recent];
  }
  void keep(std::shared_ptr<TrackedArray> tracked, std::mt19937& random) {
    std::shared_ptr<TrackedArray> dropped;
    const std::lock_guard lock(mutex_);
    if (arrays_.size() < 60) return arrays_.push_back(std::move(tracked));
    dropped = std::exchange(arrays_[random() % arrays_.size()], std::move(tracked));
    dropped_.push_back(std::move(dropped));  // a thread releases it later, without the lock
  }
  std::vector<std::shared_ptr<TrackedArray>> take_dropped() {
    const std::lock_guard lock(mutex_);
    return std::exchange(dropped_, {});
  }
  std::shared_ptr<TrackedArray> some_array(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    return arrays_.empty() ? nullptr : arrays_[random() % arrays_.size()];
  }

  /// Makes a call that uses these contexts. It must succeed if all are alive before and after it and `apart`
  /// is false. It must fail if one was lost before or `apart` is true. Returns true if it succeeded.
  template <class Call>
  bool judge(const char* what, std::initializer_list<Epoch*> epochs, bool apart, Call&& call) {
    const auto any = [&](Epoch::State state) {
      for (const Epoch* epoch : epochs)
        if (epoch->state.load() >= state) return true;
      return false;
    };
    const bool was_lost = any(Epoch::lost);
    try {
      call();
    } catch (const Error& error) {
      ++refused;
      if (apart && error.code() == ErrorCode::usage) return false;
      const auto* of_driver = dynamic_cast<const DriverError*>(&error);
      if (error.code() != ErrorCode::device_fault || of_driver == nullptr ||
          of_driver->result_name() != "CUDA_ERROR_ILLEGAL_ADDRESS")
        complain(std::string(what) + ": " + error.what());
      else if (!any(Epoch::ending))
        complain(std::string(what) + " met a fault of another context: " + error.what());
      return false;
    }
    ++good;
    if (was_lost) complain(std::string(what) + " went through in a lost context");
    if (apart) complain(std::string(what) + " went through between contexts");
    return true;
  }

 private:
  static const void* context_of(const Place& place) { return place.session.default_stream().context(); }

  std::mutex mutex_;
  std::vector<std::shared_ptr<Place>> places_;
  std::vector<std::shared_ptr<TrackedArray>> arrays_, dropped_;
};

class Actor {
 public:
  Actor(Model& model, unsigned seed) : model_(model), random_(seed) {}

  void step() {
    model_.take_dropped();
    switch (random_() % 17) {
      case 0:
        return open();
      case 1:
        return random_() % 4 == 0 ? fault() : read();
      case 2:
      case 3:
      case 4:
      case 5:
        return make();
      case 6:
      case 7:
        return launch();
      case 8:
      case 9:
        return copy();
      case 10:
        return read_on_stream();
      case 11:
        return cancel();
      default:
        return read();
    }
  }

 private:
  void open() {
    try {
      model_.open(random_() % 3 == 0);
    } catch (const Error& error) {  // ended by a fault before it was ready
      if (error.code() != ErrorCode::device_fault) model_.complain(std::string("opening: ") + error.what());
    }
  }

  void make() {
    const std::shared_ptr<Place> place = model_.some_place(random_);
    if (place == nullptr) return open();
    const auto value = static_cast<std::uint32_t>(random_() % 1000000);
    std::optional<DeviceNDArray> array;
    if (model_.judge("an array", {place->epoch.get()}, false,
                     [&] { array = place->session.to_device(std::vector<std::uint32_t>(kCount, value)); }))
      model_.keep(std::make_shared<TrackedArray>(place, *array, value), random_);
  }

  void compare(const TrackedArray& tracked, const NDArray& values, const char* what) {
    if (!tracked.known) return;
    for (std::int64_t i = 0; i < kCount; ++i)
      if (values.at<std::uint32_t>(i) != tracked.value)
        return model_.complain(std::string("wrong data: ") + what);
  }

  void read() {
    const std::shared_ptr<TrackedArray> tracked = model_.some_array(random_);
    if (tracked == nullptr) return;
    const std::lock_guard lock(tracked->mutex);
    NDArray values;
    if (model_.judge("reading", {tracked->place->epoch.get()}, false,
                     [&] { values = tracked->array.copy_to_host(); }))
      compare(*tracked, values, "read");
  }

  void read_on_stream() {
    const std::shared_ptr<TrackedArray> tracked = model_.some_array(random_);
    if (tracked == nullptr) return;
    const std::lock_guard lock(tracked->mutex);
    NDArray values;
    if (model_.judge("reading on a stream", {tracked->place->epoch.get()}, false, [&] {
          const Stream stream = tracked->place->session.stream();
          values = tracked->array.copy_to_host(stream);
          stream.synchronize();
        }))
      compare(*tracked, values, "read on a stream");
  }

  static Kernel kernel(Place& place, const char* name) {
    const std::lock_guard lock(place.mutex);
    if (!place.kernels) place.kernels = place.session.load_ptx(kKernels);
    return place.kernels->kernel(name);
  }

  void launch() {
    const std::shared_ptr<TrackedArray> tracked = model_.some_array(random_);
    const std::shared_ptr<Place> place = model_.some_place(random_);
    if (tracked == nullptr || place == nullptr) return;
    const std::lock_guard lock(tracked->mutex);
    const bool apart = place->epoch != tracked->place->epoch;
    const bool done = model_.judge("a launch", {place->epoch.get(), tracked->place->epoch.get()}, apart, [&] {
      kernel(*place, "add")({.grid = 1, .block = kCount})(tracked->array, 5u);
    });
    if (done) tracked->value += 5;
    if (!done && !apart) tracked->known = false;
  }

  void copy() {
    const std::shared_ptr<TrackedArray> from = model_.some_array(random_), to = model_.some_array(random_);
    if (from == nullptr || to == nullptr || from == to) return;
    const std::scoped_lock lock(from->mutex, to->mutex);
    const bool apart = from->place->epoch != to->place->epoch;
    const bool done = model_.judge("a copy", {from->place->epoch.get(), to->place->epoch.get()}, apart,
                                   [&] { to->array.copy_to_device(from->array); });
    if (done) to->value = from->value, to->known = from->known;
    if (!done && !apart) to->known = false;
  }

  /// Cancels a stream that the default stream does not wait for: no other call reports it.
  void cancel() {
    const std::shared_ptr<TrackedArray> tracked = model_.some_array(random_);
    if (tracked == nullptr) return;
    const std::lock_guard lock(tracked->mutex);
    const auto value = static_cast<std::uint32_t>(random_() % 1000000);
    NDArray values;
    const bool done = model_.judge("cancelling", {tracked->place->epoch.get()}, false, [&] {
      const Stream stream = tracked->place->session.stream({.non_blocking = true});
      kernel(*tracked->place, "add")({.grid = 1, .block = kCount, .stream = stream})(tracked->array, 5u);
      stream.cancel();
      stream.synchronize();
      values = tracked->array.copy_to_host();
      const NDArray next({kCount}, Dtype::uint32);
      for (std::uint32_t& element : next.values<std::uint32_t>()) element = value;
      tracked->array.copy_to_device(next);
    });
    if (done && tracked->known)
      for (std::int64_t i = 0; i < kCount; ++i)
        if (const auto one = values.at<std::uint32_t>(i); one != tracked->value && one != tracked->value + 5)
          return model_.complain("wrong data: a cancelled launch");
    tracked->value = value;
    tracked->known = done;
  }

  void fault() {
    const std::shared_ptr<Place> place = model_.some_place(random_);
    if (place == nullptr) return;
    int expected = Epoch::alive;
    place->epoch->state.compare_exchange_strong(expected, Epoch::ending);
    if (model_.judge("a fault", {place->epoch.get()}, false, [&] {
          kernel(*place, "wild")({.grid = 1, .block = 32})();
          synchronize(place->session);
        }))
      model_.complain("a wild store was not noticed");
    place->epoch->state.store(Epoch::lost);
  }

  /// Waits for the whole context. Another thread may cancel one of its streams meanwhile.
  static void synchronize(const Session& session) {
    for (;;) try {
        return session.synchronize();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::cancelled) throw;
      }
  }

  Model& model_;
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("objects of several contexts answer as a model of their contexts says, on several threads") {
  const char* text = std::getenv("QUERN_TEST_MODEL_STEPS");
  const unsigned long steps = text != nullptr ? std::strtoul(text, nullptr, 10) : 1500;
  for (const unsigned count : {2u, 5u, 8u}) {
    Model model;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i)
      threads.emplace_back([&model, i, count, steps] {
        Actor actor(model, 1000 * count + i);
        for (unsigned long step = 0; step < steps / count; ++step) actor.step();
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(model.wrong == 0);
    CHECK(model.good > 0);
    CHECK(model.refused > 0);
    std::printf("model: %u threads, %lu calls went through, %lu were refused\n", count, model.good.load(),
                model.refused.load());
  }
}
