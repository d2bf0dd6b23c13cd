/* SPDX-License-Identifier: Apache-2.0 */
// room: session
/*
 * quern for other languages: a C ABI. Handles are opaque numbers, never addresses; 0 is none, and a handle
 * that was released or invented is recognised. Every function returns a status and leaves its results alone
 * unless it is QUERN_OK; quern_last_error() then says what was attempted and what to do. All functions may be
 * called from any thread. Shapes count elements, strides and sizes bytes. */
#ifndef QUERN_H
#define QUERN_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define QUERN_C_API __attribute__((visibility("default")))
#else
#define QUERN_C_API
#endif

/* Raised when something is added; nothing is ever changed or taken away. 2: quern_load. 3: allocators, pinned
 * memory, events, copies between arrays, quern_load_file, and questions about the device and a kernel's
 * block. */
#define QUERN_ABI_VERSION 3u

#ifdef __cplusplus
extern "C" {
#endif

typedef enum QuernStatus {
  QUERN_OK = 0,
  QUERN_USAGE = 1,         /* arguments do not fit */
  QUERN_COMPILE = 2,       /* source or PTX was refused */
  QUERN_NOT_FOUND = 3,     /* a file, kernel, device or library is not there */
  QUERN_DRIVER = 4,        /* a driver call failed */
  QUERN_OUT_OF_MEMORY = 5, /* device memory is exhausted */
  QUERN_DEVICE_FAULT = 6,  /* a kernel ended its context */
  QUERN_IO = 7,            /* a file could not be read or written */
  QUERN_UNSUPPORTED = 8,   /* understood, but not available here */
  QUERN_INTERNAL = 9,      /* a defect of quern's own */
  QUERN_BAD_HANDLE = 10    /* a handle that is released, of another kind, or invented */
} QuernStatus;

typedef struct QuernSession {
  uint64_t id;
} QuernSession;
typedef struct QuernModule {
  uint64_t id;
} QuernModule;
typedef struct QuernKernel {
  uint64_t id;
} QuernKernel;
typedef struct QuernArray {
  uint64_t id;
} QuernArray;
typedef struct QuernStream {
  uint64_t id;
} QuernStream; /* {0}: the default stream */
typedef struct QuernEvent {
  uint64_t id;
} QuernEvent;
typedef struct QuernPin {
  uint64_t id;
} QuernPin;

/* Element types; the numbers stay. */
typedef enum QuernDtype {
  QUERN_BOOL,
  QUERN_INT8,
  QUERN_INT16,
  QUERN_INT32,
  QUERN_INT64,
  QUERN_UINT8,
  QUERN_UINT16,
  QUERN_UINT32,
  QUERN_UINT64,
  QUERN_FLOAT16,
  QUERN_BFLOAT16,
  QUERN_FLOAT32,
  QUERN_FLOAT64,
  QUERN_COMPLEX64,
  QUERN_COMPLEX128
} QuernDtype;

/* The CUDA Array Interface, version 3, as a C struct. */
typedef struct QuernCudaArray {
  uint32_t struct_bytes; /* sizeof(QuernCudaArray), set by the caller */
  uint32_t version;      /* 3 */
  void* data;            /* device address of element 0 */
  int32_t read_only;
  int32_t ndim;
  const int64_t* shape;
  const int64_t* strides; /* null: C-contiguous */
  const char* typestr;    /* "<f4" */
  const void* mask;       /* null */
  int32_t has_stream;     /* 0: nothing to wait for */
  int32_t reserved;
  uint64_t stream; /* 1 the legacy default stream, 2 the per-thread one, else a CUstream */
} QuernCudaArray;

typedef struct QuernLaunch {
  uint32_t struct_bytes; /* sizeof(QuernLaunch), set by the caller */
  uint32_t cooperative;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t shared_bytes;
  QuernStream stream;
} QuernLaunch;

typedef enum QuernArgumentKind {
  QUERN_ARGUMENT_ARRAY,   /* `array` */
  QUERN_ARGUMENT_SCALAR,  /* `data` points to one value of `dtype`, converted as the parameter needs */
  QUERN_ARGUMENT_ADDRESS, /* `data` is a device address */
  QUERN_ARGUMENT_STRUCT   /* `data` points to `bytes` bytes, passed by value */
} QuernArgumentKind;
typedef struct QuernArgument {
  QuernArgumentKind kind;
  QuernDtype dtype;
  QuernArray array;
  const void* data;
  size_t bytes;
} QuernArgument;

/* A program's own allocator, called with the context current, from any thread. */
typedef struct QuernAllocator {
  uint32_t struct_bytes; /* sizeof(QuernAllocator), set by the caller */
  uint32_t reserved;
  void* user;
  /* Device memory that work on `cu_stream` may use from here on; null: there is none. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment, void* cu_stream);
  /* The same numbers. Work queued on `cu_stream` may still use it, work on other streams has ended. */
  void (*deallocate)(void* user, void* memory, size_t bytes, size_t alignment, void* cu_stream);
  void (*release)(void* user); /* when the last memory has gone back and the allocator is not used; or null */
} QuernAllocator;
typedef enum QuernLanguage { QUERN_LANGUAGE_CUDA, QUERN_LANGUAGE_PTX, QUERN_LANGUAGE_PYTHON } QuernLanguage;
typedef struct QuernSource {
  uint32_t struct_bytes; /* sizeof(QuernSource), set by the caller */
  QuernLanguage language;
  const char* text;
  const char* file_name;      /* what messages call it; may be null */
  const char* const* options; /* NVRTC's: "--fmad=false" */
  size_t option_count;
} QuernSource;

QUERN_C_API uint32_t quern_abi_version(void);
/* "0.1.0"; lives for ever. */
QUERN_C_API const char* quern_version(void);
/* This thread's latest error into `buffer`, cut to `bytes` with a NUL; returns the bytes it needs whole. */
QUERN_C_API size_t quern_last_error(char* buffer, size_t bytes);

/* "auto", "cpu", "cuda:0"; null: QUERN_DEVICE, else "auto". */
QUERN_C_API QuernStatus quern_session_open(const char* device, QuernSession* session);
/* Like open, in the context that is current on this thread. */
QUERN_C_API QuernStatus quern_session_adopt(const char* device, QuernSession* session);
QUERN_C_API QuernStatus quern_session_synchronize(QuernSession session);
/* The device's name into `buffer`, cut to `bytes` with a NUL; `needed` (may be null): the bytes it takes. */
QUERN_C_API QuernStatus quern_session_device_name(QuernSession session, char* buffer, size_t bytes,
                                                  size_t* needed);
/* Device memory, bytes; either place may be null. */
QUERN_C_API QuernStatus quern_session_memory(QuernSession session, size_t* free_bytes, size_t* total_bytes);
/* Where the context's device memory comes from, from now on; null: the driver. The struct is copied. */
QUERN_C_API QuernStatus quern_session_set_allocator(QuernSession session, const QuernAllocator* allocator);
/* CUcontext. */
QUERN_C_API QuernStatus quern_session_context(QuernSession session, void** context);

QUERN_C_API QuernStatus quern_load_cuda(QuernSession session, const char* source, QuernModule* module);
QUERN_C_API QuernStatus quern_load_ptx(QuernSession session, const char* ptx, QuernModule* module);
/* `.py` is Kernel Python, `.cu` CUDA C++, `.ptx` PTX. */
QUERN_C_API QuernStatus quern_load_file(QuernSession session, const char* path, QuernModule* module);
/* Source of any language; since version 2. A Kernel Python kernel is compiled for the types of the arguments
 * that it is launched with. */
QUERN_C_API QuernStatus quern_load(QuernSession session, const QuernSource* source, QuernModule* module);
/* A null or empty `name`: the module's only kernel. */
QUERN_C_API QuernStatus quern_kernel(QuernModule module, const char* name, QuernKernel* kernel);
QUERN_C_API QuernStatus quern_launch(QuernKernel kernel, const QuernLaunch* launch,
                                     const QuernArgument* arguments, size_t count);

/* Threads a block at which most threads are resident at once, as the driver's occupancy calculator says. */
QUERN_C_API QuernStatus quern_kernel_suggested_block(QuernKernel kernel, uint64_t shared_bytes,
                                                     uint32_t* threads);

/* Uninitialised, C order. */
QUERN_C_API QuernStatus quern_array_new(QuernSession session, QuernDtype dtype, int32_t ndim,
                                        const int64_t* shape, QuernArray* array);
/* The same in memory that the host sees at `*host`, which lives as long as the handle. */
QUERN_C_API QuernStatus quern_array_new_mapped(QuernSession session, QuernDtype dtype, int32_t ndim,
                                               const int64_t* shape, QuernArray* array, void** host);
/* All elements in C order, exactly as many bytes as the array has. With a stream the copy is queued: the
 * source is staged before the call returns, the target must outlive the synchronisation. */
QUERN_C_API QuernStatus quern_array_from_host(QuernArray array, const void* source, size_t bytes);
QUERN_C_API QuernStatus quern_array_to_host(QuernArray array, void* target, size_t bytes);
QUERN_C_API QuernStatus quern_array_from_host_on(QuernArray array, const void* source, size_t bytes,
                                                 QuernStream stream);
QUERN_C_API QuernStatus quern_array_to_host_on(QuernArray array, void* target, size_t bytes,
                                               QuernStream stream);
/* From one array to another of the same shape and dtype, on the device. */
QUERN_C_API QuernStatus quern_array_copy(QuernArray to, QuernArray from);
QUERN_C_API QuernStatus quern_array_copy_on(QuernArray to, QuernArray from, QuernStream stream);
/* Page-locks memory of the program's own until the handle is released; it must live as long. */
QUERN_C_API QuernStatus quern_pin(QuernSession session, void* memory, size_t bytes, QuernPin* pin);
/* What the array is; its pointers live as long as the handle. */
QUERN_C_API QuernStatus quern_array_describe(QuernArray array, QuernCudaArray* description);
/* A view of memory that others own; `release` (may be null) is called with `user` when the last view goes,
 * also where this fails. */
QUERN_C_API QuernStatus quern_array_adopt(QuernSession session, const QuernCudaArray* description,
                                          void (*release)(void* user), void* user, QuernArray* array);

/* The array as a DLManagedTensorVersioned (DLPack 1.0), which the consumer's deleter call gives back; as a
 * device array, or `as_host` as the host sees a mapped one. */
QUERN_C_API QuernStatus quern_array_to_dlpack(QuernArray array, int32_t as_host, void** managed_tensor);
/* A view of another library's DLManagedTensorVersioned on this device; it becomes quern's, also where this
 * fails. */
QUERN_C_API QuernStatus quern_array_from_dlpack(QuernSession session, void* managed_tensor,
                                                QuernArray* array);

QUERN_C_API QuernStatus quern_stream_new(QuernSession session, QuernStream* stream);
/* A CUstream of the program's own. */
QUERN_C_API QuernStatus quern_stream_external(QuernSession session, void* cu_stream, QuernStream* stream);
QUERN_C_API QuernStatus quern_stream_synchronize(QuernStream stream);

QUERN_C_API QuernStatus quern_event_new(QuernSession session, QuernEvent* event);
/* Marks what the stream holds now. */
QUERN_C_API QuernStatus quern_event_record(QuernEvent event, QuernStream stream);
/* Later work of the stream waits for the event. */
QUERN_C_API QuernStatus quern_event_wait(QuernEvent event, QuernStream stream);
QUERN_C_API QuernStatus quern_event_synchronize(QuernEvent event);
QUERN_C_API QuernStatus quern_event_query(QuernEvent event, int32_t* reached);
/* From `start` to `end`, both recorded and reached. */
QUERN_C_API QuernStatus quern_event_elapsed_ms(QuernEvent start, QuernEvent end, double* ms);

/* Lets go of what a handle's `id` names, of any kind. What was made from it stays usable. */
QUERN_C_API QuernStatus quern_release(uint64_t id);

#ifdef __cplusplus
}
#endif
#endif
