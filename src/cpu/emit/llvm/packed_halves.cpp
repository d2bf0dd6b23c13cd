// SPDX-License-Identifier: Apache-2.0
#include "cpu/emit/llvm/packed_halves.hpp"

#include <llvm/ADT/MapVector.h>
#include <llvm/Analysis/VectorUtils.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/Dominators.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/Instructions.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/PatternMatch.h>
#include <llvm/Transforms/Utils/Local.h>

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>
#include <vector>

#include "cpu/abi/warp_size.hpp"

namespace quern::cpu::emit {
namespace {

using llvm::Value;

/// Words that are computed at a time: 16 halves are two registers of floats with AVX2, one with AVX-512.
constexpr unsigned kWords = 8;
constexpr std::size_t kMaxNodes = 256;

/// The same value of the low and of the high halves.
struct Halves {
  Value* low = nullptr;
  Value* high = nullptr;
  auto operator<=>(const Halves&) const = default;
};

/// A value of the halves in memory order.
struct Node {
  enum class Kind : std::uint8_t {
    packed,     ///< the halves of `word`
    constant,   ///< a constant, the same in all lanes and both halves
    uniform,    ///< the same in all lanes, in each half another
    repeated,   ///< a number of each lane, the same in both halves
    operation,  ///< an operation on `operands`, element by element
  };
  Kind kind = Kind::operation;
  Halves halves;
  Value* word = nullptr;
  std::vector<std::size_t> operands{};  ///< nodes; in the order of the instruction's operands
  bool shared = false;                  ///< all words have the same value, which is computed once
};

bool is_vector(const Value* value, unsigned lanes) {
  const auto* const type = llvm::dyn_cast<llvm::FixedVectorType>(value->getType());
  return type != nullptr && type->getNumElements() == lanes;
}

bool is_narrow(const Value* value) { return value->getType()->getScalarSizeInBits() == 16; }

/// True if each element of the result depends on the same element of each operand and on nothing else.
bool is_elementwise(const llvm::Instruction& inst) {
  const auto lanes_alone = [&](const llvm::Use& use) { return is_vector(use.get(), kWarpSize); };
  if (const auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(&inst))
    return llvm::isTriviallyVectorizable(call->getIntrinsicID()) &&
           std::ranges::all_of(call->args(),
                               [&](const llvm::Use& use) { return use->getType() == inst.getType(); });
  return llvm::isa<llvm::BinaryOperator, llvm::UnaryOperator, llvm::CastInst, llvm::CmpInst,
                   llvm::SelectInst>(inst) &&
         std::ranges::all_of(inst.operands(), lanes_alone);
}

/// The operations on both halves from which a vector of words is put together.
class Tree {
 public:
  /// True if `low` and `high` are the same function of the halves of words.
  bool grow(const Halves& halves) { return grow_to(halves).has_value() && is_worth_it(); }

  const std::vector<Node>& nodes() const { return nodes_; }

  /// The uses of a value of the tree by other code.
  static std::vector<llvm::Use*> uses_elsewhere(Value* value, const std::set<const Value*>& inside) {
    std::vector<llvm::Use*> uses;
    for (llvm::Use& use : value->uses())
      if (!inside.contains(use.getUser())) uses.push_back(&use);
    return uses;
  }

  /// All instructions that the tree replaces, and the two that use its last value.
  std::set<const Value*> replaced(const llvm::Instruction& low_use, const llvm::Instruction& high_use) const {
    std::set<const Value*> inside{&low_use, &high_use};
    for (const Node& node : nodes_)
      if (node.kind == Node::Kind::operation) inside.insert({node.halves.low, node.halves.high});
    return inside;
  }

 private:
  std::optional<std::size_t> grow_to(const Halves& halves);
  std::optional<Node> leaf(const Halves& halves) const;
  std::optional<Node> operation(const Halves& halves);

  /// Sorting the halves of a word costs as much as putting them together, repeating numbers half as much.
  bool is_worth_it() const {
    const auto count = [&](Node::Kind kind) { return std::ranges::count(nodes_, kind, &Node::kind); };
    return count(Node::Kind::packed) > 0 && count(Node::Kind::repeated) <= count(Node::Kind::packed);
  }

  std::vector<Node> nodes_;  ///< operands come first
  std::map<Halves, std::size_t> known_;
};

std::optional<Node> Tree::leaf(const Halves& halves) const {
  using namespace llvm::PatternMatch;
  Value* word = nullptr;
  if (match(halves.low, m_Trunc(m_Value(word))) && is_narrow(halves.low) &&
      match(halves.high, m_Trunc(m_LShr(m_Specific(word), m_SpecificInt(16)))) &&
      word->getType()->isIntOrIntVectorTy(32))
    return Node{.kind = Node::Kind::packed, .halves = halves, .word = word};
  if (llvm::isa<llvm::Constant>(halves.low) && halves.low == halves.high &&
      llvm::cast<llvm::Constant>(halves.low)->getSplatValue() != nullptr)
    return Node{.kind = Node::Kind::constant, .halves = halves, .shared = true};
  if (llvm::getSplatValue(halves.low) != nullptr && llvm::getSplatValue(halves.high) != nullptr)
    return Node{.kind = Node::Kind::uniform, .halves = halves, .shared = true};
  return std::nullopt;
}

std::optional<Node> Tree::operation(const Halves& halves) {
  const auto* const low = llvm::dyn_cast<llvm::Instruction>(halves.low);
  const auto* const high = llvm::dyn_cast<llvm::Instruction>(halves.high);
  if (low == nullptr || high == nullptr || !low->isSameOperationAs(high) || !is_elementwise(*low))
    return std::nullopt;
  const auto* const call = llvm::dyn_cast<llvm::CallBase>(low);
  if (call != nullptr && call->getCalledOperand() != llvm::cast<llvm::CallBase>(high)->getCalledOperand())
    return std::nullopt;
  Node node{.halves = halves, .shared = true};
  const unsigned operands = call != nullptr ? call->arg_size() : low->getNumOperands();
  for (unsigned i = 0; i < operands; ++i) {
    const auto operand = grow_to({low->getOperand(i), high->getOperand(i)});
    if (!operand) return std::nullopt;
    node.operands.push_back(*operand);
    node.shared = node.shared && nodes_[*operand].shared;
  }
  return node;
}

/// Adds the node of these values and what it depends on. Returns its number, or nothing if there is no such
/// node.
std::optional<std::size_t> Tree::grow_to(const Halves& halves) {
  if (const auto known = known_.find(halves); known != known_.end()) return known->second;
  if (!is_vector(halves.low, kWarpSize) || halves.low->getType() != halves.high->getType())
    return std::nullopt;
  std::optional<Node> node = leaf(halves);
  if (!node) {
    const std::size_t before = nodes_.size();
    node = operation(halves);
    if (halves.low == halves.high && !(node && node->shared) && !is_narrow(halves.low)) {
      nodes_.resize(before);
      std::erase_if(known_, [&](const auto& entry) { return entry.second >= before; });
      node = Node{.kind = Node::Kind::repeated, .halves = halves};
    }
  }
  if (!node || nodes_.size() == kMaxNodes) return std::nullopt;
  nodes_.push_back(std::move(*node));
  known_[halves] = nodes_.size() - 1;
  return nodes_.size() - 1;
}

llvm::Type* packed_type(const Value* of_words, unsigned words) {
  return llvm::FixedVectorType::get(of_words->getType()->getScalarType(), 2 * words);
}

/// Two numbers in turn.
Value* emit_uniform(llvm::IRBuilder<>& b, const Node& node) {
  Value* both = llvm::PoisonValue::get(packed_type(node.halves.low, kWords));
  both = b.CreateInsertElement(both, llvm::getSplatValue(node.halves.low), std::uint64_t{0});
  both = b.CreateInsertElement(both, llvm::getSplatValue(node.halves.high), 1);
  std::vector<int> mask(2 * kWords);
  for (unsigned i = 0; i < 2 * kWords; ++i) mask[i] = static_cast<int>(i % 2);
  return b.CreateShuffleVector(both, mask);
}

/// The node's value for the words from `first` on, of which `values` has those of earlier nodes.
Value* emit_node(llvm::IRBuilder<>& b, const Node& node, unsigned first, const std::vector<Value*>& values) {
  switch (node.kind) {
    case Node::Kind::packed: {
      std::vector<int> mask(kWords);
      for (unsigned i = 0; i < kWords; ++i) mask[i] = static_cast<int>(first + i);
      Value* const words = b.CreateShuffleVector(node.word, mask);
      return b.CreateBitCast(words, packed_type(node.halves.low, kWords));
    }
    case Node::Kind::constant:
      return llvm::ConstantVector::getSplat(llvm::ElementCount::getFixed(2 * kWords),
                                            llvm::cast<llvm::Constant>(node.halves.low)->getSplatValue());
    case Node::Kind::repeated: {
      std::vector<int> mask(2 * kWords);
      for (unsigned i = 0; i < 2 * kWords; ++i) mask[i] = static_cast<int>(first + i / 2);
      return b.CreateShuffleVector(node.halves.low, mask);
    }
    case Node::Kind::uniform:
      return emit_uniform(b, node);
    case Node::Kind::operation:
      break;
  }
  std::vector<Value*> operands;
  for (const std::size_t number : node.operands) operands.push_back(values[number]);
  auto* const like = llvm::cast<llvm::Instruction>(node.halves.low);
  llvm::Type* const type = packed_type(like, kWords);
  Value* made = nullptr;
  if (auto* const call = llvm::dyn_cast<llvm::IntrinsicInst>(like)) {
    made = b.CreateIntrinsic(type, call->getIntrinsicID(), operands);
  } else if (auto* const cast = llvm::dyn_cast<llvm::CastInst>(like)) {
    made = b.CreateCast(cast->getOpcode(), operands[0], type);
  } else if (auto* const compare = llvm::dyn_cast<llvm::CmpInst>(like)) {
    made = b.CreateCmp(compare->getPredicate(), operands[0], operands[1]);
  } else if (llvm::isa<llvm::SelectInst>(like)) {
    made = b.CreateSelect(operands[0], operands[1], operands[2]);
  } else if (auto* const unary = llvm::dyn_cast<llvm::UnaryOperator>(like)) {
    made = b.CreateUnOp(unary->getOpcode(), operands[0]);
  } else {
    made = b.CreateBinOp(llvm::cast<llvm::BinaryOperator>(like)->getOpcode(), operands[0], operands[1]);
  }
  auto* const inst = llvm::dyn_cast<llvm::Instruction>(made);
  if (inst != nullptr && !llvm::is_contained(operands, made)) {  // nothing that is simplified
    inst->copyIRFlags(node.halves.low);
    inst->andIRFlags(node.halves.high);
  }
  return made;
}

/// The place from which on both halves are known: outside of loops that `use` is in, if they are.
llvm::Instruction* where_known(const Halves& halves, const llvm::DominatorTree& dominators,
                               llvm::Instruction& use) {
  auto* const low = llvm::dyn_cast<llvm::Instruction>(halves.low);
  auto* const high = llvm::dyn_cast<llvm::Instruction>(halves.high);
  if (low != nullptr && (high == nullptr || high == low || dominators.dominates(high, low)))
    return low->getNextNode();
  if (high != nullptr && (low == nullptr || dominators.dominates(low, high))) return high->getNextNode();
  return &use;
}

/// The 32 words of node number `number`, whose parts are `parts`.
Value* join_words(llvm::IRBuilder<>& b, const std::vector<std::vector<Value*>>& parts, std::size_t number) {
  std::vector<Value*> words;
  for (const std::vector<Value*>& part : parts)
    words.push_back(b.CreateBitCast(part[number], llvm::FixedVectorType::get(b.getInt32Ty(), kWords)));
  return llvm::concatenateVectors(b, words);
}

/// Computes the halves together of which `inst` puts together what was computed from the low and from the
/// high ones. Returns false if they are not computed alike, or also used one by one.
bool keep_packed(llvm::Instruction& inst, const llvm::DominatorTree& dominators) {
  using namespace llvm::PatternMatch;
  Value *low_use = nullptr, *high_use = nullptr;
  Halves root;
  if (!is_vector(&inst, kWarpSize) || !inst.getType()->isIntOrIntVectorTy(32) ||
      !match(&inst,
             m_c_Or(m_CombineAnd(m_ZExt(m_Value(root.low)), m_Value(low_use)),
                    m_Shl(m_CombineAnd(m_ZExt(m_Value(root.high)), m_Value(high_use)), m_SpecificInt(16)))) ||
      !is_narrow(root.low) || !is_narrow(root.high))
    return false;
  Tree tree;
  if (!tree.grow(root)) return false;
  const std::vector<Node>& nodes = tree.nodes();
  if (nodes.back().kind != Node::Kind::operation) return false;
  const auto inside =
      tree.replaced(*llvm::cast<llvm::Instruction>(low_use), *llvm::cast<llvm::Instruction>(high_use));

  auto* const low = llvm::cast<llvm::Instruction>(root.low);
  auto* const high = llvm::cast<llvm::Instruction>(root.high);
  llvm::Instruction* at = &inst;
  if (low->getParent() == high->getParent()) at = (low->comesBefore(high) ? high : low)->getNextNode();

  // Halves that are also used one by one are taken from the words; other numbers would be computed twice.
  std::vector<std::size_t> taken;
  for (std::size_t number = 0; number < nodes.size(); ++number) {
    if (nodes[number].kind != Node::Kind::operation) continue;
    bool is_taken = false;
    for (Value* const half : {nodes[number].halves.low, nodes[number].halves.high})
      for (const llvm::Use* const use : Tree::uses_elsewhere(half, inside)) {
        const auto* const user = llvm::cast<llvm::Instruction>(use->getUser());
        if (!is_narrow(half) || llvm::isa<llvm::PHINode>(user) ||
            (user != at && !dominators.dominates(at, user)))
          return false;
        is_taken = true;
      }
    if (is_taken) taken.push_back(number);
  }
  if (taken.size() > static_cast<std::size_t>(std::ranges::count(nodes, Node::Kind::packed, &Node::kind)))
    return false;

  llvm::IRBuilder<> b(at);
  std::vector<Value*> shared(nodes.size());
  for (std::size_t number = 0; number < nodes.size(); ++number)
    if (nodes[number].shared) {
      llvm::IRBuilder<> early(where_known(nodes[number].halves, dominators, *at));
      shared[number] = emit_node(early, nodes[number], 0, shared);
    }
  std::vector<std::vector<Value*>> parts;
  for (unsigned first = 0; first < kWarpSize; first += kWords) {
    std::vector<Value*>& values = parts.emplace_back(shared);
    for (std::size_t number = 0; number < nodes.size(); ++number)
      if (!nodes[number].shared) values[number] = emit_node(b, nodes[number], first, values);
  }
  for (const std::size_t number : taken) {
    Value* const words = join_words(b, parts, number);
    const Halves& halves = nodes[number].halves;
    for (Value* const half : {halves.low, halves.high}) {
      Value* const moved = half == halves.low ? words : b.CreateLShr(words, 16);
      Value* const alone = b.CreateBitCast(
          b.CreateTrunc(moved, llvm::FixedVectorType::get(b.getInt16Ty(), kWarpSize)), half->getType());
      for (llvm::Use* const use : Tree::uses_elsewhere(half, inside)) use->set(alone);
    }
  }
  inst.replaceAllUsesWith(join_words(b, parts, nodes.size() - 1));
  return true;
}

/// The truncations of a vector of words to their low and to their high halves.
struct Truncations {
  llvm::Instruction* low = nullptr;
  llvm::Instruction* high = nullptr;
};

/// By the words, in the order of the function.
llvm::MapVector<llvm::Instruction*, Truncations> truncations(llvm::Function& function) {
  using namespace llvm::PatternMatch;
  llvm::MapVector<llvm::Instruction*, Truncations> found;
  for (llvm::Instruction& inst : llvm::instructions(function)) {
    if (!is_vector(&inst, kWarpSize) || !inst.getType()->isIntOrIntVectorTy(16)) continue;
    llvm::Instruction* words = nullptr;
    if (match(&inst, m_Trunc(m_LShr(m_Instruction(words), m_SpecificInt(16)))) &&
        words->getType()->isIntOrIntVectorTy(32))
      found[words].high = &inst;
    else if (match(&inst, m_Trunc(m_Instruction(words))) && words->getType()->isIntOrIntVectorTy(32))
      found[words].low = &inst;
  }
  return found;
}

}  // namespace

void sort_halves(llvm::Function& function) {
  for (const auto& [words, halves] : truncations(function)) {
    if (halves.low == nullptr || halves.high == nullptr) continue;
    llvm::IRBuilder<> b(words->getParent(), *words->getInsertionPointAfterDef());
    std::vector<Value*> low, high;
    for (unsigned first = 0; first < kWarpSize; first += kWords) {
      const auto places = [](unsigned start, unsigned step, unsigned count) {
        std::vector<int> mask(count);
        for (unsigned i = 0; i < count; ++i) mask[i] = static_cast<int>(start + step * i);
        return mask;
      };
      Value* const part = b.CreateShuffleVector(words, places(first, 1, kWords));
      Value* const packed = b.CreateBitCast(part, packed_type(halves.low, kWords));
      std::vector<int> sorted = places(0, 2, kWords);
      const std::vector<int> odd = places(1, 2, kWords);
      sorted.insert(sorted.end(), odd.begin(), odd.end());
      Value* const both = b.CreateShuffleVector(packed, sorted);
      low.push_back(b.CreateShuffleVector(both, places(0, 1, kWords)));
      high.push_back(b.CreateShuffleVector(both, places(kWords, 1, kWords)));
    }
    halves.low->replaceAllUsesWith(llvm::concatenateVectors(b, low));
    halves.high->replaceAllUsesWith(llvm::concatenateVectors(b, high));
  }
}

void keep_halves_packed(llvm::Function& function) {
  std::optional<llvm::DominatorTree> dominators;
  for (llvm::BasicBlock& block : function)
    for (llvm::Instruction& inst : llvm::make_early_inc_range(block)) {
      if (inst.getOpcode() != llvm::Instruction::Or) continue;
      if (!dominators) dominators.emplace(function);
      if (keep_packed(inst, *dominators)) llvm::RecursivelyDeleteTriviallyDeadInstructions(&inst);
    }
}

}  // namespace quern::cpu::emit
