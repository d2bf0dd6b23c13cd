// SPDX-License-Identifier: Apache-2.0
// Libraries and kernels, which belong to no context.
#include "cpu/device/cuda_api.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "cpu/device/driver.hpp"
#include "cpu/device/function_attributes.hpp"
#include "cpu/device/jit_options.hpp"
#include "cpu/device/library.hpp"
#include "cpu/device/module_load.hpp"

using namespace quern::cpu::device;

namespace {

struct LibraryOptions {
  unsigned count;
  const CUlibraryOption* options;
  void** values;
};

/// `from_file`: the library keeps no memory of the caller's.
void check(const LibraryOptions& given, bool from_file) {
  require(given.count == 0 || (given.options != nullptr && given.values != nullptr));
  for (unsigned i = 0; i < given.count; ++i) {
    require(given.options[i] >= 0 && given.options[i] < CU_LIBRARY_NUM_OPTIONS);
    // Functions and data that host and device share under one address.
    require(given.options[i] != CU_LIBRARY_HOST_UNIVERSAL_FUNCTION_AND_DATA_TABLE, CUDA_ERROR_NOT_SUPPORTED);
    require(given.options[i] != CU_LIBRARY_BINARY_IS_PRESERVED || !from_file);  // a hint
  }
}

CUlibrary load(Driver& driver, const Image& code, const JitOptions& options) {
  auto library = std::make_shared<LibraryObject>(read_image(code, options), options.settings());
  options.write_error_log({});
  options.write_info_log({});
  const CUlibrary handle = driver.add(library);
  try {
    load_eagerly(driver);
  } catch (...) {
    driver.remove(handle)->unload(driver);
    throw;
  }
  return handle;
}

/// Writes what of a variable the caller asks for.
void tell(const ModuleVariable& variable, CUdeviceptr* pointer, std::size_t* bytes) {
  if (pointer != nullptr) *pointer = reinterpret_cast<CUdeviceptr>(variable.address);
  if (bytes != nullptr) *bytes = variable.bytes;
}

}  // namespace

CUresult cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option* jit_options, void** jit_values,
                           unsigned jit_count, CUlibraryOption* options, void** values, unsigned count) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(library != nullptr && code != nullptr);
    check({count, options, values}, false);
    *library = load(driver, {code}, JitOptions(jit_count, jit_options, jit_values));
  });
}

CUresult cuLibraryLoadFromFile(CUlibrary* library, const char* file, CUjit_option* jit_options,
                               void** jit_values, unsigned jit_count, CUlibraryOption* options, void** values,
                               unsigned count) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(library != nullptr && file != nullptr);
    check({count, options, values}, true);
    const std::string content = read_file(file);
    *library = load(driver, image_of_file(content), JitOptions(jit_count, jit_options, jit_values));
  });
}

CUresult cuLibraryUnload(CUlibrary library) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.remove(library)->unload(driver);
  });
}

CUresult cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(kernel != nullptr && name != nullptr);
    *kernel = LibraryObject::kernel_named(driver, driver.find(library), library, name);
  });
}

CUresult cuLibraryGetKernelCount(unsigned* count, CUlibrary library) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(count != nullptr);
    *count = static_cast<unsigned>(driver.find(library)->shared->kernels.size());
  });
}

CUresult cuLibraryEnumerateKernels(CUkernel* kernels, unsigned count, CUlibrary library) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(library);
    require(kernels != nullptr);
    const auto& infos = object->shared->kernels;
    for (std::size_t i = 0; i < std::min<std::size_t>(count, infos.size()); ++i)
      kernels[i] = LibraryObject::kernel_named(driver, object, library, infos[i].name);
  });
}

CUresult cuLibraryGetModule(CUmodule* module, CUlibrary library) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(module != nullptr);
    *module = driver.find(library)->module_in(driver, context);
  });
}

CUresult cuLibraryGetGlobal(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary library, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto context = driver.current();
    require(name != nullptr && (pointer != nullptr || bytes != nullptr));
    const auto module = driver.find(driver.find(library)->module_in(driver, context));
    const auto found = module->variables.find(std::string_view(name));
    require(found != module->variables.end(), CUDA_ERROR_NOT_FOUND);
    tell(found->second, pointer, bytes);
  });
}

CUresult cuLibraryGetManaged(CUdeviceptr* pointer, std::size_t* bytes, CUlibrary library, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(name != nullptr && (pointer != nullptr || bytes != nullptr));
    tell(driver.find(library)->managed(name), pointer, bytes);
  });
}

CUresult cuLibraryGetUnifiedFunction(void** pointer, CUlibrary library, const char* name) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(pointer != nullptr && name != nullptr);
    driver.find(library);
    fail(CUDA_ERROR_NOT_FOUND);  // CU_DEVICE_ATTRIBUTE_UNIFIED_FUNCTION_POINTERS is 0
  });
}

CUresult cuKernelGetFunction(CUfunction* function, CUkernel kernel) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(function != nullptr);
    *function = function_of(driver, *driver.find(kernel), driver.current());
  });
}

CUresult cuKernelGetLibrary(CUlibrary* library, CUkernel kernel) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(library != nullptr);
    *library = driver.find(kernel)->handle_of_library;
  });
}

CUresult cuKernelGetAttribute(int* value, CUfunction_attribute attribute, CUkernel kernel, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(kernel);
    const std::uint32_t ordinal = driver.device(device);
    require(value != nullptr);
    *value = read_attribute(facts_of(*object, ordinal), attribute);
  });
}

CUresult cuKernelSetAttribute(CUfunction_attribute attribute, int value, CUkernel kernel, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    const auto object = driver.find(kernel);
    set_kernel_attribute(driver, *object, driver.device(device), attribute, value);
  });
}

CUresult cuKernelSetCacheConfig(CUkernel kernel, CUfunc_cache config, CUdevice device) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.find(kernel);
    driver.device(device);
    require(is_cache_config(config));
  });
}

CUresult cuKernelGetName(const char** name, CUkernel kernel) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(name != nullptr && kernel != nullptr);
    *name = driver.find(kernel)->info.name.c_str();
  });
}

CUresult cuKernelGetParamInfo(CUkernel kernel, std::size_t index, std::size_t* offset, std::size_t* size) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(kernel != nullptr);
    const auto object = driver.find(kernel);
    require(offset != nullptr && index < object->info.params.size());
    *offset = object->info.params[index].offset;
    if (size != nullptr) *size = object->info.params[index].size;
  });
}
