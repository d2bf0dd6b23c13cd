// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/reserve.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <string>

using namespace quern::cpu::device;
using quern::cpu::engine::AddressLimit;

namespace {
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;

Demand demand_of(std::uint64_t memory_bytes, bool named = true) {
  Demand demand;
  demand.workers = 2;
  demand.machine_bytes = 16 * kGiB;
  demand.memory_bytes = memory_bytes;
  demand.memory_named = named;
  return demand;
}
AddressLimit limit_of(std::uint64_t most_bytes) {
  AddressLimit limit;
  limit.most_bytes = most_bytes;
  limit.used_bytes = 300 * kMiB;
  return limit;
}
}  // namespace

TEST_CASE("without a limit the reservation is wide") {
  const auto reserved = reserve(demand_of(kGiB), AddressLimit{});
  REQUIRE(reserved);
  CHECK_FALSE(reserved->window->compact());
  CHECK(reserved->step.memory_bytes == kGiB);
  CHECK(reserved->step.host_bytes == 16 * kGiB);
}

TEST_CASE("the least setting takes less than 2 GiB when it is compact") {
  Demand demand = demand_of(kMinMemoryBytes);
  demand.workers = 1;
  demand.addresses = Addresses::compact;
  const auto reserved = reserve(demand, AddressLimit{});
  REQUIRE(reserved);
  CHECK(reserved->window->compact());
  CHECK(reserved->window->reserved_bytes() <= 2 * kGiB);
}

TEST_CASE("under a limit the reservation is compact and leaves the process what it needs") {
  for (const std::uint64_t most : {1300 * kMiB, 2 * kGiB, 4 * kGiB, 64 * kGiB}) {
    CAPTURE(most);
    const auto reserved = reserve(demand_of(256 * kMiB), limit_of(most));
    REQUIRE(reserved);
    CHECK(reserved->window->compact());
    CHECK(reserved->step.memory_bytes == 256 * kMiB);
    CHECK(reserved->window->reserved_bytes() + 300 * kMiB + 300 * kMiB <= most);
  }
}

TEST_CASE("each step asks for fewer addresses than the one before") {
  const std::vector<Step> steps = steps_for(demand_of(4 * kGiB, false));
  REQUIRE(steps.size() > 4);
  CHECK_FALSE(steps.front().layout.compact);
  for (std::size_t i = 1; i < steps.size(); ++i) CHECK(steps[i].layout.compact);
  CHECK(std::is_sorted(steps.begin(), steps.begin() + 4,
                       [](const Step& a, const Step& b) { return a.bytes() > b.bytes(); }));
  CHECK(steps.back().memory_bytes < 2 * kMinMemoryBytes);
}

TEST_CASE("memory that nobody named shrinks until it fits; memory that was named does not") {
  const auto shrunk = reserve(demand_of(4 * kGiB, false), limit_of(3 * kGiB));
  REQUIRE(shrunk);
  CHECK(shrunk->step.memory_bytes < 2 * kGiB);
  CHECK(shrunk->step.memory_bytes >= 512 * kMiB);
  CHECK_FALSE(reserve(demand_of(4 * kGiB), limit_of(3 * kGiB)));
}

TEST_CASE("a refusal says how much is needed, how much there is, and what to change") {
  const auto refused = reserve(demand_of(4 * kGiB), limit_of(3 * kGiB));
  REQUIRE_FALSE(refused);
  const quern::Diagnostic& error = refused.errors().front();
  CHECK(error.code == "address-space");
  CHECK(error.message.find("for 4096 MiB of memory and 2 worker(s)") != std::string::npos);
  CHECK(error.message.find("this process may have 2772 MiB more") != std::string::npos);
  CHECK(error.message.find("`ulimit -v` is 3072 MiB, 300 MiB are in use") != std::string::npos);
  CHECK(error.hint.find("raise `ulimit -v` to ") == 0);
  CHECK(error.hint.find("QUERN_CPU_WORKERS") != std::string::npos);
  // The setting that the message proposes works: with the proposed value the device starts.
  const std::string before = "set QUERN_CPU_MEMORY to ";
  const std::size_t at = error.hint.find(before);
  REQUIRE(at != std::string::npos);
  const std::uint64_t mib = std::stoull(error.hint.substr(at + before.size()));
  CHECK(reserve(demand_of(mib * kMiB), limit_of(3 * kGiB)));
  CHECK_FALSE(reserve(demand_of((mib + 1) * kMiB), limit_of(3 * kGiB)));
  const std::uint64_t kib = std::stoull(error.hint.substr(std::string("raise `ulimit -v` to ").size()));
  CHECK(reserve(demand_of(4 * kGiB), limit_of(kib * 1024)));
  CHECK_FALSE(reserve(demand_of(4 * kGiB), limit_of((kib - 2) * 1024)));
}

TEST_CASE("addresses that were asked for by name are not exchanged for others") {
  Demand demand = demand_of(64 * kMiB);
  demand.addresses = Addresses::wide;
  const auto refused = reserve(demand, limit_of(8 * kGiB));
  REQUIRE_FALSE(refused);
  CHECK(refused.errors().front().hint.find("unset QUERN_CPU_ADDRESSES") != std::string::npos);
  demand.addresses = Addresses::compact;
  const auto reserved = reserve(demand, AddressLimit{});
  REQUIRE(reserved);
  CHECK(reserved->window->compact());
}
