// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/replay.hpp"

#include <fcntl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <set>
#include <vector>

#include "cpu/abi/warp_size.hpp"
#include "cpu/ir/fold.hpp"

namespace quern::cpu::device {
namespace {

using engine::Index3;
using ir::Op;
using ir::Value;

/// Instructions of all threads together: a few tenths of a second.
constexpr std::uint64_t kMaxSteps = 20'000'000;
constexpr std::uint64_t kPage = 4096;

/// Reads memory that may not be there: the kernel of the system looks, and does not fault.
class Probe {
 public:
  Probe() {
    if (::pipe2(ends_.data(), O_CLOEXEC | O_NONBLOCK) != 0) ends_ = {-1, -1};
  }
  ~Probe() {
    for (const int end : ends_)
      if (end >= 0) ::close(end);
  }
  Probe(const Probe&) = delete;
  Probe& operator=(const Probe&) = delete;

  bool works() const { return ends_[0] >= 0; }
  /// False: not all of it can be read. At most 64 bytes.
  bool read(std::uint64_t address, std::uint64_t bytes, void* to) const {
    // Not write(): a sanitizer would look at the memory itself.
    const long size = ::syscall(SYS_write, ends_[1], address, bytes);
    std::array<char, 64> buffer{};
    if (size > 0 && ::read(ends_[0], buffer.data(), static_cast<std::size_t>(size)) != size) return false;
    if (size != static_cast<long>(bytes)) return false;
    std::memcpy(to, buffer.data(), bytes);
    return true;
  }
  bool readable(std::uint64_t address, std::uint64_t bytes) const {
    std::array<char, 64> ignored;
    return read(address, bytes, ignored.data());
  }

 private:
  std::array<int, 2> ends_{-1, -1};
};

using Bits = std::optional<std::uint64_t>;

/// A value that could be computed again, and the allocations that it came from: bits of Scene::sources.
/// Memory that does not change during a launch is not among them.
struct Known {
  std::uint64_t bits = 0;
  std::uint64_t from = 0;
};
using Result = std::optional<Known>;

/// The data needed to replay the threads of a block.
struct Scene {
  const ir::Module& module;
  const ir::Function& kernel;
  Value access;  ///< kNone: each may be it
  const engine::Fault& fault;
  const engine::LaunchState& launch;
  const engine::WorkerState& worker;
  const engine::Window& window;
  std::uint32_t device;
  engine::Memory& memory;
  Index3 ctaid{};
  Probe probe{};
  std::uint64_t steps_left = kMaxSteps;
  std::vector<const void*>
      sources{};                  ///< allocations that values were read from; the last bit is for the rest
  std::uint64_t decisive = 0;     ///< the sources of addresses and conditions
  std::set<const void*> written;  ///< allocations that stores and atomics go to
  bool writes_anywhere = false;   ///< to an unknown address

  std::uint64_t source(const void* base) {
    constexpr std::size_t kLast = 63;
    const auto found =
        static_cast<std::size_t>(std::find(sources.begin(), sources.end(), base) - sources.begin());
    if (found == sources.size() && found < kLast) sources.push_back(base);
    return std::uint64_t{1} << std::min(found, kLast);
  }
  bool may_be(Value value) const {
    return access == ir::kNone ? is_access(kernel[value].op) : value == access;
  }
  static bool is_access(Op op) { return op == Op::load || op == Op::store || op == Op::atomic; }
  std::uint32_t bytes_of(const ir::Inst& what) const {
    const ir::Type type = what.op == Op::load ? what.type : kernel[what.args[1]].type;
    return ir::byte_size(type) * what.attr.count;
  }
};

bool is_global(ir::Space space) {
  return space == ir::Space::global || space == ir::Space::generic || space == ir::Space::constant;
}

/// The host address of an access to `address` of `space`; none for local memory, which is separate for each
/// lane.
Bits host_address(const Scene& scene, ir::Space space, std::uint64_t address) {
  if (is_global(space)) return address;
  if (space != ir::Space::shared) return std::nullopt;
  const auto offset = static_cast<std::int64_t>(static_cast<std::int32_t>(address));
  return reinterpret_cast<std::uint64_t>(scene.worker.shared_base) + static_cast<std::uint64_t>(offset);
}

/// True if an access to `bytes` at `address` by `what` ends in this fault.
bool offends(const Scene& scene, const ir::Inst& what, std::uint64_t address, std::uint32_t bytes) {
  if (what.attr.space == ir::Space::param) return false;
  const bool misaligned = address % (what.attr.alignment == 0 ? bytes : what.attr.alignment) != 0;
  if (scene.fault.kind == engine::FaultKind::misaligned_address) return misaligned;
  if (misaligned) return false;
  const Bits at = host_address(scene, what.attr.space, address);
  if (!at) return false;
  const std::uint64_t begin = reinterpret_cast<std::uint64_t>(scene.launch.window_base);
  if (is_global(what.attr.space) && *at - begin >= scene.launch.window_bytes) return true;
  return !scene.probe.readable(*at, bytes);
}

/// True if the loads of several elements are the kernel's own, which cuts/merge_neighbours made one.
bool is_merged(const ir::Inst& what) {
  return what.op == Op::load && what.attr.count > 1 && what.attr.alignment == ir::byte_size(what.type);
}

/// The thread's access, or the first of the kernel's accesses in it that ends in this fault.
Offender offender_of(const Scene& scene, std::uint32_t thread, Value access, std::uint64_t address) {
  const ir::Inst& what = scene.kernel[access];
  Offender found{thread, address, access, scene.bytes_of(what), what.location};
  if (!is_merged(what)) return found;
  const std::uint32_t bytes = ir::byte_size(what.type);
  for (const Value value : scene.kernel.blocks[what.block].insts) {
    const ir::Inst& part = scene.kernel[value];
    if (part.op != Op::extract || part.args[0] != access) continue;
    const std::uint64_t at = address + part.imm * bytes;
    const bool is_better = found.bytes != bytes || part.location == what.location;
    if (is_better && offends(scene, what, at, bytes)) found = {thread, at, access, bytes, part.location};
  }
  return found;
}

/// One thread on its way through the kernel.
class Thread {
 public:
  Thread(Scene& scene, std::uint32_t number)
      : scene_(scene), number_(number), values_(scene.kernel.insts.size()) {}

  enum class End : std::uint8_t { offended, elsewhere, unknown };
  /// To the first offending access, or to the thread's end.
  End follow() {
    ir::BlockId from = ir::kNone;
    ir::BlockId at = 0;
    while (at != ir::kNone) {
      enter(at, from);
      if (!run(at)) return end_;
      from = at;
      const std::optional<ir::BlockId> next = successor(at);
      if (!next) return End::unknown;
      at = *next;
      if (at != ir::kNone && at <= from) note_round(at);
    }
    return End::elsewhere;
  }
  const Offender& offender() const { return offender_; }
  /// The number of back edges taken in loops.
  std::uint64_t rounds() const { return rounds_; }
  bool nested() const { return headers_.size() > 1; }

 private:
  const ir::Inst& inst(Value value) const { return scene_.kernel[value]; }

  void note_round(ir::BlockId header) {
    ++rounds_;
    headers_.insert(header);
  }

  /// The phis, all at once.
  void enter(ir::BlockId block, ir::BlockId from) {
    const ir::Block& to = scene_.kernel.blocks[block];
    std::vector<std::pair<Value, Result>> phis;
    for (const Value value : to.insts) {
      if (inst(value).op != Op::phi) break;
      const auto edge =
          static_cast<std::size_t>(std::find(to.preds.begin(), to.preds.end(), from) - to.preds.begin());
      // A block that is the same predecessor twice: which of the edges was taken is not kept.
      const bool once = std::count(to.preds.begin(), to.preds.end(), from) == 1;
      phis.emplace_back(value, once ? values_[inst(value).args[edge]] : std::nullopt);
    }
    for (const auto& [value, result] : phis) values_[value] = result;
  }

  /// False: it ends here, with end_.
  bool run(ir::BlockId block) {
    for (const Value value : scene_.kernel.blocks[block].insts) {
      if (scene_.steps_left == 0) return ends(End::unknown);
      --scene_.steps_left;
      const ir::Inst& what = inst(value);
      if (what.op == Op::phi || ir::has_trait(what.op, 't')) continue;
      if (scene_.may_be(value)) {
        const Result address = address_of(what);
        if (!address) return ends(End::unknown);
        if (scene_.access != ir::kNone) scene_.decisive |= address->from;
        if (offends(scene_, what, address->bits, scene_.bytes_of(what))) {
          scene_.decisive |= address->from;
          offender_ = offender_of(scene_, number_, value, address->bits);
          return ends(End::offended);
        }
      }
      if (what.op == Op::store || what.op == Op::atomic) note_write(what);
      // Its callees may write anywhere.
      if (what.op == Op::call) scene_.writes_anywhere = true;
      values_[value] = evaluate(what);
    }
    return true;
  }
  bool ends(End how) {
    end_ = how;
    return false;
  }

  Result address_of(const ir::Inst& what) const {
    const Result base = values_[what.args[0]];
    return base ? Result({base->bits + what.imm, base->from}) : std::nullopt;
  }

  void note_write(const ir::Inst& what) {
    if (!is_global(what.attr.space)) return;
    const Result address = address_of(what);
    const auto found =
        address ? scene_.memory.find(reinterpret_cast<const void*>(address->bits)) : nullptr;  // NOLINT
    if (found != nullptr)
      scene_.written.insert(found->base);
    else if (!address)
      scene_.writes_anywhere = true;
  }

  std::optional<ir::BlockId> successor(ir::BlockId block) {
    const ir::Block& from = scene_.kernel.blocks[block];
    const ir::Inst& last = inst(from.insts.back());
    if (last.op == Op::br) return from.succs[0];
    if (last.op != Op::cond_br && last.op != Op::switch_br) return ir::kNone;
    const Result chosen = values_[last.args[0]];
    if (!chosen) return std::nullopt;
    scene_.decisive |= chosen->from;
    if (last.op == Op::cond_br) return from.succs[chosen->bits != 0 ? 0 : 1];
    return chosen->bits < from.succs.size() ? std::optional(from.succs[chosen->bits]) : std::nullopt;
  }

  static Result sure(Bits bits) { return bits ? Result({*bits, 0}) : std::nullopt; }

  Result evaluate(const ir::Inst& what) {
    switch (what.op) {
      case Op::constant:
        return sure(what.imm);
      case Op::undef:
        return sure(0);
      case Op::param:
        return sure(from_params(what.imm, what.type));
      case Op::special:
        return sure(special(static_cast<ir::Special>(what.imm)));
      case Op::symbol: {
        const ir::Symbol& symbol = scene_.module.symbols[what.imm];
        return sure(symbol.space == ir::Space::shared ? symbol.shared_offset
                                                      : scene_.launch.symbols[what.imm]);
      }
      case Op::local_address:
        return sure(what.imm);
      case Op::to_generic:
      case Op::from_generic:
        return converted(what);
      case Op::bitcast:
        return values_[what.args[0]];
      case Op::load:
        return loaded(what, 0);
      case Op::extract:
        return extracted(what);
      default:
        return computed(what);
    }
  }

  Result computed(const ir::Inst& what) const {
    if (!ir::has_trait(what.op, 'p') || what.args.empty()) return std::nullopt;
    if (what.op == Op::select) return chosen(what);
    std::array<std::uint64_t, 4> args{};
    std::uint64_t from = 0;
    if (what.args.size() > args.size()) return std::nullopt;
    for (std::size_t i = 0; i < what.args.size(); ++i) {
      const Result& arg = values_[what.args[i]];
      if (!arg || ir::is_float(inst(what.args[i]).type)) return std::nullopt;
      args[i] = arg->bits;
      from |= arg->from;
    }
    const Bits bits =
        ir::fold(what, ir::bit_size(inst(what.args[0]).type), std::span(args).first(what.args.size()));
    return bits ? Result({*bits, from}) : std::nullopt;
  }

  /// Only the side that is chosen must be known.
  Result chosen(const ir::Inst& what) const {
    const Result& condition = values_[what.args[0]];
    if (!condition) return std::nullopt;
    const Result& side = values_[what.args[condition->bits != 0 ? 1 : 2]];
    return side ? Result({side->bits, side->from | condition->from}) : std::nullopt;
  }

  Bits from_params(std::uint64_t offset, ir::Type type) const {
    std::uint64_t bits = 0;
    std::memcpy(&bits, scene_.launch.params + offset, ir::byte_size(type));
    return bits;
  }

  Result converted(const ir::Inst& what) const {
    const Result from = values_[what.args[0]];
    const ir::Space space = what.attr.space;
    if (!from || is_global(space)) return from;
    if (space != ir::Space::shared) return std::nullopt;
    const auto base = reinterpret_cast<std::uint64_t>(scene_.worker.shared_base);
    return Result({what.op == Op::to_generic ? from->bits + base : from->bits - base, from->from});
  }

  Result extracted(const ir::Inst& what) {
    const ir::Inst& source = inst(what.args[0]);
    return source.op == Op::load ? loaded(source, what.imm) : std::nullopt;
  }

  /// Element `element` of a load.
  Result loaded(const ir::Inst& what, std::uint64_t element) {
    const Result base = address_of(what);
    const std::uint32_t bytes = ir::byte_size(what.type);
    if (!base || bytes > sizeof(std::uint64_t)) return std::nullopt;
    const std::uint64_t address = base->bits + element * bytes;
    if (what.attr.space == ir::Space::param) return sure(from_param_space(address, bytes));
    if (!is_global(what.attr.space) || what.attr.is_volatile) return std::nullopt;
    const auto found = scene_.memory.find_range(reinterpret_cast<const void*>(address), bytes);  // NOLINT
    Known known{0, base->from};
    if (found == nullptr || !scene_.probe.read(address, bytes, &known.bits)) return std::nullopt;
    if (!what.attr.invariant && what.attr.space != ir::Space::constant)
      known.from |= scene_.source(found->base);
    return known;
  }
  Bits from_param_space(std::uint64_t offset, std::uint32_t bytes) const {
    std::uint64_t end = 0;
    for (const ir::Parameter& each : scene_.kernel.params)
      end = std::max<std::uint64_t>(end, std::uint64_t{each.offset} + each.size);
    if (offset > end || bytes > end - offset) return std::nullopt;
    std::uint64_t bits = 0;
    std::memcpy(&bits, scene_.launch.params + offset, bytes);
    return bits;
  }

  Bits special(ir::Special which) const {
    const auto of = [&](ir::Special first) {
      return static_cast<std::size_t>(which) - static_cast<std::size_t>(first);
    };
    const std::uint32_t lane = number_ % kWarpSize;
    const auto& dim = scene_.launch.block;
    switch (which) {
      case ir::Special::tid_x:
        return number_ % dim[0];
      case ir::Special::tid_y:
        return number_ / dim[0] % dim[1];
      case ir::Special::tid_z:
        return number_ / dim[0] / dim[1];
      case ir::Special::ntid_x:
      case ir::Special::ntid_y:
      case ir::Special::ntid_z:
        return dim[of(ir::Special::ntid_x)];
      case ir::Special::ctaid_x:
      case ir::Special::ctaid_y:
      case ir::Special::ctaid_z:
        return scene_.ctaid[of(ir::Special::ctaid_x)];
      case ir::Special::nctaid_x:
      case ir::Special::nctaid_y:
      case ir::Special::nctaid_z:
        return scene_.launch.grid[of(ir::Special::nctaid_x)];
      case ir::Special::laneid:
        return lane;
      case ir::Special::lanemask_eq:
        return 1u << lane;
      case ir::Special::lanemask_lt:
        return (1u << lane) - 1;
      case ir::Special::dynamic_smem_size:
        return scene_.launch.dynamic_shared_bytes;
      case ir::Special::total_smem_size:
        return scene_.launch.total_shared_bytes;
      default:
        return std::nullopt;
    }
  }

  Scene& scene_;
  const std::uint32_t number_;
  std::vector<Result> values_;
  Offender offender_;
  std::uint64_t rounds_ = 0;
  std::set<ir::BlockId> headers_;
  End end_ = End::elsewhere;
};

struct Found {
  Offender offender;
  std::uint64_t rounds = 0;
  bool nested = false;
};

/// True if the fault that the processor reported is consistent with these accesses.
bool agrees(const Scene& scene, const std::vector<Found>& offenders) {
  const std::uint64_t told = scene.fault.address;
  const std::uint64_t begin = reinterpret_cast<std::uint64_t>(scene.launch.window_base);
  if (scene.fault.kind == engine::FaultKind::misaligned_address) return true;
  const bool inside = processor_tells(scene.fault, scene.window, scene.device);
  return std::any_of(offenders.begin(), offenders.end(), [&](const Found& found) {
    const ir::Inst& what = scene.kernel[found.offender.access];
    const Bits at = host_address(scene, what.attr.space, found.offender.address);
    if (!at) return false;
    if (!inside) return *at - begin >= scene.launch.window_bytes || *at / kPage == told / kPage;
    return *at / kPage == told / kPage || (*at + found.offender.bytes - 1) / kPage == told / kPage;
  });
}

/// Examines threads [first, end), which run together. Nothing if none of them faulted; `certain` is false if
/// that, or the thread, is not known.
std::optional<Offender> among(Scene& scene, std::uint32_t first, std::uint32_t end, bool apart,
                              bool& certain) {
  std::vector<Found> offenders;
  for (std::uint32_t number = first; number < end; ++number) {
    Thread thread(scene, number);
    const Thread::End how = thread.follow();
    if (how == Thread::End::unknown) {
      certain = false;
      return std::nullopt;
    }
    if (how == Thread::End::offended)
      offenders.push_back({thread.offender(), thread.rounds(), thread.nested()});
  }
  if (offenders.empty()) return std::nullopt;
  // The first round in which a thread faulted decides. With several loops, or threads that run independently,
  // rounds do not tell which was first.
  const auto earlier = [](const Found& a, const Found& b) { return a.rounds < b.rounds; };
  const Found& chosen = *std::min_element(offenders.begin(), offenders.end(), earlier);
  const bool at_once = std::all_of(offenders.begin(), offenders.end(),
                                   [&](const Found& each) { return each.rounds == chosen.rounds; });
  const bool nested =
      std::any_of(offenders.begin(), offenders.end(), [](const Found& each) { return each.nested; });
  const bool one_place = std::all_of(offenders.begin(), offenders.end(), [&](const Found& each) {
    return each.offender.access == chosen.offender.access;
  });
  certain = one_place && (at_once || (!nested && !apart)) && agrees(scene, offenders);
  return chosen.offender;
}

/// True if addresses and conditions came from memory that no thread of the block wrote.
bool read_what_stayed(const Scene& scene) {
  if (scene.decisive == 0) return true;
  if (scene.writes_anywhere || scene.decisive >> 63 != 0) return false;
  for (std::size_t i = 0; i < scene.sources.size(); ++i)
    if ((scene.decisive >> i & 1) != 0 && scene.written.contains(scene.sources[i])) return false;
  return true;
}

}  // namespace

bool processor_tells(const engine::Fault& fault, const engine::Window& window, std::uint32_t device) {
  const auto* const address = reinterpret_cast<const void*>(fault.address);  // NOLINT
  return fault.kind == engine::FaultKind::illegal_address &&
         (window.arena(device).contains(address) || window.host().contains(address));
}

std::optional<Offender> find_offender(const ir::Module& module, ir::Value access, const engine::Fault& fault,
                                      const engine::Grid& grid, const engine::Worker& worker,
                                      engine::Memory& memory) {
  if (fault.block == engine::kUnknownIndex) return std::nullopt;
  const engine::LaunchState& launch = grid.state;
  const auto at = [&](std::uint64_t index) { return static_cast<std::uint32_t>(index); };
  Scene scene{.module = module,
              .kernel = module.functions[0],
              .access = access,
              .fault = fault,
              .launch = launch,
              .worker = worker.state(),
              .window = *worker.services().window,
              .device = grid.device,
              .memory = memory,
              .ctaid = {at(fault.block % launch.grid[0]), at(fault.block / launch.grid[0] % launch.grid[1]),
                        at(fault.block / launch.grid[0] / launch.grid[1])}};
  if (!scene.probe.works()) return std::nullopt;
  const std::uint32_t threads = launch.block[0] * launch.block[1] * launch.block[2];
  const bool knows_warps = fault.warp_count != 0;
  const std::uint32_t group = (knows_warps ? fault.warp_count : 1) * kWarpSize;
  const std::uint32_t begin = knows_warps ? fault.warp * kWarpSize : 0;
  const std::uint32_t end = knows_warps ? std::min(begin + group, threads) : threads;
  for (std::uint32_t first = begin; first < end; first += group) {
    bool certain = true;
    const std::optional<Offender> found =
        among(scene, first, std::min(first + group, end), grid.waits, certain);
    if (!certain) return std::nullopt;
    if (found) return read_what_stayed(scene) ? found : std::nullopt;
  }
  return std::nullopt;
}

}  // namespace quern::cpu::device
