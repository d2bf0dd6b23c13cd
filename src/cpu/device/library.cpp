// SPDX-License-Identifier: Apache-2.0
#include "cpu/device/library.hpp"

#include <algorithm>

#include "cpu/device/driver.hpp"
#include "cpu/device/function_attributes.hpp"
#include "cpu/device/module_load.hpp"

namespace quern::cpu::device {

KernelObject::KernelObject(std::shared_ptr<LibraryObject> its_library, CUlibrary library_handle,
                           const KernelInfo& its_info, std::uint32_t device_count)
    : library(std::move(its_library)), handle_of_library(library_handle), info(its_info) {
  for (std::uint32_t device = 0; device < device_count; ++device)
    settings.push_back(std::make_unique<FunctionSettings>(its_info));
}

CUmodule LibraryObject::module_in(Driver& driver, const std::shared_ptr<ContextState>& context) {
  const base::LockGuard lock(mutex_);
  require(!unloaded_, CUDA_ERROR_INVALID_HANDLE);
  std::erase_if(modules_, [](const auto& entry) { return entry.second.expired(); });
  if (const auto known = modules_.find(context->id); known != modules_.end()) {
    const std::shared_ptr<ModuleObject> loaded = known->second.lock();
    require_not_ended(*context);  // until then the table of handles keeps the module
    return loaded->handle;
  }
  auto module = std::make_shared<ModuleObject>(ReadPtx{shared, read_ns});
  module->context = context;
  module->settings = settings_;
  module->of_library = true;
  if (managed_ == nullptr) managed_ = place_managed(driver, *context, shared->module);
  module->managed = managed_;
  place_variables(driver, *module);
  module->handle = driver.add(module);
  modules_[context->id] = module;
  return module->handle;
}

CUkernel LibraryObject::kernel_named(Driver& driver, const std::shared_ptr<LibraryObject>& self,
                                     CUlibrary handle, std::string_view name) {
  const auto info = self->shared->kernels_by_name.find(name);
  require(info != self->shared->kernels_by_name.end(), CUDA_ERROR_NOT_FOUND);
  const base::LockGuard lock(self->mutex_);
  require(!self->unloaded_, CUDA_ERROR_INVALID_HANDLE);
  if (const auto known = self->kernels_.find(name); known != self->kernels_.end()) return known->second;
  const CUkernel kernel =
      driver.add(std::make_shared<KernelObject>(self, handle, *info->second, driver.device_count()));
  self->kernels_.emplace(name, kernel);
  return kernel;
}

ModuleVariable LibraryObject::managed(std::string_view name) {
  const base::LockGuard lock(mutex_);
  require(managed_ != nullptr, CUDA_ERROR_NOT_FOUND);
  const auto found = managed_->places.find(name);
  require(found != managed_->places.end(), CUDA_ERROR_NOT_FOUND);
  return found->second;
}

void LibraryObject::unload(Driver& driver) {
  std::map<std::uint64_t, std::weak_ptr<ModuleObject>> modules;
  std::shared_ptr<const ManagedVariables> managed;
  {
    const base::LockGuard lock(mutex_);
    unloaded_ = true;
    modules.swap(modules_);
    managed.swap(managed_);
  }
  for (const auto& [context, loaded] : modules) {
    const std::shared_ptr<ModuleObject> module = loaded.lock();
    if (module == nullptr) continue;
    driver.scheduler().synchronize(*module->context->domain);
    remove_module(driver, *module);  // a finished command may still hold a module of an ended context
  }
  driver.objects().remove_if<KernelObject>(
      [&](const KernelObject& kernel) { return kernel.library.get() == this; });
  if (managed != nullptr && managed->memory != nullptr) driver.memory().remove(*managed->memory);
}

void load_eagerly(Driver& driver) {
  if (!driver.loads_eagerly()) return;
  const auto contexts = driver.contexts().states();
  for (const std::shared_ptr<LibraryObject>& library : driver.objects().all<LibraryObject>())
    for (const std::shared_ptr<ContextState>& context : contexts) {
      if (context->domain->fault() != engine::FaultKind::none) continue;
      try {
        library->module_in(driver, context);
      } catch (const Failure& failure) {  // another thread may have unloaded it, or ended the context
        if (failure.result != CUDA_ERROR_INVALID_HANDLE && !context->ended.load()) throw;
      }
    }
}

std::vector<std::shared_ptr<FunctionObject>> LibraryObject::functions(Driver& driver, std::uint32_t device,
                                                                      std::string_view name) {
  std::vector<std::shared_ptr<FunctionObject>> found;
  const base::LockGuard lock(mutex_);
  for (const auto& [context, loaded] : modules_) {
    const std::shared_ptr<ModuleObject> module = loaded.lock();
    if (module == nullptr || module->context->device != device || module->context->ended.load()) continue;
    CUfunction function = nullptr;
    {
      const base::LockGuard functions_lock(module->mutex);
      if (const auto known = module->functions.find(name); known != module->functions.end())
        function = known->second;
    }
    if (function != nullptr) found.push_back(driver.find(function));
  }
  return found;
}

CUfunction function_named(Driver& driver, CUmodule handle, std::string_view name) {
  const std::shared_ptr<ModuleObject> module = driver.find(handle);
  const auto info = module->shared->kernels_by_name.find(name);
  require(info != module->shared->kernels_by_name.end(), CUDA_ERROR_NOT_FOUND);
  {
    const base::LockGuard lock(module->mutex);
    if (const auto known = module->functions.find(name); known != module->functions.end())
      return known->second;
  }
  const CUfunction function = driver.add(std::make_shared<FunctionObject>(module, *info->second));
  const base::LockGuard lock(module->mutex);
  // Two threads may have asked at once; the first answer is kept, the other handle is never returned.
  return module->functions.emplace(name, function).first->second;
}

CUfunction function_of(Driver& driver, const KernelObject& kernel,
                       const std::shared_ptr<ContextState>& context) {
  const CUfunction function =
      function_named(driver, kernel.library->module_in(driver, context), kernel.info.name);
  driver.find(function)->settings.follow(*kernel.settings[context->device]);
  return function;
}

std::shared_ptr<FunctionObject> find_function(Driver& driver, CUfunction function,
                                              const std::shared_ptr<ContextState>& context) {
  const auto kernel = reinterpret_cast<CUkernel>(function);
  if (!HandleTable<KernelObject>::is_mine(kernel)) return driver.find(function);
  return driver.find(function_of(driver, *driver.find(kernel), context));
}

std::shared_ptr<FunctionObject> find_function(Driver& driver, CUfunction function) {
  const bool is_kernel = HandleTable<KernelObject>::is_mine(reinterpret_cast<CUkernel>(function));
  return find_function(driver, function, is_kernel ? driver.current() : nullptr);
}

void set_kernel_attribute(Driver& driver, const KernelObject& kernel, std::uint32_t device,
                          CUfunction_attribute attribute, int value) {
  write_attribute(facts_of(kernel, device), attribute, value);
  for (const std::shared_ptr<FunctionObject>& function :
       kernel.library->functions(driver, device, kernel.info.name))
    function->settings.follow(*kernel.settings[device]);
}

bool remove_module(Driver& driver, const ModuleObject& module) {
  const auto removed =
      driver.objects().remove_if<ModuleObject>([&](const ModuleObject& each) { return &each == &module; });
  if (removed.empty()) return false;
  driver.objects().remove_if<FunctionObject>(
      [&](const FunctionObject& function) { return &function.module() == &module; });
  if (module.memory != nullptr) driver.memory().remove(*module.memory);
  return true;
}

}  // namespace quern::cpu::device
