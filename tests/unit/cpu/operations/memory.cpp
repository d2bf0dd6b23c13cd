// SPDX-License-Identifier: Apache-2.0
// Compares loads and stores of every layout, element and space with a plain loop over the lanes.
#include <doctest/doctest.h>
#include <sys/mman.h>

#include <cstring>
#include <numeric>
#include <string>

#include "cpu/emit/helpers/helpers.hpp"
#include "harness.hpp"

namespace quern::cpu::emit::testing {
namespace {

using analysis::LaneOffsets;
using analysis::LanePattern;
using analysis::LanePatternKind;
using ir::Op;
using ir::Space;
using ir::Type;

constexpr std::size_t kWindowBytes = 1 << 16;
constexpr std::size_t kSharedAt = 1 << 14;
constexpr std::size_t kLocalAt = 1 << 15;
constexpr std::uint64_t kLocalStride = 272;

/// A window with shared and local memory, and readable bytes after it, where redirected accesses land.
struct Memory {
  Memory() {
    static const std::vector<std::uint8_t> pattern = [] {
      std::vector<std::uint8_t> made(kWindowBytes + 4096);
      for (std::size_t at = 0; at < made.size(); ++at)
        made[at] = static_cast<std::uint8_t>(at * 7 + at / 256 * 13 + 1);
      return made;
    }();
    bytes = pattern;
    around.launch.window_base = reinterpret_cast<std::byte*>(bytes.data());
    around.launch.window_bytes = kWindowBytes;
    around.launch.params = reinterpret_cast<const std::byte*>(bytes.data());
    around.worker.shared_base = around.launch.window_base + kSharedAt;
    around.worker.local_base = around.launch.window_base + kLocalAt;
    around.worker.local_stride = kLocalStride;
  }
  std::vector<std::uint8_t> bytes;
  Surroundings around;

  /// The offset in `bytes` of a lane's address in `space`.
  std::size_t place(Space space, std::uint64_t address, unsigned lane) const {
    if (space == Space::shared) return kSharedAt + address;
    if (space == Space::local) return kLocalAt + lane * kLocalStride + address;
    if (space == Space::param) return address;
    return address - reinterpret_cast<std::uint64_t>(bytes.data());
  }
  std::uint64_t address(Space space, std::size_t offset) const {
    const bool in_window = space == Space::global || space == Space::generic || space == Space::constant;
    return in_window ? reinterpret_cast<std::uint64_t>(bytes.data()) + offset : offset;
  }
};

/// An operand to which a pattern refers: a coefficient or an index.
struct Extra {
  Input input;
  Lanes lanes{};
};

/// Addresses of 32 lanes: a pattern, a base, and the runtime operands that the pattern refers to.
struct Addresses {
  std::string name;
  LanePattern pattern;
  std::int64_t base = 0;                   ///< offset of the base
  std::array<std::int64_t, 32> offsets{};  ///< of each lane
  std::vector<Extra> extras;
};

Addresses affine_addresses(const std::string& name, std::int64_t base,
                           std::int64_t (*distance)(std::int64_t lane, std::int64_t bytes),
                           std::int64_t bytes) {
  Addresses made{.name = name, .base = base};
  LaneOffsets offsets{};
  for (std::int64_t lane = 0; lane < 32; ++lane)
    offsets[static_cast<std::size_t>(lane)] = distance(lane, bytes) - distance(0, bytes);
  made.pattern = affine(offsets);
  for (std::size_t lane = 0; lane < 32; ++lane) made.offsets[lane] = base + offsets[lane];
  return made;
}

/// column * bytes + row * pitch, with a pitch known only at run time: two-dimensional blocks.
Addresses rows_of(unsigned width, std::int64_t base, std::int64_t bytes, ir::Value coefficient,
                  bool broadcast = false, std::int32_t pitch = 400) {
  Addresses made{.name = "rows of " + std::to_string(width) + (broadcast ? ", one address a row" : "") +
                         (pitch < 0 ? ", the last one first" : ""),
                 .base = base};
  LaneOffsets columns{};
  analysis::Term rows{.coefficient = coefficient};
  for (std::size_t lane = 0; lane < 32; ++lane) {
    columns[lane] = broadcast ? 0 : static_cast<std::int64_t>(lane % width) * bytes;
    rows.offsets[lane] = static_cast<std::int64_t>(lane / width) * 2;
    made.offsets[lane] = base + columns[lane] + rows.offsets[lane] * pitch;
  }
  made.pattern = affine(columns);
  made.pattern.terms.push_back(rows);
  made.extras.push_back({.input = {.type = Type::i32, .pattern = uniform()}});
  made.extras[0].lanes[0] = static_cast<std::uint32_t>(pitch);
  return made;
}

Addresses indexed(bool is_signed, std::int64_t scale, std::int64_t base, ir::Value index) {
  Addresses made{.name = is_signed ? "signed indices" : "unsigned indices", .base = base};
  made.pattern = {
      .kind = LanePatternKind::offset32, .index = index, .index_signed = is_signed, .scale = scale};
  made.extras.push_back({.input = {.type = Type::i32}});
  for (std::size_t lane = 0; lane < 32; ++lane) {
    const std::int64_t at = static_cast<std::int64_t>(lane * 37 % 64) - (is_signed ? 20 : 0);
    made.extras[0].lanes[lane] = static_cast<std::uint32_t>(at);
    made.offsets[lane] = base + at * scale;
  }
  return made;
}

/// Unsigned indices below 64, which the analysis knows.
Addresses bounded(std::int64_t scale, std::int64_t base, ir::Value index) {
  Addresses made = indexed(false, scale, base, index);
  made.name = "indices below 64";
  made.extras[0].input.pattern.min = 0;
  made.extras[0].input.pattern.max = 63;
  return made;
}

/// Indices of neighbouring lanes are neighbours, unless they wrap.
Addresses near(bool is_signed, std::int64_t scale, std::int64_t base, ir::Value index, bool backwards) {
  Addresses made = indexed(is_signed, scale, base, index);
  made.name += backwards ? " that fall" : " that rise";
  LaneOffsets offsets{};
  const std::int64_t first = backwards ? 40 : is_signed ? -7 : 3;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    offsets[lane] = backwards ? -static_cast<std::int64_t>(lane) : static_cast<std::int64_t>(lane);
    made.extras[0].lanes[lane] = static_cast<std::uint32_t>(first + offsets[lane]);
    made.offsets[lane] = base + (first + offsets[lane]) * scale;
  }
  made.extras[0].input.pattern = affine(offsets);
  return made;
}

/// Indices of rows of 16 lanes, whose pitch is a runtime operand: column + row * pitch, which does not wrap.
Addresses near_rows(bool is_signed, std::int64_t scale, std::int64_t base, ir::Value index,
                    std::int32_t pitch) {
  Addresses made = indexed(is_signed, scale, base, index);
  made.name += " in rows, pitch " + std::to_string(pitch);
  LaneOffsets columns{};
  analysis::Term rows{.coefficient = index + 1};
  const std::int64_t first = 25;
  for (std::size_t lane = 0; lane < 32; ++lane) {
    columns[lane] = static_cast<std::int64_t>(lane % 16);
    rows.offsets[lane] = static_cast<std::int64_t>(lane / 16);
    const std::int64_t at = first + columns[lane] + rows.offsets[lane] * pitch;
    made.extras[0].lanes[lane] = static_cast<std::uint32_t>(at);
    made.offsets[lane] = base + at * scale;
  }
  made.extras[0].input.pattern = affine(columns);
  made.extras[0].input.pattern.terms.push_back(rows);
  made.extras.push_back({.input = {.type = Type::i32, .pattern = uniform()}});
  made.extras[1].lanes[0] = static_cast<std::uint32_t>(pitch);
  return made;
}

Addresses scattered(std::int64_t bytes) {
  Addresses made{.name = "varying", .pattern = {.kind = LanePatternKind::varying}};
  for (std::size_t lane = 0; lane < 32; ++lane)
    made.offsets[lane] = 64 + static_cast<std::int64_t>(lane * 19 % 32) * bytes * 2;
  return made;
}

Addresses same_address(std::int64_t base) {
  Addresses made{.name = "uniform", .pattern = uniform(), .base = base};
  made.offsets.fill(base);
  return made;
}

/// Every layout for accesses of `bytes`; `extra`: the operand of runtime parts.
std::vector<Addresses> all_addresses(std::int64_t bytes, ir::Value extra) {
  const auto make = [&](const char* name, std::int64_t base,
                        std::int64_t (*distance)(std::int64_t, std::int64_t)) {
    return affine_addresses(name, base, distance, bytes);
  };
  return {
      same_address(128),
      make("contiguous", 256, [](std::int64_t lane, std::int64_t size) { return lane * size; }),
      make("backwards", 2048, [](std::int64_t lane, std::int64_t size) { return -lane * size; }),
      make("16 twice", 512, [](std::int64_t lane, std::int64_t size) { return lane % 16 * size; }),
      make("8 by 4", 512,
           [](std::int64_t lane, std::int64_t size) {
             return lane / 8 * 500 * 2 / 16 * 16 + lane % 8 * size;
           }),
      make("four addresses", 512, [](std::int64_t lane, std::int64_t) { return lane / 8 * 96; }),
      make("rows of ten", 512,
           [](std::int64_t lane, std::int64_t size) { return lane / 10 * 320 + lane % 10 * size; }),
      make("stride 2", 512, [](std::int64_t lane, std::int64_t size) { return lane * 2 * size; }),
      make("stride 3", 512, [](std::int64_t lane, std::int64_t size) { return lane * 3 * size; }),
      make("stride 4", 512, [](std::int64_t lane, std::int64_t size) { return lane * 4 * size; }),
      make("stride 5", 512, [](std::int64_t lane, std::int64_t size) { return lane * 5 * size; }),
      make("every other pair", 512,
           [](std::int64_t lane, std::int64_t size) { return (lane * 2 - lane % 2) * size; }),
      make("bits reversed, backwards", 1024,
           [](std::int64_t lane, std::int64_t size) {
             return -(lane % 2 * 16 + lane / 2 % 2 * 8 + lane / 4 % 2 * 4 + lane / 8 % 2 * 2 + lane / 16) *
                    size;
           }),
      make("eleven of 22, three times", 512,
           [](std::int64_t lane, std::int64_t size) { return lane % 11 * 2 * size; }),
      rows_of(16, 512, bytes, extra),
      rows_of(16, 512, bytes, extra, true),
      rows_of(16, 1536, bytes, extra, false, -400),
      rows_of(8, 512, bytes, extra),
      rows_of(10, 512, bytes, extra),
      rows_of(2, 512, bytes, extra),
      indexed(true, bytes, 1024, extra),
      indexed(false, bytes, 1024, extra),
      near(true, bytes, 1024, extra, false),
      near(false, bytes, 1024, extra, false),
      near(true, bytes, 1024, extra, true),
      near_rows(true, bytes, 1024, extra, 40),
      near_rows(true, bytes, 1024, extra, -23),
      near_rows(false, bytes, 1024, extra, 16),
      bounded(bytes, 1024, extra),
      scattered(bytes)};
}

constexpr std::uint32_t kMasks[] = {0xffffffffu, 0x00000001u, 0x80000000u,
                                    0x0000ffffu, 0x5a5a1234u, 0x00ff0000u};

struct Machines {
  template <class Visit>
  static void each(Visit visit) {
    for (const Isa isa : isas())
      for (const bool full : {true, false}) visit(Machine{.isa = isa, .full = full});
    for (const bool full : {true, false}) visit(Machine{.isa = isas().back(), .full = full, .compact = true});
  }
};

std::uint64_t mask_of(Type type) {
  const std::uint32_t width = ir::bit_size(type);
  return width == 64 ? ~std::uint64_t{0} : (std::uint64_t{1} << width) - 1;
}

std::uint64_t read(const Memory& memory, std::size_t at, Type type) {
  std::uint64_t value = 0;
  std::memcpy(&value, memory.bytes.data() + at, ir::byte_size(type));
  return type == Type::i1 ? value != 0 : value & mask_of(type);
}

Lanes base_lanes(const Memory& memory, Space space, const Addresses& addresses) {
  Lanes lanes{};
  for (std::size_t lane = 0; lane < 32; ++lane)
    lanes[lane] = memory.address(
        space,
        static_cast<std::size_t>(addresses.pattern.scalar() ? addresses.base : addresses.offsets[lane]));
  return lanes;
}

void check_load(Space space, Type type, std::uint8_t count, std::int64_t displacement,
                const Addresses& addresses, ir::Attributes attr = {}) {
  attr.space = space;
  attr.count = count;
  attr.alignment = ir::byte_size(type) * count;
  Operation operation{
      .op = Op::load, .type = type, .attr = attr, .imm = static_cast<std::uint64_t>(displacement)};
  operation.inputs = {{Type::i64, addresses.pattern}};
  operation.elements = count;
  operation.params = {{0, 32768, 8}};
  for (const Extra& extra : addresses.extras) operation.inputs.push_back(extra.input);
  if (addresses.pattern.kind == LanePatternKind::uniform && space != Space::local)
    operation.result = uniform();
  Memory memory;
  Machines::each([&](const Machine& machine) {
    const Compiled code = compile(operation, machine);
    for (const std::uint32_t mask : kMasks) {
      if (machine.full && mask != 0xffffffffu) continue;
      std::vector<Lanes> inputs = {base_lanes(memory, space, addresses)};
      for (const Extra& extra : addresses.extras) inputs.push_back(extra.lanes);
      const auto got = code.run(inputs, mask, memory.around);
      bool good = true;
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned element = 0; element < count && (mask >> lane & 1) != 0; ++element) {
          const std::uint64_t address =
              memory.address(space, static_cast<std::size_t>(addresses.offsets[lane] + displacement));
          good = good &&
                 got[element][lane] ==
                     read(memory, memory.place(space, address, lane) + element * ir::byte_size(type), type);
        }
      CHECK_MESSAGE(good, addresses.name, " ", ir::name(type), " x", int(count), " ", name_of(machine.isa),
                    machine.full ? " full" : " masked ", mask, machine.compact ? " compact" : "");
    }
  });
}

void check_store(Space space, Type type, std::uint8_t count, std::int64_t displacement,
                 const Addresses& addresses, ir::Attributes attr = {}) {
  attr.space = space;
  attr.count = count;
  attr.alignment = ir::byte_size(type) * count;
  Operation operation{
      .op = Op::store, .type = Type::none, .attr = attr, .imm = static_cast<std::uint64_t>(displacement)};
  operation.inputs = {{Type::i64, addresses.pattern}};
  for (unsigned element = 0; element < count; ++element) operation.inputs.push_back({type});
  for (const Extra& extra : addresses.extras) operation.inputs.push_back(extra.input);
  Machines::each([&](const Machine& machine) {
    const Compiled code = compile(operation, machine);
    for (const std::uint32_t mask : kMasks) {
      if (machine.full && mask != 0xffffffffu) continue;
      Memory memory;
      Memory expected;
      std::vector<Lanes> inputs = {base_lanes(memory, space, addresses)};
      for (unsigned element = 0; element < count; ++element) {
        inputs.emplace_back();
        for (std::size_t lane = 0; lane < 32; ++lane)
          inputs.back()[lane] = (0x9e3779b97f4a7c15u * (lane * 5 + element + 1) >> 3) & mask_of(type);
      }
      for (const Extra& extra : addresses.extras) inputs.push_back(extra.lanes);
      code.run(inputs, mask, memory.around);
      for (unsigned lane = 0; lane < 32; ++lane)
        for (unsigned element = 0; element < count && (mask >> lane & 1) != 0; ++element) {
          const std::uint64_t address =
              expected.address(space, static_cast<std::size_t>(addresses.offsets[lane] + displacement));
          std::memcpy(
              expected.bytes.data() + expected.place(space, address, lane) + element * ir::byte_size(type),
              &inputs[1 + element][lane], ir::byte_size(type));
        }
      CHECK_MESSAGE(memory.bytes == expected.bytes, addresses.name, " ", ir::name(type), " x", int(count),
                    " ", name_of(machine.isa), machine.full ? " full" : " masked ", mask,
                    machine.compact ? " compact" : "");
    }
  });
}

}  // namespace

TEST_CASE("a load reads each lane's own address, whatever the layout") {
  for (const Type type : {Type::i8, Type::i16, Type::f16, Type::f32, Type::i64})
    for (const Addresses& addresses : all_addresses(ir::byte_size(type), 1))
      check_load(Space::global, type, 1, 0, addresses);
}

TEST_CASE(
    "a store writes each running lane's own address and nothing else; of equal addresses the highest lane "
    "stays") {
  for (const Type type : {Type::i8, Type::bf16, Type::i32, Type::f64})
    for (const Addresses& addresses : all_addresses(ir::byte_size(type), 2))
      check_store(Space::global, type, 1, 0, addresses);
}

TEST_CASE("vector elements of a lane lie next to each other") {
  for (const Addresses& addresses : all_addresses(8, 1))
    check_load(Space::global, Type::f32, 2, 8, addresses);
  for (const Addresses& addresses : all_addresses(16, 1))
    check_load(Space::global, Type::i32, 4, 0, addresses);
  for (const Addresses& addresses : all_addresses(4, 1))
    check_load(Space::global, Type::i8, 4, -4, addresses);
  for (const Addresses& addresses : all_addresses(16, 1))
    check_load(Space::global, Type::f64, 2, 0, addresses);
  for (const Addresses& addresses : all_addresses(8, 3))
    check_store(Space::global, Type::f32, 2, 8, addresses);
  for (const Addresses& addresses : all_addresses(16, 5))
    check_store(Space::global, Type::i32, 4, 0, addresses);
  for (const Addresses& addresses : all_addresses(4, 3))
    check_store(Space::global, Type::i16, 2, 0, addresses);
}

TEST_CASE("shared memory: offsets of 32 bits from the block's shared memory") {
  for (const Addresses& addresses : all_addresses(4, 1))
    check_load(Space::shared, Type::f32, 1, 16, addresses);
  for (const Addresses& addresses : all_addresses(4, 2))
    check_store(Space::shared, Type::f32, 1, 16, addresses);
}

TEST_CASE("shared memory: lane 0 may lie below the start where it does not run") {
  Addresses addresses =
      affine_addresses("below", -16, [](std::int64_t lane, std::int64_t size) { return lane * size; }, 4);
  Operation operation{.op = Op::load,
                      .type = Type::i32,
                      .attr = {.space = Space::shared},
                      .inputs = {{Type::i64, addresses.pattern}}};
  Memory memory;
  for (const Isa isa : isas()) {
    const Lanes got = compile(operation, {.isa = isa, .full = false})
                          .run({Lanes{static_cast<std::uint64_t>(-16)}}, 0xfffffff0u, memory.around)[0];
    for (std::size_t lane = 4; lane < 32; ++lane)
      CHECK(got[lane] == read(memory, kSharedAt + (lane - 4) * 4, Type::i32));
  }
}

TEST_CASE("generic and constant addresses are window addresses") {
  for (const Space space : {Space::generic, Space::constant})
    for (const Addresses& addresses : all_addresses(4, 1))
      check_load(space, Type::i32, 1, 4, addresses, {.invariant = space == Space::constant});
  for (const Addresses& addresses : all_addresses(8, 2))
    check_store(Space::generic, Type::i64, 1, 0, addresses);
}

TEST_CASE("local memory: each lane has its own") {
  const std::vector<Addresses> cases = {
      same_address(16),
      affine_addresses("affine", 0, [](std::int64_t lane, std::int64_t) { return lane % 16 * 16; }, 16)};
  for (const Addresses& addresses : cases) {
    check_load(Space::local, Type::i32, 1, 8, addresses);
    check_load(Space::local, Type::f32, 4, 0, addresses);
    check_store(Space::local, Type::i32, 1, 8, addresses);
    check_store(Space::local, Type::i8, 1, 0, addresses);
  }
  // The address has the form for which other spaces' accesses are a few vectors.
  check_load(Space::local, Type::i32, 1, 8, near(true, 4, 64, 1, false));
  check_store(Space::local, Type::i32, 1, 8, near(true, 4, 64, 2, false));
}

TEST_CASE("parameters may be read with an index") {
  for (const Addresses& addresses : all_addresses(4, 1)) check_load(Space::param, Type::i32, 1, 4, addresses);
}

TEST_CASE("parameters of two bytes may have any alignment") {
  Addresses addresses = scattered(2);
  for (std::size_t lane = 0; lane < 32; ++lane)
    addresses.offsets[lane] += static_cast<std::int64_t>(lane % 4);
  check_load(Space::param, Type::i16, 1, 0, addresses);
}

TEST_CASE("bytes at any place of a word are loaded") {
  Addresses addresses = scattered(1);
  for (std::size_t lane = 0; lane < 32; ++lane)
    addresses.offsets[lane] += static_cast<std::int64_t>(lane / 8);
  for (const Space space : {Space::global, Space::shared, Space::param})
    for (const Type type : {Type::i1, Type::i8}) check_load(space, type, 1, 0, addresses);
}

TEST_CASE("an index beyond the parameters reads their end") {
  Memory memory;
  Operation operation{.op = Op::load,
                      .type = Type::i32,
                      .attr = {.space = Space::param},
                      .inputs = {{Type::i64}},
                      .params = {{0, 64, 8}}};
  for (const std::uint64_t wild : {std::uint64_t{64}, std::uint64_t{1} << 40, ~std::uint64_t{7}}) {
    Lanes lanes{};
    lanes.fill(wild);
    for (const Isa isa : isas())
      CHECK(compile(operation, {.isa = isa}).run({lanes}, 0xffffffffu, memory.around)[0][5] ==
            read(memory, 64, Type::i32));
  }
}

TEST_CASE("volatile and ordered accesses do the same") {
  for (const ir::Attributes attr :
       {ir::Attributes{.is_volatile = true},
        ir::Attributes{.semantics = ir::Semantics::relaxed, .scope = ir::Scope::gpu},
        ir::Attributes{.semantics = ir::Semantics::acquire, .scope = ir::Scope::sys}})
    for (const Addresses& addresses :
         {same_address(128), scattered(4),
          affine_addresses(
              "contiguous", 64, [](std::int64_t lane, std::int64_t size) { return lane * size; }, 4)})
      check_load(Space::global, Type::i32, 1, 0, addresses, attr);
  for (const ir::Attributes attr :
       {ir::Attributes{.is_volatile = true},
        ir::Attributes{.semantics = ir::Semantics::release, .scope = ir::Scope::gpu}})
    for (const Addresses& addresses :
         {same_address(128), scattered(8),
          affine_addresses(
              "contiguous", 64, [](std::int64_t lane, std::int64_t size) { return lane * size; }, 8)})
      check_store(Space::global, Type::f64, 1, 0, addresses, attr);
}

TEST_CASE("ordered accesses of 16 bytes") {
  for (const ir::Semantics order : {ir::Semantics::relaxed, ir::Semantics::acquire, ir::Semantics::release})
    for (const bool same : {false, true}) {
      Operation operation{.op = order == ir::Semantics::release ? Op::store : Op::load, .type = Type::i64};
      operation.attr = {.space = Space::global, .count = 2, .semantics = order, .alignment = 16};
      operation.elements = 2;
      const bool stores = operation.op == Op::store;
      operation.inputs = {{Type::i64, same ? uniform() : LanePattern{.kind = LanePatternKind::varying}}};
      if (stores) operation.type = Type::none;
      for (int word = 0; stores && word < 2; ++word) operation.inputs.push_back({Type::i64});
      for (const Isa isa : isas())
        for (const bool full : {true, false}) {
          const Compiled code = compile(operation, {.isa = isa, .full = full});
          const std::uint32_t mask = full ? 0xffffffffu : 0x8010a5a5u;
          Memory memory;
          const std::size_t begin = (16 - reinterpret_cast<std::uint64_t>(memory.bytes.data()) % 16) %
                                    16;  // a multiple of 16 there
          std::vector<Lanes> inputs(operation.inputs.size());
          std::array<std::size_t, 32> places{};
          for (std::size_t lane = 0; lane < 32; ++lane) {
            places[lane] = begin + (same ? 64 : lane * 7 % 32 * 32);
            inputs[0][lane] = memory.address(Space::global, places[lane]);
            for (std::size_t word = 0; stores && word < 2; ++word)
              inputs[1 + word][lane] = (lane + 1) * 0x0102030405060708u + word;
          }
          std::vector<std::uint8_t> expected = memory.bytes;
          for (std::size_t lane = 0; stores && lane < 32; ++lane)
            for (std::size_t word = 0; (mask >> lane & 1) != 0 && word < 2; ++word)
              std::memcpy(expected.data() + places[lane] + 8 * word, &inputs[1 + word][lane], 8);
          const auto got = code.run(inputs, mask, memory.around);
          bool good = memory.bytes == expected;
          for (std::size_t lane = 0; !stores && lane < 32; ++lane)
            for (std::size_t word = 0; (mask >> lane & 1) != 0 && word < 2; ++word)
              good = good && std::memcmp(&got[word][lane], expected.data() + places[lane] + 8 * word, 8) == 0;
          CHECK_MESSAGE(good, name_of(isa), full ? " full" : " masked", stores ? " store" : " load",
                        same ? " one address" : "");
        }
    }
}

TEST_CASE("an address outside the window reads behind its end, and nowhere else") {
  Memory memory;
  const std::uint64_t sentinel = read(memory, kWindowBytes, Type::i32);
  for (const std::uint64_t wild : {std::uint64_t{0}, std::uint64_t{8}, ~std::uint64_t{0} - 3,
                                   std::uint64_t{1} << 63, memory.address(Space::global, kWindowBytes),
                                   memory.address(Space::global, kWindowBytes + (std::uint64_t{1} << 40)),
                                   memory.address(Space::global, 0) - 4}) {
    for (const Space space : {Space::global, Space::generic})
      Machines::each([&](const Machine& machine) {
        Lanes lanes{};
        lanes.fill(wild);
        Operation operation{
            .op = Op::load, .type = Type::i32, .attr = {.space = space}, .inputs = {{Type::i64}}};
        CHECK(compile(operation, machine).run({lanes}, 0xffffffffu, memory.around)[0][7] == sentinel);
        operation.inputs = {{Type::i64, uniform()}};
        operation.result = uniform();
        CHECK(compile(operation, machine).run({lanes}, 0xffffffffu, memory.around)[0][7] == sentinel);
      });
  }
}

TEST_CASE("lanes that do not run may hold any address") {
  Memory memory;
  Lanes addresses{};
  for (std::size_t lane = 0; lane < 32; ++lane)
    addresses[lane] = lane % 2 == 0 ? memory.address(Space::global, lane * 4) : 0xdead0000beef;
  // no check redirects, so only the mask protects
  memory.around.launch.window_bytes = ~std::uint64_t{0} >> 2;
  for (const Isa isa : isas()) {
    const Operation load{
        .op = Op::load, .type = Type::i32, .attr = {.space = Space::global}, .inputs = {{Type::i64}}};
    const Lanes got =
        compile(load, {.isa = isa, .full = false}).run({addresses}, 0x55555555u, memory.around)[0];
    for (std::size_t lane = 0; lane < 32; ++lane)
      CHECK(got[lane] == (lane % 2 == 0 ? read(memory, lane * 4, Type::i32) : 0));
    const Operation four{.op = Op::load,
                         .type = Type::i32,
                         .attr = {.space = Space::global, .count = 4, .alignment = 4},
                         .inputs = {{Type::i64}},
                         .elements = 4};
    const auto elements =
        compile(four, {.isa = isa, .full = false}).run({addresses}, 0x55555550u, memory.around);
    for (std::size_t lane = 0; lane < 32; ++lane)
      for (std::size_t at = 0; at < 4; ++at)
        CHECK(elements[at][lane] ==
              (lane % 2 == 0 && lane > 3 ? read(memory, (lane + at) * 4, Type::i32) : 0));
    const Operation store{.op = Op::store,
                          .type = Type::none,
                          .attr = {.space = Space::global},
                          .inputs = {{Type::i64}, {Type::i32}}};
    compile(store, {.isa = isa, .full = false}).run({addresses, Lanes{}}, 0x55555555u, memory.around);
    for (std::size_t lane = 0; lane < 32; lane += 2) CHECK(read(memory, lane * 4, Type::i32) == 0);
    memory = Memory();
    memory.around.launch.window_bytes = ~std::uint64_t{0} >> 2;
    for (std::size_t lane = 0; lane < 32; lane += 2)
      addresses[lane] = memory.address(Space::global, lane * 4);
  }
}

TEST_CASE("a masked row of addresses that no lane reads is not touched") {
  Memory memory;
  // Two rows far apart. The second one is outside all memory, and its lanes do not run.
  memory.around.launch.window_bytes = ~std::uint64_t{0} >> 2;
  std::vector<Addresses> rows;
  for (const bool broadcast : {false, true}) {
    rows.push_back(rows_of(16, 256, 4, 1, broadcast));
    rows.back().extras[0].lanes[0] = 0x7fffffff;
  }
  for (const std::uint64_t pitch : {0x3fffffffu, 0x7fffffffu}) {  // with the second, indices wrap
    rows.push_back(near_rows(true, 4, 256, 1, 0));
    for (std::size_t lane = 16; lane < 32; ++lane) rows.back().extras[0].lanes[lane] += pitch;
    rows.back().extras[1].lanes[0] = pitch;
  }
  for (const Addresses& addresses : rows) {
    Operation operation{.op = Op::load, .type = Type::i32, .attr = {.space = Space::global}};
    operation.inputs = {{Type::i64, addresses.pattern}};
    std::vector<Lanes> inputs = {base_lanes(memory, Space::global, addresses)};
    for (const Extra& extra : addresses.extras) {
      operation.inputs.push_back(extra.input);
      inputs.push_back(extra.lanes);
    }
    for (const Isa isa : isas()) {
      const Lanes got =
          compile(operation, {.isa = isa, .full = false}).run(inputs, 0x0000ffffu, memory.around)[0];
      for (std::size_t lane = 0; lane < 16; ++lane)
        CHECK(got[lane] == read(memory, static_cast<std::size_t>(addresses.offsets[lane]), Type::i32));
    }
  }
}

}  // namespace quern::cpu::emit::testing
