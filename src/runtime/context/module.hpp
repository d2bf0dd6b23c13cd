// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "runtime/context/context.hpp"

namespace quern::runtime {

/// A kernel of a module, valid as long as the module.
struct Function {
  CUfunction handle = nullptr;
  int registers = 0;
  std::size_t shared_bytes = 0;
  std::size_t local_bytes = 0;
  std::size_t constant_bytes = 0;
  std::uint32_t max_threads_per_block = 0;
};

/// KernelInfo::load_ms and machine_code_ms.
struct CompileTime {
  std::chrono::nanoseconds load{0};
  std::chrono::nanoseconds machine_code{0};
};

/// A parameter in the kernel's parameter buffer, bytes.
struct ParameterRange {
  std::size_t offset = 0;
  std::size_t size = 0;
};

/// A variable of a module in device memory.
struct ModuleVariable {
  CUdeviceptr address = 0;
  std::size_t size_bytes = 0;
};

/// Code loaded into a context; the last reference schedules its unloading. Thread-safe.
class Module {
 public:
  Module(std::shared_ptr<Context> context, CUmodule handle, std::shared_ptr<const Resource> owner,
         std::chrono::nanoseconds launch_timeout, std::chrono::nanoseconds load_time)
      : context_(std::move(context)),
        handle_(handle),
        owner_(std::move(owner)),
        launch_timeout_(launch_timeout),
        load_time_(load_time) {}

  const std::shared_ptr<Context>& context() const noexcept { return context_; }
  CUmodule handle() const noexcept { return handle_; }
  /// The time limit for launches without one of their own; 0: none.
  std::chrono::nanoseconds launch_timeout() const noexcept { return launch_timeout_; }
  /// The time for which the driver compiled, so far, for this module and this kernel of it.
  CompileTime compile_time(const Function& function) const;
  /// Throws DriverError, for an unknown name too.
  Function function(const std::string& lowered_name) const;
  /// The parameter at `index`; nothing past the last one, or if the driver does not support the query.
  std::optional<ParameterRange> parameter(const Function& function, std::size_t index) const;
  /// Nothing if the module has no variable of that name.
  std::optional<ModuleVariable> variable(const char* name) const;

 private:
  std::shared_ptr<Context> context_;
  CUmodule handle_;
  std::shared_ptr<const Resource> owner_;
  std::chrono::nanoseconds launch_timeout_;
  std::chrono::nanoseconds load_time_;
};

/// The result of cuModuleLoadDataEx for an image: a module, or the error code and the text of the error log.
struct LoadOutcome {
  std::shared_ptr<Module> module;
  CUresult result = CUDA_SUCCESS;
  std::string log;
};

/// PTX to link, and the name that messages give it.
struct LinkText {
  const char* name = nullptr;
  const std::string* ptx = nullptr;
};
/// An image for load_image(), or the driver's error and the text of the error log.
struct LinkOutcome {
  std::vector<char> image;
  CUresult result = CUDA_SUCCESS;
  std::string log;
};
/// Links several PTX texts into one image. Throws DriverError for failures that are not errors in the texts.
LinkOutcome link_texts(const std::shared_ptr<Context>& context, const std::vector<LinkText>& texts);

/// Loads PTX text or machine code. PTX text in `image` ends with a NUL.
LoadOutcome load_image(const std::shared_ptr<Context>& context, const void* image,
                       std::chrono::nanoseconds launch_timeout = {});

}  // namespace quern::runtime
