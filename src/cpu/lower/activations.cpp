// SPDX-License-Identifier: Apache-2.0
// Calls without a machine stack: a function that cannot be inlined is translated once, into the kernel's own
// graph. A call is a branch to its first block, a return a switch over the calls. Each lane keeps the records
// of its activations in local memory: the return place, the function's .local variables, and the caller's
// live values, which the activations below it overwrite. So a thread may wait for others anywhere, and every
// lane runs independently (docs/decisions/0009-called-functions.md).
#include "cpu/lower/activations.hpp"

#include <algorithm>
#include <utility>

#include "cpu/lower/translator.hpp"

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

/// Computes which variables a function's blocks may read before they write them. A call is a step from `save`
/// to `next`: changes of the function's own variables in between are undone.
class LiveVariables {
 public:
  LiveVariables(const Draft& draft, const Regions& regions, const Region& region) : draft_(draft) {
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
    return draft_.function.blocks[block].succs;
  }
  void visit(BlockId entry) {
    std::vector<BlockId> work{entry};
    while (!work.empty()) {
      const BlockId block = work.back();
      work.pop_back();
      if (!seen_.insert(block).second) continue;
      order_.push_back(block);
      for (const LiveIn& live : draft_.live_ins[block]) reads_[block].insert(live.variable);
      for (const BlockId next : succs(block)) work.push_back(next);
    }
  }
  bool update(BlockId block) {
    std::set<Variable>& reads = reads_[block];
    const std::size_t before = reads.size();
    for (const BlockId next : succs(block))
      for (const Variable variable : reads_[next])
        if (draft_.definitions.find(block, variable) == ir::kNone) reads.insert(variable);
    return reads.size() != before;
  }

  const Draft& draft_;
  std::map<BlockId, BlockId> after_save_;
  std::map<BlockId, std::set<Variable>> reads_;
  std::set<BlockId> seen_;
  std::vector<BlockId> order_;
};

}  // namespace

Value Translator::local_address(std::uint64_t offset) {
  return region_ == nullptr ? draft_.nullary(Op::local_address, Type::i64, offset) : record_field(offset);
}

/// The address of `offset` in the running activation's record.
Value Translator::record_field(std::uint64_t offset) {
  return emit(Op::iadd, Type::i64, {read_variable(regions_.record), constant(Type::i64, offset)});
}

Region& Translator::region_of(std::uint32_t function) {
  std::unique_ptr<Region>& known = regions_.by_function[function];
  if (known != nullptr) return *known;
  known = std::make_unique<Region>();
  Region& region = *known;
  region.frame = {.function = &program_.ptx().functions.at(function), .facts = &program_.facts(function)};
  region.frame.local_end = kRecordHeadBytes;
  region.entry = new_block();
  region.frame.return_block = new_block();
  const BlockId caller_block = std::exchange(block_, region.entry);
  Region* const caller = std::exchange(region_, &region);
  set_up(region.frame);
  block_ = caller_block;
  region_ = caller;
  regions_.order.push_back(&region);
  return region;
}

/// A call: the values become the callee's parameters; returns the values of its results, part by part.
std::vector<Value> Translator::activate(std::uint32_t callee, const std::vector<Value>& values) {
  Region& region = region_of(callee);
  CallSite site{.caller = region_, .callee = &region, .location = location_};
  site.number = static_cast<std::uint32_t>(region.returns_to.size());
  for (BlockId* block : {&site.save, &site.pass, &site.resume, &site.next}) *block = new_block();
  region.returns_to.push_back(site.resume);
  branch(site.save);
  block_ = site.pass;
  auto value = values.begin();
  for (const ParamArray& array : region.frame.parameters)
    for (const ParamArray::Slot& slot : array.slots)
      write_variable(slot.variable, resize(*value++, draft_.variable_types[slot.variable], false));
  block_ = site.resume;
  std::vector<Value> results;
  for (const ParamArray& array : region.frame.returns)
    for (const ParamArray::Slot& slot : array.slots) results.push_back(read_variable(slot.variable));
  block_ = site.next;
  regions_.sites.push_back(std::move(site));
  return results;
}

void Translator::translate_region(Region& region) {
  region_ = &region;
  frame_ = &region.frame;
  block_ = region.entry;
  location_ = ir::kNone;
  for (ParamArray& array : region.frame.parameters) {
    if (!array.in_local) continue;
    for (const ParamArray::Slot& slot : array.slots)
      write_param(array, slot.piece.offset, read_variable(slot.variable));
  }
  translate_body();
}

/// After the kernel: translates the functions that it calls, and those that they call; then determines the
/// values that the calls save.
void Translator::translate_regions() {
  if (regions_.sites.empty()) return;
  for (std::size_t i = 0; i < regions_.order.size(); ++i) translate_region(*regions_.order[i]);
  if (!diagnostics_.empty()) return;
  ir::Function& kernel = draft_.function;
  regions_.kernel_bytes = aligned(kernel.local_bytes, kRecordAlign);
  kernel.stack_bytes = kActivationBytes;
  kernel.local_bytes = regions_.kernel_bytes + kActivationBytes;
  for (Region* region : regions_.order) find_saved(*region);
  for (const CallSite& site : regions_.sites) {
    region_ = site.caller;
    location_ = site.location;
    emit_saves(site);
    emit_return_to(site);
  }
  location_ = ir::kNone;
  for (Region* region : regions_.order) emit_return(*region);
}

void Translator::find_saved(Region& region) {
  LiveVariables live(draft_, regions_, region);
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

void Translator::emit_saves(const CallSite& site) {
  block_ = site.save;
  std::uint32_t at = site.caller == nullptr ? 0 : site.caller->local_end;
  for (const Variable variable : site.saved) {
    const Value value = read_variable(variable);
    emit(Op::store, Type::none, {record_field(at), value},
         {.space = ir::Space::local, .alignment = ir::byte_size(type_of(value))});
    at += kSlotBytes;
  }
  const Value record = site.caller == nullptr
                           ? constant(Type::i64, regions_.kernel_bytes + kActivationHeadBytes)
                           : record_field(site.caller->record_bytes);
  write_variable(regions_.record, record);
  const std::uint32_t limit = std::max(draft_.function.local_bytes, site.callee->record_bytes);
  const Value last = constant(Type::i64, limit - site.callee->record_bytes);
  const BlockId full = new_block();
  branch_if(compare(ir::Icmp::ugt, record, last), full, site.pass);
  block_ = full;
  fault(ir::Trap::stack_overflow);
  branch(site.pass);

  block_ = site.pass;
  emit(Op::store, Type::none, {record_field(0), constant(Type::i32, site.number)},
       {.space = ir::Space::local, .alignment = 4});
  const Value top = resize(record_field(site.callee->record_bytes), Type::i32, false);
  emit(Op::store, Type::none, {draft_.nullary(Op::local_address, Type::i64, regions_.kernel_bytes), top},
       {.space = ir::Space::local, .alignment = 4});
  branch(site.callee->entry);
}

void Translator::emit_return_to(const CallSite& site) {
  block_ = site.resume;
  const Value record = site.caller == nullptr ? constant(Type::i64, 0)
                                              : record_field(std::uint64_t{0} - site.caller->record_bytes);
  write_variable(regions_.record, record);
  std::uint32_t at = site.caller == nullptr ? 0 : site.caller->local_end;
  for (const Variable variable : site.saved) {
    const Type type = draft_.variable_types[variable];
    write_variable(variable, emit(Op::load, type, {record_field(at)},
                                  {.space = ir::Space::local, .alignment = ir::byte_size(type)}));
    at += kSlotBytes;
  }
  branch(site.next);
}

void Translator::emit_return(Region& region) {
  block_ = region.frame.return_block;
  if (region.returns_to.size() == 1) return branch(region.returns_to[0]);
  const Value number =
      emit(Op::load, Type::i32, {record_field(0)}, {.space = ir::Space::local, .alignment = 4});
  // A kernel that writes outside of its local variables may have changed it.
  const Value last = constant(Type::i32, region.returns_to.size() - 1);
  switch_to(emit(Op::umin, Type::i32, {number, last}), region.returns_to);
}

}  // namespace quern::cpu::lower
