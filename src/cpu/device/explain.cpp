// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/explain.hpp"

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "cpu/abi/warp_size.hpp"
#include "cpu/device/replay.hpp"
#include "cpu/engine/fault.hpp"

namespace quern::cpu::device {
namespace {

using engine::AccessKind;

AccessKind access_of(ir::Op op) {
  if (op == ir::Op::load) return AccessKind::load;
  if (op == ir::Op::store) return AccessKind::store;
  return op == ir::Op::atomic ? AccessKind::atomic : AccessKind::none;
}

const CodeSite* site_at(const std::vector<CodeSite>& sites, std::uint64_t offset) {
  auto next = std::upper_bound(sites.begin(), sites.end(), offset,
                               [](std::uint64_t at, const CodeSite& site) { return at < site.offset; });
  if (next == sites.begin()) return nullptr;
  const CodeSite& site = *--next;
  return site.value == ir::kNone ? nullptr : &site;
}

/// The processor loads an operand in the instruction that uses it: the site is then the user's. If the user
/// has a single load, that is the access. A store that was reading has not begun to store; an atomic
/// operation may have read its own location.
ir::Value access_behind(const ir::Function& function, ir::Value value, const engine::Fault& fault) {
  const AccessKind kind = access_of(function[value].op);
  if (kind == AccessKind::load || (kind != AccessKind::none && !fault.was_read)) return value;
  constexpr std::size_t kMostValues = 64;
  std::vector<ir::Value> work{value};
  ir::Value found = ir::kNone;
  for (std::size_t at = 0; at < work.size() && work.size() < kMostValues; ++at)
    for (const ir::Value arg : function[work[at]].args) {
      if (std::find(work.begin(), work.end(), arg) != work.end()) continue;
      const ir::Inst& inst = function[arg];
      if (access_of(inst.op) != AccessKind::none) {
        if (found != ir::kNone && found != arg) return ir::kNone;
        found = arg;
      } else if (ir::has_trait(inst.op, 'p') && inst.op != ir::Op::phi) {
        work.push_back(arg);
      }
    }
  if (kind != AccessKind::atomic) return found;
  return found == ir::kNone ? value : ir::kNone;
}

ir::Type element_type(const ir::Function& function, const ir::Inst& inst) {
  return inst.op == ir::Op::load ? inst.type : function[inst.args[1]].type;
}

std::string_view name_of(ir::Space space) {
  constexpr std::string_view kNames[] = {"generic", "global", "shared", "local", "constant", "param"};
  return kNames[static_cast<std::size_t>(space)];
}

void describe(const ir::Function& function, ir::Value value, engine::Fault& fault) {
  const ir::Inst& inst = function[value];
  fault.location = inst.location;
  fault.access = access_of(inst.op);
  fault.access_bytes = ir::byte_size(element_type(function, inst)) * inst.attr.count;
  fault.space = name_of(inst.attr.space);
}

bool is_of_address(const engine::Fault& fault) {
  return fault.kind == engine::FaultKind::illegal_address ||
         fault.kind == engine::FaultKind::misaligned_address;
}

/// Finds the thread, its access and its address, if they can be recomputed.
bool find_thread(const CodeSites& sites, ir::Value access, engine::Fault& fault, const engine::Grid& grid,
                 const engine::Worker& worker) {
  const std::optional<Offender> found =
      find_offender(sites.module, access, fault, grid, worker, *worker.services().memory);
  if (!found) return false;
  fault.warp = found->thread / kWarpSize;
  fault.warp_count = 1;
  fault.lane = found->thread % kWarpSize;
  fault.knows_lane = true;
  fault.kernel_address = found->address;
  describe(sites.module.functions[0], found->access, fault);
  fault.location = found->location;
  fault.access_bytes = found->bytes;
  return true;
}

/// The IR instruction that the machine code belongs to; LLVM does not know it for code that it merged from
/// several.
struct Site {
  const ir::Function* function = nullptr;
  ir::Value value = ir::kNone;
};
Site site_of(const CodeSites& known, std::uint64_t offset) {
  const CodeSite* const site = site_at(known.sites, offset);
  if (site == nullptr) return {};
  const ir::Function& function = known.module.functions[site->function];
  return {&function, site->value};
}

void explain_access(const CodeSites& known, const Site& site, engine::Fault& fault, const engine::Grid& grid,
                    const engine::Worker& worker) {
  const ir::Function* const kernel = known.module.functions.data();
  const ir::Value access =
      site.function == nullptr ? ir::kNone : access_behind(*site.function, site.value, fault);
  if (access != ir::kNone) describe(*site.function, access, fault);
  // Threads are followed through the kernel alone, not into functions that it calls.
  const bool in_kernel =
      site.function == nullptr ? known.module.functions.size() == 1 : site.function == kernel;
  if (in_kernel && is_of_address(fault) && find_thread(known, access, fault, grid, worker)) return;
  const bool global = fault.space == "global" || fault.space == "generic";
  if (global && processor_tells(fault, *worker.services().window, grid.device))
    fault.kernel_address = fault.address;
}

/// The kernels that faulted last: a program that meets a fault once often meets it again, in a module that it
/// has reloaded. Thread-safe.
class Recent {
 public:
  struct Row {
    std::string kernel;
    Specialisation specialisation;
    std::vector<ir::Location> locations;
    std::shared_ptr<const CodeSites> sites;
  };

  std::shared_ptr<const CodeSites> find(const std::string& kernel, const Specialisation& specialisation,
                                        const KernelCode& code) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    for (const Row& row : rows_)
      if (row.sites->digest == code.digest && row.kernel == kernel && row.specialisation == specialisation &&
          std::equal(row.locations.begin(), row.locations.end(), code.locations.begin(), code.locations.end(),
                     same))
        return row.sites;
    return nullptr;
  }
  void add(Row row) QUERN_EXCLUDES(mutex_) {
    constexpr std::size_t kMost = 8;
    const base::LockGuard lock(mutex_);
    if (rows_.size() == kMost) rows_.erase(rows_.begin());
    rows_.push_back(std::move(row));
  }

 private:
  static bool same(const ir::Location& a, const ir::Location& b) {
    return a.line == b.line && a.ptx_line == b.ptx_line && a.inlined_at == b.inlined_at && a.file == b.file;
  }

  base::Mutex mutex_;
  std::vector<Row> rows_ QUERN_GUARDED_BY(mutex_);
};
/// Never destroyed, as the driver itself is not.
Recent& recent() {
  static auto* const all = new Recent;
  return *all;
}

}  // namespace

Explainer::Explainer(const ptx::Module& ptx, std::string kernel, const Specialisation& specialisation,
                     const KernelCode& code)
    : ptx_(ptx), kernel_(std::move(kernel)), specialisation_(specialisation), code_(code) {}

const CodeSites* Explainer::sites() const {
  const base::LockGuard lock(mutex_);
  if (!asked_) {
    asked_ = true;
    sites_ = recent().find(kernel_, specialisation_, code_);
    if (sites_ != nullptr) return sites_.get();
    Expected<CodeSites> found = find_sites(ptx_, kernel_, specialisation_);
    if (found && found->digest == code_.digest) sites_ = std::make_shared<const CodeSites>(std::move(*found));
    if (sites_ != nullptr) recent().add({kernel_, specialisation_, code_.locations, sites_});
  }
  return sites_.get();
}

void Explainer::explain(engine::Fault& fault, const engine::Grid& grid,
                        const engine::Worker& worker) const noexcept try {
  const CodeSites* const known = sites();
  if (known == nullptr) return;
  const Site site = site_of(*known, static_cast<std::uint64_t>(fault.pc - code_.text_begin));
  if (site.function != nullptr) fault.location = (*site.function)[site.value].location;
  explain_access(*known, site, fault, grid, worker);
} catch (...) {  // no memory: the fault stays as it is
}

}  // namespace quern::cpu::device
