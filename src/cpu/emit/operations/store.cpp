// SPDX-License-Identifier: Apache-2.0
// Stores, with the same layouts as loads. If several running lanes write one address, PTX does not specify
// which value remains; here it is that of the highest lane.
#include "cpu/emit/operations/lane_by_lane.hpp"
#include "cpu/emit/operations/lane_loop.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"
#include "cpu/emit/operations/whole.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kLineBytes = 64;

/// Returns element `element` of all lanes, in its memory form.
Value* lanes_of_element(const Access& access, unsigned element) {
  return to_memory(access, access.context.vector(access.inst.args[1 + element]));
}

void store_uniform(const Access& access) {
  Context& c = access.context;
  Value* const pointer = uniform_pointer(access);
  for (unsigned element = 0; element < access.count; ++element) {
    const ir::Value source = access.inst.args[1 + element];
    const bool same = c.pattern(source).kind == analysis::LanePatternKind::uniform;
    Value* const value = same ? c.scalar(source) : extract_lane(c, c.vector(source), last_lane(c));
    store_one(access, to_memory(access, value),
              advance(c, pointer, std::int64_t{element} * access.element_bytes));
  }
}

/// The access to one word of each lane, of `bytes` bytes, in place of several elements.
Access as_words(const Access& access, unsigned bytes) {
  Access words = access;
  words.element = bytes == 8 ? ir::Type::i64 : ir::Type::i32;
  words.element_bytes = bytes;
  words.count = 1;
  return words;
}

void store_scattered_words(const Access& access, const LanePointers& pointers, unsigned at_once,
                           Often often) {
  Context& c = access.context;
  const Access words = as_words(access, at_once * access.element_bytes);
  llvm::Type* const type = llvm::FixedVectorType::get(words.memory_type(), kWarpSize);
  for (unsigned first = 0; first < access.count; first += at_once) {
    std::vector<Value*> elements;
    for (unsigned element = first; element < first + at_once; ++element)
      elements.push_back(lanes_of_element(access, element));
    scatter(words, pointers, first * access.element_step(),
            c.builder().CreateBitCast(interleave(c, elements), type), often);
  }
}

void store_scattered(const Access& access, Often often = Often::yes) {
  const LanePointers pointers = lane_pointers(access);
  if (moves_lane_by_lane(access)) {
    std::vector<Value*> elements;
    for (unsigned element = 0; element < access.count; ++element)
      elements.push_back(lanes_of_element(access, element));
    return store_lane_by_lane(access, pointers, elements);
  }
  const unsigned at_once = elements_of_word(access);
  if (at_once > 1) return store_scattered_words(access, pointers, at_once, often);
  for (unsigned element = 0; element < access.count; ++element)
    scatter(access, pointers, element * access.element_step(), lanes_of_element(access, element), often);
}

/// Returns the segment's lanes of all elements; the elements of a lane are adjacent.
Value* segment_values(const Access& access, const Segment& segment, std::span<Value* const> elements) {
  Context& c = access.context;
  std::vector<Value*> parts;
  for (Value* const element : elements) parts.push_back(slice(c, element, segment.first, segment.count));
  Value* const values = interleave(c, parts);
  return segment.step < 0 ? reverse(c, values) : values;
}

void store_segment(const Access& access, const Segment& segment, Value* pointer,
                   std::span<Value* const> elements) {
  Context& c = access.context;
  if (segment.step == 0) {  // all lanes run, so the value of the last lane remains
    const Segment last{.first = segment.first + segment.count - 1, .count = 1};
    return store_one(access, segment_values(access, last, elements), pointer);
  }
  if (segment.step < 0) pointer = advance(c, pointer, -std::int64_t{segment.count - 1} * access.bytes());
  Value* const values = segment_values(access, segment, elements);
  if (c.full()) return store_one(access, values, pointer);
  Value* mask = slice(c, c.mask(), segment.first, segment.count);
  if (segment.step < 0) mask = reverse(c, mask);
  store_masked(access, values, pointer, repeat_lanes(c, mask, access.count));
}

/// Each of the segments is a number of whole lines, if it begins with one.
bool has_whole_lines(const Access& access) {
  return access.context.full() && std::ranges::all_of(access.layout.segments, [&](const Segment& segment) {
           return segment.step > 0 && segment.count * access.bytes() % kLineBytes == 0;
         });
}

/// i1: the store may bypass the caches, and all its segments begin with a line. Null: it never may.
Value* streams(const Access& access, ir::Value store, std::span<Value* const> bases) {
  Context& c = access.context;
  Value* holds = has_whole_lines(access) ? c.streams(store) : nullptr;
  if (holds == nullptr) return nullptr;
  llvm::IRBuilder<>& b = c.builder();
  Value* starts = b.getInt64(0);
  for (const Segment& segment : access.layout.segments) {
    Value* const begin = advance(c, bases[segment.base], segment.offset);
    starts = b.CreateOr(starts, b.CreatePtrToInt(begin, b.getInt64Ty()));
  }
  return b.CreateAnd(holds, b.CreateICmpEQ(b.CreateAnd(starts, b.getInt64(kLineBytes - 1)), b.getInt64(0)));
}

void store_streamed(const Access& access, std::span<Value* const> bases, std::span<Value* const> elements) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  llvm::MDNode* const one = llvm::MDNode::get(b.getContext(), llvm::ConstantAsMetadata::get(b.getInt32(1)));
  for (const Segment& segment : access.layout.segments) {
    llvm::StoreInst* const store =
        b.CreateAlignedStore(segment_values(access, segment, elements),
                             advance(c, bases[segment.base], segment.offset), llvm::Align(kLineBytes));
    store->setMetadata(llvm::LLVMContext::MD_nontemporal, one);
    annotate(access, store);
  }
}

void store_segments(const Access& access, ir::Value store) {
  const std::vector<Value*> bases = base_pointers(access);
  std::vector<Value*> elements;
  for (unsigned element = 0; element < access.count; ++element)
    elements.push_back(lanes_of_element(access, element));
  const auto store_cached = [&] {
    for (const Segment& segment : access.layout.segments)
      store_segment(access, segment, advance(access.context, bases[segment.base], segment.offset), elements);
  };
  Value* const streamed = streams(access, store, bases);
  if (streamed == nullptr) return store_cached();
  choose(access.context, streamed, [&] { store_streamed(access, bases, elements); }, store_cached);
}

/// A segment with one address needs its highest running lane, which is known only if all lanes run. If lanes
/// run backwards, the elements of a lane still run forwards.
bool can_store(const Access& access, const Segment& segment) {
  if (segment.step == 0) return access.context.full();
  return (segment.step > 0 || access.count == 1) && (access.context.full() || stores_rows(access));
}

bool can_store_segments(const Access& access) {
  return access.layout.kind == LayoutKind::segments &&
         std::ranges::all_of(access.layout.segments,
                             [&](const Segment& segment) { return can_store(access, segment); });
}

// --- windows

/// The slots of a window, each from the lane and element that it is for.
Value* window_values(const Access& access, const Windows& windows, unsigned window,
                     std::span<Value* const> elements) {
  Context& c = access.context;
  const unsigned slots = windows.slots;
  std::vector<int> filled(slots, -1);  // by slot: its place in the values so far
  Value* values = nullptr;
  for (unsigned first = 0; first < kWarpSize; first += slots)
    for (unsigned element = 0; element < access.count; ++element) {
      std::vector<int> order = filled;
      for (unsigned lane = 0; lane < slots; ++lane) {
        const Windows::Place& place = windows.places[(first + lane) * access.count + element];
        if (place.window != window) continue;
        order[place.slot] = static_cast<int>(lane + (values == nullptr ? 0 : slots));
        filled[place.slot] = static_cast<int>(place.slot);
      }
      if (order == filled && values != nullptr) continue;
      Value* const part = slice(c, elements[element], first, slots);
      if (std::ranges::any_of(order, [](int from) { return from >= 0; }))
        values = values == nullptr ? c.builder().CreateShuffleVector(part, order)
                                   : c.builder().CreateShuffleVector(values, part, order);
    }
  return values;
}

void store_windows(const Access& access, const Windows& windows) {
  Context& c = access.context;
  Value* const base = base_pointers(access)[0];
  std::vector<Value*> elements;
  for (unsigned element = 0; element < access.count; ++element)
    elements.push_back(lanes_of_element(access, element));
  for (unsigned window = 0; window < windows.offsets.size(); ++window)
    annotate(access, c.builder().CreateMaskedStore(window_values(access, windows, window, elements),
                                                   advance(c, base, windows.offsets[window]), access.align(),
                                                   window_mask(access, windows, window)));
}

// --- the instruction

/// One scalar store for each element of the lanes that run, which are few and known at compile time.
void store_known_lanes(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  std::vector<Value*> elements;
  for (unsigned element = 0; element < access.count; ++element)
    elements.push_back(lanes_of_element(access, element));
  LanePlaces places(access);
  for_lanes(c, [&](Value* lane) {
    Value* const place = places.at(b, lane);
    for (unsigned element = 0; element < access.count; ++element)
      store_one(access, b.CreateExtractElement(elements[element], lane),
                advance(c, place, element * access.element_step()));
  });
}

/// As the first of the cases that holds; if none does, scattered.
void store_stepped(const Access& access, ir::Value store, std::span<const SteppedAccess> cases) {
  if (cases.empty()) return store_scattered(access);
  const Access& stepped = cases[0].access;
  const auto store_next = [&] { store_stepped(access, store, cases.subspan(1)); };
  const Windows windows = access_windows(stepped);
  if (can_store_segments(stepped))
    choose(access.context, cases[0].stepped, [&] { store_segments(stepped, store); }, store_next);
  else if (!windows.offsets.empty() && windows.distinct)
    choose(access.context, cases[0].stepped, [&] { store_windows(stepped, windows); }, store_next);
  else
    store_next();
}

void store_lanes(const Access& access, ir::Value store) {
  const bool known = runs_few_known_lanes(access.context);
  if (can_store_segments(access) && (!known || access.masks_natively())) return store_segments(access, store);
  if (known) return store_known_lanes(access);
  const Windows windows = access_windows(access);
  if (!windows.offsets.empty() && windows.distinct) return store_windows(access, windows);
  const std::optional<NearAccess> near = near_access(access);
  if (!near || !can_store_segments(near->access))
    return store_stepped(access, store, stepped_accesses(access));
  choose(
      access.context, near->near, [&] { store_segments(near->access, store); },
      [&] { store_scattered(access, Often::no); });
}

void emit_store(Context& context, ir::Value value) {
  const ir::Inst& inst = context.function()[value];
  const Access access(context, value, context.function()[inst.args[1]].type);
  if (is_whole(access)) {
    compiler_barrier(context);
    store_whole(access);
    return compiler_barrier(context);
  }
  if (access.layout.kind == LayoutKind::uniform) return store_uniform(access);
  // As for loads: stores of the processor are release stores; the compiler must keep their order.
  if (ir::is_ordered(access.inst.attr)) compiler_barrier(context);
  store_lanes(access, value);
  if (ir::is_ordered(access.inst.attr)) compiler_barrier(context);
}

bool accepts_store(const ir::Inst& inst) {
  const auto displacement = static_cast<std::int64_t>(inst.imm);
  const bool writable = inst.attr.space != ir::Space::constant && inst.attr.space != ir::Space::param;
  const bool counted = inst.attr.count == 1 || inst.attr.count == 2 || inst.attr.count == 4;
  return writable && counted && displacement >= INT32_MIN && displacement <= INT32_MAX;
}

constexpr Row kRows[] = {{ir::Op::store, nullptr, emit_store, accepts_store}};

}  // namespace

std::span<const Row> store_rows() { return kRows; }

}  // namespace quern::cpu::emit
