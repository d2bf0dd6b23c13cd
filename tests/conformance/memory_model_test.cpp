// SPDX-License-Identifier: Apache-2.0
// Random sequences of calls about memory, right and wrong ones, against a small model: who owns how much,
// what is mapped where with which access, and what words memory holds. For the CPU device: a GPU counts its
// free memory in larger units, and shares it with others.
#include <algorithm>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "suite.hpp"

using namespace quern::conformance;

namespace {

constexpr std::size_t kPage = 4096;
constexpr std::size_t kPiece = std::size_t{2} << 20;

/// Words that were written, by their offset.
using Words = std::map<std::size_t, unsigned>;

struct Plain {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  bool pooled = false;
  Words words;
};
struct Physical {
  std::size_t bytes = 0;
  int references = 1;
  int mappings = 0;
  Words words;
};
struct Mapped {
  std::size_t bytes = 0;
  CUmemGenericAllocationHandle handle = 0;
  CUmemAccess_flags access = CU_MEM_ACCESS_FLAGS_PROT_NONE;
};
struct Space {
  CUdeviceptr address = 0;
  std::size_t bytes = 0;
  std::map<std::size_t, Mapped> chunks;  ///< by offset
};

class Model {
 public:
  explicit Model(unsigned seed) : random_(seed) {
    REQUIRE(cu().cuMemGetInfo_v2(&free_, &total_) == CUDA_SUCCESS);
    start_ = free_;
  }

  void step() {
    switch (below(12)) {
      case 0:
        return allocate(false);
      case 1:
        return allocate(true);
      case 2:
        return release();
      case 3:
        return reserve();
      case 4:
        return unreserve();
      case 5:
        return create();
      case 6:
        return drop();
      case 7:
        return map();
      case 8:
        return unmap();
      case 9:
        return set_access();
      default:
        return touch();
    }
  }

  void check_free() const {
    std::size_t free = 0, total = 0;
    REQUIRE(cu().cuMemGetInfo_v2(&free, &total) == CUDA_SUCCESS);
    CHECK(free == free_);
    CHECK(total == total_);
  }

  /// Releases all; nothing stays behind.
  void end() {
    while (!plain_.empty()) release();
    for (Space& space : spaces_) {
      while (!space.chunks.empty()) {
        const auto [offset, chunk] = *space.chunks.begin();
        CHECK(CU(cuMemUnmap)(space.address + offset, chunk.bytes) == CUDA_SUCCESS);
        forget_chunk(space, offset);
      }
      CHECK(CU(cuMemAddressFree)(space.address, space.bytes) == CUDA_SUCCESS);
    }
    while (!physical_.empty()) drop();
    CHECK(free_ == start_);
    check_free();
  }

 private:
  std::size_t below(std::size_t bound) {
    return std::uniform_int_distribution<std::size_t>(0, bound - 1)(random_);
  }
  template <class Range>
  auto any_of(Range& range) {
    return std::next(range.begin(), static_cast<std::ptrdiff_t>(below(range.size())));
  }
  static std::size_t committed(std::size_t bytes) { return (bytes + kPage - 1) / kPage * kPage; }

  void allocate(bool pooled) {
    const std::size_t bytes = 20000 + below(below(8) == 0 ? total_ : total_ / 32);
    CUdeviceptr pointer = 0;
    const CUresult result =
        pooled ? cu().cuMemAllocAsync(&pointer, bytes, nullptr) : cu().cuMemAlloc_v2(&pointer, bytes);
    const bool fits = committed(bytes) <= free_;
    CHECK(result == (fits ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY));
    if (result != CUDA_SUCCESS) return;
    free_ -= committed(bytes);
    plain_.push_back({pointer, bytes, pooled, {}});
  }

  void release() {
    if (plain_.empty()) return;
    const auto chosen = any_of(plain_);
    CHECK(cu().cuMemFree_v2(chosen->address + 256) == CUDA_ERROR_INVALID_VALUE);
    if (chosen->pooled) {
      CHECK(cu().cuMemFreeAsync(chosen->address, nullptr) == CUDA_SUCCESS);
      CHECK(cu().cuStreamSynchronize(nullptr) == CUDA_SUCCESS);
      CHECK(cu().cuMemFreeAsync(chosen->address, nullptr) == CUDA_ERROR_INVALID_VALUE);
    } else {
      CHECK(cu().cuMemFree_v2(chosen->address) == CUDA_SUCCESS);
      CHECK(cu().cuMemFree_v2(chosen->address) == CUDA_ERROR_INVALID_VALUE);
    }
    free_ += committed(chosen->bytes);
    plain_.erase(chosen);
  }

  void reserve() {
    if (spaces_.size() >= 6) return;
    Space space;
    space.bytes = kPiece * (1 + below(6));
    REQUIRE(CU(cuMemAddressReserve)(&space.address, space.bytes, 0, 0, 0) == CUDA_SUCCESS);
    for (const Space& other : spaces_)
      CHECK((other.address + other.bytes <= space.address || space.address + space.bytes <= other.address));
    spaces_.push_back(std::move(space));
  }

  void unreserve() {
    if (spaces_.empty()) return;
    const auto chosen = any_of(spaces_);
    const bool empty = chosen->chunks.empty();
    CHECK(CU(cuMemAddressFree)(chosen->address, chosen->bytes) ==
          (empty ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    if (empty) spaces_.erase(chosen);
  }

  void create() {
    const std::size_t bytes = kPiece * (1 + below(3));
    CUmemAllocationProp properties{};
    properties.type = CU_MEM_ALLOCATION_TYPE_PINNED;
    properties.location = {CU_MEM_LOCATION_TYPE_DEVICE, 0};
    CUmemGenericAllocationHandle handle = 0;
    const CUresult result = CU(cuMemCreate)(&handle, bytes, &properties, 0);
    CHECK(result == (bytes <= free_ ? CUDA_SUCCESS : CUDA_ERROR_OUT_OF_MEMORY));
    if (result != CUDA_SUCCESS) return;
    free_ -= bytes;
    CHECK(physical_.emplace(handle, Physical{bytes, 1, 0, {}}).second);
  }

  /// Lets go of a handle; one without a reference is refused.
  void drop() {
    if (physical_.empty()) return;
    const auto chosen = any_of(physical_);
    const bool known = chosen->second.references > 0;
    CHECK(CU(cuMemRelease)(chosen->first) == (known ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    if (known) --chosen->second.references;
    forget_physical(chosen->first);
  }

  void forget_physical(CUmemGenericAllocationHandle handle) {
    const auto found = physical_.find(handle);
    if (found->second.references > 0 || found->second.mappings > 0) return;
    free_ += found->second.bytes;
    physical_.erase(found);
  }

  void map() {
    if (spaces_.empty() || physical_.empty()) return;
    Space& space = *any_of(spaces_);
    const auto chosen = any_of(physical_);
    Physical& physical = chosen->second;
    const std::size_t offset = kPiece * below(space.bytes / kPiece);
    const std::size_t bytes = below(4) == 0 ? kPiece * (1 + below(3)) : physical.bytes;
    const bool known = physical.references > 0;
    const bool whole = bytes == physical.bytes;
    bool empty = offset + bytes <= space.bytes;
    for (const auto& [at, chunk] : space.chunks)
      empty = empty && (at + chunk.bytes <= offset || offset + bytes <= at);
    CHECK(CU(cuMemMap)(space.address + offset, bytes, 0, chosen->first, 0) ==
          (!known   ? CUDA_ERROR_INVALID_VALUE
           : !whole ? CUDA_ERROR_NOT_SUPPORTED
           : !empty ? CUDA_ERROR_INVALID_VALUE
                    : CUDA_SUCCESS));
    if (!known || !whole || !empty) return;
    space.chunks.emplace(offset, Mapped{bytes, chosen->first, CU_MEM_ACCESS_FLAGS_PROT_NONE});
    ++physical.mappings;
  }

  void forget_chunk(Space& space, std::size_t offset) {
    const auto found = space.chunks.find(offset);
    const CUmemGenericAllocationHandle handle = found->second.handle;
    --physical_.at(handle).mappings;
    space.chunks.erase(found);
    forget_physical(handle);
  }

  /// The offsets of the chunks that fill [offset, offset + bytes); none: they do not.
  static std::vector<std::size_t> chunks_in(const Space& space, std::size_t offset, std::size_t bytes) {
    std::vector<std::size_t> found;
    std::size_t at = offset;
    while (at < offset + bytes) {
      const auto chunk = space.chunks.find(at);
      if (chunk == space.chunks.end()) return {};
      found.push_back(at);
      at += chunk->second.bytes;
    }
    return at == offset + bytes ? found : std::vector<std::size_t>{};
  }

  void unmap() {
    if (spaces_.empty()) return;
    Space& space = *any_of(spaces_);
    const std::size_t offset = kPiece * below(space.bytes / kPiece), bytes = kPiece * (1 + below(4));
    std::vector<std::size_t> chunks;  // those within the range; none may be there in part
    bool whole = true;
    for (const auto& [at, chunk] : space.chunks) {
      if (at + chunk.bytes <= offset || offset + bytes <= at) continue;
      whole = whole && at >= offset && at + chunk.bytes <= offset + bytes;
      chunks.push_back(at);
    }
    CHECK(CU(cuMemUnmap)(space.address + offset, bytes) == (whole ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    if (!whole) return;
    for (const std::size_t chunk : chunks) forget_chunk(space, chunk);
  }

  void set_access() {
    if (spaces_.empty()) return;
    Space& space = *any_of(spaces_);
    const std::size_t offset = kPiece * below(space.bytes / kPiece), bytes = kPiece * (1 + below(4));
    const std::vector<std::size_t> chunks = chunks_in(space, offset, bytes);
    constexpr CUmemAccess_flags kFlags[] = {CU_MEM_ACCESS_FLAGS_PROT_NONE, CU_MEM_ACCESS_FLAGS_PROT_READ,
                                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE,
                                            CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
    const CUmemAccessDesc description{{CU_MEM_LOCATION_TYPE_DEVICE, 0}, kFlags[below(4)]};
    CHECK(CU(cuMemSetAccess)(space.address + offset, bytes, &description, 1) ==
          (chunks.empty() ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS));
    for (const std::size_t chunk : chunks) space.chunks.at(chunk).access = description.flags;
  }

  /// The words at an address of a space, with the offset there; null: nothing is mapped.
  struct Place {
    Mapped* chunk = nullptr;
    Words* words = nullptr;
    std::size_t offset = 0;
  };
  Place place_at(Space& space, std::size_t offset) {
    auto after = space.chunks.upper_bound(offset);
    if (after == space.chunks.begin()) return {};
    --after;
    if (offset - after->first >= after->second.bytes) return {};
    return {&after->second, &physical_.at(after->second.handle).words, offset - after->first};
  }

  /// Writes two words, perhaps across two chunks, and reads what is known.
  void touch() {
    if (below(2) == 0) return touch_plain();
    if (spaces_.empty()) return;
    Space& space = *any_of(spaces_);
    std::size_t offset = 4 * below(space.bytes / 4 - 1);
    if (below(4) == 0) offset = std::max<std::size_t>(offset / kPiece * kPiece, 4) - 4;
    const Place first = place_at(space, offset), second = place_at(space, offset + 4);
    const auto permits = [](const Place& place, unsigned needed) {
      return place.chunk != nullptr && (static_cast<unsigned>(place.chunk->access) & needed) == needed;
    };
    const unsigned values[] = {value(), value()};
    const CUdeviceptr address = space.address + offset;
    const bool writes = permits(first, CU_MEM_ACCESS_FLAGS_PROT_READWRITE) &&
                        permits(second, CU_MEM_ACCESS_FLAGS_PROT_READWRITE);
    CHECK(cu().cuMemcpyHtoD_v2(address, values, 8) == (writes ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    if (writes) {
      (*first.words)[first.offset] = values[0];
      (*second.words)[second.offset] = values[1];
    }
    unsigned back[2] = {};
    const bool reads =
        permits(first, CU_MEM_ACCESS_FLAGS_PROT_READ) && permits(second, CU_MEM_ACCESS_FLAGS_PROT_READ);
    CHECK(cu().cuMemcpyDtoH_v2(back, address, 8) == (reads ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE));
    if (!reads) return;
    check_word(*first.words, first.offset, back[0]);
    check_word(*second.words, second.offset, back[1]);
  }

  void touch_plain() {
    if (plain_.empty()) return;
    Plain& chosen = *any_of(plain_);
    const std::size_t offset = 4 * below(chosen.bytes / 4);
    const unsigned word = value();
    CHECK(cu().cuMemcpyHtoD_v2(chosen.address + offset, &word, 4) == CUDA_SUCCESS);
    chosen.words[offset] = word;
    const auto known = any_of(chosen.words);
    unsigned back = 0;
    CHECK(cu().cuMemcpyDtoH_v2(&back, chosen.address + known->first, 4) == CUDA_SUCCESS);
    check_word(chosen.words, known->first, back);
    CHECK(cu().cuMemcpyDtoH_v2(&back, chosen.address + chosen.bytes - 2, 4) == CUDA_ERROR_INVALID_VALUE);
  }

  static void check_word(const Words& words, std::size_t offset, unsigned back) {
    const auto known = words.find(offset);
    if (known != words.end()) CHECK(back == known->second);
  }
  unsigned value() { return static_cast<unsigned>(random_()); }

  std::mt19937 random_;
  std::size_t start_ = 0, free_ = 0, total_ = 0;
  std::vector<Plain> plain_;
  std::vector<Space> spaces_;
  std::map<CUmemGenericAllocationHandle, Physical> physical_;
};

}  // namespace

TEST_CASE("random calls about memory do what a model says") {
  if (!is_cpu()) return;
  for (unsigned seed = 1; seed <= 20; ++seed) {
    CAPTURE(seed);
    const Fixture fixture;
    Model model(seed);
    for (int step = 0; step < 800; ++step) {
      CAPTURE(step);
      model.step();
      model.check_free();
    }
    model.end();
  }
}
