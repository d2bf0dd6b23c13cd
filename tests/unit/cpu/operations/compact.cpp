// SPDX-License-Identifier: Apache-2.0
// Code for a compact window guarantees, for all addresses, that no access is further outside the window than
// the gap. Accesses run in a large empty address range. A page that is accessed is recorded and becomes
// accessible, so that every lane is checked.
#include <doctest/doctest.h>
#include <setjmp.h>
#include <signal.h>
#include <sys/mman.h>

#include <cstring>
#include <string>

#include "harness.hpp"

namespace quern::cpu::emit::testing {
namespace {

using analysis::LaneOffsets;
using analysis::LanePattern;
using analysis::LanePatternKind;
using ir::Op;
using ir::Space;
using ir::Type;

constexpr std::uint64_t kGiB = std::uint64_t{1} << 30;
constexpr std::uint64_t kMiB = std::uint64_t{1} << 20;
constexpr std::uint64_t kPage = 4096;

/// The accessed pages of the range. The handler runs in the middle of emitted code, so it uses plain arrays.
struct TrappedRange {
  static constexpr std::size_t kMost = 1024;
  static constexpr std::uint64_t kBytes = 96 * kGiB;  // accesses by code for a wide window stay in the range
  static std::byte* base;
  static std::uint64_t pages[kMost];
  static std::size_t count;
  static bool beyond;  ///< an access was outside the range
  static sigjmp_buf escape;

  static void handle(int, siginfo_t* info, void*) {
    const auto address = reinterpret_cast<std::uint64_t>(info->si_addr);
    const std::uint64_t page = address / kPage * kPage;
    const bool inside = address - reinterpret_cast<std::uint64_t>(base) < kBytes && count < kMost;
    if (inside && ::mprotect(reinterpret_cast<void*>(page), kPage, PROT_READ | PROT_WRITE) == 0) {
      pages[count++] = page;
      return;
    }
    beyond = true;
    siglongjmp(escape, 1);
  }

  TrappedRange() {
    void* const got = ::mmap(nullptr, kBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    REQUIRE(got != MAP_FAILED);
    base = static_cast<std::byte*>(got);
    struct sigaction action{};
    action.sa_sigaction = &handle;
    action.sa_flags = SA_SIGINFO;
    ::sigaction(SIGSEGV, &action, &before_);
    ::sigaction(SIGBUS, &action, &before_bus_);
  }
  ~TrappedRange() {
    ::sigaction(SIGSEGV, &before_, nullptr);
    ::sigaction(SIGBUS, &before_bus_, nullptr);
    ::munmap(base, kBytes);
  }
  void clear() {
    for (std::size_t i = 0; i < count; ++i) ::mprotect(reinterpret_cast<void*>(pages[i]), kPage, PROT_NONE);
    count = 0;
    beyond = false;
  }

 private:
  struct sigaction before_{}, before_bus_{};
};
std::byte* TrappedRange::base = nullptr;
std::uint64_t TrappedRange::pages[TrappedRange::kMost];
std::size_t TrappedRange::count = 0;
bool TrappedRange::beyond = false;
sigjmp_buf TrappedRange::escape;

constexpr std::uint64_t kWindowBytes = 64 * kMiB;
constexpr std::uint64_t kSharedAt = 48 * kMiB;
constexpr std::uint64_t kLocalAt = 56 * kMiB;
constexpr std::uint64_t kLocalStride = 4096;

struct Form {
  std::string name;
  LanePattern pattern;
  Type extra = Type::none;  ///< of the runtime operand: a coefficient or an index
};

Form steps_of(const char* name, std::int64_t step) {
  LaneOffsets offsets{};
  for (std::size_t lane = 0; lane < 32; ++lane) offsets[lane] = static_cast<std::int64_t>(lane) * step;
  return {name, affine(offsets)};
}

std::vector<Form> forms(ir::Value extra) {
  Form rows = steps_of("rows", 0);
  for (std::size_t lane = 0; lane < 32; ++lane)
    rows.pattern.terms[0].offsets[lane] = static_cast<std::int64_t>(lane % 16) * 4;
  analysis::Term pitch{.coefficient = extra};
  for (std::size_t lane = 0; lane < 32; ++lane)
    pitch.offsets[lane] = static_cast<std::int64_t>(lane / 16) * 4;
  rows.pattern.terms.push_back(pitch);
  rows.extra = Type::i32;
  std::vector<Form> made = {{"uniform", uniform()},
                            {"varying", {.kind = LanePatternKind::varying}},
                            steps_of("contiguous", 4),
                            steps_of("backwards", -4),
                            steps_of("stride 2", 8),
                            steps_of("stride 5", 20),
                            steps_of("far apart", std::int64_t{1} << 25),
                            rows};
  for (const bool is_signed : {true, false})
    for (const std::int64_t scale : {1, 8})
      made.push_back(
          {is_signed ? "signed index" : "unsigned index",
           {.kind = LanePatternKind::offset32, .index = extra, .index_signed = is_signed, .scale = scale},
           Type::i32});
  return made;
}

std::vector<std::uint64_t> starts(Space space, std::uint64_t window) {
  if (space == Space::shared)
    return {0, 100, 0x7ffffff0, 0x80000000, 0xfffffff0, 0x20000, 0x1fffc, 0x12345678, ~std::uint64_t{3}};
  if (space == Space::local) return {0, kLocalStride - 4, kLocalStride, 0xfffffff0, ~std::uint64_t{3}};
  return {window + 44 * kMiB,
          window,
          window - 4,
          window - 32768,
          window + kWindowBytes - 4,
          window + kWindowBytes,
          window + kWindowBytes + 2 * kGiB,
          window - 3 * kGiB,
          0,
          ~std::uint64_t{3},
          std::uint64_t{1} << 63,
          0x1234567890};
}

class Watched {
 public:
  Watched() {
    window_ = reinterpret_cast<std::uint64_t>(TrappedRange::base) + TrappedRange::kBytes / 2;
    const auto at = [&](std::uint64_t offset) { return reinterpret_cast<std::byte*>(window_ + offset); };
    around_.launch.window_base = at(0);
    around_.launch.window_bytes = kWindowBytes;
    around_.worker.shared_base = at(kSharedAt);
    around_.worker.local_base = at(kLocalAt);
    around_.worker.local_stride = kLocalStride;
  }
  std::uint64_t window() const { return window_; }

  /// True if all accesses are in the window or in a gap around it.
  bool holds(const Compiled& code, const std::vector<Lanes>& inputs, std::uint32_t mask) {
    range_.clear();
    if (sigsetjmp(TrappedRange::escape, 1) == 0) code.run(inputs, mask, around_);
    if (TrappedRange::beyond) return false;
    const std::uint64_t first = window_ - engine::kCompactGapBytes;
    for (std::size_t i = 0; i < TrappedRange::count; ++i)
      if (TrappedRange::pages[i] - first >= kWindowBytes + 2 * engine::kCompactGapBytes) return false;
    return true;
  }

 private:
  TrappedRange range_;
  std::uint64_t window_ = 0;
  Surroundings around_;
};

Operation operation_for(bool is_store, Space space, std::int64_t displacement, const Form& form) {
  Operation operation{.op = is_store ? Op::store : Op::load,
                      .type = is_store ? Type::none : Type::i32,
                      .attr = {.space = space},
                      .imm = static_cast<std::uint64_t>(displacement)};
  operation.inputs = {{Type::i64, form.pattern}};
  if (is_store) operation.inputs.push_back({Type::i32});
  if (form.extra != Type::none)
    operation.inputs.push_back({form.extra, form.pattern.kind == LanePatternKind::affine
                                                ? uniform()
                                                : LanePattern{.kind = LanePatternKind::varying}});
  const bool one = form.pattern.kind == LanePatternKind::uniform && space != Space::local && !is_store;
  if (one) operation.result = uniform();
  return operation;
}

/// The address in every lane if the emitter keeps a scalar; otherwise lanes of all kinds.
Lanes addresses_of(const Form& form, const std::vector<std::uint64_t>& all, std::size_t first) {
  Lanes lanes{};
  for (std::size_t lane = 0; lane < 32; ++lane)
    lanes[lane] = all[form.pattern.scalar() ? first : (first + lane) % all.size()];
  return lanes;
}

/// The number of tested accesses that are too far outside.
unsigned strays(Watched& watched, const Machine& machine, bool is_store, Space space,
                std::int64_t displacement) {
  unsigned count = 0;
  for (const Form& form : forms(is_store ? 2 : 1)) {
    const Compiled code = compile(operation_for(is_store, space, displacement, form), machine);
    const std::vector<std::uint64_t> all = starts(space, watched.window());
    for (std::size_t first = 0; first < all.size(); ++first)
      for (const std::uint32_t extra : {0u, 0x7fffffffu, 0x80000000u, 0xffffffffu}) {
        std::vector<Lanes> inputs = {addresses_of(form, all, first)};
        if (is_store) inputs.push_back(filled(first));
        if (form.extra != Type::none) inputs.push_back(filled(extra));
        if (!watched.holds(code, inputs, machine.full ? 0xffffffffu : 0x80018001u)) ++count;
        if (form.extra == Type::none) break;
      }
  }
  return count;
}

constexpr Space kSpaces[] = {Space::global, Space::shared, Space::local};
constexpr std::int64_t kDisplacements[] = {0, 4, -32768, 65536, INT32_MAX - 3, INT32_MIN};

}  // namespace

TEST_CASE("in a compact window no access, whatever its address, lands further outside than the gap") {
  Watched watched;
  const std::vector<Isa> each = isas();
  for (const Isa isa : {each.front(), each.back()})
    for (const bool full : {true, false})
      for (const Space space : kSpaces)
        for (const std::int64_t displacement : kDisplacements) {
          const Machine machine{.isa = isa, .full = full, .opt_level = 0, .compact = true};
          const bool is_store = displacement != 4;
          const unsigned count = strays(watched, machine, is_store, space, displacement);
          CHECK_MESSAGE(count == 0, name_of(isa), full ? " full" : " masked", " space ",
                        static_cast<int>(space), " + ", displacement);
        }
}

TEST_CASE("the code for a wide window would not do there") {
  Watched watched;
  const Machine machine{.isa = isas().back(), .full = true, .opt_level = 0};
  CHECK(strays(watched, machine, true, Space::global, 0) > 0);
  CHECK(strays(watched, machine, true, Space::shared, 0) > 0);
}

TEST_CASE("in a compact window a lane of shared memory may begin before it where that lane does not run") {
  std::vector<std::uint8_t> bytes(1 << 20);
  Surroundings around;
  around.launch.window_base = reinterpret_cast<std::byte*>(bytes.data());
  around.launch.window_bytes = bytes.size();
  around.worker.shared_base = around.launch.window_base + 1024;
  const Form form = steps_of("contiguous", 4);
  for (const Isa isa : isas()) {
    const Compiled code =
        compile(operation_for(true, Space::shared, 8, form), {.isa = isa, .full = false, .compact = true});
    std::fill(bytes.begin(), bytes.end(), std::uint8_t{0});
    // Lane 0 is at -24 + 8; lane 4 is the first one inside.
    code.run({filled(0xffffffe8u), filled(0x01010101)}, 0xfffffff0u, around);
    CHECK(bytes[1023] == 0);
    CHECK(bytes[1024] == 1);
    CHECK(bytes[1024 + 28 * 4 - 1] == 1);
    CHECK(bytes[1024 + 28 * 4] == 0);
  }
}

}  // namespace quern::cpu::emit::testing
