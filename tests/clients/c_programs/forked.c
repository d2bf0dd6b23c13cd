// SPDX-License-Identifier: Apache-2.0
// A child of fork has no driver; its parent's goes on.
#include <sys/wait.h>
#include <unistd.h>

#include "program.h"

int main(void) {
  CUdeviceptr cell;
  int status = -1;
  begin();
  CHECK(cuMemAlloc(&cell, 4));
  const pid_t child = fork();
  REQUIRE(child >= 0);
  if (child == 0) {
    CUdeviceptr other;
    _exit(cuMemAlloc(&other, 4) == CUDA_ERROR_NOT_INITIALIZED ? 0 : 1);
  }
  REQUIRE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
  CHECK(cuMemFree(cell));
  return 0;
}
