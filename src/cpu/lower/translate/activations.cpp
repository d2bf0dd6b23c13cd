// SPDX-License-Identifier: Apache-2.0
#include "cpu/lower/translate/activations.hpp"

#include <algorithm>
#include <utility>

namespace quern::cpu::lower {

using ir::BlockId;
using ir::Op;
using ir::Type;
using ir::Value;

namespace {

constexpr std::uint32_t kSlotBytes = 8;
constexpr std::uint32_t kRecordAlign = 16;

std::uint32_t aligned(std::uint32_t bytes, std::uint32_t to) {
  return static_cast<std::uint32_t>(align_up(bytes, to));
}

/// Computes which variables the blocks of a function may read before they write them. A call is treated as an
/// edge from `save` to `next`: the variables of the function itself have the same values after the call.
class LiveVariables {
 public:
  LiveVariables(const FunctionBuilder& builder, const Regions& regions, const Region& region)
      : builder_(builder) {
    for (const CallSite& site : regions.sites) after_save_[site.save] = site.next;
    visit(region.entry);
    std::set<Variable>& returned = reads_[region.frame.return_block];
    for (const ParamArray& array : region.frame.returns)
      for (const ParamArray::Slot& slot : array.slots) returned.insert(slot.variable);
    for (bool changed = true; changed;) {
      changed = false;
      for (auto block = order_.rbegin(); block != order_.rend(); ++block) changed |= update(*block);
    }
  }
  const std::set<Variable>& at(BlockId block) { return reads_[block]; }
  bool reaches(BlockId block) const { return seen_.contains(block); }

 private:
  std::vector<BlockId> succs(BlockId block) const {
    const auto save = after_save_.find(block);
    if (save != after_save_.end()) return {save->second};
    return builder_.function.blocks[block].succs;
  }
  void visit(BlockId entry) {
    std::vector<BlockId> work{entry};
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      if (!seen_.insert(block).second) continue;
      order_.push_back(block);
      for (const LiveIn& live : builder_.live_ins[block]) reads_[block].insert(live.variable);
      for (const BlockId next : succs(block)) work.push_back(next);
    }
  }
  bool update(BlockId block) {
    std::set<Variable>& reads = reads_[block];
    const std::size_t before = reads.size();
    for (const BlockId next : succs(block))
      for (const Variable variable : reads_[next])
        if (builder_.definitions.find(block, variable) == ir::kNone) reads.insert(variable);
    return reads.size() != before;
  }

  const FunctionBuilder& builder_;
  std::map<BlockId, BlockId> after_save_;
  std::map<BlockId, std::set<Variable>> reads_;
  std::set<BlockId> seen_;
  std::vector<BlockId> order_;
};

}  // namespace

void Activations::begin() {
  regions_.record = t_.builder().new_variable(ir::Type::i64);
  t_.set_record(regions_.record);
  t_.write_variable(regions_.record, t_.constant(ir::Type::i64, 0));
}

Region& Activations::region_of(std::uint32_t function) {
  std::unique_ptr<Region>& known = regions_.by_function[function];
  if (known != nullptr) return *known;
  known = std::make_unique<Region>();
  Region& region = *known;
  region.frame = {.function = &t_.program().ptx().functions.at(function),
                  .facts = &t_.program().facts(function)};
  region.frame.local_end = kRecordHeadBytes;
  region.entry = t_.new_block();
  region.frame.return_block = t_.new_block();
  region.frame.region = &region;
  const BlockId caller_block = t_.block();
  t_.set_block(region.entry);
  frames_.set_up(region.frame);
  t_.set_block(caller_block);
  regions_.order.push_back(&region);
  return region;
}

std::vector<Value> Activations::activate(std::uint32_t callee, const std::vector<Value>& values) {
  Region& region = region_of(callee);
  CallSite site{.caller = t_.frame().region, .callee = &region, .location = t_.location()};
  site.number = static_cast<std::uint32_t>(region.returns_to.size());
  for (BlockId* block : {&site.save, &site.pass, &site.resume, &site.next}) *block = t_.new_block();
  region.returns_to.push_back(site.resume);
  t_.branch(site.save);
  t_.set_block(site.pass);
  auto value = values.begin();
  for (const ParamArray& array : region.frame.parameters)
    for (const ParamArray::Slot& slot : array.slots)
      t_.write_variable(slot.variable, t_.resize(*value++, t_.variable_type(slot.variable), false));
  t_.set_block(site.resume);
  std::vector<Value> results;
  for (const ParamArray& array : region.frame.returns)
    for (const ParamArray::Slot& slot : array.slots) results.push_back(t_.read_variable(slot.variable));
  t_.set_block(site.next);
  regions_.sites.push_back(std::move(site));
  return results;
}

void Activations::translate_region(Region& region) {
  t_.set_frame(&region.frame);
  t_.set_block(region.entry);
  t_.set_location(ir::kNone);
  for (ParamArray& array : region.frame.parameters) {
    if (!array.in_local) continue;
    for (const ParamArray::Slot& slot : array.slots)
      params_.write(array, slot.piece.offset, t_.read_variable(slot.variable));
  }
  translate_body_();
}

void Activations::finish() {
  if (regions_.sites.empty()) return;
  for (std::size_t i = 0; i < regions_.order.size(); ++i) translate_region(*regions_.order[i]);
  if (t_.refused_any()) return;
  ir::Function& kernel = t_.builder().function;
  regions_.kernel_bytes = aligned(kernel.local_bytes, kRecordAlign);
  kernel.stack_bytes = kActivationBytes;
  kernel.local_bytes = regions_.kernel_bytes + kActivationBytes;
  for (Region* region : regions_.order) find_saved(*region);
  for (const CallSite& site : regions_.sites) {
    t_.set_location(site.location);
    emit_saves(site);
    emit_return_to(site);
  }
  t_.set_location(ir::kNone);
  for (Region* region : regions_.order) emit_return(*region);
}

void Activations::find_saved(Region& region) {
  LiveVariables live(t_.builder(), regions_, region);
  std::size_t most = 0;
  for (CallSite& site : regions_.sites) {
    if (site.caller != &region || !live.reaches(site.save)) continue;
    for (const Variable variable : live.at(site.next))
      if (variable != regions_.record) site.saved.push_back(variable);
    most = std::max(most, site.saved.size());
  }
  region.local_end = aligned(region.local_end, kSlotBytes);
  region.record_bytes =
      aligned(region.local_end + static_cast<std::uint32_t>(most) * kSlotBytes, kRecordAlign);
}

void Activations::emit_saves(const CallSite& site) {
  t_.set_block(site.save);
  std::uint32_t at = site.caller == nullptr ? 0 : site.caller->local_end;
  for (const Variable variable : site.saved) {
    const Value value = t_.read_variable(variable);
    t_.emit(Op::store, Type::none, {t_.record_field(at), value},
            {.space = ir::Space::local, .alignment = ir::byte_size(t_.type_of(value))});
    at += kSlotBytes;
  }
  const Value record = site.caller == nullptr
                           ? t_.constant(Type::i64, regions_.kernel_bytes + kActivationHeadBytes)
                           : t_.record_field(site.caller->record_bytes);
  t_.write_variable(regions_.record, record);
  const std::uint32_t limit = std::max(t_.builder().function.local_bytes, site.callee->record_bytes);
  const Value last = t_.constant(Type::i64, limit - site.callee->record_bytes);
  const BlockId full = t_.new_block();
  t_.branch_if(t_.compare(ir::Icmp::ugt, record, last), full, site.pass);
  t_.set_block(full);
  t_.fault(ir::Trap::stack_overflow);
  t_.branch(site.pass);

  t_.set_block(site.pass);
  t_.emit(Op::store, Type::none, {t_.record_field(0), t_.constant(Type::i32, site.number)},
          {.space = ir::Space::local, .alignment = 4});
  const Value top = t_.resize(t_.record_field(site.callee->record_bytes), Type::i32, false);
  t_.emit(Op::store, Type::none,
          {t_.builder().nullary(Op::local_address, Type::i64, regions_.kernel_bytes), top},
          {.space = ir::Space::local, .alignment = 4});
  t_.branch(site.callee->entry);
}

void Activations::emit_return_to(const CallSite& site) {
  t_.set_block(site.resume);
  const Value record = site.caller == nullptr ? t_.constant(Type::i64, 0)
                                              : t_.record_field(std::uint64_t{0} - site.caller->record_bytes);
  t_.write_variable(regions_.record, record);
  std::uint32_t at = site.caller == nullptr ? 0 : site.caller->local_end;
  for (const Variable variable : site.saved) {
    const Type type = t_.variable_type(variable);
    t_.write_variable(variable, t_.emit(Op::load, type, {t_.record_field(at)},
                                        {.space = ir::Space::local, .alignment = ir::byte_size(type)}));
    at += kSlotBytes;
  }
  t_.branch(site.next);
}

void Activations::emit_return(Region& region) {
  t_.set_block(region.frame.return_block);
  if (region.returns_to.size() == 1) return t_.branch(region.returns_to[0]);
  const Value number =
      t_.emit(Op::load, Type::i32, {t_.record_field(0)}, {.space = ir::Space::local, .alignment = 4});
  // A kernel may change the record by writing beyond its local variables, so the number of the call is
  // clamped.
  const Value last = t_.constant(Type::i32, region.returns_to.size() - 1);
  t_.switch_to(t_.emit(Op::umin, Type::i32, {number, last}), region.returns_to);
}

}  // namespace quern::cpu::lower
