// SPDX-License-Identifier: Apache-2.0
// Loads. One scalar access if the address is uniform; a vector access for each run of contiguous lanes; wide
// loads and shuffles for short strides; a gather for the rest.
#include <bit>

#include "cpu/emit/operations/gathered_load.hpp"
#include "cpu/emit/operations/lane_loop.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"
#include "cpu/emit/operations/whole.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;
using Elements = std::vector<Value*>;  ///< one vector (or scalar) for each element of the instruction

/// `pointer`, where the lanes of `lanes` read; the parameters if none of these runs.
Value* unless_empty(Context& c, Value* pointer, std::uint32_t lanes) {
  llvm::IRBuilder<>& b = c.builder();
  Value* const running = b.CreateAnd(c.mask_bits(), b.getInt32(lanes));
  return b.CreateSelect(b.CreateICmpNE(running, b.getInt32(0)), pointer, c.params());
}

llvm::AtomicOrdering load_ordering(const ir::Inst& inst) {
  switch (inst.attr.semantics) {
    case ir::Semantics::weak:
    case ir::Semantics::relaxed:
      return llvm::AtomicOrdering::Monotonic;
    default:
      return llvm::AtomicOrdering::Acquire;
  }
}

}  // namespace

Value* load_one(const Access& access, llvm::Type* type, Value* pointer) {
  llvm::LoadInst* const load = access.context.builder().CreateAlignedLoad(type, pointer, access.align());
  if (ir::is_ordered(access.inst.attr) && !type->isVectorTy()) {
    load->setAlignment(llvm::Align(access.element_bytes));
    load->setVolatile(access.inst.attr.is_volatile);
    load->setAtomic(load_ordering(access.inst));
  }
  annotate(access, load);
  return load;
}

namespace {

/// The only element, which is loaded from the parameters if no lane runs.
Elements load_uniform_or_nothing(const Access& access) {
  Context& c = access.context;
  Value* const pointer = unless_empty(c, uniform_pointer(access), kAllLanes);
  return {c.builder().CreateAlignedLoad(access.memory_type(), pointer, llvm::Align(1))};
}

Elements load_uniform(const Access& access) {
  if (access.context.may_be_empty()) return load_uniform_or_nothing(access);
  Elements elements;
  Value* const pointer = uniform_pointer(access);
  for (unsigned element = 0; element < access.count; ++element)
    elements.push_back(
        load_one(access, access.memory_type(),
                 advance(access.context, pointer, std::int64_t{element} * access.element_bytes)));
  return elements;
}

// --- segments

std::uint32_t lanes_mask(const Segment& segment) {
  return (segment.count == kWarpSize ? kAllLanes : (1u << segment.count) - 1) << segment.first;
}

/// The lanes that read the addresses of `segment`, including those of later segments with the same addresses.
std::uint32_t readers(const Layout& layout, unsigned index) {
  std::uint32_t lanes = 0;
  for (const Segment& segment : layout.segments)
    if (segment.same_as == index) lanes |= lanes_mask(segment);
  return lanes;
}

/// Loads one address for all lanes of the segment. If no lane runs, the address may be invalid, so the
/// parameters are read instead.
Elements load_broadcast(const Access& access, unsigned index, Value* pointer) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  if (!c.full()) pointer = unless_empty(c, pointer, readers(access.layout, index));
  Elements elements;
  for (unsigned element = 0; element < access.count; ++element) {
    Value* const place = advance(c, pointer, std::int64_t{element} * access.element_bytes);
    llvm::LoadInst* const load = b.CreateAlignedLoad(access.memory_type(), place, llvm::Align(1));
    if (c.full()) annotate(access, load);
    elements.push_back(b.CreateVectorSplat(access.layout.segments[index].count, load));
  }
  return elements;
}

Value* mask_of(const Access& access, unsigned index) {
  Context& c = access.context;
  const unsigned count = access.layout.segments[index].count;
  Value* mask = nullptr;
  for (const Segment& segment : access.layout.segments) {
    if (segment.same_as != index) continue;
    Value* const part = slice(c, c.mask(), segment.first, count);
    mask = mask == nullptr ? part : c.builder().CreateOr(mask, part);
  }
  return access.layout.segments[index].step < 0 ? reverse(c, mask) : mask;
}

/// Returns the lowest address of the segment, whose first lane is at `pointer`.
Value* start_of(const Access& access, const Segment& segment, Value* pointer) {
  if (segment.step >= 0) return pointer;
  return advance(access.context, pointer, -std::int64_t{segment.count - 1} * access.bytes());
}

/// `unmasked`: all of the segment may be read, whichever lanes run.
Elements load_contiguous(const Access& access, unsigned index, Value* start, bool unmasked) {
  Context& c = access.context;
  const Segment& segment = access.layout.segments[index];
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), segment.count * access.count);
  Value* wide = nullptr;
  if (unmasked) {
    wide = load_one(access, type, start);
  } else {
    wide = load_masked(access, type, start, repeat_lanes(c, mask_of(access, index), access.count));
  }
  return deinterleave(c, segment.step < 0 ? reverse(c, wide) : wide, access.count);
}

/// Places `part`, which has `count` lanes, at lane `first` of a vector of 32. The other lanes are
/// unspecified.
Value* placed(Context& context, Value* part, unsigned first, unsigned count) {
  llvm::SmallVector<int, kWarpSize> lanes(kWarpSize, 0);
  for (unsigned lane = 0; lane < count; ++lane) lanes[first + lane] = static_cast<int>(lane);
  return context.builder().CreateShuffleVector(part, lanes);
}

/// Combines the vectors of the segments to 32 lanes.
Value* assemble(const Access& access, const std::vector<Elements>& parts, unsigned element) {
  Context& c = access.context;
  const std::vector<Segment>& segments = access.layout.segments;
  bool equal = std::has_single_bit(segments.size());
  for (const Segment& segment : segments) equal = equal && segment.count == segments[0].count;
  std::vector<Value*> in_order;
  for (const Segment& segment : segments) in_order.push_back(parts[segment.same_as][element]);
  if (equal) return concat(c, in_order);
  Value* lanes = placed(c, in_order[0], segments[0].first, segments[0].count);
  for (std::size_t at = 1; at < segments.size(); ++at)
    lanes = blend(c, lanes_mask(segments[at]),
                  placed(c, in_order[at], segments[at].first, segments[at].count), lanes);
  return lanes;
}

/// By segment: where its memory begins. Null for segments with the same memory as an earlier one.
std::vector<Value*> segment_starts(const Access& access) {
  const std::vector<Value*> bases = base_pointers(access);
  std::vector<Value*> starts;
  for (unsigned index = 0; index < access.layout.segments.size(); ++index) {
    const Segment& segment = access.layout.segments[index];
    Value* const pointer = advance(access.context, bases[segment.base], segment.offset);
    starts.push_back(segment.same_as == index ? start_of(access, segment, pointer) : nullptr);
  }
  return starts;
}

Elements load_segments(const Access& access, const std::vector<Value*>& starts, bool unmasked) {
  std::vector<Elements> parts(starts.size());
  for (unsigned index = 0; index < parts.size(); ++index) {
    if (starts[index] == nullptr) continue;
    parts[index] = access.layout.segments[index].step == 0
                       ? load_broadcast(access, index, starts[index])
                       : load_contiguous(access, index, starts[index], unmasked);
  }
  Elements elements;
  for (unsigned element = 0; element < access.count; ++element)
    elements.push_back(assemble(access, parts, element));
  return elements;
}

// --- segments under masks that the processor does not have

/// True if lanes that do not run may be read with those that do, in the same page.
bool may_read_pages(const Access& access) {
  constexpr std::size_t kMostSegments = 4;
  return access.layout.segments.size() <= kMostSegments && access.space != ir::Space::param &&
         !ir::is_ordered(access.inst.attr) && chooses_at_run_time(access.context.function());
}

/// i1: each segment lies in a page, as nearly all do. Then it can be loaded as if all lanes ran, since a page
/// that one lane may read can be read by all. Starts of segments of which no lane runs become the parameters.
Value* lie_in_pages(const Access& access, std::vector<Value*>& starts) {
  constexpr std::uint64_t kPage = 4096;
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  Value* in_pages = b.getTrue();
  for (unsigned index = 0; index < starts.size(); ++index) {
    const Segment& segment = access.layout.segments[index];
    if (starts[index] == nullptr || segment.step == 0) continue;
    starts[index] = unless_empty(c, starts[index], readers(access.layout, index));
    Value* const in_page =
        b.CreateAnd(b.CreatePtrToInt(starts[index], b.getInt64Ty()), b.getInt64(kPage - 1));
    in_pages = b.CreateAnd(
        in_pages,
        b.CreateICmpULE(in_page, b.getInt64(kPage - std::uint64_t{segment.count} * access.bytes())));
  }
  return in_pages;
}

/// `condition` (i1, or null): the layout of `rows` is that of `access`.
Elements load_in_pages(const Access& access, const Access& rows, Value* condition) {
  std::vector<Value*> starts = segment_starts(rows);
  Value* in_pages = lie_in_pages(rows, starts);
  if (condition != nullptr) in_pages = access.context.builder().CreateAnd(condition, in_pages);
  return choose_values(
      access.context, in_pages, [&] { return load_segments(rows, starts, true); },
      [&] { return load_gathered(access); });
}

// --- short strides

/// Lanes are loaded in groups of this size, together with the memory between them. The last group ends with
/// its last lane.
constexpr unsigned kGroupLanes = 8;

Value* load_group(const Access& access, Value* pointer, unsigned stride, bool is_last) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kGroupLanes * stride);
  if (!is_last) return load_one(access, type, pointer);
  llvm::SmallVector<llvm::Constant*, kGroupLanes * 4> mask;
  for (unsigned at = 0; at < kGroupLanes * stride; ++at)
    mask.push_back(b.getInt1(at <= (kGroupLanes - 1) * stride));
  llvm::CallInst* const call = b.CreateMaskedLoad(
      type, pointer, access.align(), llvm::ConstantVector::get(mask), llvm::Constant::getNullValue(type));
  annotate(access, call);
  return call;
}

Elements load_strided(const Access& access) {
  Context& c = access.context;
  const unsigned stride = access.layout.stride;
  Value* const base = base_pointers(access)[0];
  std::vector<Value*> groups;
  for (unsigned first = 0; first < kWarpSize; first += kGroupLanes) {
    Value* const pointer = advance(c, base, std::int64_t{first} * stride * access.element_bytes);
    groups.push_back(
        deinterleave(c, load_group(access, pointer, stride, first + kGroupLanes == kWarpSize), stride)[0]);
  }
  return {concat(c, groups)};
}

// --- windows

/// Lanes [first, first + slots) of element `element`, each from the window that holds it.
Value* lanes_of_windows(const Access& access, const Windows& windows, std::span<Value* const> loaded,
                        unsigned first, unsigned element) {
  const unsigned slots = windows.slots;
  Value* lanes = nullptr;
  for (unsigned window = 0; window < loaded.size(); ++window) {
    llvm::SmallVector<int, 64> order(slots, -1);
    bool any = false;
    for (unsigned lane = 0; lane < slots; ++lane) {
      const Windows::Place& place = windows.places[(first + lane) * access.count + element];
      if (place.window == window) {
        order[lane] = static_cast<int>(place.slot + (lanes == nullptr ? 0 : slots));
        any = true;
      } else if (place.window < window) {
        order[lane] = static_cast<int>(lane);
      }
    }
    llvm::IRBuilder<>& b = access.context.builder();
    if (any)
      lanes = lanes == nullptr ? b.CreateShuffleVector(loaded[window], order)
                               : b.CreateShuffleVector(lanes, loaded[window], order);
  }
  return lanes;
}

Elements load_windows(const Access& access, const Windows& windows) {
  Context& c = access.context;
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), windows.slots);
  Value* const base = base_pointers(access)[0];
  std::vector<Value*> loaded;
  for (unsigned window = 0; window < windows.offsets.size(); ++window) {
    llvm::CallInst* const call = c.builder().CreateMaskedLoad(
        type, advance(c, base, windows.offsets[window]), access.align(), window_mask(access, windows, window),
        llvm::Constant::getNullValue(type));
    annotate(access, call);
    loaded.push_back(call);
  }
  Elements elements;
  for (unsigned element = 0; element < access.count; ++element) {
    std::vector<Value*> parts;
    for (unsigned first = 0; first < kWarpSize; first += windows.slots)
      parts.push_back(lanes_of_windows(access, windows, loaded, first, element));
    elements.push_back(concat(c, parts));
  }
  return elements;
}

// --- the instruction

bool has_backwards(const Layout& layout) {
  for (const Segment& segment : layout.segments)
    if (segment.step < 0) return true;
  return false;
}

/// If lanes run backwards, the elements of a lane still run forwards, so a gather loads them.
bool has_simple_segments(const Access& access) {
  return access.layout.kind == LayoutKind::segments && (access.count == 1 || !has_backwards(access.layout));
}

/// One scalar load for each element of the lanes that run, which are few and known at compile time.
Elements load_known_lanes(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  LanePlaces places(access);
  llvm::Type* const type = llvm::FixedVectorType::get(access.memory_type(), kWarpSize);
  Elements elements(access.count, llvm::Constant::getNullValue(type));
  for_lanes(c, [&](Value* lane) {
    Value* const place = places.at(b, lane);
    for (unsigned element = 0; element < access.count; ++element)
      elements[element] = b.CreateInsertElement(
          elements[element],
          load_one(access, access.memory_type(), advance(c, place, element * access.element_step())), lane);
  });
  return elements;
}

/// The lanes of the first of the cases that holds; if none does, gathered.
Elements load_stepped(const Access& access, std::span<const SteppedAccess> cases) {
  if (cases.empty()) return load_gathered(access);
  const Access& stepped = cases[0].access;
  const auto load_next = [&] { return load_stepped(access, cases.subspan(1)); };
  if (has_simple_segments(stepped))
    return choose_values(
        access.context, cases[0].stepped,
        [&] { return load_segments(stepped, segment_starts(stepped), true); }, load_next);
  if (stepped.layout.kind != LayoutKind::strided || stepped.count != 1 || !stepped.masks_natively())
    return load_next();
  return choose_values(access.context, cases[0].stepped, [&] { return load_strided(stepped); }, load_next);
}

Elements load_lanes(const Access& access) {
  const bool unmasked = access.context.full(), known = runs_few_known_lanes(access.context);
  const bool vectors = unmasked || known || access.masks_natively();
  if (has_simple_segments(access)) {
    if (vectors) return load_segments(access, segment_starts(access), unmasked);
    if (may_read_pages(access)) return load_in_pages(access, access, nullptr);
  }
  if (known) return load_known_lanes(access);
  if (access.layout.kind == LayoutKind::strided && access.count == 1 && unmasked && access.masks_natively())
    return load_strided(access);
  const Windows windows = access_windows(access);
  if (!windows.offsets.empty() && (unmasked || windows.distinct)) return load_windows(access, windows);
  if (!access.bases.empty()) return load_gathered(access);
  // The lanes form segments if no index wraps.
  const std::optional<NearAccess> near = near_access(access);
  if (!near || !has_simple_segments(near->access)) return load_stepped(access, stepped_accesses(access));
  const Access& rows = near->access;
  if (vectors)
    return choose_values(
        access.context, near->near, [&] { return load_segments(rows, segment_starts(rows), unmasked); },
        [&] { return load_gathered(access); });
  return may_read_pages(rows) ? load_in_pages(access, rows, near->near) : load_gathered(access);
}

void define_elements(const Access& access, ir::Value value, const Elements& elements) {
  Context& c = access.context;
  for (unsigned element = 0; element < elements.size(); ++element) {
    Value* what = from_memory(access, elements[element]);
    const bool scalar = c.pattern(value).scalar();
    if (scalar && what->getType()->isVectorTy()) what = extract_lane(c, what, first_lane(c));
    if (!scalar && !what->getType()->isVectorTy()) what = splat(c, what);
    if (access.count == 1) c.define(value, what);
    if (access.count > 1) c.define_element(value, element, what);
  }
}

void emit_load(Context& context, ir::Value value) {
  const Access access(context, value, context.function()[value].type);
  Elements elements;
  if (is_whole(access)) {
    compiler_barrier(context);
    elements = load_whole(access);
    compiler_barrier(context);
  } else if (access.layout.kind == LayoutKind::uniform) {
    elements = load_uniform(access);
  } else {
    // An access of at most 8 bytes in a lane is one access of the processor. The barriers make the compiler
    // keep the order, and loads of the processor are acquire loads.
    if (ir::is_ordered(access.inst.attr)) compiler_barrier(context);
    elements = load_lanes(access);
    if (ir::is_ordered(access.inst.attr)) compiler_barrier(context);
  }
  define_elements(access, value, elements);
}

bool accepts_load(const ir::Inst& inst) {
  const auto displacement = static_cast<std::int64_t>(inst.imm);
  return displacement >= INT32_MIN && displacement <= INT32_MAX && inst.attr.count >= 1 &&
         inst.attr.count <= 4;
}

constexpr Row kRows[] = {{ir::Op::load, nullptr, emit_load, accepts_load}};

}  // namespace

std::span<const Row> load_rows() { return kRows; }

}  // namespace quern::cpu::emit
