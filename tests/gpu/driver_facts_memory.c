/* SPDX-License-Identifier: Apache-2.0 */
/* Questions about memory: of the host, of the device, pools, and virtual addresses. */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "driver_facts.h"

static void describe_host_memory(void* memory) {
  CUdeviceptr mapped = 0;
  unsigned flags = 77;
  R("get_device_pointer", cuMemHostGetDevicePointer, &mapped, memory, 0);
  say("same_address=%d; ", mapped == (CUdeviceptr)memory);
  R("get_flags", cuMemHostGetFlags, &flags, memory);
  say("flags=%u; ", flags);
  unsigned type = 77, managed = 77, is_mapped = 77;
  CUdeviceptr of_device = 0;
  void* of_host = NULL;
  int ordinal = 77;
  R("type", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)memory);
  R("managed", cuPointerGetAttribute, &managed, CU_POINTER_ATTRIBUTE_IS_MANAGED, (CUdeviceptr)memory);
  R("mapped", cuPointerGetAttribute, &is_mapped, CU_POINTER_ATTRIBUTE_MAPPED, (CUdeviceptr)memory);
  R("device_pointer", cuPointerGetAttribute, &of_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER,
    (CUdeviceptr)memory);
  R("host_pointer", cuPointerGetAttribute, &of_host, CU_POINTER_ATTRIBUTE_HOST_POINTER, (CUdeviceptr)memory);
  R("ordinal", cuPointerGetAttribute, &ordinal, CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, (CUdeviceptr)memory);
  say("type=%u managed=%u mapped=%u device_same=%d host_same=%d ordinal=%d; ", type, managed,
      is_mapped & 0xff, of_device == (CUdeviceptr)memory, of_host == memory, ordinal);
  CUdeviceptr start_of = 0;
  size_t size = 0;
  R("address_range", cuMemGetAddressRange, &start_of, &size, (CUdeviceptr)memory + 16);
  say("start_same=%d size=%zu; ", start_of == (CUdeviceptr)memory, size);
}

static void describe_registered(unsigned flags) {
  start_without_module();
  void* const memory = aligned_alloc(4096, 8192);
  R("register", cuMemHostRegister, memory, 8192, flags);
  describe_host_memory(memory);
  R("again", cuMemHostRegister, memory, 8192, flags);
  R("part", cuMemHostRegister, (char*)memory + 4096, 4096, flags);
  R("unregister_inside", cuMemHostUnregister, (char*)memory + 4096);
  R("free", cuMemFreeHost, memory);
  R("unregister", cuMemHostUnregister, memory);
  R("unregister_again", cuMemHostUnregister, memory);
}

QUESTION(host_registered_0) { describe_registered(0); }
QUESTION(host_registered_portable) { describe_registered(CU_MEMHOSTREGISTER_PORTABLE); }
QUESTION(host_registered_devicemap) { describe_registered(CU_MEMHOSTREGISTER_DEVICEMAP); }
QUESTION(host_registered_read_only) { describe_registered(CU_MEMHOSTREGISTER_READ_ONLY); }
QUESTION(host_registered_iomemory) { describe_registered(CU_MEMHOSTREGISTER_IOMEMORY); }
QUESTION(host_registered_unaligned) {
  start_without_module();
  char* const memory = aligned_alloc(4096, 16384);
  R("register", cuMemHostRegister, memory + 100, 5000, 0);
  CUdeviceptr mapped = 0;
  R("device_pointer", cuMemHostGetDevicePointer, &mapped, memory + 100, 0);
  R("device_pointer_before", cuMemHostGetDevicePointer, &mapped, memory, 0);
  R("device_pointer_after", cuMemHostGetDevicePointer, &mapped, memory + 5101, 0);
  R("same_page", cuMemHostRegister, memory + 5200, 100, 0);
  R("unregister", cuMemHostUnregister, memory + 100);
}
QUESTION(host_alloc_host) {
  start_without_module();
  void* memory;
  MUST(cuMemAllocHost, &memory, 4096);
  describe_host_memory(memory);
  R("unregister", cuMemHostUnregister, memory);
  R("free_inside", cuMemFreeHost, (char*)memory + 16);
  R("free", cuMemFreeHost, memory);
  R("null", cuMemFreeHost, NULL);
  R("zero", cuMemAllocHost, &memory, 0);
}
static void describe_allocated(unsigned flags) {
  start_without_module();
  void* memory;
  MUST(cuMemHostAlloc, &memory, 5000, flags);
  describe_host_memory(memory);
}
QUESTION(host_alloc_0) { describe_allocated(0); }
QUESTION(host_alloc_portable) { describe_allocated(CU_MEMHOSTALLOC_PORTABLE); }
QUESTION(host_alloc_devicemap) { describe_allocated(CU_MEMHOSTALLOC_DEVICEMAP); }
QUESTION(host_alloc_write_combined) { describe_allocated(CU_MEMHOSTALLOC_WRITECOMBINED); }
QUESTION(host_alloc_bad) {
  start_without_module();
  void* memory;
  R("flags", cuMemHostAlloc, &memory, 4096, 64);
  R("zero", cuMemHostAlloc, &memory, 0, 0);
  R("huge", cuMemHostAlloc, &memory, (size_t)1 << 60, 0);
  R("register_null", cuMemHostRegister, NULL, 4096, 0);
  R("register_zero", cuMemHostRegister, &memory, 0, 0);
  R("register_flags", cuMemHostRegister, &memory, 8, 64);
  void* const unmapped = (void*)0x10000;
  R("register_unmapped", cuMemHostRegister, unmapped, 4096, 0);
  int local = 0;
  CUdeviceptr mapped;
  R("pointer_of_unknown", cuMemHostGetDevicePointer, &mapped, &local, 0);
  unsigned flags;
  R("flags_of_unknown", cuMemHostGetFlags, &flags, &local);
  R("pointer_with_flags", cuMemHostGetDevicePointer, &mapped, &local, 1);
}
QUESTION(host_after_context) {
  start_without_module();
  CUcontext other = new_context();
  MUST(cuCtxPushCurrent, other);
  void *memory, *const registered = aligned_alloc(4096, 4096);
  MUST(cuMemHostAlloc, &memory, 4096, CU_MEMHOSTALLOC_PORTABLE);
  MUST(cuMemHostRegister, registered, 4096, CU_MEMHOSTREGISTER_PORTABLE);
  R("destroy", cuCtxDestroy, other);
  CUcontext now = NULL;
  R("current", cuCtxGetCurrent, &now);
  say("current_is=%s; ", now == primary ? "primary" : now == other ? "destroyed" : now ? "other" : "null");
  MUST(cuCtxSetCurrent, primary);
  R("free", cuMemFreeHost, memory);
  R("unregister", cuMemHostUnregister, registered);
  MUST(cuMemHostRegister, registered, 4096, 0);
  say("registered again; ");
}

QUESTION(pointer_unknown) {
  start_without_module();
  int local = 0;
  unsigned type = 77, mapped = 77, ordinal = 77, managed = 77;
  CUpointer_attribute names[] = {CU_POINTER_ATTRIBUTE_MEMORY_TYPE, CU_POINTER_ATTRIBUTE_MAPPED,
                                 CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL, CU_POINTER_ATTRIBUTE_IS_MANAGED};
  void* values[] = {&type, &mapped, &ordinal, &managed};
  R("get_attributes", cuPointerGetAttributes, 4, names, values, (CUdeviceptr)&local);
  say("type=%u mapped=%u ordinal=%d managed=%u; ", type, mapped & 0xff, (int)ordinal, managed & 0xff);
  R("get_attribute", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, (CUdeviceptr)&local);
  R("null", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, 0);
  R("null_attributes", cuPointerGetAttributes, 4, names, values, 0);
  say("type=%u; ", type);
  R("unknown_attribute", cuPointerGetAttribute, &type, (CUpointer_attribute)99, (CUdeviceptr)&local);
  CUdeviceptr memory = device_memory(100);
  R("one_past_device", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory + 100);
  R("unknown_attribute_device", cuPointerGetAttribute, &type, (CUpointer_attribute)99, memory);
  R("freed", cuMemFree, memory);
  R("of_freed", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
}
QUESTION(pointer_device) {
  start_without_module();
  CUdeviceptr memory = device_memory(1000);
  static const struct {
    const char* name;
    CUpointer_attribute attribute;
  } kAttributes[] = {{"type", CU_POINTER_ATTRIBUTE_MEMORY_TYPE},
                     {"managed", CU_POINTER_ATTRIBUTE_IS_MANAGED},
                     {"mapped", CU_POINTER_ATTRIBUTE_MAPPED},
                     {"sync_memops", CU_POINTER_ATTRIBUTE_SYNC_MEMOPS},
                     {"ipc_capable", CU_POINTER_ATTRIBUTE_IS_LEGACY_CUDA_IPC_CAPABLE},
                     {"handle_types", CU_POINTER_ATTRIBUTE_ALLOWED_HANDLE_TYPES},
                     {"gpu_direct", CU_POINTER_ATTRIBUTE_IS_GPU_DIRECT_RDMA_CAPABLE},
                     {"access_flags", CU_POINTER_ATTRIBUTE_ACCESS_FLAGS},
                     {"range_size", CU_POINTER_ATTRIBUTE_RANGE_SIZE},
                     {"mempool_null", CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE},
                     {"ordinal", CU_POINTER_ATTRIBUTE_DEVICE_ORDINAL}};
  for (size_t i = 0; i < sizeof kAttributes / sizeof *kAttributes; ++i) {
    unsigned long long value = 0;
    R(kAttributes[i].name, cuPointerGetAttribute, &value, kAttributes[i].attribute, memory);
    say("%llu; ", kAttributes[i].attribute == CU_POINTER_ATTRIBUTE_MEMPOOL_HANDLE ? value == 0 : value);
  }
  void* host = NULL;
  R("host_pointer", cuPointerGetAttribute, &host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory);
  say("null=%d; ", host == NULL);
  CUdeviceptr of_device = 0;
  R("device_pointer", cuPointerGetAttribute, &of_device, CU_POINTER_ATTRIBUTE_DEVICE_POINTER, memory + 8);
  say("offset=%d; ", (int)(of_device - memory));
}
QUESTION(address_range) {
  start_without_module();
  CUdeviceptr memory = device_memory(1000), start_of = 0;
  size_t size = 0;
  R("inside", cuMemGetAddressRange, &start_of, &size, memory + 999);
  say("offset=%d size=%zu; ", (int)(memory - start_of), size);
  R("past", cuMemGetAddressRange, &start_of, &size, memory + 1000);
  R("no_size", cuMemGetAddressRange, &start_of, NULL, memory);
  R("no_outputs", cuMemGetAddressRange, NULL, NULL, memory);
  int local = 0;
  R("host", cuMemGetAddressRange, &start_of, &size, (CUdeviceptr)&local);
  R("null", cuMemGetAddressRange, &start_of, &size, 0);
  R("free", cuMemFree, memory);
  R("freed", cuMemGetAddressRange, &start_of, &size, memory);
}
QUESTION(memory_alloc) {
  start_without_module();
  CUdeviceptr memory, all[4];
  R("zero", cuMemAlloc, &memory, 0);
  R("null", cuMemAlloc, NULL, 16);
  R("huge", cuMemAlloc, &memory, (size_t)1 << 50);
  R("all_ones", cuMemAlloc, &memory, ~(size_t)0);
  size_t alignment = (size_t)1 << 20;
  for (int i = 0; i < 4; ++i) {
    MUST(cuMemAlloc, &all[i], (size_t)(i + 1) * 3);
    while (all[i] % alignment) alignment /= 2;
  }
  say("at_least_256=%d; ", alignment >= 256);
  R("free_null", cuMemFree, 0);
  R("free_inside", cuMemFree, all[0] + 1);
  R("free", cuMemFree, all[0]);
  R("free_again", cuMemFree, all[0]);
  int local = 0;
  R("free_host", cuMemFree, (CUdeviceptr)&local);
  void* host;
  MUST(cuMemAllocHost, &host, 64);
  R("free_pinned", cuMemFree, (CUdeviceptr)host);
  R("free_host_of_device", cuMemFreeHost, (void*)all[1]);
}
QUESTION(memory_pitch) {
  start_without_module();
  static const size_t kWidths[] = {1, 4, 100, 128, 256, 257, 511, 512, 513, 1000, 1024, 4097, 100000};
  for (size_t i = 0; i < sizeof kWidths / sizeof *kWidths; ++i) {
    CUdeviceptr memory;
    size_t pitch = 0;
    const CUresult result = CU(cuMemAllocPitch)(&memory, &pitch, kWidths[i], 3, 4);
    say("%zu:%d:%zu; ", kWidths[i], result, pitch);
  }
  CUdeviceptr memory;
  size_t pitch;
  R("element_3", cuMemAllocPitch, &memory, &pitch, 100, 3, 3);
  R("element_16", cuMemAllocPitch, &memory, &pitch, 100, 3, 16);
  R("element_32", cuMemAllocPitch, &memory, &pitch, 100, 3, 32);
  R("height_0", cuMemAllocPitch, &memory, &pitch, 100, 0, 4);
  R("width_0", cuMemAllocPitch, &memory, &pitch, 0, 3, 4);
}
QUESTION(memory_set) {
  start_without_module();
  CUdeviceptr memory = device_memory(1000);
  R("d32_odd", cuMemsetD32, memory + 1, 1, 1);
  R("d32_by_2", cuMemsetD32, memory + 2, 1, 1);
  R("d16_odd", cuMemsetD16, memory + 1, 1, 1);
  R("zero", cuMemsetD8, memory, 1, 0);
  R("zero_null", cuMemsetD8, 0, 1, 0);
  R("zero_bad", cuMemsetD8, 0x1234, 1, 0);
  R("past_1", cuMemsetD8, memory, 1, 1001);
  R("past_1_mib", cuMemsetD8, memory, 1, 1 << 20);
  R("past_64_mib", cuMemsetD8, memory, 1, 64 << 20);
  R("null", cuMemsetD8, 0, 1, 8);
  R("sync", cuCtxSynchronize);
  R("pitch_small", cuMemsetD2D8, memory, 4, 1, 8, 4);
  R("pitch_odd", cuMemsetD2D32, memory, 6, 1, 1, 4);
  R("height_0", cuMemsetD2D8, memory, 8, 1, 4, 0);
  R("width_0", cuMemsetD2D8, memory, 8, 1, 0, 4);
  R("pitch_0_height_1", cuMemsetD2D8, memory, 0, 1, 4, 1);
  int* const host = malloc(64);
  R("host", cuMemsetD8, (CUdeviceptr)host, 1, 8);
  R("sync", cuCtxSynchronize);
}
QUESTION(memory_copy) {
  start_without_module();
  CUdeviceptr memory = device_memory(1000), other = device_memory(1000);
  char host[2000] = {0};
  R("zero", cuMemcpyDtoH, host, memory, 0);
  R("zero_null", cuMemcpyDtoH, NULL, 0, 0);
  R("zero_bad", cuMemcpyHtoD, 0x1234, host, 0);
  R("zero_of_past", cuMemcpyDtoH, host, memory + 1000, 0);
  R("null_host", cuMemcpyDtoH, NULL, memory, 4);
  R("null_device", cuMemcpyHtoD, 0, host, 4);
  R("bad_device", cuMemcpyHtoD, 0x1234, host, 4);
  R("host_as_device", cuMemcpyHtoD, (CUdeviceptr)host, host + 100, 4);
  R("past_1", cuMemcpyDtoH, host, memory, 1001);
  R("overlap_dd", cuMemcpyDtoD, memory, memory + 4, 500);
  R("same_dd", cuMemcpyDtoD, memory, memory, 500);
  R("plain_hh", cuMemcpy, (CUdeviceptr)host, (CUdeviceptr)(host + 1000), 10);
  R("plain_hd", cuMemcpy, memory, (CUdeviceptr)host, 10);
  R("plain_overlap_hh", cuMemcpy, (CUdeviceptr)host, (CUdeviceptr)(host + 4), 10);
  R("peer_same", cuMemcpyPeer, memory, primary, other, primary, 100);
  R("peer_null", cuMemcpyPeer, memory, NULL, other, primary, 100);
  R("dh_as_dd", cuMemcpyDtoD, memory, (CUdeviceptr)host, 100);
  R("device_as_host", cuMemcpyDtoH, (void*)other, memory, 100);
  R("freed", cuMemFree, other);
  R("of_freed", cuMemcpyDtoH, host, other, 4);
  R("async_of_freed", cuMemcpyDtoHAsync, host, other, 4, NULL);
  R("sync", cuCtxSynchronize);
}
QUESTION(memory_copy_far_past) {
  start_without_module();
  CUdeviceptr memory = device_memory(1000);
  char* const host = calloc(1, 64 << 20);
  R("past_4_mib", cuMemcpyDtoH, host, memory, 4 << 20);
  R("past_64_mib", cuMemcpyDtoH, host, memory, 64 << 20);
  R("async_past_64_mib", cuMemcpyDtoHAsync, host, memory, 64 << 20, NULL);
  R("sync", cuCtxSynchronize);
}
QUESTION(memory_copy_2d) {
  start_without_module();
  CUdeviceptr memory = device_memory(4096);
  char host[4096] = {0};
  CUDA_MEMCPY2D copy = {.srcMemoryType = CU_MEMORYTYPE_HOST,
                        .srcHost = host,
                        .srcPitch = 64,
                        .dstMemoryType = CU_MEMORYTYPE_DEVICE,
                        .dstDevice = memory,
                        .dstPitch = 64,
                        .WidthInBytes = 32,
                        .Height = 4};
  R("good", cuMemcpy2D, &copy);
  copy.dstPitch = 16;
  R("pitch_small", cuMemcpy2D, &copy);
  R("pitch_small_unaligned", cuMemcpy2DUnaligned, &copy);
  copy.dstPitch = 33;
  R("pitch_33", cuMemcpy2D, &copy);
  copy.dstPitch = 0;
  R("pitch_0", cuMemcpy2D, &copy);
  copy.dstPitch = (size_t)1 << 40;
  R("pitch_huge", cuMemcpy2D, &copy);
  copy.dstPitch = 64;
  copy.Height = 0;
  R("height_0", cuMemcpy2D, &copy);
  copy.Height = 4;
  copy.WidthInBytes = 0;
  R("width_0", cuMemcpy2D, &copy);
  copy.WidthInBytes = 32;
  copy.dstXInBytes = 40;
  R("x_and_width_past_pitch", cuMemcpy2D, &copy);
  copy.dstXInBytes = 0;
  copy.Height = 100;
  R("past_end", cuMemcpy2D, &copy);
  copy.Height = 4;
  copy.dstMemoryType = (CUmemorytype)9;
  R("type_9", cuMemcpy2D, &copy);
  R("null", cuMemcpy2D, NULL);
}
QUESTION(memory_managed) {
  start_without_module();
  CUdeviceptr memory = 0;
  R("flags_0", cuMemAllocManaged, &memory, 4096, 0);
  R("flags_3", cuMemAllocManaged, &memory, 4096, 3);
  R("zero", cuMemAllocManaged, &memory, 0, CU_MEM_ATTACH_GLOBAL);
  R("global", cuMemAllocManaged, &memory, 4096, CU_MEM_ATTACH_GLOBAL);
  unsigned type = 77;
  R("type", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, memory);
  say("type=%u; ", type);
  void* host = NULL;
  R("host_pointer", cuPointerGetAttribute, &host, CU_POINTER_ATTRIBUTE_HOST_POINTER, memory);
  say("same=%d; ", host == (void*)memory);
  unsigned flags = 77;
  R("host_flags", cuMemHostGetFlags, &flags, (void*)memory);
  R("register", cuMemHostRegister, (void*)memory, 4096, 0);
  R("free_async", cuMemFreeAsync, memory, NULL);
  R("sync", cuCtxSynchronize);
  R("free", cuMemFree, memory);
}

static CUmemoryPool new_pool(void) {
  CUmemPoolProps properties = {.allocType = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
  CUmemoryPool pool;
  MUST(cuMemPoolCreate, &pool, &properties);
  return pool;
}
static void say_attributes(CUmemoryPool pool) {
  for (int attribute = 1; attribute <= 8; ++attribute) {
    unsigned long long value = 0;
    const CUresult result = CU(cuMemPoolGetAttribute)(pool, (CUmemPool_attribute)attribute, &value);
    say("%d:%d:%llu; ", attribute, result, value);
  }
}
QUESTION(pool_attributes_default) {
  start_without_module();
  CUmemoryPool pool, current;
  MUST(cuDeviceGetDefaultMemPool, &pool, device);
  say_attributes(pool);
  MUST(cuDeviceGetMemPool, &current, device);
  say("current_is_default=%d; ", current == pool);
  R("destroy_default", cuMemPoolDestroy, pool);
  R("set_null", cuDeviceSetMemPool, device, NULL);
  unsigned long long value = 5;
  R("set_used_high_5", cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_HIGH, &value);
  R("set_used_current", cuMemPoolSetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &value);
  R("set_unknown", cuMemPoolSetAttribute, pool, (CUmemPool_attribute)99, &value);
  R("trim_0", cuMemPoolTrimTo, pool, 0);
}
QUESTION(pool_attributes_own) {
  start_without_module();
  CUmemoryPool pool = new_pool();
  say_attributes(pool);
  CUdeviceptr memory;
  MUST(cuMemAllocFromPoolAsync, &memory, 1000, pool, NULL);
  MUST(cuCtxSynchronize);
  unsigned long long reserved = 0, used = 0;
  MUST(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
  MUST(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_USED_MEM_CURRENT, &used);
  say("reserved=%llu used=%llu; ", reserved, used);
  CUdeviceptr start_of;
  size_t size = 0;
  R("address_range", cuMemGetAddressRange, &start_of, &size, memory);
  say("size=%zu offset=%d; ", size, (int)(memory - start_of));
  R("free", cuMemFreeAsync, memory, NULL);
  MUST(cuCtxSynchronize);
  MUST(cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RESERVED_MEM_CURRENT, &reserved);
  say("reserved_after=%llu; ", reserved);
}
QUESTION(pool_bad_properties) {
  start_without_module();
  CUmemPoolProps properties = {0};
  CUmemoryPool pool = NULL;
  R("all_zero", cuMemPoolCreate, &pool, &properties);
  properties.allocType = CU_MEM_ALLOCATION_TYPE_PINNED;
  R("no_location", cuMemPoolCreate, &pool, &properties);
  properties.location.type = CU_MEM_LOCATION_TYPE_HOST;
  R("host", cuMemPoolCreate, &pool, &properties);
  properties.location.type = CU_MEM_LOCATION_TYPE_DEVICE;
  properties.location.id = 99;
  R("device_99", cuMemPoolCreate, &pool, &properties);
  properties.location.id = 0;
  properties.usage = 0x8000;
  R("usage", cuMemPoolCreate, &pool, &properties);
  properties.usage = 0;
  properties.maxSize = 1000;
  R("max_size_1000", cuMemPoolCreate, &pool, &properties);
  CUdeviceptr memory;
  R("alloc_1000", cuMemAllocFromPoolAsync, &memory, 1000, pool, NULL);
  R("alloc_64_mib", cuMemAllocFromPoolAsync, &memory, 64 << 20, pool, NULL);
  R("alloc_0", cuMemAllocFromPoolAsync, &memory, 0, pool, NULL);
  R("alloc_huge", cuMemAllocAsync, &memory, (size_t)1 << 50, NULL);
  R("null_pool", cuMemAllocFromPoolAsync, &memory, 16, NULL, NULL);
}
QUESTION(pool_free) {
  start_without_module();
  CUdeviceptr plain = device_memory(100), pooled;
  R("async_of_plain", cuMemFreeAsync, plain, NULL);
  R("sync", cuCtxSynchronize);
  R("plain_again", cuMemFree, plain);
  MUST(cuMemAllocAsync, &pooled, 100, NULL);
  R("inside", cuMemFreeAsync, pooled + 1, NULL);
  R("free_of_pooled", cuMemFree, pooled);
  R("async_again", cuMemFreeAsync, pooled, NULL);
  MUST(cuMemAllocAsync, &pooled, 100, NULL);
  CUstream other = new_stream(CU_STREAM_NON_BLOCKING);
  R("other_stream", cuMemFreeAsync, pooled, other);
  R("twice", cuMemFreeAsync, pooled, other);
  R("sync", cuCtxSynchronize);
  R("twice_after_sync", cuMemFreeAsync, pooled, other);
  R("null", cuMemFreeAsync, 0, NULL);
  R("alloc_0", cuMemAllocAsync, &pooled, 0, NULL);
  say("null=%d; ", pooled == 0);
}
QUESTION(pool_use_after_free) {
  start_without_module();
  CUdeviceptr pooled;
  unsigned word = 1;
  MUST(cuMemAllocAsync, &pooled, 100, NULL);
  R("free", cuMemFreeAsync, pooled, NULL);
  R("set_after_free", cuMemsetD8Async, pooled, 1, 100, NULL);
  R("sync", cuCtxSynchronize);
  R("copy_after_sync", cuMemcpyDtoH, &word, pooled, 4);
}
QUESTION(pool_destroy_with_live) {
  start_without_module();
  CUmemoryPool pool = new_pool();
  CUdeviceptr memory, more;
  MUST(cuMemAllocFromPoolAsync, &memory, 1000, pool, NULL);
  MUST(cuCtxSynchronize);
  R("destroy", cuMemPoolDestroy, pool);
  R("set", cuMemsetD8, memory, 1, 1000);
  R("alloc_of_destroyed", cuMemAllocFromPoolAsync, &more, 1000, pool, NULL);
  R("free", cuMemFreeAsync, memory, NULL);
  R("sync", cuCtxSynchronize);
}
QUESTION(pool_destroyed_twice) {
  start_without_module();
  CUmemoryPool pool = new_pool();
  R("destroy", cuMemPoolDestroy, pool);
  unsigned long long value;
  R("attribute", cuMemPoolGetAttribute, pool, CU_MEMPOOL_ATTR_RELEASE_THRESHOLD, &value);
  R("destroy", cuMemPoolDestroy, pool);
}
QUESTION(pool_access) {
  start_without_module();
  CUmemoryPool pool = new_pool();
  CUmemLocation location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0};
  CUmemAccess_flags flags = (CUmemAccess_flags)77;
  R("get_own", cuMemPoolGetAccess, &flags, pool, &location);
  say("flags=%d; ", flags);
  CUmemAccessDesc access = {.location = location, .flags = CU_MEM_ACCESS_FLAGS_PROT_NONE};
  R("none_own", cuMemPoolSetAccess, pool, &access, 1);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READ;
  R("read_own", cuMemPoolSetAccess, pool, &access, 1);
  access.flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE;
  R("readwrite_own", cuMemPoolSetAccess, pool, &access, 1);
  access.location.id = 99;
  R("device_99", cuMemPoolSetAccess, pool, &access, 1);
  access.location.type = CU_MEM_LOCATION_TYPE_HOST;
  access.location.id = 0;
  R("host", cuMemPoolSetAccess, pool, &access, 1);
  location.id = 99;
  R("get_99", cuMemPoolGetAccess, &flags, pool, &location);
}

static CUmemAllocationProp plain_properties(void) {
  return (CUmemAllocationProp){.type = CU_MEM_ALLOCATION_TYPE_PINNED,
                               .location = {.type = CU_MEM_LOCATION_TYPE_DEVICE, .id = 0}};
}
enum { kPiece = 2 << 20 };
QUESTION(virtual_errors) {
  start_without_module();
  CUmemAllocationProp properties = plain_properties();
  size_t granularity = 0;
  R("granularity", cuMemGetAllocationGranularity, &granularity, &properties,
    CU_MEM_ALLOC_GRANULARITY_MINIMUM);
  say("minimum=%zu; ", granularity);
  R("recommended", cuMemGetAllocationGranularity, &granularity, &properties,
    CU_MEM_ALLOC_GRANULARITY_RECOMMENDED);
  say("recommended=%zu; ", granularity);
  CUmemGenericAllocationHandle memory, other;
  R("create_4096", cuMemCreate, &memory, 4096, &properties, 0);
  R("create_0", cuMemCreate, &memory, 0, &properties, 0);
  R("create_flags", cuMemCreate, &memory, kPiece, &properties, 1);
  MUST(cuMemCreate, &memory, 2 * kPiece, &properties, 0);
  MUST(cuMemCreate, &other, kPiece, &properties, 0);
  CUdeviceptr at = 0, fixed = 0;
  R("reserve_4096", cuMemAddressReserve, &at, 4096, 0, 0, 0);
  R("reserve_0", cuMemAddressReserve, &at, 0, 0, 0, 0);
  R("reserve_alignment_3", cuMemAddressReserve, &at, 4 * kPiece, 3, 0, 0);
  R("reserve_flags", cuMemAddressReserve, &at, 4 * kPiece, 0, 0, 1);
  R("reserve", cuMemAddressReserve, &at, 4 * kPiece, 0, 0, 0);
  R("reserve_hint_taken", cuMemAddressReserve, &fixed, kPiece, 0, at, 0);
  say("hint_kept=%d; ", fixed == at);
  R("reserve_hint_odd", cuMemAddressReserve, &fixed, kPiece, 0, 0x12345, 0);
  R("map_offset", cuMemMap, at, kPiece, kPiece, memory, 0);
  R("map_flags", cuMemMap, at, kPiece, 0, memory, 1);
  R("map_4096", cuMemMap, at, 4096, 0, memory, 0);
  R("map_too_long", cuMemMap, at, 4 * kPiece, 0, memory, 0);
  R("map_odd_address", cuMemMap, at + 4096, kPiece, 0, memory, 0);
  R("map_null_handle", cuMemMap, at, kPiece, 0, 0, 0);
  R("map_unreserved", cuMemMap, at + 64 * (CUdeviceptr)kPiece, kPiece, 0, memory, 0);
  R("map", cuMemMap, at, 2 * kPiece, 0, memory, 0);
  R("map_overlap", cuMemMap, at + kPiece, kPiece, 0, other, 0);
  R("map_same_again", cuMemMap, at + 2 * kPiece, 2 * kPiece, 0, memory, 0);
  CUmemAccessDesc access = {.location = properties.location, .flags = CU_MEM_ACCESS_FLAGS_PROT_READWRITE};
  R("access_part", cuMemSetAccess, at, kPiece, &access, 1);
  R("access_4096", cuMemSetAccess, at, 4096, &access, 1);
  R("access_more", cuMemSetAccess, at, 8 * (size_t)kPiece, &access, 1);
  access.location.id = 99;
  R("access_99", cuMemSetAccess, at, 2 * kPiece, &access, 1);
  access.location.id = 0;
  R("access", cuMemSetAccess, at, 2 * kPiece, &access, 1);
  unsigned long long flags = 77;
  R("get_access", cuMemGetAccess, &flags, &properties.location, at);
  say("flags=%llu; ", flags);
  R("unmap_unmapped_part", cuMemUnmap, at, 8 * (size_t)kPiece);
  R("unmap_second", cuMemUnmap, at + 2 * kPiece, 2 * kPiece);
  R("unmap_part", cuMemUnmap, at, kPiece);
  R("free_mapped_reservation", cuMemAddressFree, at, 4 * kPiece);
  R("mem_free", cuMemFree, at);
  R("release", cuMemRelease, memory);
  R("unmap", cuMemUnmap, at, 2 * kPiece);
  R("unmap_again", cuMemUnmap, at, 2 * kPiece);
  R("release_again", cuMemRelease, memory);
  R("free_part", cuMemAddressFree, at, kPiece);
  R("free", cuMemAddressFree, at, 4 * kPiece);
  R("free_again", cuMemAddressFree, at, 4 * kPiece);
}
static CUdeviceptr map_piece(CUmemAccess_flags flags) {
  CUmemAllocationProp properties = plain_properties();
  CUmemGenericAllocationHandle memory;
  CUdeviceptr at;
  MUST(cuMemCreate, &memory, kPiece, &properties, 0);
  MUST(cuMemAddressReserve, &at, kPiece, 0, 0, 0);
  MUST(cuMemMap, at, kPiece, 0, memory, 0);
  CUmemAccessDesc access = {.location = properties.location, .flags = flags};
  if (flags != CU_MEM_ACCESS_FLAGS_PROT_NONE) MUST(cuMemSetAccess, at, kPiece, &access, 1);
  return at;
}
QUESTION(virtual_copy_without_access) {
  start_without_module();
  CUdeviceptr at = map_piece(CU_MEM_ACCESS_FLAGS_PROT_NONE);
  unsigned word = 1;
  R("copy_to", cuMemcpyHtoD, at, &word, 4);
  R("copy_from", cuMemcpyDtoH, &word, at, 4);
  R("set", cuMemsetD8, at, 1, 4);
  R("sync", cuCtxSynchronize);
}
QUESTION(virtual_kernel_without_access) {
  start();
  CUdeviceptr at = map_piece(CU_MEM_ACCESS_FLAGS_PROT_NONE);
  unsigned value = 1;
  void* parameters[] = {&at, &value};
  say_result("launch", launch(NULL, function("store"), parameters));
  R("sync", cuCtxSynchronize);
}
QUESTION(virtual_kernel_read_only) {
  start();
  CUdeviceptr at = map_piece(CU_MEM_ACCESS_FLAGS_PROT_READ);
  CUdeviceptr out = device_memory(4);
  void* parameters[] = {&at, &out};
  say_result("load", launch(NULL, function("load"), parameters));
  R("sync", cuCtxSynchronize);
  unsigned value = 1;
  void* store_parameters[] = {&at, &value};
  say_result("store", launch(NULL, function("store"), store_parameters));
  R("sync", cuCtxSynchronize);
}
QUESTION(virtual_pointer_attributes) {
  start_without_module();
  CUdeviceptr at = map_piece(CU_MEM_ACCESS_FLAGS_PROT_READWRITE), start_of = 0, reserved;
  unsigned type = 77;
  R("type", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, at);
  say("type=%u; ", type);
  size_t size = 0;
  R("range", cuMemGetAddressRange, &start_of, &size, at + 100);
  say("offset=%d size=%zu; ", (int)(at - start_of), size);
  MUST(cuMemAddressReserve, &reserved, kPiece, 0, 0, 0);
  R("reserved_type", cuPointerGetAttribute, &type, CU_POINTER_ATTRIBUTE_MEMORY_TYPE, reserved);
  R("reserved_range", cuMemGetAddressRange, &start_of, &size, reserved);
  CUmemGenericAllocationHandle handle;
  R("retain", cuMemRetainAllocationHandle, &handle, (void*)at);
  R("retain_reserved", cuMemRetainAllocationHandle, &handle, (void*)reserved);
  R("retain_plain", cuMemRetainAllocationHandle, &handle, (void*)device_memory(16));
}
