// SPDX-License-Identifier: Apache-2.0
// Progress of compiling and copying, and cancelling both.
#include <doctest/doctest.h>
#include <quern/quern.h>
#include <quern/quern.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <mutex>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

using namespace quern;

namespace {

constexpr std::size_t kLong = std::size_t{20} << 20;

/// A source that NVRTC has not seen, since it caches what it has compiled in this process.
std::string fresh_source() {
  static int count = 0;
  return "extern \"C\" __global__ void fresh(float* x) { x[threadIdx.x] += " + std::to_string(++count) +
         ".25f * sinf(x[threadIdx.x]); }";
}

struct Moment {
  ProgressStage stage;
  std::string name;
  std::uint64_t done;
  std::uint64_t total;
  bool finished;
};

/// Records its calls, and continues as long as `goes_on` is true.
class Watch {
 public:
  explicit Watch(const Session& session, std::function<bool(const Progress&)> goes_on = {})
      : session_(session) {
    session_.set_progress([this, goes_on = std::move(goes_on)](const Progress& progress) {
      const std::lock_guard lock(mutex_);
      moments_.push_back(
          {progress.stage, std::string(progress.name), progress.done, progress.total, progress.finished});
      return !goes_on || goes_on(progress);
    });
  }
  ~Watch() { session_.set_progress({}); }
  Watch(const Watch&) = delete;
  Watch& operator=(const Watch&) = delete;

  std::vector<Moment> of(ProgressStage stage) {
    const std::lock_guard lock(mutex_);
    std::vector<Moment> found;
    std::copy_if(moments_.begin(), moments_.end(), std::back_inserter(found),
                 [&](const Moment& moment) { return moment.stage == stage; });
    return found;
  }
  std::size_t count() {
    const std::lock_guard lock(mutex_);
    return moments_.size();
  }

 private:
  const Session& session_;
  std::mutex mutex_;
  std::vector<Moment> moments_;
};

/// Checks that progress begins at 0 of `total` and ends at `total`.
void check_whole(const std::vector<Moment>& moments, const std::string& name, std::uint64_t total) {
  REQUIRE(moments.size() >= 2);
  CHECK(moments.front().done == 0);
  CHECK_FALSE(moments.front().finished);
  CHECK(moments.back().finished);
  for (std::size_t i = 0; i < moments.size(); ++i) {
    CHECK(moments[i].name == name);
    CHECK(moments[i].total == total);
    CHECK(moments[i].finished == (i + 1 == moments.size()));
    if (i > 0) CHECK(moments[i].done >= moments[i - 1].done);
  }
  if (total != 0) CHECK(moments.back().done == total);
}

/// The message of the Error(cancelled) that `call` throws.
std::string cancelled(const std::function<void()>& call) {
  try {
    call();
  } catch (const Error& error) {
    CHECK(error.code() == ErrorCode::cancelled);
    return error.what();
  }
  return "nothing was thrown";
}

bool ready() {
  static const bool found = [] { return Session::try_open({"cpu"}).has_value() && doctor().ready; }();
  if (!found) MESSAGE("SKIPPED: no CPU device or no NVRTC on this machine");
  return found;
}

/// Of PTX with one kernel as NVRTC writes it: an instruction a line, each behind a tab.
std::uint64_t instruction_count(const std::string& ptx) {
  std::istringstream lines(ptx.substr(ptx.find('{')));
  std::uint64_t count = 0;
  for (std::string line; std::getline(lines, line);)
    if (line.size() > 1 && line[0] == '\t' && line[1] != '.') ++count;
  return count;
}

Session isolated() { return Session({.device = "cpu", .isolated = true}); }

}  // namespace

TEST_CASE("compiling, loading and generating code are told, each from its begin to its end") {
  if (!ready()) return;
  const Session session = isolated();
  Watch watch(session);
  const Module module = session.load_cuda(fresh_source(), {.file_name = "fresh.cu"});
  check_whole(watch.of(ProgressStage::compile), "fresh.cu", 0);
  CHECK(watch.of(ProgressStage::compile).back().done > 3);  // NVRTC reports progress
  check_whole(watch.of(ProgressStage::load), "fresh.cu", 1);
  CHECK(watch.of(ProgressStage::generate).empty());
  const DeviceArray<float> x = session.device_array<float>(32);
  module.kernel("fresh")({.grid = 1, .block = 32})(x);
  check_whole(watch.of(ProgressStage::generate), "fresh", instruction_count(module.ptx()));
  const std::size_t count = watch.count();
  module.kernel("fresh")({.grid = 1, .block = 32})(x);
  session.synchronize();
  CHECK(watch.count() == count);  // it is generated once
}

TEST_CASE("Kernel Python is translated first") {
  if (!ready()) return;
  const Session session = isolated();
  Watch watch(session);
  const Module module =
      session.load_python("from numba import cuda\n@cuda.jit\ndef twice(x):\n    x[cuda.threadIdx.x] *= 2\n",
                          {.file_name = "twice.py"});
  module.kernel("twice")({.grid = 1, .block = 4})(session.to_device(std::vector<float>(4, 1.f)));
  check_whole(watch.of(ProgressStage::translate), "twice.py", 1);
  check_whole(watch.of(ProgressStage::load), "twice.py", 1);
}

TEST_CASE(
    "the handler cancels a compilation before it begins and in its midst, and the source compiles "
    "afterwards") {
  if (!ready()) return;
  const Session session = isolated();
  for (const std::uint64_t steps : {std::uint64_t{0}, std::uint64_t{2}}) {
    const std::string source = fresh_source();
    {
      Watch watch(session, [&](const Progress& progress) { return progress.done < steps; });
      CHECK(cancelled([&] { session.load_cuda(source); }) ==
            "cannot compile <string>.cu: the progress handler cancelled it");
      CHECK(watch.of(ProgressStage::compile).size() == steps + 1);
      CHECK(watch.of(ProgressStage::load).empty());
      CHECK(session.try_load_cuda(source).errors().front().code == "cancelled");
    }
    CHECK(session.load_cuda(source).kernel_names() == std::vector<std::string>{"fresh"});
  }
}

TEST_CASE("long copies are told in bytes, short ones not at all, and their values are whole") {
  if (!Session::try_open({"cpu"})) return;
  const Session session = isolated();
  Watch watch(session);
  std::vector<std::uint32_t> values(kLong / 4 + 1);
  std::iota(values.begin(), values.end(), 0u);
  const DeviceArray<std::uint32_t> array = session.to_device(values);
  check_whole(watch.of(ProgressStage::copy_to_device), "", values.size() * 4);
  CHECK(watch.of(ProgressStage::copy_to_device).size() > 3);
  CHECK(watch.of(ProgressStage::copy_to_host).empty());
  CHECK(array.copy_to_host() == values);
  check_whole(watch.of(ProgressStage::copy_to_host), "", values.size() * 4);
  const std::size_t count = watch.count();
  CHECK(session.to_device(std::vector<int>{1, 2, 3}).copy_to_host() == std::vector<int>{1, 2, 3});
  CHECK(watch.count() == count);
}

TEST_CASE("the handler cancels a copy between two pieces, and the array can be used on") {
  if (!Session::try_open({"cpu"})) return;
  const Session session = isolated();
  const std::vector<std::uint8_t> old(kLong, 1);
  const std::vector<std::uint8_t> fresh(kLong, 2);
  const DeviceArray<std::uint8_t> array = session.to_device(old);
  std::uint64_t copied = 0;
  {
    Watch watch(session, [&](const Progress& progress) {
      copied = progress.done;
      return progress.done == 0;
    });
    const std::string said = cancelled([&] { array.copy_from_host(std::span(fresh)); });
    CHECK(said == "cannot copy to the device: the progress handler cancelled it after " +
                      std::to_string(copied) + " of " + std::to_string(kLong) + " bytes");
  }
  CHECK(copied > 0);
  CHECK(copied < kLong);
  const std::vector<std::uint8_t> now = array.copy_to_host();
  CHECK(static_cast<std::uint64_t>(std::count(now.begin(), now.end(), std::uint8_t{2})) == copied);
  CHECK(now.back() == 1);
  array.copy_from_host(std::span(fresh));
  CHECK(array.copy_to_host() == fresh);
}

TEST_CASE("a handler is of its session's context, and comes back from the one that takes its place") {
  if (!Session::try_open({"cpu"})) return;
  const Session one = isolated();
  const Session other = isolated();
  int told = 0;
  CHECK(one.set_progress([&](const Progress&) { return ++told > 0; }) == nullptr);
  const std::vector<std::uint8_t> bytes(kLong, 1);
  (void)other.to_device(bytes);
  CHECK(told == 0);
  const ProgressHandler former = one.set_progress({});
  REQUIRE(former != nullptr);
  (void)one.to_device(bytes);
  CHECK(told == 0);
  one.set_progress(former);
  (void)one.to_device(bytes);
  CHECK(told > 2);
  one.set_progress({});
}
