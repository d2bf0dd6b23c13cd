/* SPDX-License-Identifier: Apache-2.0 */
// component: session
/* The types of quern.h's functions; programs include quern.h. Its first lines say how structs grow. */
#ifndef QUERN_C_TYPES_H
#define QUERN_C_TYPES_H

#include <stddef.h>
#include <stdint.h>

/* In C++ too an enum has 32 bits and may hold any value: quern rejects unknown values. */
#ifdef __cplusplus
#define QUERN_C_INT32 : int32_t
extern "C" {
#else
#define QUERN_C_INT32
#endif

typedef enum QuernStatus QUERN_C_INT32 {
  QUERN_OK = 0,
  QUERN_USAGE = 1,         /* arguments do not fit */
  QUERN_COMPILE = 2,       /* source or PTX was refused */
  QUERN_NOT_FOUND = 3,     /* a file, kernel, device or library does not exist */
  QUERN_DRIVER = 4,        /* a driver call failed */
  QUERN_OUT_OF_MEMORY = 5, /* device memory is exhausted */
  QUERN_DEVICE_FAULT = 6,  /* a kernel ended its context */
  QUERN_IO = 7,            /* a file could not be read or written */
  QUERN_UNSUPPORTED = 8,   /* understood, but not available here */
  QUERN_INTERNAL = 9,      /* a defect of quern's own */
  QUERN_BAD_HANDLE = 10,   /* a handle that is released, of another kind, or invalid */
  QUERN_CANCELLED = 11     /* work that was waited for was cancelled (quern_stream_cancel) */
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
typedef struct QuernSmartArray {
  uint64_t id;
} QuernSmartArray;
typedef struct QuernStream {
  uint64_t id;
} QuernStream; /* {0}: the default stream */
typedef struct QuernEvent {
  uint64_t id;
} QuernEvent;
typedef struct QuernPin {
  uint64_t id;
} QuernPin; /* page-locked host memory */
typedef struct QuernDeferral {
  uint64_t id;
} QuernDeferral;
typedef struct QuernPending {
  uint64_t id;
} QuernPending; /* work in the background; releasing it cancels the work */
typedef struct QuernCompiled {
  uint64_t id;
} QuernCompiled; /* a source that was compiled without a device */

/* Element types; the numbers never change. */
typedef enum QuernDtype QUERN_C_INT32 {
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

/* The type of one element of an array: a record if `record` is given, bytes without a description if
 * `opaque_bytes` is not 0 (not both), else a `dtype`. */
typedef struct QuernRecord QuernRecord;
typedef struct QuernElement {
  QuernDtype dtype;
  uint32_t reserved; /* 0 */
  size_t opaque_bytes;
  const QuernRecord* record;
} QuernElement;
/* A field of a record. It may be a record itself, and an array of `shape` in each record. */
typedef struct QuernField {
  const char* name;
  QuernElement element;
  size_t offset_bytes; /* from the record's beginning */
  int32_t ndim;        /* 0: one element */
  uint32_t reserved;   /* 0 */
  const int64_t* shape;
} QuernField;
/* NumPy's structured dtype: fields in any order, which do not overlap, with any padding. */
struct QuernRecord {
  uint32_t struct_bytes; /* sizeof(QuernRecord), set by the caller */
  uint32_t field_bytes;  /* sizeof(QuernField), likewise: the step from one field to the next */
  const QuernField* fields;
  size_t field_count;
  size_t size_bytes; /* of one record, padding behind the last field included */
};

/* The last index changes fastest, or the first one. */
typedef enum QuernOrder QUERN_C_INT32 { QUERN_ORDER_C, QUERN_ORDER_FORTRAN } QuernOrder;
/* The element type and the layout of an array. At most 64 dimensions. */
typedef struct QuernArrayType {
  uint32_t struct_bytes; /* sizeof(QuernArrayType), set by the caller */
  QuernOrder order;      /* if no strides are given */
  QuernElement element;
  int32_t ndim;
  uint32_t reserved; /* 0 */
  const int64_t* shape;
  const int64_t* strides; /* bytes, one per dimension; null: contiguous in `order` */
} QuernArrayType;
/* An array in host memory of the program's. */
typedef struct QuernHostArray {
  uint32_t struct_bytes; /* sizeof(QuernHostArray), set by the caller */
  int32_t read_only;     /* not 0: rejected as a target */
  void* data;            /* element 0 */
  const QuernArrayType* type;
  QuernPin pin; /* page-locked memory that contains all of it: queued copies use it directly; or {0} */
} QuernHostArray;

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
  int32_t has_stream;     /* 0: no stream to wait for */
  int32_t reserved;
  uint64_t stream; /* 1 the legacy default stream, 2 the per-thread one, else a CUstream; 0 is refused */
  /* The complete element type: a record's fields, and bfloat16, for which typestr has no letter; null: the
   * type of typestr, in which "|V.." is opaque. Since version 4. */
  const QuernElement* descr;
} QuernCudaArray;

/* The sides of a QuernSmartArray. */
typedef enum QuernWhere QUERN_C_INT32 { QUERN_WHERE_HOST, QUERN_WHERE_DEVICE } QuernWhere;

/* One index of quern_array_index(), with Python's meaning; negative numbers count from the end. */
typedef enum QuernIndexKind QUERN_C_INT32 {
  QUERN_INDEX_AT,       /* position `start`: removes the axis */
  QUERN_INDEX_SLICE,    /* start:stop:step, with the bounds that are given */
  QUERN_INDEX_ELLIPSIS, /* all axes that are not named */
  QUERN_INDEX_NEW_AXIS  /* a new axis of extent 1 */
} QuernIndexKind;
enum { QUERN_INDEX_HAS_START = 1, QUERN_INDEX_HAS_STOP = 2 };
typedef struct QuernIndex {
  QuernIndexKind kind;
  uint32_t bounds; /* of a slice: QUERN_INDEX_HAS_START | QUERN_INDEX_HAS_STOP */
  int64_t start;
  int64_t stop;
  int64_t step; /* of a slice; not 0 */
} QuernIndex;

/* Options of a new stream. */
typedef struct QuernStreamOptions {
  uint32_t struct_bytes; /* sizeof(QuernStreamOptions), set by the caller */
  int32_t priority;      /* lower numbers run first; clamped to the device's range */
  int32_t non_blocking;  /* not 0: not ordered with the legacy default stream */
  uint32_t reserved;     /* 0 */
} QuernStreamOptions;

/* Advice to the driver about the use of managed memory (CUmem_advise). */
typedef enum QuernMemoryAdvice QUERN_C_INT32 {
  QUERN_ADVICE_READ_MOSTLY,
  QUERN_ADVICE_UNSET_READ_MOSTLY,
  QUERN_ADVICE_PREFERRED_LOCATION,
  QUERN_ADVICE_UNSET_PREFERRED_LOCATION,
  QUERN_ADVICE_ACCESSED_BY,
  QUERN_ADVICE_UNSET_ACCESSED_BY
} QuernMemoryAdvice;

typedef struct QuernLaunch {
  uint32_t struct_bytes; /* sizeof(QuernLaunch), set by the caller */
  uint32_t cooperative;
  uint32_t grid[3];
  uint32_t block[3];
  uint64_t shared_bytes;
  QuernStream stream;
  /* Nanoseconds; a kernel that runs longer is ended, and its context with it: QUERN_DEVICE_FAULT. 0: the
   * session's limit applies. QUERN_UNSUPPORTED on a GPU. Since version 6. */
  uint64_t timeout_ns;
} QuernLaunch;

/* Options of quern_session_open_with(); all 0 is quern_session_open(). */
typedef struct QuernSessionOptions {
  uint32_t struct_bytes;      /* sizeof(QuernSessionOptions), set by the caller */
  uint32_t isolated;          /* not 0: a context of its own, see quern_session_open_isolated() */
  uint64_t launch_timeout_ns; /* of launches without a limit of their own; 0: none */
  /* Since version 7. Not 0: quern_set_compile_cache_bytes(compile_cache_bytes), for all sessions. */
  uint32_t bounds_compile_cache;
  uint32_t reserved; /* 0 */
  uint64_t compile_cache_bytes;
} QuernSessionOptions;

typedef enum QuernArgumentKind QUERN_C_INT32 {
  QUERN_ARGUMENT_ARRAY,   /* `array` */
  QUERN_ARGUMENT_SCALAR,  /* `data` points to one value of `dtype`, converted as the parameter needs */
  QUERN_ARGUMENT_ADDRESS, /* `data` is a device address */
  QUERN_ARGUMENT_STRUCT,  /* `data` points to `bytes` bytes, passed by value */
  /* `data` points to a QuernHostArray that is copied to the device before the kernel (in), back after it
   * (out), or both, on the launch's stream. Without a stream the array has its values on return; with one the
   * array's memory must live until the stream is synchronised. The call waits for earlier queued copies into
   * pageable memory that it reads or writes. A record is an array of no dimensions. */
  QUERN_ARGUMENT_IN,
  QUERN_ARGUMENT_OUT,
  QUERN_ARGUMENT_IN_OUT,
  QUERN_ARGUMENT_SMART /* `array.id` is that of a QuernSmartArray: its device side, which is then changed */
} QuernArgumentKind;
typedef struct QuernArgument {
  QuernArgumentKind kind;
  QuernDtype dtype;
  QuernArray array;
  const void* data;
  size_t bytes;
} QuernArgument;

/* An allocator of the program, called with the context current, from any thread. */
typedef struct QuernAllocator {
  uint32_t struct_bytes; /* sizeof(QuernAllocator), set by the caller */
  uint32_t reserved;
  void* user;
  /* Returns device memory that work on `cu_stream` may use from here on; null if there is none. */
  void* (*allocate)(void* user, size_t bytes, size_t alignment, void* cu_stream);
  /* Called with the same numbers. Work queued on `cu_stream` may still use the memory, work on other streams
   * has ended. */
  void (*deallocate)(void* user, void* memory, size_t bytes, size_t alignment, void* cu_stream);
  void (*release)(
      void* user); /* called once all memory is deallocated and the allocator is unused; or null */
  /* Since version 4. Returns unused memory to the source that it came from; or null. */
  void (*trim)(void* user);
  /* The allocator's memory in bytes; returns 0 if that is not known; or null. */
  int32_t (*memory_info)(void* user, size_t* free_bytes, size_t* total_bytes);
  /* Not 0: deallocate() itself waits for all work on the device, so that quern need not keep memory until the
   * work of other streams has ended. */
  int32_t deallocate_waits;
  uint32_t reserved_2; /* 0 */
} QuernAllocator;
typedef enum QuernLanguage QUERN_C_INT32 {
  QUERN_LANGUAGE_CUDA,
  QUERN_LANGUAGE_PTX,
  QUERN_LANGUAGE_PYTHON
} QuernLanguage;
/* A text that sources include by that name as if it were a file. */
typedef struct QuernHeader {
  const char* name; /* "kernels/tile.cuh" */
  const char* text;
} QuernHeader;
typedef struct QuernSource {
  uint32_t struct_bytes; /* sizeof(QuernSource), set by the caller */
  QuernLanguage language;
  const char* text;
  const char* file_name;      /* the name in messages; may be null */
  const char* const* options; /* NVRTC's: "--fmad=false" */
  size_t option_count;
  /* Since version 4. */
  const char* const* defines; /* "N=4", "DEBUG" */
  size_t define_count;
  const char* const* include_dirs; /* searched in order, before the toolkit's own headers */
  size_t include_dir_count;
  /* "scale<float>": instantiated at once, other instances on request; "&counter": a variable that is kept
   * even if unused */
  const char* const* name_expressions;
  size_t name_expression_count;
  int32_t fastmath;  /* not 0: --use_fast_math */
  uint32_t reserved; /* 0 */
  /* Since version 5. Found before any file of the same name. */
  const QuernHeader* headers;
  size_t header_count;
} QuernSource;

/* The output of quern_compile_source(); all 0 is PTX for compute capability 8.9, of any driver. */
typedef struct QuernCompileOptions {
  uint32_t struct_bytes;       /* sizeof(QuernCompileOptions), set by the caller */
  uint32_t compute_capability; /* the virtual architecture of the PTX: 89; 0: 89 */
  uint32_t machine;        /* a GPU's architecture, 90, for its machine code beside the PTX; 0: PTX only */
  uint32_t driver_version; /* CUDA version of the driver that is to load the PTX, 12040; 0: any */
  const char* kernel;      /* of Kernel Python: the kernel's name; null: the only kernel */
  const char* types;       /* of Kernel Python: its argument types; null: its decorator's */
} QuernCompileOptions;
typedef enum QuernCompiledText QUERN_C_INT32 {
  QUERN_COMPILED_PTX,
  QUERN_COMPILED_CUDA_SOURCE, /* of Kernel Python: the CUDA C++ that was generated from it; else empty */
  QUERN_COMPILED_LOG          /* the compiler's warnings */
} QuernCompiledText;
/* Counts of compilations: of a session, or of the process. */
typedef struct QuernCompileStats {
  uint32_t struct_bytes; /* sizeof(QuernCompileStats), set by the caller */
  uint32_t reserved;
  uint64_t translations; /* of Kernel Python into CUDA C++ */
  uint64_t nvrtc_runs;
  uint64_t cache_hits; /* requests whose result was compiled, or was being compiled by another thread */
  uint64_t disk_hits;  /* requests that the cache on disk answered */
} QuernCompileStats;
/* A tier of the compile cache. */
typedef enum QuernCacheTier QUERN_C_INT32 {
  QUERN_CACHE_MEMORY, /* PTX of sources, in this process */
  QUERN_CACHE_DISK    /* compiled sources, and facts about NVRTC; not the CPU device's machine code */
} QuernCacheTier;
typedef struct QuernCacheStats {
  uint32_t struct_bytes; /* sizeof(QuernCacheStats), set by the caller */
  uint32_t reserved;
  uint64_t hits;        /* requests that this tier answered */
  uint64_t waits;       /* in memory: requests that waited for an equal one, which another thread had begun */
  uint64_t misses;      /* requests that were passed on; in memory those of them that succeeded */
  uint64_t failures;    /* in memory: requests that were passed on, and failed */
  uint64_t evictions;   /* entries dropped to stay within the bound */
  uint64_t entry_count; /* in memory */
  uint64_t size_bytes;  /* in memory */
  uint64_t max_bytes;   /* the bound */
  uint64_t writes;      /* on disk, as are the following two: entries that this process wrote */
  uint64_t failed_writes;
  uint64_t damaged; /* entries that were found damaged, and set aside */
} QuernCacheStats;

typedef enum QuernDeviceKind QUERN_C_INT32 { QUERN_DEVICE_CPU, QUERN_DEVICE_CUDA } QuernDeviceKind;
/* Properties of a device, from its driver. */
typedef struct QuernDeviceInfo {
  uint32_t struct_bytes; /* sizeof(QuernDeviceInfo), set by the caller */
  QuernDeviceKind kind;
  int32_t ordinal;            /* among the devices of its kind, from 0 */
  int32_t compute_capability; /* major * 10 + minor: 89 */
  int32_t driver_version;     /* 13000 is CUDA 13.0 */
  int32_t multiprocessor_count;
  int32_t warp_size;
  int32_t cooperative_launch; /* not 0: grids may synchronise */
  uint32_t max_threads_per_block;
  uint32_t max_block[3];
  uint32_t max_grid[3];
  uint32_t reserved;
  uint64_t total_memory_bytes;
  uint64_t shared_bytes_per_block;     /* the default limit */
  uint64_t max_shared_bytes_per_block; /* that a launch may request */
  char label[32];                      /* "cpu", "cuda:0": the argument of quern_session_open() */
  char name[256];
} QuernDeviceInfo;

/* The kind of memory access that met a fault. */
typedef enum QuernAccess QUERN_C_INT32 {
  QUERN_ACCESS_NONE,
  QUERN_ACCESS_LOAD,
  QUERN_ACCESS_STORE,
  QUERN_ACCESS_ATOMIC
} QuernAccess;
/* The bits of QuernFault::known. */
#define QUERN_FAULT_BLOCK 1u   /* `block` */
#define QUERN_FAULT_THREADS 2u /* `first_thread` and `last_thread`: one of these threads faulted */
#define QUERN_FAULT_THREAD 4u  /* this thread faulted: both are the same */
#define QUERN_FAULT_ADDRESS 8u /* `address` */
/* The launch, threads and line of a kernel's fault; see quern_last_fault(). Texts are never null; "": not
 * known. They live until this thread's next call that fails. */
typedef struct QuernFault {
  uint32_t struct_bytes; /* sizeof(QuernFault), set by the caller */
  uint32_t known;
  uint32_t grid[3];         /* of the launch, in blocks; zeros: not known */
  uint32_t block_dim[3];    /* in threads */
  uint32_t block[3];        /* index in the grid */
  uint32_t first_thread[3]; /* index in the block: the lowest that may have faulted */
  uint32_t last_thread[3];
  uint32_t line; /* 0: not known */
  QuernAccess access;
  uint32_t access_bytes; /* by one thread; 0: not known */
  uint32_t reserved;
  uint64_t address;
  const char* kernel; /* as its author wrote it */
  const char* file;   /* "": `line` is one of the PTX */
  const char* space;  /* "global", "shared", "local", "constant", "param", "generic" */
} QuernFault;

typedef struct QuernKernelInfo {
  uint32_t struct_bytes;   /* sizeof(QuernKernelInfo), set by the caller */
  int32_t registers;       /* per thread */
  uint64_t shared_bytes;   /* static, per block */
  uint64_t local_bytes;    /* per thread */
  uint64_t constant_bytes; /* of the module */
  uint32_t max_threads_per_block;
  uint32_t parameter_count;
  double compile_ms;      /* so far: the sum of the three below, 0 for results of a cache */
  double nvrtc_ms;        /* CUDA C++ to PTX */
  double load_ms;         /* the CPU device: reading the PTX; a GPU: loading the module */
  double machine_code_ms; /* the CPU device: for all block shapes together */
} QuernKernelInfo;
/* A parameter; offsets and sizes in the parameter buffer. The texts live as long as the kernel's handle and
 * are empty if the source does not give them. */
typedef struct QuernParameter {
  uint32_t struct_bytes; /* sizeof(QuernParameter), set by the caller */
  int32_t pointer;
  uint64_t offset_bytes;
  uint64_t size_bytes;
  uint64_t align_bytes;
  const char* name; /* "x" */
  const char* type; /* "const float*" */
} QuernParameter;
typedef enum QuernKernelText QUERN_C_INT32 {
  QUERN_KERNEL_NAME,         /* "scale<float>" */
  QUERN_KERNEL_LOWERED_NAME, /* in the PTX */
  QUERN_KERNEL_SIGNATURE,    /* "saxpy(int n, float a, const float* x, float* y)" */
  QUERN_KERNEL_PTX,          /* of its module */
  QUERN_KERNEL_CUDA_SOURCE   /* the input of NVRTC; empty for PTX */
} QuernKernelText;

/* Messages; see quern_set_log_handler(). */
typedef enum QuernLogLevel QUERN_C_INT32 {
  QUERN_LOG_ERROR,
  QUERN_LOG_WARNING,
  QUERN_LOG_INFO,
  QUERN_LOG_DEBUG
} QuernLogLevel;
typedef struct QuernLogField {
  const char* name;
  const char* value;
} QuernLogField;
/* The library sets struct_bytes: a newer one may give fields that the program does not know. All pointers are
 * valid only during the call of the handler. */
typedef struct QuernLogRecord {
  uint32_t struct_bytes;
  QuernLogLevel level;
  const char* text; /* without a newline at its end; it may hold several lines */
  size_t field_count;
  const QuernLogField* fields;
} QuernLogRecord;
typedef void (*QuernLogHandler)(void* user, const QuernLogRecord* record);
/* The output of one call of printf by one thread of a kernel; struct_bytes and lifetime as above. */
typedef struct QuernDevicePrint {
  uint32_t struct_bytes;
  uint32_t reserved;
  const char* text; /* followed by a NUL; a kernel may print NULs as well */
  size_t text_bytes;
  const char* kernel; /* as its author wrote it */
  void* context;      /* CUcontext, as from quern_session_context(); null if it is destroyed */
} QuernDevicePrint;
typedef void (*QuernPrintfHandler)(void* user, const QuernDevicePrint* print);

/* The progress of long work; see quern_session_set_progress(). */
typedef enum QuernProgressStage QUERN_C_INT32 {
  QUERN_PROGRESS_TRANSLATE,      /* Kernel Python becomes CUDA C++ */
  QUERN_PROGRESS_COMPILE,        /* NVRTC makes PTX of CUDA C++ */
  QUERN_PROGRESS_LOAD,           /* the driver takes the code */
  QUERN_PROGRESS_GENERATE,       /* the CPU device makes machine code of a kernel, at its first launch */
  QUERN_PROGRESS_COPY_TO_DEVICE, /* in bytes */
  QUERN_PROGRESS_COPY_TO_HOST
} QuernProgressStage;
/* The state of one piece of work: at its begin (`done` is 0), in between, or at its end. Work that fails or
 * is cancelled has no end. The library sets struct_bytes; all pointers are valid only during the call. */
typedef struct QuernProgress {
  uint32_t struct_bytes;
  QuernProgressStage stage;
  const char* name; /* a file, or of QUERN_PROGRESS_GENERATE a kernel; "" of copies */
  uint64_t done;
  uint64_t total; /* 0: not known; `done` then counts the calls that NVRTC makes back */
  int32_t finished;
  int32_t reserved;
} QuernProgress;
/* Returns 0 to continue, another value to cancel. */
typedef int32_t (*QuernProgressHandler)(void* user, const QuernProgress* progress);

/* Kinds of driver resources that a context holds. */
typedef enum QuernMemoryKind QUERN_C_INT32 {
  QUERN_MEMORY_ALL = -1,
  QUERN_MEMORY_DEVICE = 0, /* from the driver's allocator */
  QUERN_MEMORY_POOLED,     /* from another allocator */
  QUERN_MEMORY_MANAGED,
  QUERN_MEMORY_PINNED,
  QUERN_MEMORY_MAPPED,
  QUERN_MEMORY_REGISTERED, /* the program's own, page-locked */
  QUERN_MEMORY_STREAM,     /* streams, events and modules count, with 0 bytes */
  QUERN_MEMORY_EVENT,
  QUERN_MEMORY_MODULE
} QuernMemoryKind;
typedef struct QuernMemoryStats {
  uint32_t struct_bytes; /* sizeof(QuernMemoryStats), set by the caller */
  uint32_t reserved;
  uint64_t live_count; /* that have an owner */
  uint64_t live_bytes;
  uint64_t pending_count; /* in the queue for their release */
  uint64_t pending_bytes;
  uint64_t peak_bytes; /* the maximum of live and pending bytes together */
  uint64_t made_count; /* since the context was opened */
} QuernMemoryStats;

#ifdef __cplusplus
}
#endif
#endif
