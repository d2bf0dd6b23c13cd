/* SPDX-License-Identifier: Apache-2.0 */
/* The C ABI as a C program sees it: compiled as C99, linked against libquern alone. */
#include <quern/quern.h>
#include <stdio.h>
#include <string.h>

static const char* const kPtx =
    ".version 6.0\n.target sm_50\n.address_size 64\n"
    ".visible .entry scale(.param .u64 x, .param .f32 by)\n{\n"
    "  .reg .b32 %r; .reg .f32 %f<3>; .reg .b64 %d<3>;\n"
    "  mov.u32 %r, %tid.x; ld.param.u64 %d1, [x]; ld.param.f32 %f2, [by];\n"
    "  mul.wide.u32 %d2, %r, 4; add.u64 %d1, %d1, %d2;\n"
    "  ld.global.f32 %f1, [%d1]; mul.f32 %f1, %f1, %f2; st.global.f32 [%d1], %f1; ret;\n}\n";

static int failures = 0;
static void check(int right, const char* what) {
  char text[512];
  if (right) return;
  quern_last_error(text, sizeof text);
  fprintf(stderr, "c_api: not so: %s (%s)\n", what, text);
  ++failures;
}
#define CHECK(condition) check(condition, #condition)

static void keep_text(void* user, const QuernLogRecord* record) { *(const char**)user = record->text; }
static void count_print(void* user, const QuernDevicePrint* print) { *(size_t*)user += print->text_bytes; }

static int released = 0;
static void count_release(void* user) { *(int*)user += 1; }

static void arrays(QuernSession session, QuernKernel kernel) {
  const int64_t shape[2] = {4, 8}, negative[1] = {-1};
  float host[32], back[32];
  QuernArray array = {0}, view = {0};
  QuernCudaArray description;
  QuernLaunch launch = {.struct_bytes = sizeof launch, .grid = {1, 1, 1}, .block = {32, 1, 1}};
  QuernArgument arguments[2];
  double by = 3;
  int i;
  for (i = 0; i < 32; ++i) host[i] = (float)i;
  CHECK(quern_array_new(session, QUERN_FLOAT32, 2, shape, &array) == QUERN_OK);
  CHECK(quern_array_new(session, QUERN_FLOAT32, 1, negative, &view) == QUERN_USAGE && view.id == 0);
  CHECK(quern_array_from_host(array, host, sizeof host) == QUERN_OK);
  CHECK(quern_array_from_host(array, host, 8) == QUERN_USAGE);
  memset(&description, 0, sizeof description);
  CHECK(quern_array_describe(array, &description) == QUERN_USAGE); /* struct_bytes is not set */
  description.struct_bytes = sizeof description;
  CHECK(quern_array_describe(array, &description) == QUERN_OK);
  CHECK(description.ndim == 2 && description.shape[1] == 8 && strcmp(description.typestr, "<f4") == 0);
  CHECK(quern_array_adopt(session, &description, count_release, &released, &view) == QUERN_OK);
  memset(arguments, 0, sizeof arguments);
  arguments[0].kind = QUERN_ARGUMENT_ARRAY;
  arguments[0].array = view;
  arguments[1].kind = QUERN_ARGUMENT_SCALAR;
  arguments[1].dtype = QUERN_FLOAT64;
  arguments[1].data = &by;
  CHECK(quern_launch(kernel, &launch, arguments, 2) == QUERN_OK);
  CHECK(quern_launch(kernel, &launch, arguments, 1) == QUERN_USAGE);
  CHECK(quern_array_to_host(array, back, sizeof back) == QUERN_OK && back[31] == 93.0f);
  CHECK(quern_release(view.id) == QUERN_OK && released == 1);
  CHECK(quern_release(view.id) == QUERN_BAD_HANDLE);
  CHECK(quern_array_to_host(view, back, sizeof back) == QUERN_BAD_HANDLE);
  description.typestr = "|O8"; /* the rest of it is the array's own, and lives as long */
  CHECK(quern_array_adopt(session, &description, count_release, &released, &view) == QUERN_USAGE &&
        released == 2);
  CHECK(quern_release(array.id) == QUERN_OK);
}

static void streams(QuernSession session) {
  const int64_t shape[1] = {1000};
  QuernStream stream = {0};
  QuernArray array = {0}, mapped = {0};
  int host[1000], back[1000];
  void* memory = NULL;
  int i;
  for (i = 0; i < 1000; ++i) host[i] = i;
  CHECK(quern_stream_new(session, &stream) == QUERN_OK);
  CHECK(quern_array_new(session, QUERN_INT32, 1, shape, &array) == QUERN_OK);
  CHECK(quern_array_from_host_on(array, host, sizeof host, stream) == QUERN_OK);
  CHECK(quern_array_to_host_on(array, back, sizeof back, stream) == QUERN_OK);
  CHECK(quern_stream_synchronize(stream) == QUERN_OK && back[999] == 999);
  CHECK(quern_array_new_mapped(session, QUERN_INT32, 1, shape, &mapped, &memory) == QUERN_OK &&
        memory != NULL);
  CHECK(quern_release(stream.id) == QUERN_OK);
  CHECK(quern_stream_synchronize(stream) == QUERN_BAD_HANDLE);
}

static int live = 0;
static QuernArray pool = {0};
static void* take(void* user, size_t bytes, size_t alignment, void* cu_stream) {
  QuernCudaArray description = {0};
  (void)alignment, (void)cu_stream;
  description.struct_bytes = sizeof description;
  if (bytes > 4096 || quern_array_describe(pool, &description) != QUERN_OK) return NULL;
  ++*(int*)user;
  return description.data; /* one block, for one array at a time */
}
static void give(void* user, void* memory, size_t bytes, size_t alignment, void* cu_stream) {
  (void)memory, (void)bytes, (void)alignment, (void)cu_stream;
  --*(int*)user;
}

static void memory(QuernSession session) {
  const int64_t shape[1] = {1024}, large[1] = {100000};
  QuernAllocator allocator = {0};
  QuernArray array = {0}, other = {0};
  QuernPin pin = {0}, again = {0};
  QuernEvent start = {0}, end = {0};
  float values[1024], back[1024];
  double ms = -1;
  int32_t reached = 0;
  size_t free_bytes = 0, total_bytes = 0, needed = 0;
  char name[8];
  allocator.struct_bytes = sizeof allocator;
  allocator.user = &live;
  allocator.allocate = take;
  allocator.deallocate = give;
  allocator.release = count_release;
  CHECK(quern_session_device_name(session, name, sizeof name, &needed) == QUERN_OK && needed == 17 &&
        !strcmp(name, "quern C"));
  CHECK(quern_session_memory(session, &free_bytes, &total_bytes) == QUERN_OK && free_bytes <= total_bytes);
  memset(values, 1, sizeof values);
  CHECK(quern_pin(session, values, sizeof values, &pin) == QUERN_OK);
  CHECK(quern_pin(session, values, sizeof values, &again) == QUERN_USAGE && again.id == 0);
  CHECK(quern_event_new(session, &start) == QUERN_OK && quern_event_new(session, &end) == QUERN_OK);
  CHECK(quern_event_record(start, (QuernStream){0}) == QUERN_OK);
  CHECK(quern_array_new(session, QUERN_FLOAT32, 1, shape, &pool) == QUERN_OK);
  CHECK(quern_array_from_host(pool, values, sizeof values) == QUERN_OK);
  CHECK(quern_array_new(session, QUERN_FLOAT32, 1, shape, &other) == QUERN_OK);
  CHECK(quern_array_copy(other, pool) == QUERN_OK &&
        quern_array_copy_on(other, pool, (QuernStream){0}) == QUERN_OK);
  CHECK(quern_event_record(end, (QuernStream){0}) == QUERN_OK &&
        quern_event_wait(end, (QuernStream){0}) == QUERN_OK);
  CHECK(quern_event_synchronize(end) == QUERN_OK && quern_event_query(end, &reached) == QUERN_OK &&
        reached == 1);
  CHECK(quern_event_elapsed_ms(start, end, &ms) == QUERN_OK && ms >= 0);
  CHECK(quern_array_to_host(other, back, sizeof back) == QUERN_OK && memcmp(values, back, sizeof back) == 0);
  CHECK(quern_release(pin.id) == QUERN_OK &&
        quern_event_synchronize((QuernEvent){pin.id}) == QUERN_BAD_HANDLE);
  released = 0;
  CHECK(quern_session_set_allocator(session, &allocator) == QUERN_OK);
  CHECK(quern_array_new(session, QUERN_FLOAT32, 1, shape, &array) == QUERN_OK && live == 1);
  CHECK(quern_array_new(session, QUERN_FLOAT32, 1, large, &other) == QUERN_OUT_OF_MEMORY);
  CHECK(quern_session_set_allocator(session, NULL) == QUERN_OK && released == 0);
  CHECK(quern_release(array.id) == QUERN_OK);
}

static void python(QuernSession session) {
  static const char kSource[] =
      "from numba import cuda\n"
      "@cuda.jit\n"
      "def add(x, by):\n"
      "    i = cuda.grid(1)\n"
      "    if i < x.size:\n"
      "        x[i] += by\n";
  const char* const options[] = {"--fmad=false"};
  QuernSource source = {0};
  QuernModule module = {0};
  QuernKernel kernel = {0};
  QuernArray array = {0};
  QuernLaunch launch = {.struct_bytes = sizeof launch, .grid = {1, 1, 1}, .block = {32, 1, 1}};
  QuernArgument arguments[2] = {{QUERN_ARGUMENT_ARRAY, QUERN_INT32, {0}, NULL, 0}, {QUERN_ARGUMENT_SCALAR, QUERN_INT64, {0}, NULL, 8}};
  const int64_t shape[1] = {3}, by = 40;
  int host[3] = {1, 2, 3};
  CHECK(quern_load(session, &source, &module) == QUERN_USAGE);
  source.struct_bytes = sizeof source;
  source.language = QUERN_LANGUAGE_PYTHON;
  source.text = "from numba import cuda\n@cuda.jit\ndef broken(:\n    pass\n";
  CHECK(quern_load(session, &source, &module) == QUERN_COMPILE);
  source.text = kSource;
  source.file_name = "add.py";
  source.options = options;
  source.option_count = 1;
  CHECK(quern_load(session, &source, &module) == QUERN_OK);
  CHECK(quern_kernel(module, "add", &kernel) == QUERN_OK);
  CHECK(quern_array_new(session, QUERN_INT32, 1, shape, &array) == QUERN_OK);
  CHECK(quern_array_from_host(array, host, sizeof host) == QUERN_OK);
  arguments[0].array = array;
  arguments[1].data = &by;
  CHECK(quern_launch(kernel, &launch, arguments, 2) == QUERN_OK);
  CHECK(quern_array_to_host(array, host, sizeof host) == QUERN_OK);
  CHECK(host[0] == 41 && host[2] == 43);
}

/* Compiles, saves and loads; on a machine without NVRTC there is nothing to compile with. */
static void compiling(QuernSession session) {
  static const char* const kSource = "extern \"C\" __global__ void set(int* x) { *x = 7; }";
  const uint32_t block[3] = {32, 1, 1};
  const QuernSource source = {.struct_bytes = sizeof source, .text = kSource, .file_name = "set.cu"};
  const QuernCompileOptions options = {.struct_bytes = sizeof options, .compute_capability = 89};
  QuernCompileStats stats = {.struct_bytes = sizeof stats};
  QuernCacheStats cache = {.struct_bytes = sizeof cache};
  QuernCompiled compiled = {0};
  QuernPending pending = {0}, preparation = {0};
  QuernModule module = {0}, loaded = {0};
  QuernKernel kernel = {0};
  char saved[65536], text[64];
  size_t bytes = 0;
  int32_t ended = 0;
  const QuernStatus status = quern_compile_source(&source, &options, &compiled);
  if (status == QUERN_NOT_FOUND) {
    puts("SKIPPED: no NVRTC on this machine");
    return;
  }
  CHECK(status == QUERN_OK);
  CHECK(quern_compiled_kernel_text(compiled, 0, QUERN_KERNEL_NAME, text, sizeof text, NULL) == QUERN_OK);
  CHECK(strcmp(text, "set") == 0);
  CHECK(quern_load_async(session, &source, &pending) == QUERN_OK);
  CHECK(quern_pending_wait(pending, UINT64_MAX, &ended) == QUERN_OK && ended != 0);
  CHECK(quern_pending_result(pending, &module) == QUERN_OK);
  CHECK(quern_kernel(module, NULL, &kernel) == QUERN_OK);
  CHECK(quern_kernel_prepare(kernel, block, NULL) == QUERN_OK);
  CHECK(quern_kernel_prepare_async(kernel, block, NULL, &preparation) == QUERN_OK);
  CHECK(quern_pending_result(preparation, NULL) == QUERN_OK);
  CHECK(quern_module_saved(module, saved, sizeof saved, &bytes) == QUERN_OK && bytes > 100);
  CHECK(quern_load_saved_bytes(session, saved, bytes, &loaded) == QUERN_OK);
  CHECK(quern_load_saved_bytes(session, saved, bytes - 1, &loaded) == QUERN_IO);
  CHECK(quern_session_compile_stats(session, &stats) == QUERN_OK);
  CHECK(stats.nvrtc_runs + stats.cache_hits >= 1);
  CHECK(quern_compile_cache_stats(QUERN_CACHE_MEMORY, &cache) == QUERN_OK && cache.entry_count > 0);
  CHECK(quern_release(compiled.id) == QUERN_OK && quern_release(pending.id) == QUERN_OK);
}

int main(void) {
  QuernSession session = {0};
  QuernModule module = {0};
  QuernKernel kernel = {0};
  char text[256];
  const char* logged = NULL;
  size_t printed = 0;
  CHECK(quern_abi_version() >= QUERN_ABI_VERSION);
  CHECK(quern_set_log_handler(keep_text, &logged) == QUERN_OK && quern_set_log_handler(NULL, NULL) == QUERN_OK);
  CHECK(quern_set_printf_handler(count_print, &printed) == QUERN_OK && quern_set_printf_handler(NULL, NULL) == QUERN_OK);
  CHECK(quern_session_open("cp", &session) == QUERN_USAGE);
  CHECK(quern_last_error(text, sizeof text) > 10 && strstr(text, "'cp'") != NULL);
  CHECK(quern_last_error(NULL, 0) == strlen(text) + 1);
  if (quern_session_open("cpu", &session) != QUERN_OK)
    return quern_last_error(text, sizeof text), fputs(text, stderr), 1;
  CHECK(quern_load_ptx(session, "nonsense", &module) == QUERN_COMPILE);
  CHECK(quern_load_ptx(session, kPtx, &module) == QUERN_OK);
  CHECK(quern_kernel(module, "other", &kernel) == QUERN_NOT_FOUND);
  CHECK(quern_kernel(module, "scale", &kernel) == QUERN_OK);
  CHECK(quern_release(module.id) == QUERN_OK);
  arrays(session, kernel);
  streams(session);
  memory(session);
  python(session);
  compiling(session);
  CHECK(quern_session_synchronize(session) == QUERN_OK);
  CHECK(quern_release(session.id) == QUERN_OK);
  CHECK(quern_session_synchronize(session) == QUERN_BAD_HANDLE);
  return failures != 0;
}
