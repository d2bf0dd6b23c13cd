// SPDX-License-Identifier: Apache-2.0
// The state behind the public Session and Module.
#pragma once

#include <chrono>
#include <cstdint>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "base/thread_annotations.hpp"
#include "compile/shared_compiler.hpp"
#include "quern/module.hpp"
#include "quern/session.hpp"
#include "runtime/array/host_memory.hpp"
#include "runtime/context/module.hpp"
#include "session/code_table.hpp"
#include "session/entry_index.hpp"
#include "session/saved_module.hpp"

namespace quern::session {

/// A device, its context and a compiler for it. Thread-safe.
class SessionState {
 public:
  SessionState(Device device, std::shared_ptr<runtime::Context> context,
               std::chrono::nanoseconds launch_timeout = {});

  const Device& device() const noexcept { return device_; }
  const std::shared_ptr<runtime::Context>& context() const noexcept { return context_; }
  /// With the process's compiler, counted as this session's request.
  Expected<compile::Compiler::Image> compile(const abi::KernelRequest& request) const {
    return compiler_->compile(request, {progress(), &counters_});
  }
  CompileStats compile_stats() const noexcept { return counters_.read(); }
  /// The time limit for launches without one of their own; 0: none.
  std::chrono::nanoseconds launch_timeout() const noexcept { return launch_timeout_; }
  base::ProgressSlot* progress() const noexcept { return &context_->progress(); }
  const abi::Target& target() const noexcept { return target_; }
  void register_memory(std::span<const NDArray> arrays) QUERN_EXCLUDES(mutex_);
  void deregister_memory(std::span<const NDArray> arrays) QUERN_EXCLUDES(mutex_);

 private:
  Device device_;
  std::shared_ptr<runtime::Context> context_;
  std::shared_ptr<compile::Compiler> compiler_;
  mutable compile::CompileCounters counters_;
  std::chrono::nanoseconds launch_timeout_;
  abi::Target target_;
  base::Mutex mutex_;
  std::map<const std::byte*, std::unique_ptr<runtime::Registration>> registered_ QUERN_GUARDED_BY(mutex_);
};

/// Sessions on devices that were opened elsewhere: over a driver table of a test's own.
struct SessionAccess {
  static Session open(const Device& device);
  static Session with_context(const Device& device, std::shared_ptr<runtime::Context> context);
};

/// The argument type of quern.h's functions for a session.
std::uint64_t c_handle(Session session);

/// Keeps a context's queue deferred while it lives.
class DeferState {
 public:
  explicit DeferState(std::shared_ptr<runtime::Context> context) : context_(std::move(context)) {
    context_->defer();
  }
  ~DeferState() { context_->resume(); }
  DeferState(const DeferState&) = delete;
  DeferState& operator=(const DeferState&) = delete;

 private:
  std::shared_ptr<runtime::Context> context_;
};

/// The inputs that a module was made of: kept by the module, and by its kernels that compile more.
struct ModuleOrigin {
  abi::KernelRequest request;
  /// False: a saved module, whose request has no text. Only what `code` holds can be loaded.
  bool has_source = true;
  /// Code beside the module's own image: grows with the requested kernels.
  std::shared_ptr<CodeTable> code = std::make_shared<CodeTable>();
  std::vector<SavedModule::Part> linked = {};  ///< the sources of a linked module

  const std::string& file_name() const noexcept { return request.source.file_name; }
  abi::Language language() const noexcept { return request.source.language; }
  /// The diagnostic for code that a saved module does not have.
  Diagnostic not_saved(const std::string& attempted, const std::string& kernel) const;
};

/// A compiled and loaded source, and the kernels that have been requested.
class ModuleState {
 public:
  using Image = std::shared_ptr<const abi::PtxImage>;

  ModuleState(std::shared_ptr<SessionState> session, ModuleOrigin origin, Image image,
              std::shared_ptr<runtime::Module> module);

  Expected<Kernel> kernel(std::string_view name) QUERN_EXCLUDES(mutex_);
  Expected<Kernel> only_kernel();
  const abi::PtxImage& image() const noexcept { return *image_; }
  CUmodule handle() const noexcept { return module_ != nullptr ? module_->handle() : nullptr; }
  Expected<std::shared_ptr<ModuleState>> with_constant(const Constant& constant) const;
  /// Throws Error, DriverError.
  GlobalVariable global(std::string_view name) QUERN_EXCLUDES(mutex_);
  /// The bytes of a saved module.
  Expected<std::string> save() const;
  const std::string& file_name() const noexcept { return origin_->file_name(); }

 private:
  /// A template's instance, which is a module of its own.
  struct Instance {
    std::string kernel;
    Image image;
  };
  Expected<Kernel> make_kernel(const std::string& name);
  Expected<Kernel> python_kernel(const std::string& name);
  Expected<Kernel> instantiate(const std::string& name);
  Expected<Image> instance_image(const std::string& name) const;
  Diagnostics compile_settled() const;
  Kernel bind(const std::shared_ptr<runtime::Module>& module, const Image& image,
              const abi::EntryInfo& entry) const;
  Diagnostic unknown_kernel(const std::string& name) const;

  const std::shared_ptr<SessionState> session_;
  const std::shared_ptr<const ModuleOrigin> origin_;
  const abi::KernelRequest& request_;                     // in origin_
  const std::shared_ptr<const std::string> cuda_source_;  // null for PTX
  const Image image_;
  const EntryIndex entries_;  // of image_
  const std::shared_ptr<runtime::Module> module_;
  base::Mutex mutex_;
  std::map<std::string, Kernel, std::less<>> kernels_ QUERN_GUARDED_BY(mutex_);
  std::vector<Instance> instances_ QUERN_GUARDED_BY(mutex_);
  std::set<std::string> given_variables_ QUERN_GUARDED_BY(mutex_);  ///< that global() returned
};

/// The compiler's request for `source` under `options`. If `context` is given, the call waits for its queued
/// copies into the constants. Throws Error(usage) for invalid constants.
abi::KernelRequest make_request(abi::KernelSource source, const LoadOptions& options,
                                const abi::Target& target, runtime::Context* context);

abi::Language language_of(SourceLanguage language);

/// The diagnostic for a constant of a source in another language than Kernel Python.
Diagnostic cannot_bind(const std::string& name, const std::string& file);

/// Source text without a file: "<string>.cu".
abi::KernelSource text_source(abi::Language language, std::string_view text);

/// The whole file, a regular one of at most so many bytes; "file-missing" if it does not exist.
Expected<std::string> read_present_file(const std::filesystem::path& path, std::uint64_t most_bytes);

/// Throws Error(usage) for the state of a session that was moved from.
const std::shared_ptr<SessionState>& live(const std::shared_ptr<SessionState>& state);

/// The file's text as kernel source, by its suffix. Unknown suffixes are rejected.
Expected<abi::KernelSource> read_kernel_file(const std::filesystem::path& path);

/// Compiles and loads.
Expected<std::shared_ptr<ModuleState>> load_module(const std::shared_ptr<SessionState>& session,
                                                   abi::KernelRequest request);

/// Loads a saved module. Throws DriverError.
Expected<std::shared_ptr<ModuleState>> load_saved(const std::shared_ptr<SessionState>& session,
                                                  SavedModule saved);

/// Links images and loads the result: a module of all their kernels. Throws DriverError.
Expected<std::shared_ptr<ModuleState>> link_parts(const std::shared_ptr<SessionState>& session,
                                                  ModuleOrigin origin);

/// Compiles each source, links them, and loads the result. Throws Error(usage), DriverError.
Expected<std::shared_ptr<ModuleState>> link_sources(const std::shared_ptr<SessionState>& session,
                                                    std::span<const LinkSource> sources);

/// An image that names the kernels of a Kernel Python file and holds no code: they are compiled for argument
/// types.
Expected<std::shared_ptr<const abi::PtxImage>> outline_image(const abi::KernelRequest& request);

/// The constant in the compiler's form; first waits for queued copies of `context` (may be null) into it.
/// Records are rejected.
abi::Constant plain_constant(const Constant& constant, runtime::Context* context);

/// Loads the image into the device: machine code first, if there is any, with PTX as the fall-back. Errors of
/// the device about the code are returned as diagnostics; all other failures are thrown.
Expected<std::shared_ptr<runtime::Module>> load_image(const SessionState& session, const abi::PtxImage& image,
                                                      const abi::KernelSource& source);

/// "it has a, b": the kernels of the image, for messages.
std::string kernels_text(const abi::PtxImage& image);

/// The form of a kernel in a language, for users whose source contains none.
std::string kernel_form(abi::Language language);

}  // namespace quern::session
