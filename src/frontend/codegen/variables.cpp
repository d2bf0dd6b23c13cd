// SPDX-License-Identifier: Apache-2.0
#include "frontend/codegen/variables.hpp"

#include "frontend/cpp/code.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <unordered_set>

namespace quern::frontend {
namespace {

/// A set of blocks with their ancestors. Queries: is a block in the set, an ancestor of a member, or inside a
/// member?
class BlockSet {
 public:
  explicit BlockSet(const std::vector<Block>& blocks) : blocks_(&blocks) {}

  bool related(std::uint32_t block) const {
    if (everywhere_ || around_.contains(block)) return true;
    for (;; block = (*blocks_)[block].parent) {
      if (here_.contains(block)) return true;
      if (block == 0) return false;
    }
  }
  void add(std::uint32_t block) {
    if (block == kNoVariable) {
      everywhere_ = true;
      return;
    }
    here_.insert(block);
    while (around_.insert(block).second && block != 0) block = (*blocks_)[block].parent;
  }

 private:
  const std::vector<Block>* blocks_;
  std::unordered_set<std::uint32_t> here_, around_;
  bool everywhere_ = false;  // for a parameter
};

class VariableFinder {
 public:
  explicit VariableFinder(const Specialisation& specialisation)
      : specialisation_(specialisation), scope_(*specialisation.scope) {}

  Variables run() {
    out_.of_version.assign(scope_.versions.size(), kNoVariable);
    out_.also.resize(scope_.versions.size());
    mark_loaded();
    make_variables();
    find_flows();
    out_.blocks.push_back({});
    walk(scope_.function->body, 0);
    merge_overlapping();
    find_storage();
    for (std::uint32_t i = 0; i < out_.all.size(); ++i)
      if (!out_.all[i].parameter && !out_.all[i].merged)
        out_.at_place[{out_.all[i].block, out_.all[i].index}].push_back(i);
    name_all();
    return std::move(out_);
  }

 private:
  // A variable exists for a name and type if some version of that type is read, or is an operand of a phi
  // that is read.
  void mark_loaded() {
    loaded_.assign(scope_.versions.size(), false);
    mark(scope_.function->body);
    for (std::uint32_t i = 0; i < scope_.versions.size(); ++i) {
      const Version& version = scope_.versions[i];
      if (version.kind == Version::Kind::phi && version.used) loaded_[i] = true;
    }
  }

  void mark(const std::vector<Stmt*>& body) {
    for (const Stmt* node : body) {
      if (specialisation_.dead[node->id]) continue;
      if (node->value != nullptr) mark(*node->value);
      for (const Expr* target : node->targets) mark(*target);
      mark(node->body);
      mark(node->orelse);
    }
  }

  void mark(const Expr& expr) {
    if (scope_.loads[expr.id] != kNoVersion) loaded_[scope_.loads[expr.id]] = true;
    for (const std::uint32_t version : scope_.captures(expr)) loaded_[version] = true;
    for (const Expr* item : expr.items)
      if (item != nullptr) mark(*item);
  }

  // Versions of one type that are joined by phis are one variable.
  void make_variables() {
    join_versions();
    const std::size_t parameters = scope_.function->parameters.size();
    std::vector<std::uint32_t> of_web(scope_.versions.size(), kNoVariable);
    for (std::uint32_t i = 0; i < scope_.versions.size(); ++i) {
      const Type type = specialisation_.version_types[i];
      const Version& version = scope_.versions[i];
      if (type == nullptr || version.kind == Version::Kind::undefined || !needed_[web(i)]) continue;
      if (is_valueless(type)) continue;  // its value is written where it is used
      std::uint32_t& id = of_web[web(i)];
      if (id == kNoVariable) {
        id = static_cast<std::uint32_t>(out_.all.size());
        Variable& variable = out_.all.emplace_back();
        variable.local = version.local;
        variable.type = type;
        variable.narrow = is_integer(type) && type->bits == 64 && type->is_signed;
      }
      if (!version.used && i >= parameters) continue;
      Variable& variable = out_.all[id];
      out_.of_version[i] = id;
      if (version.kind != Version::Kind::phi) ++variable.definitions;
      ++variable.versions;
      for (const Operand& operand : version.operands)
        if (scope_.versions[operand.version].kind == Version::Kind::undefined &&
            specialisation_.arrives(operand))
          variable.maybe_unset = true;
      variable.parameter = variable.parameter || i < parameters;
      variable.narrow = variable.narrow && !variable.parameter &&
                        specialisation_.version_ranges[i].within(INT32_MIN, INT32_MAX);
    }
  }

  std::uint32_t web(std::uint32_t version) {
    while (webs_[version] != version) version = webs_[version] = webs_[webs_[version]];
    return version;
  }

  void join_web(std::uint32_t version, std::uint32_t phi) {
    if (specialisation_.version_types[version] == specialisation_.version_types[phi] &&
        scope_.versions[version].kind != Version::Kind::undefined)
      webs_[web(version)] = web(phi);
  }

  void join_versions() {
    for (std::uint32_t i = 0; i < scope_.versions.size(); ++i) webs_.push_back(i);
    for (std::uint32_t i = 0; i < scope_.versions.size(); ++i) {
      const Version& version = scope_.versions[i];
      if (version.kind != Version::Kind::phi || !version.used) continue;
      for (const Operand& operand : version.operands)
        if (specialisation_.arrives(operand)) join_web(operand.version, i);
      if (version.head != kNoVersion) join_web(version.head, i);
    }
    needed_.assign(webs_.size(), false);
    for (std::uint32_t i = 0; i < webs_.size(); ++i)
      if (loaded_[i] || i < scope_.function->parameters.size()) needed_[web(i)] = true;
  }

  // Find the other variables of the same name to which a value flows through phis of wider types.
  void find_flows() {
    for (std::uint32_t phi = 0; phi < scope_.versions.size(); ++phi) {
      if (scope_.versions[phi].kind != Version::Kind::phi || !scope_.versions[phi].used) continue;
      const std::uint32_t variable = out_.of_version[phi];
      if (variable == kNoVariable) continue;
      std::set<std::uint32_t> seen;
      std::vector<std::uint32_t> open = {phi};
      while (!open.empty()) {
        const std::uint32_t at = open.back();
        open.pop_back();
        if (!seen.insert(at).second) continue;
        const Version& version = scope_.versions[at];
        if (version.kind == Version::Kind::phi) {
          // A phi of the same variable passes on its own operands.
          if (at == phi || out_.of_version[at] != variable)
            for (const Operand& operand : version.operands)
              if (specialisation_.arrives(operand)) open.push_back(operand.version);
          continue;
        }
        if (version.kind == Version::Kind::undefined || out_.of_version[at] == variable) continue;
        std::vector<std::uint32_t>& also = out_.also[at];
        if (std::find(also.begin(), also.end(), variable) == also.end()) {
          also.push_back(variable);
          ++out_.all[variable].flows;
        }
        if (out_.all[variable].narrow && !specialisation_.version_ranges[at].within(INT32_MIN, INT32_MAX))
          out_.all[variable].narrow = false;
      }
    }
  }

  // A name that always refers to the same array in shared or local memory is replaced by that array.
  void find_storage() {
    for (std::uint32_t i = 0; i < scope_.versions.size(); ++i) {
      const Storage* storage = specialisation_.version_storage[i];
      const std::uint32_t variable = out_.of_version[i];
      if (storage == nullptr || variable == kNoVariable || out_.all[variable].definitions != 1) continue;
      bool alone = true;
      for (std::uint32_t k = 0; k < scope_.versions.size(); ++k)
        alone = alone && (k == i || out_.of_version[k] != variable);
      if (alone && storage->space != Space::dynamic_shared) out_.all[variable].storage = storage;
    }
  }

  // Find the blocks that declare variables.

  void use_variable(std::uint32_t variable, std::uint32_t block, int index) {
    if (variable == kNoVariable) return;
    Variable& of = out_.all[variable];
    if (of.block == kNoVariable) {
      of.block = block;
      of.index = index;
      return;
    }
    std::uint32_t other = block;
    int other_index = index;
    while (of.block != other) {
      if (out_.blocks[of.block].depth >= out_.blocks[other].depth) {
        of.index = out_.blocks[of.block].index;
        of.block = out_.blocks[of.block].parent;
      } else {
        other_index = out_.blocks[other].index;
        other = out_.blocks[other].parent;
      }
    }
    of.index = std::min(of.index, other_index);
  }

  void use_version(std::uint32_t version, std::uint32_t block, int index) {
    if (version == kNoVersion) return;
    use_variable(out_.of_version[version], block, index);
    for (const std::uint32_t variable : out_.also[version]) use_variable(variable, block, index);
  }

  void expression(const Expr& expr, std::uint32_t block, int index) {
    use_version(scope_.loads[expr.id], block, index);
    for (const std::uint32_t version : scope_.captures(expr)) use_version(version, block, index);
    for (const Expr* item : expr.items)
      if (item != nullptr) expression(*item, block, index);
  }

  void target(const Expr& expr, std::uint32_t block, int index) {
    use_version(scope_.defines[expr.id], block, index);
    use_version(scope_.loads[expr.id], block, index);
    for (const std::uint32_t version : scope_.captures(expr)) use_version(version, block, index);
    for (const Expr* item : expr.items)
      if (item != nullptr) target(*item, block, index);
  }

  std::uint32_t open_block(const std::vector<Stmt*>& body, std::uint32_t parent, int index) {
    out_.blocks.push_back({parent, index, out_.blocks[parent].depth + 1});
    const auto block = static_cast<std::uint32_t>(out_.blocks.size() - 1);
    out_.block_of[&body] = block;
    return block;
  }

  void walk(const std::vector<Stmt*>& body, std::uint32_t block) {
    for (std::size_t i = 0; i < body.size(); ++i) {
      const Stmt& node = *body[i];
      const int index = static_cast<int>(i);
      if (specialisation_.dead[node.id]) continue;
      if (node.value != nullptr && node.kind != StmtKind::raise) expression(*node.value, block, index);
      for (const std::uint32_t phi : scope_.phis[node.id]) use_variable(out_.of_version[phi], block, index);
      std::uint32_t inner = 0;
      if (!node.body.empty()) inner = open_block(node.body, block, index);
      if (node.kind == StmtKind::for_)
        target(*node.targets[0], inner, -1);
      else if (node.kind != StmtKind::assert_)
        for (const Expr* each : node.targets) target(*each, block, index);
      if (!node.body.empty()) walk(node.body, inner);
      if (!node.orelse.empty()) walk(node.orelse, open_block(node.orelse, block, index));
    }
  }

  /// True if one block is equal to the other or contains it.
  bool related(std::uint32_t a, std::uint32_t b) const {
    if (a == kNoVariable || b == kNoVariable) return true;
    while (out_.blocks[a].depth > out_.blocks[b].depth) a = out_.blocks[a].parent;
    while (out_.blocks[b].depth > out_.blocks[a].depth) b = out_.blocks[b].parent;
    return a == b;
  }

  // Merges variables of one name and type whose scopes overlap: otherwise one would hide the other.
  void merge_overlapping() {
    std::vector<std::uint32_t> to(out_.all.size());
    std::map<std::pair<std::uint32_t, Type>, std::vector<std::uint32_t>> same;
    for (std::uint32_t i = 0; i < out_.all.size(); ++i) {
      to[i] = i;
      same[{out_.all[i].local, out_.all[i].type}].push_back(i);
    }
    for (const auto& [key, list] : same) {
      if (list.size() == 1) continue;
      std::vector<std::uint32_t> kept;  // their blocks are disjoint
      BlockSet occupied(out_.blocks);
      for (const std::uint32_t i : list) {
        std::uint32_t now = i;
        const bool anywhere = out_.all[i].parameter || out_.all[i].block == kNoVariable;
        if (!kept.empty() && !anywhere && !occupied.related(out_.all[i].block)) {
          occupied.add(out_.all[i].block);
          kept.push_back(i);
          continue;
        }
        for (std::size_t k = 0; k < kept.size();) {
          Variable &one = out_.all[kept[k]], &other = out_.all[now];
          if (!one.parameter && !other.parameter && !related(one.block, other.block)) {
            ++k;
            continue;
          }
          // The merged block may now contain others.
          to[now] = kept[k];
          merge(one, other);
          other.merged = true;
          now = kept[k];
          kept.erase(kept.begin() + static_cast<std::ptrdiff_t>(k));
          k = 0;
        }
        kept.push_back(now);
        occupied.add(out_.all[now].parameter ? kNoVariable : out_.all[now].block);
      }
    }
    const auto final = [&](std::uint32_t id) {
      while (id != kNoVariable && to[id] != id) id = to[id];
      return id;
    };
    for (std::uint32_t& id : out_.of_version) id = final(id);
    for (std::vector<std::uint32_t>& list : out_.also) {
      for (std::uint32_t& id : list) id = final(id);
      std::sort(list.begin(), list.end());
      list.erase(std::unique(list.begin(), list.end()), list.end());
    }
  }

  void merge(Variable& one, const Variable& other) {
    one.narrow = one.narrow && other.narrow;
    one.parameter = one.parameter || other.parameter;
    one.maybe_unset = one.maybe_unset || other.maybe_unset;
    one.definitions += other.definitions;
    one.versions += other.versions;
    one.flows += other.flows;
    one.storage = nullptr;
    if (other.block == kNoVariable) return;
    if (one.block == kNoVariable) {
      one.block = other.block;
      one.index = other.index;
      return;
    }
    std::uint32_t block = other.block;
    int index = other.index;
    while (one.block != block) {
      if (out_.blocks[one.block].depth >= out_.blocks[block].depth) {
        one.index = out_.blocks[one.block].index;
        one.block = out_.blocks[one.block].parent;
      } else {
        index = out_.blocks[block].index;
        block = out_.blocks[block].parent;
      }
    }
    one.index = std::min(one.index, index);
  }

  void name_all() {
    std::map<std::string, BlockSet> taken;
    for (Variable& variable : out_.all) {
      if (variable.merged) continue;
      const std::string plain = cpp_name(scope_.locals[variable.local].name);
      const bool anywhere = variable.parameter || variable.block == kNoVariable;
      const auto is_free = [&](const std::string& name) {
        const auto found = taken.find(name);
        return found == taken.end() || (!anywhere && !found->second.related(variable.block));
      };
      std::string name = plain;
      if (!is_free(name)) name = fmt::format("{}_{}", plain, suffix(variable.type));
      for (int number = 2; !is_free(name); ++number)
        name = fmt::format("{}_{}{}", plain, suffix(variable.type), number);
      taken.try_emplace(name, out_.blocks).first->second.add(anywhere ? kNoVariable : variable.block);
      variable.name = std::move(name);
    }
  }

  static std::string suffix(Type type) {
    if (is_number(type)) return text_of(type);
    return is_array(type) ? fmt::format("{}d", type->ndim) : "tuple";
  }

  const Specialisation& specialisation_;
  const Scope& scope_;
  Variables out_;
  std::vector<bool> loaded_;
  std::vector<std::uint32_t> webs_;
  std::vector<bool> needed_;
};

}  // namespace

Variables find_variables(const Specialisation& specialisation) {
  return VariableFinder(specialisation).run();
}

}  // namespace quern::frontend
