// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/layout.hpp"

#include <doctest/doctest.h>

#include "harness.hpp"

namespace quern::cpu::emit::testing {
namespace {

analysis::LaneOffsets offsets(std::int64_t (*distance)(std::int64_t)) {
  analysis::LaneOffsets made{};
  for (std::int64_t lane = 0; lane < 32; ++lane) made[static_cast<std::size_t>(lane)] = distance(lane);
  return made;
}

}  // namespace

TEST_CASE("contiguous lanes are one segment") {
  const Layout layout = layout_of(affine(offsets([](std::int64_t lane) { return lane * 4; })), 4);
  REQUIRE(layout.kind == LayoutKind::segments);
  REQUIRE(layout.segments.size() == 1);
  CHECK(layout.segments[0].count == 32);
  CHECK(layout.segments[0].step == 1);
}

TEST_CASE("the columns of a 16-wide block are two segments with the same addresses") {
  const Layout layout = layout_of(affine(offsets([](std::int64_t lane) { return lane % 16 * 4; })), 4);
  REQUIRE(layout.kind == LayoutKind::segments);
  REQUIRE(layout.segments.size() == 2);
  CHECK(layout.segments[1].first == 16);
  CHECK(layout.segments[1].same_as == 0);
}

TEST_CASE("rows with a pitch known at run time have a base each") {
  analysis::LanePattern pattern = affine(offsets([](std::int64_t lane) { return lane % 8 * 4; }));
  pattern.terms.push_back({.coefficient = 7, .offsets = offsets([](std::int64_t lane) { return lane / 8; })});
  const Layout layout = layout_of(pattern, 4);
  REQUIRE(layout.kind == LayoutKind::segments);
  CHECK(layout.segments.size() == 4);
  CHECK(layout.base_lanes == std::vector<unsigned>{0, 8, 16, 24});
  CHECK(layout.segments[3].base == 3);
}

TEST_CASE("one address a row is a broadcast segment") {
  const Layout layout = layout_of(affine(offsets([](std::int64_t lane) { return lane / 16 * 400; })), 4);
  REQUIRE(layout.segments.size() == 2);
  CHECK(layout.segments[0].step == 0);
  CHECK(layout.segments[1].offset == 400);
}

TEST_CASE("short strides are loaded wide, long ones gathered from one base") {
  CHECK(layout_of(affine(offsets([](std::int64_t lane) { return lane * 8; })), 4).kind ==
        LayoutKind::strided);
  CHECK(layout_of(affine(offsets([](std::int64_t lane) { return lane * 16; })), 4).stride == 4);
  CHECK(layout_of(affine(offsets([](std::int64_t lane) { return lane * 20; })), 4).kind ==
        LayoutKind::indexed);
  CHECK(layout_of(affine(offsets([](std::int64_t lane) { return lane * 6; })), 4).kind ==
        LayoutKind::indexed);
}

TEST_CASE("constant distances that are close together are a few windows") {
  const auto windows = [](std::int64_t (*distance)(std::int64_t), unsigned count) {
    return windows_of(layout_of(affine(offsets(distance)), 4 * count), 4, count, 64, 8);
  };
  const Windows stride = windows([](std::int64_t lane) { return lane * 12; }, 1);
  CHECK(stride.slots == 16);
  CHECK(stride.offsets == std::vector<std::int64_t>{0, 64, 128, 192, 256, 320});
  CHECK(stride.places[11].window == 2);  // element 33
  CHECK(stride.places[11].slot == 1);
  CHECK(stride.distinct);

  const Windows backwards = windows([](std::int64_t lane) { return -lane * 8; }, 1);
  CHECK(backwards.offsets == std::vector<std::int64_t>{-248, -184, -120, -56});
  CHECK(backwards.places[31].slot == 0);
  CHECK(backwards.places[0].window == 3);

  const Windows pairs = windows([](std::int64_t lane) { return lane / 16 * 1024 + lane % 16 * 16; }, 2);
  CHECK(pairs.offsets == std::vector<std::int64_t>{0, 64, 128, 192, 1024, 1088, 1152, 1216});
  CHECK(pairs.places[2 * 17 + 1].window == 4);
  CHECK(pairs.places[2 * 17 + 1].slot == 5);

  CHECK_FALSE(windows([](std::int64_t lane) { return lane % 11 * 8; }, 1).distinct);
  CHECK(windows([](std::int64_t lane) { return lane * 20; }, 1).offsets.empty());  // ten windows
  CHECK(windows([](std::int64_t lane) { return lane * 6; }, 1).offsets.empty());   // not whole elements
  CHECK(windows([](std::int64_t lane) { return lane * 4; }, 1).offsets.empty());   // one segment
  const analysis::LanePattern unknown{
      .kind = analysis::LanePatternKind::offset32, .index = 1, .index_signed = true, .scale = 16};
  CHECK(windows_of(layout_of(unknown, 4), 4, 1, 64, 8).offsets.empty());
}

TEST_CASE("distances that no gap takes are checked lane by lane") {
  CHECK(layout_of(affine(offsets([](std::int64_t lane) { return lane << 40; })), 4).kind ==
        LayoutKind::gathered);
  analysis::LanePattern pattern{
      .kind = analysis::LanePatternKind::offset32, .index = 1, .index_signed = true, .scale = 16};
  CHECK(layout_of(pattern, 4).kind == LayoutKind::indexed);
  pattern.index_signed = false;
  CHECK(layout_of(pattern, 4).kind == LayoutKind::gathered);
  pattern.scale = -8;
  CHECK(layout_of(pattern, 4).kind == LayoutKind::indexed);
  pattern.scale = 4096;
  CHECK(layout_of(pattern, 4).kind == LayoutKind::gathered);
}

}  // namespace quern::cpu::emit::testing
