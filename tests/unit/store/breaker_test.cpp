// SPDX-License-Identifier: Apache-2.0
#include "store/breaker.hpp"

#include <vector>

#include <doctest/doctest.h>

using quern::store::Breaker;

namespace {
constexpr std::int64_t kMs = 1'000'000;
}

TEST_CASE("the first probe is due at once, the next after pauses that double up to four seconds") {
  Breaker breaker;
  breaker.close(0);
  std::int64_t now = 100'000 * kMs;
  std::vector<std::int64_t> pauses_ms;
  for (int i = 0; i < 8; ++i) {
    breaker.fail(now);
    CHECK_FALSE(breaker.closed());
    pauses_ms.push_back((breaker.probe_at_ns() - now) / kMs);
    now = breaker.probe_at_ns();
  }
  CHECK(pauses_ms == std::vector<std::int64_t>{0, 250, 500, 1000, 2000, 4000, 4000, 4000});
  breaker.close(now);
  CHECK(breaker.closed());
}

TEST_CASE("a store that fails again soon after a good probe is left alone for longer") {
  Breaker breaker;
  breaker.close(0);
  breaker.fail(40'000 * kMs);
  breaker.close(40'001 * kMs);
  breaker.fail(40'050 * kMs);
  CHECK(breaker.probe_at_ns() == 40'300 * kMs);
  breaker.close(40'300 * kMs);
  breaker.fail(40'400 * kMs);
  CHECK(breaker.probe_at_ns() == 40'900 * kMs);
  breaker.close(40'900 * kMs);
  // After half a minute without a failure, the delay is reset.
  breaker.fail(70'900 * kMs);
  CHECK(breaker.probe_at_ns() == 70'900 * kMs);
}
