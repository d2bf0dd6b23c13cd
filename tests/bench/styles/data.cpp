// SPDX-License-Identifier: Apache-2.0
#include "data.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <new>
#include <quern/half.hpp>
#include <sstream>
#include <thread>

namespace quern::bench {
namespace {

constexpr std::size_t kLargePage = std::size_t{1} << 21;

std::size_t size_of(const Slot& slot) {
  std::size_t bytes = size_bytes(slot.dtype);
  for (const std::int64_t extent : slot.shape) bytes *= static_cast<std::size_t>(extent);
  return bytes;
}

template <class T>
std::vector<double> numbers_of(const std::byte* from, std::size_t bytes) {
  std::vector<double> numbers(bytes / sizeof(T));
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    T value;
    std::memcpy(&value, from + i * sizeof(T), sizeof(T));
    if constexpr (std::is_same_v<T, float16>)
      numbers[i] = static_cast<double>(static_cast<float>(value));
    else
      numbers[i] = static_cast<double>(value);
  }
  return numbers;
}

std::vector<double> numbers(const Slot& slot, const HostArray& array) {
  const std::byte* from = array.data();
  const std::size_t bytes = size_of(slot);
  switch (slot.dtype) {
    case Dtype::int16:
      return numbers_of<std::int16_t>(from, bytes);
    case Dtype::int32:
      return numbers_of<std::int32_t>(from, bytes);
    case Dtype::uint32:
      return numbers_of<std::uint32_t>(from, bytes);
    case Dtype::float16:
      return numbers_of<float16>(from, bytes);
    case Dtype::float32:
      return numbers_of<float>(from, bytes);
    case Dtype::float64:
      return numbers_of<double>(from, bytes);
    default:
      std::abort();  // the table has no results of other types that are not compared bit by bit
  }
}

std::string difference(const Slot& slot, const HostArray& got, const HostArray& expected) {
  if (std::memcmp(got.data(), expected.data(), size_of(slot)) == 0) return {};
  const Tolerance& tolerance = slot.tolerance;
  if (tolerance.error == 0 && tolerance.fraction == 0 && !tolerance.any_order) return "bits differ";
  std::vector<double> a = numbers(slot, got), b = numbers(slot, expected);
  if (tolerance.any_order) {
    std::ranges::sort(a);
    std::ranges::sort(b);
  }
  std::size_t wrong = 0, first = 0;
  for (std::size_t i = 0; i < a.size(); ++i)
    if (!(std::fabs(a[i] - b[i]) <= tolerance.error * (1 + std::fabs(b[i]))) && wrong++ == 0) first = i;
  if (static_cast<double>(wrong) <= tolerance.fraction * static_cast<double>(a.size())) return {};
  std::ostringstream text;
  text.precision(9);
  text << wrong << " of " << a.size() << " elements differ; element " << first << " is " << a[first]
       << ", not " << b[first];
  return text.str();
}

}  // namespace

HostArray::HostArray(std::size_t bytes) : bytes_((bytes + kLargePage - 1) / kLargePage * kLargePage) {
  void* const got =
      ::mmap(nullptr, bytes_ + kLargePage, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (got == MAP_FAILED) throw std::bad_alloc();
  mapping_ = {static_cast<std::byte*>(got), Unmap{bytes_ + kLargePage}};
  const auto address = reinterpret_cast<std::uintptr_t>(got);
  data_ = mapping_.get() + ((kLargePage - address % kLargePage) % kLargePage);
  ::madvise(data_, bytes_, MADV_HUGEPAGE);
  std::memset(data_, 0, bytes_);
}
void HostArray::Unmap::operator()(std::byte* memory) const noexcept { ::munmap(memory, bytes); }

HostData::HostData(const Row& row) : row_(row) {
  for (const Slot& slot : row.slots) {
    if (slot.use == Slot::Use::number) continue;
    HostArray& array = arrays_.emplace_back(size_of(slot));
    pointers_.push_back(array.data());
    if (slot.fill) slot.fill(array.data(), size_of(slot));
    if (slot.use == Slot::Use::state)
      states_.push_back({arrays_.size() - 1, {array.data(), array.data() + size_of(slot)}});
  }
}

void HostData::run(Native native, std::size_t pieces, std::size_t thread_count) const {
  const auto part = [&](std::size_t t) {
    native(pointers_.data(), {pieces * t / thread_count, pieces * (t + 1) / thread_count});
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < thread_count; ++t) others.emplace_back(part, t);
  part(0);
  for (std::thread& other : others) other.join();
}

void HostData::restore() const {
  for (const State& state : states_)
    std::memcpy(pointers_[state.array], state.first.data(), state.first.size());
}

std::string HostData::difference(const HostData& expected) const {
  std::size_t i = 0;
  for (const Slot& slot : row_.slots) {
    if (slot.use == Slot::Use::number) continue;
    if (slot.use != Slot::Use::input) {
      const std::string text = bench::difference(slot, arrays_[i], expected.arrays_[i]);
      if (!text.empty()) return "array " + std::to_string(i) + ": " + text;
    }
    ++i;
  }
  return {};
}

}  // namespace quern::bench
