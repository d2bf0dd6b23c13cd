/* SPDX-License-Identifier: Apache-2.0 */
/* What session knows of the CPU device plug-in (libquern-cpu.so): one C struct, got from the exported
 * function quern_cpu_device(). Additions go to the end and raise the version; a caller checks `version` and
 * `struct_bytes`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define QUERN_CPU_PLUGIN_VERSION 8u

#ifdef __cplusplus
extern "C" {
#endif

/* A diagnostics callback: one call a diagnostic. Strings live only during the call; line and column 0: not
 * known. */
typedef void (*QuernDiagnosticSink)(void* user, const char* code, const char* file, uint32_t line,
                                    uint32_t column, const char* message, const char* source_line,
                                    const char* hint);
/* Receives text in pieces. */
typedef void (*QuernTextSink)(void* user, const char* text, size_t size);

/* What is known of the fault that ended a context. Strings live only during the call that gives it. */
#define QUERN_CPU_KNOWS_BLOCK 1u
#define QUERN_CPU_KNOWS_THREADS 2u
#define QUERN_CPU_KNOWS_ADDRESS 4u
typedef struct QuernCpuFault {
  uint32_t struct_bytes;
  int32_t result;           /* the CUresult */
  uint32_t known;           /* QUERN_CPU_KNOWS_*, together */
  uint32_t grid[3];         /* of the launch, in blocks */
  uint32_t block_dim[3];    /* in threads */
  uint32_t block[3];        /* index in the grid */
  uint32_t first_thread[3]; /* index in the block: the lowest that met it, */
  uint32_t last_thread[3];  /* and the last that may have; the same where the thread is known */
  uint32_t line;            /* 0: not known */
  uint32_t access;          /* 0 unknown or none, 1 load, 2 store, 3 atomic */
  uint32_t access_bytes;    /* of one thread */
  uint32_t reserved;
  uint64_t address;
  const char* kernel; /* "": not known */
  const char* file;   /* "": `line` is one of the PTX */
  const char* space;  /* "global"; "": not known */
} QuernCpuFault;
typedef void (*QuernCpuFaultSink)(void* user, const QuernCpuFault* fault);

/* A pass of the compiler that ran `runs` times, for so long altogether. `name` lives during the call. */
typedef void (*QuernCpuPassSink)(void* user, const char* name, uint32_t runs, uint64_t nanoseconds);

/* A message for the log, or what a kernel's printf printed. Strings live only during the call. Returns 1, or
 * 0 where nobody takes it: then the device writes it to stderr or stdout itself. Called from any thread, with
 * no lock of the device's for what is printed; it must make no call of the device's. */
typedef struct QuernCpuLogField {
  const char* name;
  const char* value;
} QuernCpuLogField;
typedef struct QuernCpuLogRecord {
  uint32_t struct_bytes;
  int32_t level;    /* 0 error, 1 warning, 2 info, 3 debug */
  const char* text; /* without a newline at its end */
  size_t field_count;
  const QuernCpuLogField* fields;
} QuernCpuLogRecord;
typedef int (*QuernCpuLogSink)(const QuernCpuLogRecord* record);
typedef struct QuernCpuPrint {
  uint32_t struct_bytes;
  uint32_t reserved;
  const char* text; /* of one call of printf; `text_bytes` long */
  size_t text_bytes;
  const char* kernel;
  void* context; /* CUcontext; null where it is gone */
} QuernCpuPrint;
typedef int (*QuernCpuPrintSink)(const QuernCpuPrint* print);

/* Machine code of a kernel is about to be generated, or, `finished`, has been. */
typedef struct QuernCpuGeneration {
  uint32_t struct_bytes;
  int32_t finished;
  void* context;         /* the CUcontext of the launch; null: it is gone */
  const char* kernel;    /* lives during the call */
  uint64_t instructions; /* of the kernel's PTX, without those of functions that it calls */
} QuernCpuGeneration;
/* On the thread that launches, with no lock of the device's. Until version 7 it took other parameters. */
typedef void (*QuernCpuGenerateSink)(const QuernCpuGeneration* generation);

/* The time for which the device itself has compiled for a kernel so far; 0 for what was known from an earlier
 * load or process. */
typedef struct QuernCpuCompileTimes {
  uint32_t struct_bytes; /* set by the caller: no more is written */
  uint32_t reserved;
  uint64_t load_ns;         /* parsing and checking the PTX of its module */
  uint64_t machine_code_ns; /* generating machine code of the kernel, for all block shapes together */
} QuernCpuCompileTimes;

/* The sources of kernels' machine code and of facts about PTX texts, in this process so far. */
typedef struct QuernCpuCodeStatistics {
  uint32_t struct_bytes; /* set by the caller: no more is written */
  uint32_t reserved;
  uint64_t codes_generated;   /* one a kernel, block shape and so on: by LLVM */
  uint64_t codes_from_memory; /* requests that code of this process answered */
  uint64_t codes_from_disk;
  uint64_t texts_checked;     /* PTX texts whose kernels were inspected here */
  uint64_t texts_from_memory; /* loads of a text that was known here */
  uint64_t texts_from_disk;   /* texts that another process had checked */
  /* Since version 6. */
  uint64_t codes_from_bundles;
  uint64_t texts_from_bundles;
} QuernCpuCodeStatistics;

/* The entries of a bundle that machine code needs. Instruction sets: bits of these. */
#define QUERN_CPU_ISA_BASELINE 1u
#define QUERN_CPU_ISA_AVX2 2u
#define QUERN_CPU_ISA_AVX512 4u
typedef struct QuernCpuBundleRequest {
  uint32_t struct_bytes;
  uint32_t isas;
  const char* ptx;
  size_t ptx_bytes;
  const uint32_t (*blocks)[3]; /* for kernels that do not fix their block's shape */
  size_t block_count;
} QuernCpuBundleRequest;
/* One call an entry: its kind as docs/cache-format.md numbers them, its 32-byte key, what the key was made
 * of, and the content. The bytes live only during the call. */
typedef struct QuernCpuEntry {
  uint32_t struct_bytes;
  uint32_t kind;
  const void* key;
  const void* components;
  size_t components_bytes;
  const void* content;
  size_t content_bytes;
} QuernCpuEntry;
typedef void (*QuernCpuEntrySink)(void* user, const QuernCpuEntry* entry);

typedef struct QuernCpuPlugin {
  uint32_t version;
  uint32_t struct_bytes;
  /* Fills table_bytes / sizeof(void*) slots of a driver::DriverTable. Returns 0, or 1 where the sizes do not
   * agree. */
  int (*driver_table)(void* table, size_t table_bytes);
  /* What stage ("simt", "llvm", "asm") the device makes of kernel `kernel` of the PTX for that block shape;
   * "simt=PASS" and "llvm=PASS", since version 7: the kernel as that pass of the compiler leaves it. Returns
   * 0, or 1 after calling `diagnostics` with what is wrong. */
  int (*stage_text)(const char* ptx, size_t ptx_bytes, const char* kernel, const uint32_t block[3],
                    const char* stage, QuernTextSink text, QuernDiagnosticSink diagnostics, void* user);
  /* Checks that the PTX loads here: the same refusals as cuModuleLoadData, as diagnostics. Returns 0 or 1. */
  int (*check_ptx)(const char* ptx, size_t ptx_bytes, QuernDiagnosticSink diagnostics, void* user);
  /* "avx512", "avx2" or "baseline"; the number of workers. */
  const char* (*isa)(void);
  uint32_t (*worker_count)(void);
  /* Where device printf goes (default: the process's stdout). Null restores the default. One text at a time.
   * Until version 3 it took another kind of sink. */
  void (*set_print_sink)(QuernCpuPrintSink sink);
  /* From now on page-locked and managed memory of a context that a fault ended stays where it is until
   * release_host_memory() frees it, also when the context is reset: the process may still read it. */
  void (*keep_host_memory)(void);
  /* Frees page-locked or managed memory of a context that a fault has ended. Nothing of that context may be
   * running. Returns 0, or 1 where there is no such memory at `address`. */
  int (*release_host_memory)(void* address);
  /* Since version 2. Why cuInit answered CUDA_ERROR_OUT_OF_MEMORY the last time; nothing where it did not. */
  void (*start_errors)(QuernDiagnosticSink diagnostics, void* user);
  /* The addresses that the device has reserved, and whether that is a compact reservation. Returns 0, or 1
   * before cuInit. */
  int (*reservation)(uint64_t* reserved_bytes, int* is_compact);
  /* Since version 3. Calls `sink` once with the fault that ended this thread's current context. Returns 0, or
   * 1 without a call where there is no such context or no fault. */
  int (*current_fault)(QuernCpuFaultSink sink, void* user);
  /* Since version 3. The name that reports are to give the kernel `function` (a CUfunction), which its PTX
   * may name otherwise. Returns 0, or 1 for a handle that is unknown. */
  int (*name_kernel)(void* function, const char* name);
  /* Since version 4. Ends the launches that a stream of this thread's current context has, running or queued,
   * and returns when none of them runs; null: the default stream. All else that is queued still runs. Returns
   * the CUresult. */
  int32_t (*cancel_stream)(void* stream);
  /* The same for all streams of this thread's current context. */
  int32_t (*cancel_context)(void);
  /* How long a launch that this thread makes from now on may run: it and its context end with
   * CUDA_ERROR_LAUNCH_TIMEOUT after that. 0: as long as QUERN_CPU_TIMEOUT says. */
  void (*set_launch_limit)(uint64_t nanoseconds);
  /* Since version 4. Where messages go (default: stderr). Null restores the default. */
  void (*set_log_sink)(QuernCpuLogSink sink);
  /* Null restores the default: nobody is told. */
  void (*set_generate_sink)(QuernCpuGenerateSink sink);
  /* Since version 5. Returns 0, or 1 where `statistics` is null or the process was forked
   * after cuInit. */
  int (*code_statistics)(QuernCpuCodeStatistics* statistics);
  /* Since version 5. Generates the machine code that launches of `function` (a CUfunction of this thread's
   * current context) with that block shape run, unless it is there: for grids of less than 2^31 threads along
   * each axis. Returns the CUresult of such a launch. */
  int32_t (*prepare_kernel)(void* function, const uint32_t block[3]);
  /* Since version 5. Launches of `function` (a CUfunction) are copies: cancelling leaves them as it leaves
   * all copies. Returns 0, or 1 for a handle that is unknown. */
  int (*mark_copy_kernel)(void* function);
  /* Since version 6. Generates the code of the request's PTX for bundles, without a device. Calls
   * `without_code` with the name of each kernel for whose block no shape is known. Returns 0, or 1 after
   * calling `diagnostics` with what is wrong. */
  int (*bundle_code)(const QuernCpuBundleRequest* request, QuernCpuEntrySink entries,
                     QuernTextSink without_code, QuernDiagnosticSink diagnostics, void* user);
  /* Since version 7. The same as stage_text, and calls `pass` for each pass that ran, in order. */
  int (*timed_stage_text)(const char* ptx, size_t ptx_bytes, const char* kernel, const uint32_t block[3],
                          const char* stage, QuernTextSink text, QuernCpuPassSink pass,
                          QuernDiagnosticSink diagnostics, void* user);
  /* Since version 8. Of `function` (a CUfunction). Returns 0, or 1 for a handle that is unknown. */
  int (*compile_times)(void* function, QuernCpuCompileTimes* times);
} QuernCpuPlugin;

/* The plug-in's one export beside cu*. Never null. */
const QuernCpuPlugin* quern_cpu_device(void);

#ifdef __cplusplus
}
#endif
