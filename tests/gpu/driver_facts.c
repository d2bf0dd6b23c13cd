/* SPDX-License-Identifier: Apache-2.0 */
/* Asks a CUDA driver how it behaves where its documentation leaves a choice, or where this project followed
   the documentation without a GPU at hand. It judges nothing: the output of a GPU's driver is compared with
   that of the CPU device. Each question is a process of its own, so that a crash or a hang is an answer, too.

   gcc -std=gnu11 -I<cuda.h's folder> tests/gpu/driver_facts*.c -ldl -lpthread -o driver_facts
   ./driver_facts libcuda.so.1 [name...]       names are prefixes; JOBS=8 is how many run at once
   ./driver_facts --ptx FOLDER                 writes the PTX of the questions about numbers */
#include "driver_facts.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "driver_facts_kernels.h"

enum { kMaxQuestions = 400, kSecondsPerQuestion = 20 };
static const double kLongWait = 0.3; /* of the 0.7 s for which a kernel spins */

static struct {
  const char* name;
  void (*ask)(void);
  FILE* answer;
  pid_t process;
  int status;
} questions[kMaxQuestions];
static int question_count;
static const char* library_path;
static int answer_file;

CUdevice device;
CUcontext primary;
CUmodule base;
static volatile uint32_t* spin_flags;
static CUdeviceptr spin_flags_of_device;

void add_question(const char* name, void (*ask)(void)) {
  questions[question_count].name = name;
  questions[question_count++].ask = ask;
}

void say(const char* format, ...) {
  char text[4096];
  va_list list;
  va_start(list, format);
  int length = vsnprintf(text, sizeof text, format, list);
  va_end(list);
  if (length >= (int)sizeof text) length = (int)sizeof text - 1;
  if (write(answer_file, text, (size_t)length) != length) _exit(3);
}

void* find_function(const char* name) {
  static void* library;
  if (!library) library = dlopen(library_path, RTLD_NOW | RTLD_GLOBAL);
  if (!library) {
    say("cannot open the library");
    _exit(0);
  }
  void* const found = dlsym(library, name);
  if (!found) {
    say("no function %s; ", name);
    _exit(0);
  }
  return found;
}

static const char* result_name(CUresult result) {
  const char* name = NULL;
  if (CU(cuGetErrorName)(result, &name) != CUDA_SUCCESS || !name) return "unknown";
  if (!strncmp(name, "CUDA_", 5)) name += 5;
  return strncmp(name, "ERROR_", 6) ? name : name + 6;
}

void say_result(const char* label, CUresult result) {
  say("%s=%s(%d); ", label, result_name(result), (int)result);
}

void say_wait(const char* label, CUresult result, double elapsed) {
  say("%s=%s(%d),%s; ", label, result_name(result), (int)result,
      elapsed > kLongWait ? "waited" : "did not wait");
}

void must(const char* call, CUresult result) {
  if (result == CUDA_SUCCESS) return;
  say("setup: %s=%s(%d)", call, result_name(result), (int)result);
  _exit(0);
}

double seconds(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return (double)now.tv_sec + (double)now.tv_nsec * 1e-9;
}

void start_without_module(void) {
  MUST(cuInit, 0);
  MUST(cuDeviceGet, &device, 0);
  MUST(cuDevicePrimaryCtxRetain, &primary, device);
  MUST(cuCtxSetCurrent, primary);
}

void start(void) {
  start_without_module();
  MUST(cuModuleLoadData, &base, kBasePtx);
}

CUfunction function(const char* name) {
  CUfunction f;
  MUST(cuModuleGetFunction, &f, base, name);
  return f;
}

/* Leaves the context that was current before it current. */
CUcontext new_context(void) {
  CUcontext made, popped;
  MUST(cuCtxCreate, &made, NULL, 0, device);
  MUST(cuCtxPopCurrent, &popped);
  return made;
}

CUstream new_stream(unsigned flags) {
  CUstream stream;
  MUST(cuStreamCreate, &stream, flags);
  return stream;
}

CUdeviceptr device_memory(size_t bytes) {
  CUdeviceptr memory;
  MUST(cuMemAlloc, &memory, bytes);
  return memory;
}

CUresult launch(CUstream stream, CUfunction f, void** parameters) {
  return CU(cuLaunchKernel)(f, 1, 1, 1, 1, 1, 1, 0, stream, parameters, NULL);
}

void spin(CUstream stream) {
  CUfunction f = function("spin");
  void* memory;
  MUST(cuMemHostAlloc, &memory, 4096, CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP);
  MUST(cuMemHostGetDevicePointer, &spin_flags_of_device, memory, 0);
  spin_flags = memory;
  spin_flags[0] = spin_flags[1] = 0;
  void* parameters[] = {&spin_flags_of_device};
  must("launch of spin", launch(stream, f, parameters));
  const double begin = seconds();
  while (!spin_flags[0]) {
    if (seconds() - begin > 3) {
      say("setup: the kernel does not start; ");
      return;
    }
    usleep(200);
  }
}

void stop_spinning(void) { spin_flags[1] = 1; }

static pid_t start_question(int index) {
  questions[index].answer = tmpfile();
  fflush(stdout);
  const pid_t child = fork();
  if (child) return child;
  answer_file = fileno(questions[index].answer);
  const int nowhere = open("/dev/null", O_RDWR);
  dup2(nowhere, 1);
  if (!getenv("DRIVER_FACTS_STDERR")) dup2(nowhere, 2);
  alarm(kSecondsPerQuestion);
  questions[index].ask();
  _exit(0);
}

static void print_answer(int index) {
  FILE* const file = questions[index].answer;
  printf("%s\t", questions[index].name);
  rewind(file);
  for (int c; (c = fgetc(file)) != EOF;) putchar(c);
  const int status = questions[index].status;
  if (WIFSIGNALED(status)) printf("KILLED by signal %d", WTERMSIG(status));
  if (WIFEXITED(status) && WEXITSTATUS(status)) printf("EXITED with %d", WEXITSTATUS(status));
  putchar('\n');
  fclose(file);
}

static bool is_wanted(const char* name, int count, char** prefixes) {
  for (int i = 0; i < count; ++i)
    if (!strncmp(name, prefixes[i], strlen(prefixes[i]))) return true;
  return count == 0;
}

int main(int count, char** arguments) {
  if (count < 2) {
    fprintf(stderr, "usage: driver_facts LIBCUDA_PATH [name...]\n");
    return 2;
  }
  if (!strcmp(arguments[1], "--ptx") && count > 2) {
    write_ptx(arguments[2]);
    return 0;
  }
  library_path = arguments[1];
  const char* const jobs_text = getenv("JOBS");
  const int jobs = jobs_text ? atoi(jobs_text) : 8;
  int wanted[kMaxQuestions], wanted_count = 0;
  for (int i = 0; i < question_count; ++i)
    if (is_wanted(questions[i].name, count - 2, arguments + 2)) wanted[wanted_count++] = i;
  int started = 0, running = 0, printed = 0;
  while (printed < wanted_count) {
    while (started < wanted_count && running < jobs) {
      const int index = wanted[started++];
      questions[index].process = start_question(index);
      ++running;
    }
    int status;
    const pid_t ended = wait(&status);
    if (ended < 0) return 1;
    --running;
    for (int i = 0; i < started; ++i)
      if (questions[wanted[i]].process == ended) {
        questions[wanted[i]].status = status;
        questions[wanted[i]].process = 0;
      }
    while (printed < started && questions[wanted[printed]].process == 0) print_answer(wanted[printed++]);
    fflush(stdout);
  }
  return 0;
}
