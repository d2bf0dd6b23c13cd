// SPDX-License-Identifier: Apache-2.0
#include "fills.hpp"

#include <cstring>
#include <quern/half.hpp>
#include <string_view>

#include "sizes.hpp"

namespace quern::bench {

Fill floats(double low, double high) {
  return fill_of<float>([=](std::size_t i) { return low + (high - low) * unit(i); });
}
Fill halves(double low, double high) {
  return [=](std::byte* to, std::size_t bytes) {
    for (std::size_t i = 0; i < bytes / 2; ++i) {
      const float16 value(static_cast<float>(low + (high - low) * unit(i)));
      std::memcpy(to + 2 * i, &value, 2);
    }
  };
}
Fill ints(std::int64_t low, std::int64_t high) {
  return fill_of<std::int32_t>([=](std::size_t i) {
    return low + static_cast<std::int64_t>(mixed(i) % static_cast<std::uint64_t>(high - low));
  });
}
Fill words() {
  return fill_of<std::uint32_t>([](std::size_t i) { return mixed(i) >> 32; });
}
Fill bytes() {
  return fill_of<std::uint8_t>([](std::size_t i) { return mixed(i) >> 56; });
}

std::vector<std::int32_t> row_begins(std::size_t rows, std::size_t least, std::size_t most) {
  std::vector<std::int32_t> begins{0};
  for (std::size_t row = 0; row < rows; ++row)
    begins.push_back(begins.back() + static_cast<std::int32_t>(least + mixed(row) % (most - least + 1)));
  return begins;
}

namespace {
constexpr std::string_view kPatternText = "parallel";
static_assert(kPatternText.size() == kPattern);
}  // namespace

Fill letters() {
  return [](std::byte* to, std::size_t bytes) {
    char* const text = reinterpret_cast<char*>(to);
    for (std::size_t i = 0; i < bytes; ++i) text[i] = static_cast<char>('a' + mixed(i) % 26);
    for (std::size_t i = 12345; i + kPattern < bytes; i += 65536 + 7)
      std::memcpy(text + i, kPatternText.data(), kPattern);
  };
}
Fill pattern() {
  return [](std::byte* to, std::size_t bytes) { std::memcpy(to, kPatternText.data(), bytes); };
}

Tree search_tree() {
  Tree tree;
  std::vector<std::int32_t> order(kNodes);
  for (std::size_t i = 0; i < kNodes; ++i) order[i] = static_cast<std::int32_t>(2 * i + 1);
  for (std::size_t i = kNodes - 1; i > 0; --i) std::swap(order[i], order[mixed(i) % (i + 1)]);
  tree.key = order;
  tree.left.assign(kNodes, -1);
  tree.right.assign(kNodes, -1);
  for (std::size_t i = 1; i < kNodes; ++i)
    for (std::size_t at = 0;;) {
      std::int32_t& child = order[i] < tree.key[at] ? tree.left[at] : tree.right[at];
      if (child < 0) {
        child = static_cast<std::int32_t>(i);
        break;
      }
      at = static_cast<std::size_t>(child);
    }
  return tree;
}

std::vector<std::int32_t> radix_offsets() {
  const std::size_t blocks = kKeys / kRadixBlock;
  std::vector<std::int32_t> offsets(kDigits * blocks);
  for (std::size_t i = 0; i < kKeys; ++i)
    ++offsets[(mixed(i) >> 32 >> kRadixShift & 15) * blocks + i / kRadixBlock];
  std::int32_t sum = 0;
  for (std::int32_t& offset : offsets) {
    const std::int32_t own = offset;
    offset = sum;
    sum += own;
  }
  return offsets;
}

namespace {
constexpr std::size_t kEdge = 32;
static_assert(kEdge * kEdge * kEdge == kAtoms);
}  // namespace

Fill coordinates(int axis) {
  return fill_of<double>([axis](std::size_t i) {
    const std::size_t place = axis == 0 ? i % kEdge : axis == 1 ? i / kEdge % kEdge : i / kEdge / kEdge;
    return 1.2 * static_cast<double>(place) + 0.2 * unit(3 * i + static_cast<std::size_t>(axis));
  });
}

std::vector<std::int32_t> neighbours() {
  std::vector<std::int32_t> list(kNeighbours * kAtoms);
  for (std::size_t n = 0; n < list.size(); ++n) {
    const std::size_t i = n % kAtoms, offset = mixed(n) % 124 + 1;  // of 5 x 5 x 5, not the atom itself
    const std::size_t step = (offset + 62) % 125;
    const auto moved = [](std::size_t place, std::size_t by) { return (place + kEdge + by - 2) % kEdge; };
    list[n] = static_cast<std::int32_t>(moved(i % kEdge, step % 5) +
                                        kEdge * moved(i / kEdge % kEdge, step / 5 % 5) +
                                        kEdge * kEdge * moved(i / kEdge / kEdge, step / 25));
  }
  return list;
}

}  // namespace quern::bench
