// SPDX-License-Identifier: Apache-2.0
// Libraries and their kernels: they belong to no context. A library is loaded into a context, as a module of
// it, when the context first needs it, or earlier if CUDA_MODULE_LOADING says so (cuda.h, cuLibraryLoadData).
#pragma once

#include <cuda.h>

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_annotations.hpp"
#include "cpu/device/handles.hpp"
#include "cpu/device/objects.hpp"

namespace quern::cpu::device {

class Driver;

/// Thread-safe.
class LibraryObject {
 public:
  LibraryObject(ReadPtx read, const ModuleSettings& settings)
      : shared(std::move(read.ptx)), read_ns(read.ns), settings_(settings) {}

  const std::shared_ptr<const SharedPtx> shared;
  const std::uint64_t read_ns;  ///< ReadPtx::ns
  const ModuleSettings& settings() const noexcept { return settings_; }

  /// Its module in `context`, loaded there if it is not. Throws Failure.
  CUmodule module_in(Driver& driver, const std::shared_ptr<ContextState>& context) QUERN_EXCLUDES(mutex_);
  /// The handle of its kernel. Throws Failure(CUDA_ERROR_NOT_FOUND). `self` is this object.
  static CUkernel kernel_named(Driver& driver, const std::shared_ptr<LibraryObject>& self, CUlibrary handle,
                               std::string_view name);
  /// A managed variable: its place is the same in all contexts. Throws Failure(CUDA_ERROR_NOT_FOUND) if there
  /// is none, also before the library is loaded into any context.
  ModuleVariable managed(std::string_view name) QUERN_EXCLUDES(mutex_);
  /// Waits for the work of the contexts that have the library loaded, and unloads it from them.
  void unload(Driver& driver) QUERN_EXCLUDES(mutex_);
  /// The functions that kernel `name` has in contexts of `device` until now.
  std::vector<std::shared_ptr<FunctionObject>> functions(Driver& driver, std::uint32_t device,
                                                         std::string_view name) QUERN_EXCLUDES(mutex_);

 private:
  const ModuleSettings settings_;
  /// Held while the library is loaded into a context.
  base::Mutex mutex_;
  /// By the context's id. A module ends with its context.
  std::map<std::uint64_t, std::weak_ptr<ModuleObject>> modules_ QUERN_GUARDED_BY(mutex_);
  std::map<std::string, CUkernel, std::less<>> kernels_ QUERN_GUARDED_BY(mutex_);
  std::shared_ptr<const ManagedVariables> managed_ QUERN_GUARDED_BY(mutex_);
  bool unloaded_ QUERN_GUARDED_BY(mutex_) = false;
};

/// A kernel of a library; in each context it is another function. Thread-safe.
struct KernelObject {
  KernelObject(std::shared_ptr<LibraryObject> its_library, CUlibrary library_handle,
               const KernelInfo& its_info, std::uint32_t device_count);

  const std::shared_ptr<LibraryObject> library;
  const CUlibrary handle_of_library;
  const KernelInfo& info;
  std::vector<std::unique_ptr<FunctionSettings>> settings;  ///< by device
};

template <>
struct HandleTraits<LibraryObject> {
  using Handle = CUlibrary;
  static constexpr HandleKind kKind = HandleKind::library;
};
template <>
struct HandleTraits<KernelObject> {
  using Handle = CUkernel;
  static constexpr HandleKind kKind = HandleKind::kernel;
};

/// The function of that name of a module: one handle however often it is asked for. Throws Failure.
CUfunction function_named(Driver& driver, CUmodule module, std::string_view name);

/// The function of a kernel in that context. Throws Failure.
CUfunction function_of(Driver& driver, const KernelObject& kernel,
                       const std::shared_ptr<ContextState>& context);

/// A function, or the one that a CUkernel has in `context`: clients pass CUkernel handles wherever a
/// CUfunction is expected (cuda.h, cuLaunchKernel). Throws Failure.
std::shared_ptr<FunctionObject> find_function(Driver& driver, CUfunction function,
                                              const std::shared_ptr<ContextState>& context);
/// The same in the current context, which a CUfunction does not need.
std::shared_ptr<FunctionObject> find_function(Driver& driver, CUfunction function);

/// Sets an attribute of a kernel for a device, also in its functions that exist and did not get their own
/// value. Throws Failure.
void set_kernel_attribute(Driver& driver, const KernelObject& kernel, std::uint32_t device,
                          CUfunction_attribute attribute, int value);

/// Loads all libraries into all contexts if loading is eager: to be called after a library or a context is
/// made. Throws Failure.
void load_eagerly(Driver& driver);

/// Takes a module out of its context with its functions and its memory. Work that uses it has ended.
/// False: it was taken out before, by another thread or with its context.
bool remove_module(Driver& driver, const ModuleObject& module);

}  // namespace quern::cpu::device
