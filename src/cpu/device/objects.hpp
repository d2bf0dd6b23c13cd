// SPDX-License-Identifier: Apache-2.0
// The objects behind the handles of the driver API. Objects are shared: a handle holds one reference, running
// work others.
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <forward_list>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/compiler/compiler.hpp"
#include "cpu/device/explain.hpp"
#include "cpu/device/handles.hpp"
#include "cpu/device/jit_options.hpp"
#include "cpu/device/module/linking.hpp"
#include "cpu/device/module/read_ptx.hpp"
#include "cpu/engine/memory.hpp"
#include "cpu/engine/scheduler.hpp"
#include "ptx/module.hpp"

namespace quern::cpu::device {

/// All that ends when a context is destroyed or a primary context is reset: a new one has a new ContextState.
/// Thread-safe.
struct ContextState {
  std::uint64_t id = 0;  ///< owner of its allocations; never reused
  std::uint32_t device = 0;
  std::shared_ptr<engine::Domain> domain;
  std::atomic<std::uint64_t> stack_bytes{1024};
  std::atomic<std::uint64_t> printf_fifo_bytes{std::uint64_t{1} << 20};
  std::atomic<std::uint64_t> heap_bytes{std::uint64_t{8} << 20};
  std::atomic<std::uint64_t> pending_launches{
      2048};                                      ///< of kernels by kernels, which there are not: only kept
  std::atomic<std::uint64_t> l2_fetch_bytes{64};  ///< a hint that is only kept
  std::atomic<CUfunc_cache> cache_config{CU_FUNC_CACHE_PREFER_NONE};  ///< a hint that is only kept
  /// Set before the objects of the context are released. A call that began earlier checks it after it has
  /// made an object, so that no new object stays behind.
  std::atomic<bool> ended{false};
  base::Mutex peers_mutex;
  std::set<std::uint64_t> peers QUERN_GUARDED_BY(peers_mutex);  ///< ids of contexts: cuCtxEnablePeerAccess
};

/// The CUresult of a fault.
CUresult result_of(engine::FaultKind fault) noexcept;
/// Throws Failure with the fault that has ended the context, if one has.
void check_fault(const ContextState& context);
/// Throws Failure if the context has ended: its fault, otherwise CUDA_ERROR_CONTEXT_IS_DESTROYED.
void require_not_ended(const ContextState& context);

/// Fields are guarded by the mutex of Contexts.
struct Context {
  std::uint32_t device = 0;
  bool primary = false;
  unsigned flags = 0;
  unsigned version = 0;                 ///< cuCtxGetApiVersion
  unsigned retained = 0;                ///< primary only
  unsigned attached = 1;                ///< uses; not primary
  std::shared_ptr<ContextState> state;  ///< null: destroyed, or a primary context that nobody retains
};

/// A stream and the context that it belongs to.
struct StreamObject {
  std::shared_ptr<ContextState> context;
  std::shared_ptr<engine::Stream> stream;
};

struct CapturedPoint;
class BackgroundCode;
class SharedEvent;

/// Thread-safe.
struct EventObject {
  std::shared_ptr<ContextState> context;
  unsigned flags = 0;
  /// Null unless several processes use the event. It does not change once the event has a handle.
  std::shared_ptr<SharedEvent> shared;
  base::Mutex mutex;
  std::shared_ptr<engine::EventPoint> point QUERN_GUARDED_BY(mutex);  ///< null: never recorded
  std::uint32_t ticket QUERN_GUARDED_BY(mutex) = 0;                   ///< of `point`, if the event is shared
  /// Of the last record if a capturing stream made it, otherwise null.
  std::shared_ptr<const CapturedPoint> captured QUERN_GUARDED_BY(mutex);
};

/// A link under way. Thread-safe.
struct LinkObject {
  explicit LinkObject(const JitOptions& given) : options(given) {}
  const JitOptions options;  ///< the caller keeps what they point to until the end
  base::Mutex mutex;
  std::vector<LinkText> texts QUERN_GUARDED_BY(mutex);
  /// Members of archives that have no PTX: nothing of them is linked.
  std::vector<std::string> without_ptx QUERN_GUARDED_BY(mutex);
  bool has_input QUERN_GUARDED_BY(mutex) = false;
  std::string linked QUERN_GUARDED_BY(mutex);  ///< the image; empty: not yet
};

/// A module-level variable in device memory.
struct ModuleVariable {
  std::byte* address = nullptr;
  std::uint64_t bytes = 0;
};

/// The .managed variables of a library, which its modules in all contexts share. Immutable.
struct ManagedVariables {
  std::map<std::string, ModuleVariable, std::less<>> places;
  std::shared_ptr<engine::Allocation> memory;  ///< null: there are none
};

/// A loaded module. Immutable but for `functions`.
struct ModuleObject {
  explicit ModuleObject(ReadPtx read) : shared(std::move(read.ptx)), read_ns(read.ns) {}

  const std::shared_ptr<const SharedPtx> shared;
  const std::uint64_t read_ns;  ///< ReadPtx::ns
  const ptx::Module& ptx = shared->module;
  std::shared_ptr<ContextState> context;
  std::map<std::string, ModuleVariable, std::less<>> variables;
  std::shared_ptr<engine::Allocation> memory;  ///< of the variables; null: there are none
  ModuleSettings settings;
  CUmodule handle = nullptr;                        ///< its own
  bool of_library = false;                          ///< a library unloads it
  std::shared_ptr<const ManagedVariables> managed;  ///< of its library; null: the module has its own
  base::Mutex mutex;
  std::map<std::string, CUfunction, std::less<>> functions QUERN_GUARDED_BY(mutex);
};

/// Machine code of a kernel for one block shape, and the addresses of the symbols it names.
struct LoadedCode {
  std::shared_ptr<const KernelCode> code;
  std::vector<std::uint64_t> symbols;
  std::unique_ptr<const Explainer> explainer;
  std::unique_ptr<engine::Pace> pace;
};

/// What cuFuncSetAttribute and cuKernelSetAttribute set. Thread-safe.
struct FunctionSettings {
  explicit FunctionSettings(const KernelInfo& info);
  /// Takes over what is set for the kernel, less what was set for this function itself (cuda.h,
  /// cuKernelSetAttribute).
  void follow(const FunctionSettings& kernel) noexcept;
  /// The attribute was set for this function: a kernel's value no longer replaces it.
  void keep(CUfunction_attribute attribute) noexcept;

  /// The most dynamic shared memory that a launch may request; raised up to the opt-in limit.
  std::atomic<std::uint32_t> max_dynamic_shared_bytes;
  std::atomic<std::int32_t> carveout{-1};     ///< in percent; a hint that is only kept
  std::atomic<bool> has_own_dynamic{false};   ///< `max_dynamic_shared_bytes` was set for this function
  std::atomic<bool> has_own_carveout{false};  ///< `carveout` was
};

/// The launch that deprecated functions set bit by bit, for cuLaunch and its like.
struct OldLaunch {
  std::uint32_t block[3]{0, 0, 0};
  std::uint32_t shared_bytes = 0;
  std::vector<std::byte> parameters;
};

/// Thread-safe.
class OldLaunchState {
 public:
  /// Calls `change` with the launch, under the lock.
  template <class Change>
  void change(const Change& change) QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    change(launch_);
  }
  OldLaunch get() const QUERN_EXCLUDES(mutex_) {
    const base::LockGuard lock(mutex_);
    return launch_;
  }

 private:
  mutable base::Mutex mutex_;
  OldLaunch launch_ QUERN_GUARDED_BY(mutex_);
};

/// The code that a launch takes. Quick code is compiled in a third of the time, and good code follows in the
/// background (docs/decisions/0050-quick-code-first.md).
enum class Tier : std::uint8_t {
  good,
  quick_first,  ///< quick code until there is good code
};

/// A kernel of a module. Thread-safe.
class FunctionObject {
 public:
  FunctionObject(std::shared_ptr<ModuleObject> module, const KernelInfo& info);

  const ModuleObject& module() const noexcept { return *module_; }
  const KernelInfo& info() const noexcept { return *info_; }
  const ptx::Function& ptx() const noexcept { return *ptx_; }
  /// The kernel's name in reports: the author's if it is known, otherwise the PTX's.
  /// Lives as long as the function.
  const std::string& display_name() const noexcept { return *display_name_.load(std::memory_order_acquire); }
  void set_display_name(std::string name) QUERN_EXCLUDES(mutex_);
  FunctionSettings settings;
  OldLaunchState old_launch;
  /// Launches are copies, which cancelling leaves.
  std::atomic<bool> is_copy{false};

  /// Code for that block shape, compiled on first use (once for all callers). Reports the compiler's errors
  /// and throws Failure if it fails. The reference lives as long as the function.
  /// `made_since_ns`: when it began to wait for the code; not written if the code was there.
  const LoadedCode& code_for(const Specialisation& specialisation, Tier tier,
                             std::optional<std::int64_t>* made_since_ns = nullptr);
  /// The time for which machine code was generated for this function, all block shapes together.
  std::uint64_t machine_code_ns() const noexcept { return machine_code_ns_.load(); }

 private:
  struct Variant {
    Specialisation specialisation;
    base::Mutex mutex;  ///< held while the code is made
    std::atomic<bool> made =
        false;  ///< set last; a lack of memory leaves it unset, so that it is tried again
    LoadedCode loaded;
    CUresult result = CUDA_SUCCESS;
    // If `loaded` is quick code. Both codes live as long as the function, since launches may run them.
    std::shared_ptr<const BackgroundCode> background;  ///< does not change once `made` is set
    std::atomic<const LoadedCode*> newest = nullptr;
    std::atomic<bool> awaits_good = false;
    LoadedCode good;
  };
  void make(Variant& variant, Tier tier) const;
  bool make_quick(Variant& variant) const;
  void replace_quick(Variant& variant, Tier tier) const;
  Variant& variant_for(const Specialisation& specialisation) QUERN_EXCLUDES(mutex_);
  LoadedCode load(const Specialisation& specialisation) const;
  LoadedCode load(std::shared_ptr<const KernelCode> code, const Specialisation& specialisation) const;
  /// Code that another module has made, or new code.
  Expected<std::shared_ptr<const KernelCode>> known_or_new(const Specialisation& specialisation) const;
  /// The same. Throws Failure after reporting why there is none.
  std::shared_ptr<const KernelCode> find_code(const Specialisation& specialisation) const;
  Expected<CodeImage> generate(const Specialisation& specialisation) const;

  std::shared_ptr<ModuleObject> module_;
  const KernelInfo* info_;
  const ptx::Function* ptx_ = nullptr;
  mutable std::atomic<std::uint64_t> machine_code_ns_{0};
  mutable base::Mutex mutex_;
  std::forward_list<std::string> names_ QUERN_GUARDED_BY(mutex_);  ///< all that were set: launches name them
  std::atomic<const std::string*> display_name_;
  std::vector<std::unique_ptr<Variant>> variants_ QUERN_GUARDED_BY(mutex_);
  std::atomic<Variant*> recent_ = nullptr;  ///< the one that was asked for last
};

template <>
struct HandleTraits<Context> {
  using Handle = CUcontext;
  static constexpr HandleKind kKind = HandleKind::context;
};
template <>
struct HandleTraits<ModuleObject> {
  using Handle = CUmodule;
  static constexpr HandleKind kKind = HandleKind::module;
};
template <>
struct HandleTraits<FunctionObject> {
  using Handle = CUfunction;
  static constexpr HandleKind kKind = HandleKind::function;
};
template <>
struct HandleTraits<StreamObject> {
  using Handle = CUstream;
  static constexpr HandleKind kKind = HandleKind::stream;
};
template <>
struct HandleTraits<EventObject> {
  using Handle = CUevent;
  static constexpr HandleKind kKind = HandleKind::event;
};
template <>
struct HandleTraits<LinkObject> {
  using Handle = CUlinkState;
  static constexpr HandleKind kKind = HandleKind::link;
};

/// The context with which an object ends; null: it ends with none.
template <class Object>
const ContextState* owner_of(const Object& object) noexcept {
  if constexpr (requires { object.module(); })
    return object.module().context.get();
  else if constexpr (requires { object.context; })
    return object.context.get();
  else
    return nullptr;
}

}  // namespace quern::cpu::device
