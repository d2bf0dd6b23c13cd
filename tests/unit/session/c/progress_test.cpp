// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <string>
#include <vector>

#include "support.hpp"

using namespace c;

namespace {

constexpr std::size_t kLong = std::size_t{20} << 20;

struct ProgressCalls {
  std::vector<std::uint64_t> done;
  std::uint64_t last = UINT64_MAX;  ///< cancels there
  bool finished = false;
  static std::int32_t take(void* user, const QuernProgress* progress) {
    auto& calls = *static_cast<ProgressCalls*>(user);
    CHECK(progress->struct_bytes == sizeof(QuernProgress));
    CHECK(progress->stage == QUERN_PROGRESS_COPY_TO_DEVICE);
    CHECK(progress->name == std::string());
    CHECK(progress->total == kLong);
    calls.done.push_back(progress->done);
    calls.finished = progress->finished != 0;
    return progress->done >= calls.last ? 1 : 0;
  }
};

}  // namespace

TEST_CASE("a function of C's is told how far a copy has come, and cancels it") {
  Session session;
  QUERN_GOOD(quern_session_open_isolated("cpu", session.place()));
  const std::vector<std::uint8_t> bytes(kLong, 7);
  const Array array = new_array(session, QUERN_UINT8, {static_cast<std::int64_t>(kLong)});
  ProgressCalls calls;
  QUERN_GOOD(quern_session_set_progress(session, &ProgressCalls::take, &calls));
  QUERN_GOOD(quern_array_from_host(array, bytes.data(), kLong));
  REQUIRE(calls.done.size() > 2);
  CHECK(calls.done.front() == 0);
  CHECK(calls.done.back() == kLong);
  CHECK(calls.finished);
  calls = {};
  calls.last = 1;
  QUERN_FAILS(QUERN_CANCELLED, "the progress handler cancelled it",
              quern_array_from_host(array, bytes.data(), kLong));
  CHECK(calls.done.size() == 2);
  CHECK_FALSE(calls.finished);
  const std::size_t count = calls.done.size();
  QUERN_GOOD(quern_session_set_progress(session, nullptr, nullptr));
  QUERN_GOOD(quern_array_from_host(array, bytes.data(), kLong));
  CHECK(calls.done.size() == count);
}
