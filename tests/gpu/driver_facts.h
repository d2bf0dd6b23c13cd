/* SPDX-License-Identifier: Apache-2.0 */
/* Frame of driver_facts: questions, their answers, and the calls that most of them need. */
#pragma once
#include <cuda.h>
#include <stdbool.h>
#include <stdint.h>

/* Defines and registers a question. The order of the registrations is the order of the output. */
#define QUESTION(name)                                                                          \
  static void name(void);                                                                       \
  __attribute__((constructor)) static void register_##name(void) { add_question(#name, name); } \
  static void name(void)

void add_question(const char* name, void (*ask)(void));

/* A driver function by the name that cuda.h gives it; a missing one ends the question. */
#define CU_NAMED(f) ((__typeof__(&f))find_function(#f))
#define CU(f) CU_NAMED(f)
void* find_function(const char* name);

/* Calls f and adds its result to the answer. */
#define R(label, f, ...) say_result(label, CU(f)(__VA_ARGS__))
/* Calls f, which has to succeed; otherwise the question ends. */
#define MUST(f, ...) must(#f, CU(f)(__VA_ARGS__))
/* Calls f while a kernel spins and adds its result and whether it took as long as the kernel. */
#define WAITS(label, f, ...)                                    \
  do {                                                          \
    const double begin_of_call = seconds();                     \
    const CUresult result_of_call = CU(f)(__VA_ARGS__);         \
    say_wait(label, result_of_call, seconds() - begin_of_call); \
  } while (0)

void say(const char* format, ...) __attribute__((format(printf, 1, 2)));
void say_result(const char* label, CUresult result);
void say_wait(const char* label, CUresult result, double elapsed);
void must(const char* call, CUresult result);
double seconds(void);

/* The state of a question after start(): the primary context is current. */
extern CUdevice device;
extern CUcontext primary;
extern CUmodule base;
void start_without_module(void);
void start(void);
CUfunction function(const char* name);
CUcontext new_context(void);
CUstream new_stream(unsigned flags);
CUdeviceptr device_memory(size_t bytes);
CUresult launch(CUstream stream, CUfunction f, void** parameters);

/* Starts a kernel that spins for kSpinSeconds at most, and waits until it runs. */
void spin(CUstream stream);
void stop_spinning(void);

/* Writes the PTX of each row of driver_facts_numbers.c to a file in the folder, for an assembler at hand. */
void write_ptx(const char* folder);
