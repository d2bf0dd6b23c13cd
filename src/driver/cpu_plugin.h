/* SPDX-License-Identifier: Apache-2.0 */
/* What session knows of the CPU device plug-in (libquern-cpu.so): one C struct, got from the exported
 * function quern_cpu_device(). Additions go to the end and raise the version; a caller checks `version` and
 * `struct_bytes`. */
#pragma once

#include <stddef.h>
#include <stdint.h>

#define QUERN_CPU_PLUGIN_VERSION 2u

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

typedef struct QuernCpuPlugin {
  uint32_t version;
  uint32_t struct_bytes;
  /* Fills table_bytes / sizeof(void*) slots of a driver::DriverTable. Returns 0, or 1 where the sizes do not
   * agree. */
  int (*driver_table)(void* table, size_t table_bytes);
  /* What stage ("simt", "llvm", "asm") the device makes of kernel `kernel` of the PTX for that block shape.
   * Returns 0, or 1 after calling `diagnostics` with what is wrong. */
  int (*stage_text)(const char* ptx, size_t ptx_bytes, const char* kernel, const uint32_t block[3],
                    const char* stage, QuernTextSink text, QuernDiagnosticSink diagnostics, void* user);
  /* Checks that the PTX loads here: the same refusals as cuModuleLoadData, as diagnostics. Returns 0 or 1. */
  int (*check_ptx)(const char* ptx, size_t ptx_bytes, QuernDiagnosticSink diagnostics, void* user);
  /* "avx512", "avx2" or "baseline"; the number of workers. */
  const char* (*isa)(void);
  uint32_t (*worker_count)(void);
  /* Where device printf goes (default: the process's stdout). Null restores the default. */
  void (*set_printf_sink)(QuernTextSink sink, void* user);
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
} QuernCpuPlugin;

/* The plug-in's one export beside cu*. Never null. */
const QuernCpuPlugin* quern_cpu_device(void);

#ifdef __cplusplus
}
#endif
