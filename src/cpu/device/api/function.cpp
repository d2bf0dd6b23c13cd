// SPDX-License-Identifier: Apache-2.0
// Functions: names, attributes, hints.
#include "cpu/device/cuda_api.hpp"

#include "cpu/device/driver.hpp"
#include "cpu/device/function_attributes.hpp"
#include "cpu/device/library.hpp"

using namespace quern::cpu::device;

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto object = find_function(driver, function);
    require(value != nullptr && attribute >= 0 && attribute < CU_FUNC_ATTRIBUTE_MAX);
    *value = read_attribute(facts_of(*object), attribute);
  });
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    const auto object = find_function(driver, function);
    write_attribute(facts_of(*object), attribute, value);
    object->settings.keep(attribute);
  });
}

CUresult cuFuncSetCacheConfig(CUfunction function, CUfunc_cache config) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    find_function(driver, function);
    require(is_cache_config(config));
  });
}

CUresult cuFuncSetSharedMemConfig(CUfunction function, CUsharedconfig config) {
  return entry([&] {
    Driver& driver = Driver::get();
    driver.current();
    find_function(driver, function);
    require(is_shared_config(config));
  });
}

CUresult cuFuncGetModule(CUmodule* module, CUfunction function) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(module != nullptr && function != nullptr);
    const auto object = find_function(driver, function);
    check_fault(*object->module().context);
    *module = object->module().handle;
  });
}

CUresult cuFuncGetName(const char** name, CUfunction function) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(name != nullptr && function != nullptr);
    *name = find_function(driver, function)->info().name.c_str();
  });
}

CUresult cuFuncGetParamInfo(CUfunction function, std::size_t index, std::size_t* offset, std::size_t* size) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(function != nullptr);
    const auto object = find_function(driver, function);
    require(offset != nullptr && index < object->info().params.size());
    *offset = object->info().params[index].offset;
    if (size != nullptr) *size = object->info().params[index].size;
  });
}

CUresult cuFuncIsLoaded(CUfunctionLoadingState* state, CUfunction function) {
  return entry([&] {
    Driver& driver = Driver::get();
    require(state != nullptr);
    find_function(driver, function);
    *state = CU_FUNCTION_LOADING_STATE_LOADED;  // with its module
  });
}

CUresult cuFuncLoad(CUfunction function) {
  return entry([&] {
    Driver& driver = Driver::get();
    find_function(driver, function);
  });
}
