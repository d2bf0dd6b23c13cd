// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/operations/whole.hpp"

#include "cpu/emit/operations/lane_loop.hpp"
#include "cpu/emit/operations/lanes.hpp"
#include "cpu/emit/operations/operands.hpp"
#include "cpu/emit/operations/vectors.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

constexpr unsigned kBytes = 16;
constexpr unsigned kWords = 2;

llvm::Type* whole_type(const Access& access) {
  return llvm::FixedVectorType::get(access.memory_type(), kWords);
}

Value* load_at(const Access& access, Value* pointer) {
  llvm::LoadInst* const load =
      access.context.builder().CreateAlignedLoad(whole_type(access), pointer, llvm::Align(kBytes), true);
  annotate(access, load);
  return load;
}

}  // namespace

bool is_whole(const Access& access) {
  return ir::is_ordered(access.inst.attr) && access.count == kWords && access.bytes() == kBytes &&
         access.inst.attr.alignment >= kBytes;
}

std::vector<Value*> load_whole(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  if (access.layout.kind == LayoutKind::uniform) {
    Value* const whole = load_at(access, uniform_pointer(access));
    return {b.CreateExtractElement(whole, std::uint64_t{0}), b.CreateExtractElement(whole, std::uint64_t{1})};
  }
  LanePlaces places(access);
  llvm::Type* const all = llvm::FixedVectorType::get(access.memory_type(), kWarpSize * kWords);
  Value* const out = c.full() ? scratch(c, all) : spill(c, llvm::Constant::getNullValue(all));
  for_lanes(c, [&](Value* lane) {
    b.CreateAlignedStore(load_at(access, places.at(b, lane)), b.CreateGEP(whole_type(access), out, lane),
                         llvm::Align(kBytes));
  });
  Value* const pairs = b.CreateAlignedLoad(all, out, llvm::Align(64));
  release(c, {out});
  places.release(c);
  return deinterleave(c, pairs, kWords);
}

void store_whole(const Access& access) {
  Context& c = access.context;
  llvm::IRBuilder<>& b = c.builder();
  std::vector<Value*> words;
  for (unsigned word = 0; word < kWords; ++word)
    words.push_back(to_memory(access, c.vector(access.inst.args[1 + word])));
  LaneArray low(c, words[0]), high(c, words[1]);
  LanePlaces places(access);
  for_lanes(c, [&](Value* lane) {
    Value* whole = llvm::PoisonValue::get(whole_type(access));
    whole = b.CreateInsertElement(whole, low.at(b, lane), std::uint64_t{0});
    whole = b.CreateInsertElement(whole, high.at(b, lane), std::uint64_t{1});
    annotate(access, b.CreateAlignedStore(whole, places.at(b, lane), llvm::Align(kBytes), true));
  });
  places.release(c);
  low.release(c);
  high.release(c);
}

}  // namespace quern::cpu::emit
