/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about launches, modules, linking, symbols of the driver, and memory operations of streams. */
#include <stdlib.h>
#include <string.h>

#include "driver_facts.h"

#define LAUNCH(label, f, gx, gy, gz, bx, by, bz, shared, ...) \
  R(label, cuLaunchKernel, f, gx, gy, gz, bx, by, bz, shared, NULL, __VA_ARGS__)

QUESTION(launch_shapes) {
  start();
  CUfunction f = function("nothing"), bounded = function("bounded"), required = function("required");
  LAUNCH("grid_0", f, 0, 1, 1, 1, 1, 1, 0, NULL, NULL);
  LAUNCH("block_0", f, 1, 1, 1, 0, 1, 1, 0, NULL, NULL);
  LAUNCH("block_1024", f, 1, 1, 1, 1024, 1, 1, 0, NULL, NULL);
  LAUNCH("block_1025", f, 1, 1, 1, 1025, 1, 1, 0, NULL, NULL);
  LAUNCH("block_32_33", f, 1, 1, 1, 32, 33, 1, 0, NULL, NULL);
  LAUNCH("block_z_64", f, 1, 1, 1, 1, 1, 64, 0, NULL, NULL);
  LAUNCH("block_z_65", f, 1, 1, 1, 1, 1, 65, 0, NULL, NULL);
  LAUNCH("grid_y_65535", f, 1, 65535, 1, 1, 1, 1, 0, NULL, NULL);
  LAUNCH("grid_y_65536", f, 1, 65536, 1, 1, 1, 1, 0, NULL, NULL);
  LAUNCH("grid_z_65536", f, 1, 1, 65536, 1, 1, 1, 0, NULL, NULL);
  LAUNCH("grid_x_2^31", f, 1u << 31, 1, 1, 1, 1, 1, 0, NULL, NULL);
  LAUNCH("maxntid_65", bounded, 1, 1, 1, 65, 1, 1, 0, NULL, NULL);
  LAUNCH("maxntid_8_8", bounded, 1, 1, 1, 8, 8, 1, 0, NULL, NULL);
  LAUNCH("maxntid_1_65", bounded, 1, 1, 1, 1, 65, 1, 0, NULL, NULL);
  LAUNCH("reqntid_16", required, 1, 1, 1, 16, 1, 1, 0, NULL, NULL);
  LAUNCH("reqntid_8_4", required, 1, 1, 1, 8, 4, 1, 0, NULL, NULL);
  R("sync", cuCtxSynchronize);
}
QUESTION(launch_shared_memory) {
  start();
  CUfunction f = function("dynamic_shared"), fixed = function("static_shared");
  CUdeviceptr memory = device_memory(16);
  void* parameters[] = {&memory};
  int most = 0;
  MUST(cuDeviceGetAttribute, &most, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, device);
  LAUNCH("48k", f, 1, 1, 1, 1, 1, 1, 48 << 10, parameters, NULL);
  LAUNCH("48k_and_1", f, 1, 1, 1, 1, 1, 1, (48 << 10) + 1, parameters, NULL);
  LAUNCH("static_and_48k", fixed, 1, 1, 1, 1, 1, 1, 48 << 10, parameters, NULL);
  R("attribute_64k", cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, 64 << 10);
  LAUNCH("64k", f, 1, 1, 1, 1, 1, 1, 64 << 10, parameters, NULL);
  LAUNCH("64k_and_1", f, 1, 1, 1, 1, 1, 1, (64 << 10) + 1, parameters, NULL);
  R("attribute_most", cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most);
  R("attribute_most_and_1", cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, most + 1);
  R("attribute_static_most", cuFuncSetAttribute, fixed, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES,
    most);
  R("attribute_negative", cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, -1);
  R("attribute_carveout_101", cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, 101);
  R("attribute_regs", cuFuncSetAttribute, f, CU_FUNC_ATTRIBUTE_NUM_REGS, 8);
  int value = 77;
  R("get_max_dynamic", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES, fixed);
  say("%d; ", value);
  R("get_shared", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES, fixed);
  say("%d; ", value);
  R("get_max_threads", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK,
    function("bounded"));
  say("%d; ", value);
  R("get_carveout", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT, fixed);
  say("%d; ", value);
  R("get_local", cuFuncGetAttribute, &value, CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES, fixed);
  say("%d; ", value);
  R("get_unknown", cuFuncGetAttribute, &value, (CUfunction_attribute)99, fixed);
  R("sync", cuCtxSynchronize);
}
QUESTION(launch_parameters_missing) {
  start();
  CUfunction f = function("nothing");
  void* none[] = {NULL};
  LAUNCH("none_and_null", f, 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
  LAUNCH("none_and_array", f, 1, 1, 1, 1, 1, 1, 0, none, NULL);
  LAUNCH("some_and_null", function("store"), 1, 1, 1, 1, 1, 1, 0, NULL, NULL);
  R("sync", cuCtxSynchronize);
}
QUESTION(launch_parameters_null_element) {
  start();
  void* none[] = {NULL, NULL};
  LAUNCH("null_elements", function("store"), 1, 1, 1, 1, 1, 1, 0, none, NULL);
  R("sync", cuCtxSynchronize);
}
QUESTION(launch_extra) {
  start();
  struct {
    CUdeviceptr at;
    unsigned value, rest;
  } bytes = {device_memory(16), 1, 0};
  CUfunction f = function("store");
  static const size_t kSizes[] = {12, 16, 8, 0, 4096, 11, 13};
  for (size_t i = 0; i < sizeof kSizes / sizeof *kSizes; ++i) {
    size_t size = kSizes[i];
    char big[4096] = {0};
    memcpy(big, &bytes, sizeof bytes);
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, big, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                     CU_LAUNCH_PARAM_END};
    say("%zu:", size);
    LAUNCH("", f, 1, 1, 1, 1, 1, 1, 0, NULL, extra);
  }
  size_t size = 12;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &bytes, CU_LAUNCH_PARAM_BUFFER_SIZE, &size,
                   CU_LAUNCH_PARAM_END};
  void* parameters[] = {&bytes.at, &bytes.value};
  LAUNCH("both", f, 1, 1, 1, 1, 1, 1, 0, parameters, extra);
  void* only_pointer[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &bytes, CU_LAUNCH_PARAM_END};
  LAUNCH("only_pointer", f, 1, 1, 1, 1, 1, 1, 0, NULL, only_pointer);
  void* end[] = {CU_LAUNCH_PARAM_END};
  LAUNCH("only_end", f, 1, 1, 1, 1, 1, 1, 0, NULL, end);
  R("sync", cuCtxSynchronize);
}
QUESTION(launch_cooperative) {
  start();
  CUfunction f = function("nothing");
  R("small", cuLaunchCooperativeKernel, f, 1, 1, 1, 32, 1, 1, 0, NULL, NULL);
  R("large", cuLaunchCooperativeKernel, f, 1 << 20, 1, 1, 1024, 1, 1, 0, NULL, NULL);
  R("sync", cuCtxSynchronize);
}
QUESTION(launch_config) {
  start();
  CUlaunchAttribute attribute = {.id = (CUlaunchAttributeID)99};
  CUlaunchConfig config = {1, 1, 1, 1, 1, 1, 0, NULL, &attribute, 1};
  R("attribute_99", cuLaunchKernelEx, &config, function("nothing"), NULL, NULL);
  attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
  attribute.value.clusterDim.x = 3;
  attribute.value.clusterDim.y = attribute.value.clusterDim.z = 1;
  R("cluster_not_dividing", cuLaunchKernelEx, &config, function("nothing"), NULL, NULL);
  config.numAttrs = 0;
  config.attrs = NULL;
  R("plain", cuLaunchKernelEx, &config, function("nothing"), NULL, NULL);
  R("null_config", cuLaunchKernelEx, NULL, function("nothing"), NULL, NULL);
}
QUESTION(launch_occupancy) {
  start();
  CUfunction f = function("nothing");
  int blocks = 77, grid, block;
  R("block_32", cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, f, 32, 0);
  say("%d; ", blocks);
  R("block_0", cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, f, 0, 0);
  R("block_2048", cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, f, 2048, 0);
  say("%d; ", blocks);
  R("shared_1m", cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, f, 32, 1 << 20);
  say("%d; ", blocks);
  R("null", cuOccupancyMaxActiveBlocksPerMultiprocessor, &blocks, NULL, 32, 0);
  R("flags_4", cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags, &blocks, f, 32, 0, 4);
  R("potential", cuOccupancyMaxPotentialBlockSize, &grid, &block, f, NULL, 0, 0);
  size_t bytes = 77;
  R("available", cuOccupancyAvailableDynamicSMemPerBlock, &bytes, f, 1, 32);
  R("available_many", cuOccupancyAvailableDynamicSMemPerBlock, &bytes, f, 1000, 32);
}

/* Modules. */
#define ENTRY ".visible .entry e() { ret; }\n"
static const struct {
  const char *name, *text;
} kImages[] = {
    {"empty", ""},
    {"blank", " \n"},
    {"garbage", "this is not PTX"},
    {"only_version", ".version 8.0\n"},
    {"no_address_size", ".version 8.0\n.target sm_80\n" ENTRY},
    {"address_size_32", ".version 8.0\n.target sm_80\n.address_size 32\n" ENTRY},
    {"no_entry", ".version 8.0\n.target sm_80\n.address_size 64\n"},
    {"version_9_9", ".version 9.9\n.target sm_80\n.address_size 64\n" ENTRY},
    {"version_10_0", ".version 10.0\n.target sm_80\n.address_size 64\n" ENTRY},
    {"version_0_5", ".version 0.5\n.target sm_80\n.address_size 64\n" ENTRY},
    {"target_sm_100", ".version 8.7\n.target sm_100\n.address_size 64\n" ENTRY},
    {"target_sm_100a", ".version 8.7\n.target sm_100a\n.address_size 64\n" ENTRY},
    {"target_sm_80a", ".version 8.7\n.target sm_80a\n.address_size 64\n" ENTRY},
    {"target_sm_999", ".version 8.7\n.target sm_999\n.address_size 64\n" ENTRY},
    {"target_sm_30", ".version 6.0\n.target sm_30\n.address_size 64\n" ENTRY},
    {"target_sm_20", ".version 6.0\n.target sm_20\n.address_size 64\n" ENTRY},
    {"target_above_version", ".version 6.0\n.target sm_80\n.address_size 64\n" ENTRY},
    {"unknown_instruction",
     ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e() { frobnicate; ret; }\n"},
    {"newer_instruction",
     ".version 6.0\n.target sm_60\n.address_size 64\n.visible .entry e() { .reg .b32 x; mov.u32 x, 1; "
     "redux.sync.add.s32 x, x, -1; ret; }\n"},
    {"undefined_register",
     ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e() { mov.u32 x, 1; ret; }\n"},
    {"extern_function",
     ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func f();\n.visible .entry e() { call f; ret; "
     "}\n"},
    {"extern_function_unused", ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func f();\n" ENTRY},
    {"extern_variable",
     ".version 8.0\n.target sm_80\n.address_size 64\n.extern .global .u32 v;\n.visible .entry e() { .reg "
     ".b32 x; "
     "ld.global.u32 x, [v]; st.global.u32 [v], x; ret; }\n"},
    {"twice", ".version 8.0\n.target sm_80\n.address_size 64\n" ENTRY ENTRY},
    {"no_return", ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e() { }\n"},
    {"shared_100k_static",
     ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e() { .shared .b8 s[102400]; .reg .b32 "
     "x; "
     "ld.volatile.shared.u8 x, [s]; ret; }\n"},
    {"const_70k", ".version 8.0\n.target sm_80\n.address_size 64\n.const .b8 c[70000];\n" ENTRY},
    {"global_1t",
     ".version 8.0\n.target sm_80\n.address_size 64\n.visible .global .b8 g[1099511627776];\n" ENTRY},
    {"parameters_4352",
     ".version 8.0\n.target sm_80\n.address_size 64\n.visible .entry e(.param .b8 p[4352]) { ret; }\n"},
    {"parameters_4352_new",
     ".version 8.1\n.target sm_80\n.address_size 64\n.visible .entry e(.param .b8 p[4352]) { ret; }\n"},
    {"parameters_32764",
     ".version 8.1\n.target sm_80\n.address_size 64\n.visible .entry e(.param .b8 p[32764]) { ret; }\n"},
    {"parameters_32765",
     ".version 8.1\n.target sm_80\n.address_size 64\n.visible .entry e(.param .b8 p[32765]) { ret; }\n"},
    {"windows_lines",
     ".version 8.0\r\n.target sm_80\r\n.address_size 64\r\n.visible .entry e() { ret; }\r\n"},
    {"comment_first", "// text\n/* more */ .version 8.0\n.target sm_80\n.address_size 64\n" ENTRY},
    {"elf_magic", "\177ELF garbage garbage garbage garbage garbage garbage garbage garbage garbage"},
    {"fatbin_magic", "\x50\xed\x55\xba\x01\x00\x10\x00garbage garbage garbage garbage garbage"},
};
static void load_image(size_t i) {
  char errors[4096] = "", info[4096] = "";
  CUjit_option names[] = {CU_JIT_ERROR_LOG_BUFFER, CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, CU_JIT_INFO_LOG_BUFFER,
                          CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES};
  void* values[] = {errors, (void*)sizeof errors, info, (void*)sizeof info};
  char* const padded = calloc(1, 4096);
  strcpy(padded, kImages[i].text);
  if (!strcmp(kImages[i].name, "fatbin_magic")) memcpy(padded, "\x50\xed\x55\xba\x01\x00\x10\x00", 8);
  CUmodule module;
  R(kImages[i].name, cuModuleLoadDataEx, &module, padded, 4, names, values);
  say("errors=%s info=%s; ", *errors ? "some" : "none", *info ? "some" : "none");
}
QUESTION(module_images) {
  start_without_module();
  for (size_t i = 0; i < sizeof kImages / sizeof *kImages - 2; ++i) load_image(i);
}
QUESTION(module_image_elf) { start_without_module(), load_image(sizeof kImages / sizeof *kImages - 2); }
QUESTION(module_image_fatbin) { start_without_module(), load_image(sizeof kImages / sizeof *kImages - 1); }
QUESTION(module_lookups) {
  start();
  CUfunction f;
  CUdeviceptr at;
  size_t size = 77;
  R("missing", cuModuleGetFunction, &f, base, "none");
  R("empty", cuModuleGetFunction, &f, base, "");
  R("func", cuModuleGetFunction, &f, base, "helper");
  R("variable_as_function", cuModuleGetFunction, &f, base, "variable");
  R("null_name", cuModuleGetFunction, &f, base, NULL);
  R("global_missing", cuModuleGetGlobal, &at, &size, base, "none");
  R("global_function", cuModuleGetGlobal, &at, &size, base, "nothing");
  R("global", cuModuleGetGlobal, &at, &size, base, "variable");
  say("%zu; ", size);
  R("constant", cuModuleGetGlobal, &at, &size, base, "constant");
  R("private", cuModuleGetGlobal, &at, &size, base, "text");
  R("only_size", cuModuleGetGlobal, NULL, &size, base, "variable");
  R("none_wanted", cuModuleGetGlobal, NULL, NULL, base, "variable");
  unsigned count = 77;
  R("count", cuModuleGetFunctionCount, &count, base);
  say("%u; ", count);
  CUmodule module;
  R("null_image", cuModuleLoadData, &module, NULL);
  R("missing_file", cuModuleLoad, &module, "/nonexistent.ptx");
  R("null_file", cuModuleLoad, &module, NULL);
  int version = 77;
  MUST(cuModuleGetFunction, &f, base, "nothing");
  R("ptx_version", cuFuncGetAttribute, &version, CU_FUNC_ATTRIBUTE_PTX_VERSION, f);
  say("%d; ", version);
  CUdeviceptr variable_range = 0;
  MUST(cuModuleGetGlobal, &at, &size, base, "variable");
  R("range_of_variable", cuMemGetAddressRange, &variable_range, &size, at);
  unsigned type = 77;
  R("type_of_variable", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
  R("free_variable", cuMemFree, at);
  R("set_past_variable", cuMemsetD8, at, 1, 64);
}
QUESTION(module_link) {
  start_without_module();
  static const char kFirst[] = ".version 8.0\n.target sm_80\n.address_size 64\n.visible .func f() { ret; }\n";
  static const char kUser[] =
      ".version 8.0\n.target sm_80\n.address_size 64\n.extern .func f();\n.visible .entry e() { call f; ret; "
      "}\n";
  CUlinkState link;
  void* image;
  size_t size;
  MUST(cuLinkCreate, 0, NULL, NULL, &link);
  R("complete_empty", cuLinkComplete, link, &image, &size);
  R("destroy", cuLinkDestroy, link);
  MUST(cuLinkCreate, 0, NULL, NULL, &link);
  R("add_garbage", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)"nonsense", 9, "x", 0, NULL, NULL);
  R("add_after_garbage", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)kFirst, sizeof kFirst, "x", 0, NULL,
    NULL);
  R("destroy", cuLinkDestroy, link);
  MUST(cuLinkCreate, 0, NULL, NULL, &link);
  R("add", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)kFirst, sizeof kFirst, "x", 0, NULL, NULL);
  R("add_same", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)kFirst, sizeof kFirst, "y", 0, NULL, NULL);
  R("complete_duplicate", cuLinkComplete, link, &image, &size);
  R("destroy", cuLinkDestroy, link);
  MUST(cuLinkCreate, 0, NULL, NULL, &link);
  R("add_user", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)kUser, sizeof kUser, "x", 0, NULL, NULL);
  R("complete_unresolved", cuLinkComplete, link, &image, &size);
  R("destroy", cuLinkDestroy, link);
  MUST(cuLinkCreate, 0, NULL, NULL, &link);
  R("add_user", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)kUser, sizeof kUser, "x", 0, NULL, NULL);
  R("add_first", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)kFirst, sizeof kFirst, NULL, 0, NULL, NULL);
  R("add_missing_file", cuLinkAddFile, link, CU_JIT_INPUT_PTX, "/nonexistent.ptx", 0, NULL, NULL);
  R("complete", cuLinkComplete, link, &image, &size);
  CUmodule module;
  CUfunction f;
  R("load", cuModuleLoadData, &module, image);
  R("func", cuModuleGetFunction, &f, module, "f");
  R("entry", cuModuleGetFunction, &f, module, "e");
  R("complete_again", cuLinkComplete, link, &image, &size);
  R("add_after_complete", cuLinkAddData, link, CU_JIT_INPUT_PTX, (void*)kFirst, sizeof kFirst, "z", 0, NULL,
    NULL);
  R("destroy", cuLinkDestroy, link);
}
QUESTION(module_jit_options) {
  start_without_module();
  CUmodule module;
  CUjit_option name = (CUjit_option)99;
  void* value = NULL;
  static const char kText[] = ".version 8.0\n.target sm_80\n.address_size 64\n" ENTRY;
  R("option_99", cuModuleLoadDataEx, &module, kText, 1, &name, &value);
  name = CU_JIT_OPTIMIZATION_LEVEL;
  value = (void*)9;
  R("level_9", cuModuleLoadDataEx, &module, kText, 1, &name, &value);
  name = CU_JIT_TARGET;
  value = (void*)10;
  R("target_10", cuModuleLoadDataEx, &module, kText, 1, &name, &value);
  name = CU_JIT_MAX_REGISTERS;
  value = (void*)1;
  R("registers_1", cuModuleLoadDataEx, &module, kText, 1, &name, &value);
  R("null_options", cuModuleLoadDataEx, &module, kText, 1, NULL, NULL);
}

/* Symbols. */
static void look_up(const char* label, const char* name, int version, cuuint64_t flags) {
  void* found = (void*)8;
  CUdriverProcAddressQueryResult status = (CUdriverProcAddressQueryResult)77;
  R(label, cuGetProcAddress, name, &found, version, flags, &status);
  say("status=%d pointer=%s; ", (int)status, found == (void*)8 ? "untouched" : found ? "some" : "null");
}
QUESTION(symbols) {
  void* unused = NULL;
  CUdriverProcAddressQueryResult status;
  R("before_init", cuGetProcAddress, "cuMemAlloc", &unused, 12000, 0, &status);
  start_without_module();
  look_up("good", "cuMemAlloc", 12000, 0);
  look_up("unknown", "cuNothing", 12000, 0);
  look_up("too_old", "cuGraphLaunch", 9000, 0);
  look_up("version_0", "cuMemAlloc", 0, 0);
  look_up("version_1", "cuMemAlloc", 1, 0);
  look_up("version_1999", "cuMemAlloc", 1999, 0);
  look_up("version_2000", "cuMemAlloc", 2000, 0);
  look_up("version_negative", "cuMemAlloc", -1, 0);
  look_up("version_huge", "cuMemAlloc", 99999, 0);
  look_up("version_next", "cuMemAlloc", 14000, 0);
  look_up("name_v2", "cuMemAlloc_v2", 12000, 0);
  look_up("name_ptsz", "cuMemcpyHtoD_v2_ptds", 12000, 0);
  look_up("flags_3", "cuMemAlloc", 12000, 3);
  look_up("flags_4", "cuMemAlloc", 12000, 4);
  look_up("legacy", "cuMemcpyHtoD", 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM);
  look_up("per_thread", "cuMemcpyHtoD", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  look_up("per_thread_of_alloc", "cuMemAlloc", 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM);
  look_up("empty", "", 12000, 0);
  look_up("null", NULL, 12000, 0);
  look_up("itself", "cuGetProcAddress", 12000, 0);
  look_up("removed", "cuCtxAttach", 13000, 0);
  look_up("texture", "cuTexRefCreate", 13000, 0);
  look_up("case", "CUMEMALLOC", 12000, 0);
  void *legacy = NULL, *threads = NULL, *plain = NULL;
  MUST(cuGetProcAddress, "cuMemcpyHtoD", &legacy, 12000, CU_GET_PROC_ADDRESS_LEGACY_STREAM, &status);
  MUST(cuGetProcAddress, "cuMemcpyHtoD", &threads, 12000, CU_GET_PROC_ADDRESS_PER_THREAD_DEFAULT_STREAM,
       &status);
  MUST(cuGetProcAddress, "cuMemcpyHtoD", &plain, 12000, 0, &status);
  say("plain_is_legacy=%d legacy_is_threads=%d; ", plain == legacy, legacy == threads);
  R("no_status", cuGetProcAddress, "cuMemAlloc", &plain, 12000, 0, NULL);
  R("no_pointer", cuGetProcAddress, "cuMemAlloc", NULL, 12000, 0, &status);
}
QUESTION(names_of_errors) {
  const char* text = (const char*)8;
  R("name_12345", cuGetErrorName, (CUresult)12345, &text);
  say("null=%d; ", text == NULL);
  text = (const char*)8;
  R("string_12345", cuGetErrorString, (CUresult)12345, &text);
  say("null=%d; ", text == NULL);
  R("null", cuGetErrorName, CUDA_SUCCESS, NULL);
  int count = 77;
  CUdevice of;
  CUcontext now;
  R("count_before_init", cuDeviceGetCount, &count);
  R("device_before_init", cuDeviceGet, &of, 0);
  R("current_before_init", cuCtxGetCurrent, &now);
  R("init_flags_1", cuInit, 1);
  R("init", cuInit, 0);
  R("device_negative", cuDeviceGet, &of, -1);
  R("device_count", cuDeviceGetCount, &count);
  R("device_past", cuDeviceGet, &of, count);
  R("attribute_0", cuDeviceGetAttribute, &count, (CUdevice_attribute)0, 0);
  R("attribute_9999", cuDeviceGetAttribute, &count, (CUdevice_attribute)9999, 0);
  R("attribute_device_99", cuDeviceGetAttribute, &count, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 99);
  char name[2] = "";
  R("name_2", cuDeviceGetName, name, 2, 0);
  say("terminated=%d; ", name[1] == 0);
  R("name_0", cuDeviceGetName, name, 0, 0);
}
QUESTION(device_attributes) {
  start_without_module();
  for (int attribute = 1; attribute < 150; ++attribute) {
    int value = 77;
    const CUresult result = CU(cuDeviceGetAttribute)(&value, (CUdevice_attribute)attribute, device);
    if (result == CUDA_SUCCESS)
      say("%d:%d ", attribute, value);
    else
      say("%d:error %d ", attribute, result);
  }
}

/* Memory operations of streams. */
static const char* wait_outcome(CUdeviceptr at, unsigned held, unsigned wanted, unsigned flags) {
  CUstream stream = new_stream(CU_STREAM_NON_BLOCKING);
  MUST(cuMemcpyHtoD, at, &held, 4); /* synchronising the context would wait for the waits before this one */
  if (CU(cuStreamWaitValue32)(stream, at, wanted, flags) != CUDA_SUCCESS) return "error";
  const double begin = seconds();
  while (seconds() - begin < 0.15)
    if (CU(cuStreamQuery)(stream) == CUDA_SUCCESS) return "passes";
  return "waits";
}
QUESTION(stream_wait_values) {
  start_without_module();
  static const struct {
    unsigned held, wanted, flags;
  } kCases[] = {{5, 5, 0},          {6, 5, 0},          {4, 5, 0},          {0x80000004, 5, 0},
                {0x80000005, 5, 0}, {0x80000006, 5, 0}, {1, 0xffffffff, 0}, {0xffffffff, 1, 0},
                {5, 5, 1},          {6, 5, 1},          {4, 6, 2},          {1, 6, 2},
                {0, 0, 2},          {5, 5, 3},          {~0u, 0, 3},        {~5u, 5, 3},
                {0, 0, 3}};
  for (size_t i = 0; i < sizeof kCases / sizeof *kCases; ++i) {
    CUdeviceptr at = device_memory(64);
    say("%x,%x,%u:%s ", kCases[i].held, kCases[i].wanted, kCases[i].flags,
        wait_outcome(at, kCases[i].held, kCases[i].wanted, kCases[i].flags));
  }
}
QUESTION(stream_value_errors) {
  start_without_module();
  CUdeviceptr at = device_memory(64);
  CUstream stream = new_stream(0);
  unsigned local = 0;
  R("write", cuStreamWriteValue32, stream, at, 1, 0);
  R("write_odd", cuStreamWriteValue32, stream, at + 1, 1, 0);
  R("write_flags_9", cuStreamWriteValue32, stream, at, 1, 9);
  R("write_no_barrier", cuStreamWriteValue32, stream, at, 1, CU_STREAM_WRITE_VALUE_NO_MEMORY_BARRIER);
  R("write64_by_4", cuStreamWriteValue64, stream, at + 4, 1, 0);
  R("write64", cuStreamWriteValue64, stream, at, 1, 0);
  R("wait_flags_4", cuStreamWaitValue32, stream, at, 1, 4);
  R("wait_flags_flush", cuStreamWaitValue32, stream, at, 1, CU_STREAM_WAIT_VALUE_FLUSH);
  R("write_host", cuStreamWriteValue32, stream, (CUdeviceptr)&local, 1, 0);
  R("write_null", cuStreamWriteValue32, stream, 0, 1, 0);
  R("write_legacy", cuStreamWriteValue32, NULL, at, 1, 0);
  R("write_past", cuStreamWriteValue32, stream, at + (64 << 20), 1, 0);
  CUstreamBatchMemOpParams operations[2] = {{.operation = CU_STREAM_MEM_OP_WRITE_VALUE_32},
                                            {.operation = (CUstreamBatchMemOpType)77}};
  operations[0].writeValue.address = at;
  operations[0].writeValue.value = 1;
  R("batch_0", cuStreamBatchMemOp, stream, 0, operations, 0);
  R("batch_null", cuStreamBatchMemOp, stream, 1, NULL, 0);
  R("batch_1", cuStreamBatchMemOp, stream, 1, operations, 0);
  R("batch_bad", cuStreamBatchMemOp, stream, 2, operations, 0);
  R("batch_flags", cuStreamBatchMemOp, stream, 1, operations, 1);
  operations[0].operation = CU_STREAM_MEM_OP_FLUSH_REMOTE_WRITES;
  R("batch_flush", cuStreamBatchMemOp, stream, 1, operations, 0);
  operations[0].operation = CU_STREAM_MEM_OP_BARRIER;
  R("batch_barrier", cuStreamBatchMemOp, stream, 1, operations, 0);
  R("sync", cuCtxSynchronize);
}
