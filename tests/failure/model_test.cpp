// SPDX-License-Identifier: Apache-2.0
// Random calls of several threads, against a model that knows which context each object is of, and whether a
// fault has ended it.
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

/// One context, from its making to its end.
struct Epoch {
  enum State : int { alive, ending, lost };  ///< ending: a fault is on its way, and calls may meet it or not
  std::atomic<int> state = alive;
};

struct Place {
  Session session;
  std::shared_ptr<Epoch> epoch;
  std::mutex mutex;  ///< guards `kernels`
  std::optional<Module> kernels;
  explicit Place(const SessionOptions& options) : session(options) {}
};

struct Thing {
  std::shared_ptr<Place> place;
  DeviceNDArray array;
  std::mutex mutex;  ///< guards what the array holds
  std::uint32_t value = 0;
  bool known = true;  ///< false: a call that writes it ended in an error
  Thing(std::shared_ptr<Place> in, DeviceNDArray made, std::uint32_t holds)
      : place(std::move(in)), array(std::move(made)), value(holds) {}
};

class World {
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
    places_.push_back(place);  // for good: so that a context's address is not another one's
    return place;
  }
  std::shared_ptr<Place> some_place(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    if (places_.empty()) return nullptr;
    const std::size_t recent = std::min<std::size_t>(places_.size(), 12);
    return places_[places_.size() - 1 - random() % recent];
  }
  void keep(std::shared_ptr<Thing> thing, std::mt19937& random) {
    std::shared_ptr<Thing> dropped;
    const std::lock_guard lock(mutex_);
    if (things_.size() < 60) return things_.push_back(std::move(thing));
    dropped = std::exchange(things_[random() % things_.size()], std::move(thing));
    graveyard_.push_back(std::move(dropped));  // let go of by a thread, not under the lock
  }
  std::vector<std::shared_ptr<Thing>> take_dropped() {
    const std::lock_guard lock(mutex_);
    return std::exchange(graveyard_, {});
  }
  std::shared_ptr<Thing> some_thing(std::mt19937& random) {
    const std::lock_guard lock(mutex_);
    return things_.empty() ? nullptr : things_[random() % things_.size()];
  }

  /// Makes a call that concerns these contexts. It must succeed if all are alive before and after and `apart`
  /// is not set, and fail if one was lost before or they are apart. Returns true if it succeeded.
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
  std::vector<std::shared_ptr<Thing>> things_, graveyard_;
};

class Actor {
 public:
  Actor(World& world, unsigned seed) : world_(world), random_(seed) {}

  void step() {
    world_.take_dropped();
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
      world_.open(random_() % 3 == 0);
    } catch (const Error& error) {  // ended by a fault before it was ready
      if (error.code() != ErrorCode::device_fault) world_.complain(std::string("opening: ") + error.what());
    }
  }

  void make() {
    const std::shared_ptr<Place> place = world_.some_place(random_);
    if (place == nullptr) return open();
    const auto value = static_cast<std::uint32_t>(random_() % 1000000);
    std::optional<DeviceNDArray> array;
    if (world_.judge("an array", {place->epoch.get()}, false,
                     [&] { array = place->session.to_device(std::vector<std::uint32_t>(kCount, value)); }))
      world_.keep(std::make_shared<Thing>(place, *array, value), random_);
  }

  void compare(const Thing& thing, const NDArray& values, const char* what) {
    if (!thing.known) return;
    for (std::int64_t i = 0; i < kCount; ++i)
      if (values.at<std::uint32_t>(i) != thing.value)
        return world_.complain(std::string("wrong data: ") + what);
  }

  void read() {
    const std::shared_ptr<Thing> thing = world_.some_thing(random_);
    if (thing == nullptr) return;
    const std::lock_guard lock(thing->mutex);
    NDArray values;
    if (world_.judge("reading", {thing->place->epoch.get()}, false,
                     [&] { values = thing->array.copy_to_host(); }))
      compare(*thing, values, "read");
  }

  void read_on_stream() {
    const std::shared_ptr<Thing> thing = world_.some_thing(random_);
    if (thing == nullptr) return;
    const std::lock_guard lock(thing->mutex);
    NDArray values;
    if (world_.judge("reading on a stream", {thing->place->epoch.get()}, false, [&] {
          const Stream stream = thing->place->session.stream();
          values = thing->array.copy_to_host(stream);
          stream.synchronize();
        }))
      compare(*thing, values, "read on a stream");
  }

  static Kernel kernel(Place& place, const char* name) {
    const std::lock_guard lock(place.mutex);
    if (!place.kernels) place.kernels = place.session.load_ptx(kKernels);
    return place.kernels->kernel(name);
  }

  void launch() {
    const std::shared_ptr<Thing> thing = world_.some_thing(random_);
    const std::shared_ptr<Place> place = world_.some_place(random_);
    if (thing == nullptr || place == nullptr) return;
    const std::lock_guard lock(thing->mutex);
    const bool apart = place->epoch != thing->place->epoch;
    const bool done = world_.judge("a launch", {place->epoch.get(), thing->place->epoch.get()}, apart, [&] {
      kernel(*place, "add")({.grid = 1, .block = kCount})(thing->array, 5u);
    });
    if (done) thing->value += 5;
    if (!done && !apart) thing->known = false;
  }

  void copy() {
    const std::shared_ptr<Thing> from = world_.some_thing(random_), to = world_.some_thing(random_);
    if (from == nullptr || to == nullptr || from == to) return;
    const std::scoped_lock lock(from->mutex, to->mutex);
    const bool apart = from->place->epoch != to->place->epoch;
    const bool done = world_.judge("a copy", {from->place->epoch.get(), to->place->epoch.get()}, apart,
                                   [&] { to->array.copy_to_device(from->array); });
    if (done) to->value = from->value, to->known = from->known;
    if (!done && !apart) to->known = false;
  }

  /// On a stream that the default stream does not wait for: nobody else is told.
  void cancel() {
    const std::shared_ptr<Thing> thing = world_.some_thing(random_);
    if (thing == nullptr) return;
    const std::lock_guard lock(thing->mutex);
    const auto value = static_cast<std::uint32_t>(random_() % 1000000);
    NDArray values;
    const bool done = world_.judge("cancelling", {thing->place->epoch.get()}, false, [&] {
      const Stream stream = thing->place->session.stream({.non_blocking = true});
      kernel(*thing->place, "add")({.grid = 1, .block = kCount, .stream = stream})(thing->array, 5u);
      stream.cancel();
      stream.synchronize();
      values = thing->array.copy_to_host();
      const NDArray next({kCount}, Dtype::uint32);
      for (std::uint32_t& element : next.values<std::uint32_t>()) element = value;
      thing->array.copy_to_device(next);
    });
    if (done && thing->known)
      for (std::int64_t i = 0; i < kCount; ++i)
        if (const auto one = values.at<std::uint32_t>(i); one != thing->value && one != thing->value + 5)
          return world_.complain("wrong data: a cancelled launch");
    thing->value = value;
    thing->known = done;
  }

  void fault() {
    const std::shared_ptr<Place> place = world_.some_place(random_);
    if (place == nullptr) return;
    int expected = Epoch::alive;
    place->epoch->state.compare_exchange_strong(expected, Epoch::ending);
    if (world_.judge("a fault", {place->epoch.get()}, false, [&] {
          kernel(*place, "wild")({.grid = 1, .block = 32})();
          synchronize(place->session);
        }))
      world_.complain("a wild store was not noticed");
    place->epoch->state.store(Epoch::lost);
  }

  /// For the whole context, in which others may cancel a stream meanwhile.
  static void synchronize(const Session& session) {
    for (;;) try {
        return session.synchronize();
      } catch (const Error& error) {
        if (error.code() != ErrorCode::cancelled) throw;
      }
  }

  World& world_;
  std::mt19937 random_;
};

}  // namespace

TEST_CASE("objects of several contexts answer as a model of their contexts says, on several threads") {
  const char* text = std::getenv("QUERN_TEST_MODEL_STEPS");
  const unsigned long steps = text != nullptr ? std::strtoul(text, nullptr, 10) : 1500;
  for (const unsigned count : {2u, 5u, 8u}) {
    World world;
    std::vector<std::thread> threads;
    for (unsigned i = 0; i < count; ++i)
      threads.emplace_back([&world, i, count, steps] {
        Actor actor(world, 1000 * count + i);
        for (unsigned long step = 0; step < steps / count; ++step) actor.step();
      });
    for (std::thread& thread : threads) thread.join();
    CHECK(world.wrong == 0);
    CHECK(world.good > 0);
    CHECK(world.refused > 0);
    std::printf("model: %u threads, %lu calls went through, %lu were refused\n", count, world.good.load(),
                world.refused.load());
  }
}
