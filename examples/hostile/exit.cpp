// SPDX-License-Identifier: Apache-2.0
// exit() while other threads compile or kernels run, fork(), cancelled threads, and small stacks: the process
// ends soon, with its own status and its output, or continues. Each scenario is a process of its own: this
// program, started with the scenario's name.
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <functional>
#include <quern/quern.hpp>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "check.hpp"

namespace {

constexpr int kStatus = 7;
constexpr const char* kSource = R"(
extern "C" __global__ void fine(int* to) { to[blockIdx.x * blockDim.x + threadIdx.x] = 5; }
extern "C" __global__ void spin(volatile int* to) { while (to[0] == 0); }
extern "C" __global__ void count(int* to) { for (;;) atomicAdd(to, 1); }
)";

bool works(const quern::Session& session, const quern::Module& module) {
  const quern::DeviceArray<int> array = session.to_device(std::vector<int>(64));
  module.kernel("fine")({.grid = 2, .block = 32})(array);
  return array.copy_to_host() == std::vector<int>(64, 5);
}

/// The body of a thread that works until the process ends: exit() may reject its work before that.
template <class Work>
void until_exit(const Work& work) try {
  for (int i = 0;; ++i) work(i);
} catch (const quern::Error&) {
  for (;;) pause();
}

/// Compiles one new kernel after the other: by NVRTC, and for this processor.
void compile_for_ever(std::atomic<int>& begun, int thread) {
  const quern::Session& session = *new quern::Session("cpu");  // exit() does not destroy it
  until_exit([&](int i) {
    // The variable is in the PTX: machine code of equal PTX is generated once.
    const std::string text = kSource + ("__device__ int mark = " + std::to_string(2 * i + thread) + ";");
    ++begun;
    if (!works(session, session.load_cuda(text))) std::_Exit(1);
  });
}

/// exit() this many milliseconds after the first compilation of two threads began.
[[noreturn]] void exit_while_compiling(int milliseconds) {
  quern::doctor();  // loads NVRTC: what is told of here begins with its first compilation
  std::atomic<int> begun = 0;
  std::thread([&begun] { compile_for_ever(begun, 0); }).detach();
  std::thread([&begun] { compile_for_ever(begun, 1); }).detach();
  while (begun == 0) std::this_thread::yield();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  std::fputs("output", stdout);  // not flushed: exit() does it
  std::exit(kStatus);
}

/// exit() while another thread opens NVRTC, so long after this one opened its session.
[[noreturn]] void exit_while_loading(int milliseconds) {
  static const quern::Session& session = *new quern::Session("cpu");  // exit() does not destroy it
  std::thread([] { until_exit([](int) { session.load_cuda(kSource); }); }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  std::fputs("output", stdout);
  std::exit(kStatus);
}

/// exit() while other threads load a source that is in the cache: OpenSSL computes its digest each time.
[[noreturn]] void exit_while_loading_again(int milliseconds) {
  static const quern::Session& session = *new quern::Session("cpu");  // exit() does not destroy it
  session.load_cuda(kSource);
  for (int i = 0; i < 3; ++i)
    std::thread([] { until_exit([](int) { session.load_cuda(kSource); }); }).detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(milliseconds));
  std::fputs("output", stdout);
  std::exit(kStatus);
}

/// exit() while kernels run that never end, with the session and its arrays alive.
[[noreturn]] void exit_while_running(const char* kernel) {
  static const quern::Session session("cpu");
  static const quern::Module module = session.load_cuda(kSource);
  static const quern::DeviceArray<int> array = session.to_device(std::vector<int>(64));
  static const quern::Stream stream = session.stream();
  module.kernel(kernel)({.grid = 64, .block = 256, .stream = stream})(array);
  static std::thread waiting([] { stream.synchronize(); });
  waiting.detach();
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  std::fputs("output", stdout);
  std::exit(kStatus);
}

/// exit() in a callback, or while a callback waits for ever, with the session and its stream alive.
[[noreturn]] void exit_with_callback(bool inside) {
  static const quern::Session session({.device = "cpu", .isolated = true});
  static const quern::Stream stream = session.stream();
  static std::atomic<bool> begun = false;
  stream.add_callback([inside] {
    begun = true;
    if (inside) {
      std::fputs("output", stdout);
      std::exit(kStatus);
    }
    for (;;) pause();
  });
  if (inside)
    for (;;) pause();
  while (!begun) std::this_thread::yield();
  std::fputs("output", stdout);
  std::exit(kStatus);
}

/// Children that are forked while a thread compiles: each compiles as well, or is told why not.
void fork_while_compiling() {
  std::atomic<int> begun = 0;
  const quern::Session session("cpu");
  std::thread([&begun] { compile_for_ever(begun, 0); }).detach();
  while (begun < 2) std::this_thread::yield();
  for (int i = 0; i < 5; ++i) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(10);
      try {
        session.load_cuda("__global__ void child() {}  // " + std::to_string(i));
        _exit(1);  // a child has no device
      } catch (const quern::Error& error) {
        _exit(error.code() == quern::ErrorCode::driver ? 0 : 2);
      }
    }
    int status = 0;
    waitpid(child, &status, 0);
    EXPECT(status == 0);
  }
  std::fputs("output", stdout);
  std::exit(kStatus);
}

/// A thread that is cancelled while it waits for a kernel: the wait ends first.
void cancel_waiting_thread() {
  const quern::Session session("cpu");
  const quern::MappedNDArray flag = session.mapped_array({1}, quern::Dtype::int32);
  auto* const value = reinterpret_cast<volatile int*>(flag.host().data());
  *value = 0;
  session.load_cuda(kSource).kernel("spin")({.grid = 1, .block = 1})(flag);
  pthread_t thread;
  const auto wait = [](void* argument) -> void* {
    static_cast<const quern::Session*>(argument)->synchronize();
    for (;;) pause();
  };
  EXPECT(pthread_create(&thread, nullptr, wait, const_cast<quern::Session*>(&session)) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  EXPECT(pthread_cancel(thread) == 0);
  std::this_thread::sleep_for(std::chrono::milliseconds(100));
  *value = 1;
  void* result = nullptr;
  EXPECT(pthread_join(thread, &result) == 0);
  EXPECT(result == PTHREAD_CANCELED);
  EXPECT(works(session, session.load_cuda(kSource)));
}

/// Everything that compiles and runs, on this thread. Reports failures.
void use_everything() {
  try {
    const quern::Session session("cpu");
    const quern::Module module = session.load_cuda(kSource);
    EXPECT(works(session, module));
    const quern::DeviceArray<float> array = session.to_device(std::vector<float>(64, 1.0f));
    session
        .load_python(
            "from numba import cuda\n@cuda.jit\ndef twice(a):\n    i = cuda.grid(1)\n    a[i] = a[i] * 2.0\n")
        .kernel("twice")({.grid = 1, .block = 64})(array);
    EXPECT(array.copy_to_host() == std::vector<float>(64, 2.0f));
    bool refused = false;
    try {
      session.load_cuda("__global__ void broken( {");
    } catch (const quern::CompileError& error) {
      refused = !error.diagnostics().empty();
    }
    EXPECT(refused);
  } catch (const quern::Error& error) {
    std::printf("%s\n", error.what());
  }
}

void on_small_stack() {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  EXPECT(pthread_attr_setstacksize(&attributes, 64 << 10) == 0);
  pthread_t thread;
  const auto body = [](void*) -> void* {
    use_everything();
    return nullptr;
  };
  EXPECT(pthread_create(&thread, &attributes, body, nullptr) == 0);
  pthread_join(thread, nullptr);
}

int run_scenario(std::string_view name, int number) {
  if (name == "compile") exit_while_compiling(number);
  if (name == "load") exit_while_loading(number);
  if (name == "again") exit_while_loading_again(number);
  if (name == "spin" || name == "count") exit_while_running(name.data());
  if (name == "callback") exit_with_callback(number != 0);
  if (name == "fork") fork_while_compiling();
  if (name == "cancel") cancel_waiting_thread();
  if (name == "thread") on_small_stack();
  if (name == "main") use_everything();
  std::fputs("output", stdout);
  return kStatus;
}

/// This program once more. Its status, or minus the signal that ended it.
int run_self(const char* self, const std::string& name, const std::string& number, std::string& output) {
  int ends[2];
  EXPECT(pipe(ends) == 0);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_adddup2(&actions, ends[1], 1);
  posix_spawn_file_actions_addclose(&actions, ends[0]);
  std::string arguments[] = {self, name, number};
  char* argv[] = {arguments[0].data(), arguments[1].data(), arguments[2].data(), nullptr};
  pid_t child = 0;
  EXPECT(posix_spawn(&child, self, &actions, nullptr, argv, environ) == 0);
  posix_spawn_file_actions_destroy(&actions);
  close(ends[1]);
  char buffer[4096];
  for (ssize_t got = 0; (got = read(ends[0], buffer, sizeof buffer)) > 0;)
    output.append(buffer, static_cast<std::size_t>(got));
  close(ends[0]);
  int status = 0;
  EXPECT(waitpid(child, &status, 0) == child);
  return WIFSIGNALED(status) ? -WTERMSIG(status) : WEXITSTATUS(status);
}

/// True if it ends with its own status and all of its output, within a minute.
bool ends_well(const char* self, const std::string& name, int number) {
  std::string output;
  const int status = run_self(self, name, std::to_string(number), output);
  if (status == kStatus && output == "output") return true;
  std::fprintf(stderr, "%s %d: status %d, output '%s'\n", name.c_str(), number, status, output.c_str());
  return false;
}

bool ends_soon(const char* self, const std::string& name) {
  const auto begin = std::chrono::steady_clock::now();
  return ends_well(self, name, 0) && std::chrono::steady_clock::now() - begin < std::chrono::seconds(20);
}

}  // namespace

int main(int count, char** arguments) {
  if (count == 3) {
    alarm(60);
    return run_scenario(arguments[1], std::atoi(arguments[2]));
  }
  const char* const self = "/proc/self/exe";
  bool good = true;
  for (const int milliseconds : {0, 1, 3, 10, 30, 60, 100, 200, 400})
    good = ends_well(self, "compile", milliseconds) && good;
  for (int milliseconds = 0; milliseconds < 60; milliseconds += 2)
    good = ends_well(self, "load", milliseconds) && good;
  for (int milliseconds = 1; milliseconds <= 20; ++milliseconds)
    good = ends_well(self, "again", milliseconds) && good;
  good = ends_soon(self, "spin") && good;
  good = ends_soon(self, "count") && good;
  for (const int inside : {0, 1}) good = ends_well(self, "callback", inside) && good;
  good = ends_well(self, "fork", 0) && good;
  good = ends_well(self, "cancel", 0) && good;
  good = ends_well(self, "thread", 0) && good;
  const rlimit small{64 << 10, RLIM_INFINITY};  // for the programs that this one starts
  EXPECT(setrlimit(RLIMIT_STACK, &small) == 0);
  good = ends_well(self, "main", 0) && good;
  if (!good) return 1;
  std::puts("ok");
}
