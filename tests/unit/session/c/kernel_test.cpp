// SPDX-License-Identifier: Apache-2.0
// Modules, kernels and launches through the C functions.
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <thread>

#include "native.hpp"

using namespace c;

namespace {

constexpr const char* kCuda = R"(
#include <quern/device.cuh>
struct Body { float x, y; double mass; int id; };
extern "C" __global__ void weigh(const Body* bodies, double* total, int n) {
  for (int i = 0; i < n; ++i) *total += bodies[i].mass * bodies[i].x;
}
extern "C" __global__ void unpack(Body body, double* out) {
  out[0] = body.x; out[1] = body.y; out[2] = body.mass; out[3] = body.id;
}
extern "C" __global__ void add_rows(quern::array<const float, 2> from, quern::array<float, 1> sums) {
  long long i = threadIdx.x + 1LL * blockIdx.x * blockDim.x;
  if (i >= sums.extents[0]) return;
  sums[i] = 0;
  for (long long j = 0; j < from.extents[1]; ++j) sums[i] += from(i, j);
}
extern "C" __global__ void count_threads(unsigned* count, unsigned long long tasks) {
  if (blockIdx.x * blockDim.x + threadIdx.x < tasks) atomicAdd(count, 1u);
}
)";

struct Body {
  float x, y;
  double mass;
  int id;
};
QuernElement body() {
  static const QuernField fields[] = {{"x", {QUERN_FLOAT32, 0, 0, nullptr}, 0, 0, 0, nullptr},
                                      {"y", {QUERN_FLOAT32, 0, 0, nullptr}, 4, 0, 0, nullptr},
                                      {"mass", {QUERN_FLOAT64, 0, 0, nullptr}, 8, 0, 0, nullptr},
                                      {"id", {QUERN_INT32, 0, 0, nullptr}, 16, 0, 0, nullptr}};
  static const QuernRecord record = {sizeof(QuernRecord), sizeof(QuernField), fields, 4, sizeof(Body)};
  return {QUERN_BOOL, 0, 0, &record};
}

std::string text_of(QuernKernel kernel, QuernKernelText which) {
  std::size_t needed = 0;
  QUERN_GOOD(quern_kernel_text(kernel, which, nullptr, 0, &needed));
  std::string text(needed, '\0');
  QUERN_GOOD(quern_kernel_text(kernel, which, text.data(), needed, nullptr));
  text.pop_back();
  return text;
}

struct Folder {
  std::filesystem::path path =
      std::filesystem::temp_directory_path() / ("quern-c-api-" + std::to_string(getpid()));
  Folder() { std::filesystem::create_directory(path); }
  ~Folder() { std::filesystem::remove_all(path); }
  std::string write(const char* name, const char* text) const {
    std::ofstream(path / name) << text;
    return (path / name).string();
  }
};

}  // namespace

TEST_CASE("files load by their suffix; what is missing, of another kind or wrong is told by its name") {
  const Session session = open_cpu();
  const Folder folder;
  Module module;
  Kernel kernel;
  const std::string ptx = folder.write("scale.ptx", kScalePtx);
  QUERN_GOOD(quern_load_file(session, ptx.c_str(), module.place()));
  QUERN_GOOD(quern_kernel(module, "scale", kernel.place()));
  const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2});
  const float by = 5;
  QUERN_GOOD(launch(kernel, launch_of(1, 2), {array_argument(array), scalar_argument(QUERN_FLOAT32, &by)}));
  CHECK(values_of<float>(array, 2)[1] == 10);

  const std::string missing = (folder.path / "none.ptx").string();
  QUERN_FAILS(QUERN_NOT_FOUND, "none.ptx", quern_load_file(session, missing.c_str(), module.place()));
  CHECK(module.id() == 0);
  const std::string text = folder.write("kernel.txt", "");
  QUERN_FAILS(QUERN_UNSUPPORTED, "kernel.txt", quern_load_file(session, text.c_str(), module.place()));
  const std::string broken = folder.write("broken.cu", "__global__ void f() { syntax error }\n");
  QUERN_FAILS(QUERN_COMPILE, "broken.cu:1", quern_load_file(session, broken.c_str(), module.place()));

  const std::string cuda = folder.write(
      "fill.cu",
      "#include \"amount.h\"\nextern \"C\" __global__ void fill(int* x) { *x = AMOUNT + EXTRA; }\n");
  QUERN_FAILS(QUERN_COMPILE, "amount.h", quern_load_file(session, cuda.c_str(), module.place()));
  std::filesystem::create_directory(folder.path / "include");
  folder.write("include/amount.h", "#define AMOUNT 40\n");
  const std::string include = (folder.path / "include").string();
  const char* const defines[] = {"EXTRA=2"};
  const char* const dirs[] = {include.c_str()};
  QuernSource options{};
  options.struct_bytes = sizeof options;
  options.defines = defines;
  options.define_count = 1;
  options.include_dirs = dirs;
  options.include_dir_count = 1;
  QUERN_GOOD(quern_load_file_with(session, cuda.c_str(), &options, module.place()));
  QUERN_GOOD(quern_kernel(module, nullptr, kernel.place()));
  const Array one = new_array(session, QUERN_INT32, {1});
  QUERN_GOOD(launch(kernel, launch_of(1, 1), {array_argument(one)}));
  CHECK(values_of<int>(one, 1)[0] == 42);
  options.reserved = 1;
  QUERN_FAILS(QUERN_USAGE, "reserved", quern_load_file_with(session, cuda.c_str(), &options, module.place()));
}

TEST_CASE("CUDA C++ that does not compile is refused with line and column; what compiles names its kernels") {
  const Session session = open_cpu();
  Module module;
  Kernel kernel;
  QUERN_FAILS(QUERN_COMPILE, "3",
              quern_load_cuda(session, "\n\n__global__ void f() { undeclared = 1; }", module.place()));
  CHECK(holds(last_error(), "undeclared"));
  QUERN_GOOD(quern_load_cuda(session, kCuda, module.place()));
  std::size_t count = 0, needed = 0;
  QUERN_GOOD(quern_module_kernel_count(module, &count));
  CHECK(count == 4);
  std::vector<std::string> names;
  for (std::size_t i = 0; i < count; ++i) {
    char name[64];
    QUERN_GOOD(quern_module_kernel_name(module, i, name, sizeof name, &needed));
    CHECK(needed == std::strlen(name) + 1);
    names.emplace_back(name);
  }
  for (const char* name : {"weigh", "unpack", "add_rows", "count_threads"})
    CHECK(std::find(names.begin(), names.end(), name) != names.end());
  QUERN_FAILS(QUERN_USAGE, "4 kernels", quern_kernel(module, nullptr, kernel.place()));
  QUERN_FAILS(QUERN_NOT_FOUND, "'other'", quern_kernel(module, "other", kernel.place()));
  QUERN_GOOD(quern_module_log(module, nullptr, 0, &needed));
  CHECK(needed == 1);  // nothing to warn of
}

TEST_CASE("a kernel tells its parameters, its attributes and its texts") {
  const Session session = open_cpu();
  const Kernel kernel = cuda_kernel(session, kCuda, "weigh");
  QuernKernelInfo info{};
  info.struct_bytes = sizeof info;
  QUERN_GOOD(quern_kernel_info(kernel, &info));
  CHECK(info.parameter_count == 3);
  CHECK(info.max_threads_per_block == 1024);
  CHECK(info.shared_bytes == 0);
  CHECK(info.compile_ms == info.nvrtc_ms + info.load_ms + info.machine_code_ms);
  QuernKernelInfo of_version_1{};
  of_version_1.struct_bytes = offsetof(QuernKernelInfo, nvrtc_ms);
  of_version_1.machine_code_ms = -1;
  QUERN_GOOD(quern_kernel_info(kernel, &of_version_1));
  CHECK(of_version_1.compile_ms == info.compile_ms);
  CHECK(of_version_1.machine_code_ms == -1);
  QuernParameter parameter{};
  parameter.struct_bytes = sizeof parameter;
  QUERN_GOOD(quern_kernel_parameter(kernel, 1, &parameter));
  CHECK(std::string(parameter.name) == "total");
  CHECK(std::string(parameter.type) == "double*");
  CHECK(parameter.pointer == 1);
  CHECK(parameter.offset_bytes == 8);
  QUERN_GOOD(quern_kernel_parameter(kernel, 2, &parameter));
  CHECK(parameter.pointer == 0);
  CHECK(parameter.offset_bytes == 16);
  CHECK(parameter.size_bytes == 4);
  CHECK(text_of(kernel, QUERN_KERNEL_NAME) == "weigh");
  CHECK(text_of(kernel, QUERN_KERNEL_LOWERED_NAME) == "weigh");
  CHECK(text_of(kernel, QUERN_KERNEL_SIGNATURE) == "weigh(const Body* bodies, double* total, int n)");
  CHECK(holds(text_of(kernel, QUERN_KERNEL_PTX), ".visible .entry weigh"));
  CHECK(text_of(kernel, QUERN_KERNEL_CUDA_SOURCE) == kCuda);
  char cut[4];
  QUERN_GOOD(quern_kernel_text(kernel, QUERN_KERNEL_NAME, cut, sizeof cut, nullptr));
  CHECK(std::string(cut) == "wei");
}

TEST_CASE("native handles are those that the driver knows") {
  const Session session = open_cpu();
  Module module;
  Kernel kernel;
  QUERN_GOOD(quern_load_ptx(session, kScalePtx, module.place()));
  QUERN_GOOD(quern_kernel(module, "scale", kernel.place()));
  void *cu_module = nullptr, *cu_function = nullptr, *its_module = nullptr;
  QUERN_GOOD(quern_module_native(module, &cu_module));
  QUERN_GOOD(quern_kernel_native(kernel, &cu_function, &its_module));
  CHECK(cu_module == its_module);
  const Current current(session);
  CUfunction expected = nullptr;
  CHECK(driver<decltype(cuModuleGetFunction)>(session, "cuModuleGetFunction")(
            &expected, static_cast<CUmodule>(cu_module), "scale") == CUDA_SUCCESS);
  CHECK(cu_function == expected);

  // The program itself launches the kernel with the address of an array.
  const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2, 3});
  void* address = description_of(array).data;
  float by = 4;
  void* parameters[] = {&address, &by};
  CHECK(driver<decltype(cuLaunchKernel)>(session, "cuLaunchKernel")(static_cast<CUfunction>(cu_function), 1,
                                                                    1, 1, 3, 1, 1, 0, nullptr, parameters,
                                                                    nullptr) == CUDA_SUCCESS);
  CHECK(values_of<float>(array, 3) == std::vector<float>{4, 8, 12});
  // An address is also a valid argument.
  QuernArgument argument{};
  argument.kind = QUERN_ARGUMENT_ADDRESS;
  argument.data = address;
  QUERN_GOOD(launch(kernel, launch_of(1, 3), {argument, scalar_argument(QUERN_FLOAT32, &by)}));
  CHECK(values_of<float>(array, 3)[2] == 48);
}

TEST_CASE("records go to kernels as arrays of them, and as one struct by value") {
  const Session session = open_cpu();
  std::vector<Body> bodies = {{1, 0, 10, 7}, {2, 0, 20, 8}, {3, 0, 30, 9}};
  const Host host(bodies.data(), body(), {3});
  Array array, total = to_device(session, QUERN_FLOAT64, std::vector<double>{0});
  QUERN_GOOD(quern_to_device(session, &host.array, array.place()));
  const int n = 3;
  const Kernel weigh = cuda_kernel(session, kCuda, "weigh");
  QUERN_GOOD(launch(weigh, launch_of(1, 1),
                    {array_argument(array), array_argument(total), scalar_argument(QUERN_INT32, &n)}));
  CHECK(values_of<double>(total, 1)[0] == 140);

  const Kernel unpack = cuda_kernel(session, kCuda, "unpack");
  const Array out = new_array(session, QUERN_FLOAT64, {4});
  QuernArgument by_value{};
  by_value.kind = QUERN_ARGUMENT_STRUCT;
  by_value.data = &bodies[2];
  by_value.bytes = sizeof(Body);
  QUERN_GOOD(launch(unpack, launch_of(1, 1), {by_value, array_argument(out)}));
  CHECK(values_of<double>(out, 4) == std::vector<double>{3, 0, 30, 9});
  by_value.bytes = 8;
  QUERN_FAILS(QUERN_USAGE, "24 bytes are needed",
              launch(unpack, launch_of(1, 1), {by_value, array_argument(out)}));
}

TEST_CASE("Kernel Python takes records: arrays of them, and one, from the device and from the host") {
  const Session session = open_cpu();
  const Kernel kernel = python_kernel(session, R"(
from numba import cuda

@cuda.jit
def settle(bodies, one, out):
    i = cuda.grid(1)
    if i < bodies.size:
        bodies[i].mass = bodies[i].mass + one.mass
        out[i] = one.id
    if i == 0:
        one.y = 5
)",
                                      "settle");
  std::vector<Body> bodies = {{1, 0, 10, 7}, {2, 0, 20, 8}};
  Body one = {0, 0, 100, 3};
  const Host host(bodies.data(), body(), {2}), single(&one, body(), {});
  Array array, record;
  const Array out = new_array(session, QUERN_INT32, {2});
  QUERN_GOOD(quern_to_device(session, &host.array, array.place()));
  QUERN_GOOD(quern_to_device(session, &single.array, record.place()));
  QUERN_GOOD(
      launch(kernel, launch_of(1, 32), {array_argument(array), array_argument(record), array_argument(out)}));
  CHECK(values_of<int>(out, 2) == std::vector<int>{3, 3});
  QUERN_GOOD(quern_array_to_host_array(record, &single.array));
  CHECK(one.y == 5);
  one.y = 0;
  QUERN_GOOD(launch(kernel, launch_of(1, 32),
                    {host_argument(QUERN_ARGUMENT_IN_OUT, host.array),
                     host_argument(QUERN_ARGUMENT_IN_OUT, single.array), array_argument(out)}));
  CHECK(bodies[1].mass == 120);
  CHECK(one.y == 5);
}

TEST_CASE("host arrays travel in, out or both, whatever their strides, with and without a stream") {
  const Session session = open_cpu();
  const Kernel add_rows = cuda_kernel(session, kCuda, "add_rows");
  std::vector<float> values(24);
  std::iota(values.begin(), values.end(), 0.f);
  std::vector<float> sums(8, -1);
  const Host from(values.data(), QUERN_FLOAT32, {4, 3}, {24, 8}), to(sums.data(), QUERN_FLOAT32, {4}, {8});
  QUERN_GOOD(
      launch(add_rows, launch_of(1, 32),
             {host_argument(QUERN_ARGUMENT_IN, from.array), host_argument(QUERN_ARGUMENT_OUT, to.array)}));
  CHECK(sums == std::vector<float>{6, -1, 24, -1, 42, -1, 60, -1});

  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const float by = 2;
  Stream stream;
  Pin pin;
  void* memory = nullptr;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  QUERN_GOOD(quern_pinned_new(session, 16, pin.place(), &memory));
  auto* const four = static_cast<float*>(memory);
  std::fill_n(four, 4, 1.f);
  Host travelling(four, QUERN_FLOAT32, {4});
  travelling.array.pin = pin;
  const QuernArgument factor = scalar_argument(QUERN_FLOAT32, &by);
  for (int i = 0; i < 2; ++i) {
    QUERN_GOOD(launch(scale, launch_of(1, 4, stream),
                      {host_argument(QUERN_ARGUMENT_IN_OUT, travelling.array), factor}));
    QUERN_GOOD(quern_stream_synchronize(stream));
  }
  CHECK(four[3] == 4);
  QUERN_GOOD(launch(scale, launch_of(1, 4), {host_argument(QUERN_ARGUMENT_IN, travelling.array), factor}));
  CHECK(four[3] == 4);  // in only: nothing comes back
  travelling.array.read_only = 1;
  QUERN_FAILS(QUERN_USAGE, "read-only",
              launch(scale, launch_of(1, 4), {host_argument(QUERN_ARGUMENT_OUT, travelling.array), factor}));
  QuernArgument nothing{};
  nothing.kind = QUERN_ARGUMENT_IN_OUT;
  QUERN_FAILS(QUERN_USAGE, "QuernHostArray", launch(scale, launch_of(1, 4), {nothing, factor}));
}

TEST_CASE("a host array of two launches on one stream goes to the second one with the first one's values") {
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale"), hold = kernel_of(session, kScalePtx, "hold");
  const float by = 2;
  const QuernArgument factor = scalar_argument(QUERN_FLOAT32, &by);
  std::vector<float> values(4, 1.f), back(2);
  const Host all(values.data(), QUERN_FLOAT32, {4}), last_two(values.data() + 2, QUERN_FLOAT32, {2});
  const Array array = new_array(session, QUERN_FLOAT32, {2});
  Stream stream;
  QUERN_GOOD(quern_stream_new(session, stream.place()));
  {
    const Flag flag(session);
    QUERN_GOOD(launch(hold, launch_of(1, 1, stream), flag.arguments()));
    QUERN_GOOD(
        launch(scale, launch_of(1, 4, stream), {host_argument(QUERN_ARGUMENT_IN_OUT, all.array), factor}));
    // The next call waits for the values. A call that does not wait would return earlier.
    std::thread opener([&flag] {
      std::this_thread::sleep_for(std::chrono::milliseconds(100));
      flag.open();
    });
    const QuernStatus second =
        launch(scale, launch_of(1, 2, stream), {host_argument(QUERN_ARGUMENT_IN_OUT, all.array), factor});
    const QuernStatus third = quern_array_from_host_on(array, last_two.array.data, 2 * sizeof(float), stream);
    opener.join();
    QUERN_GOOD(second);
    QUERN_GOOD(third);
  }
  QUERN_GOOD(quern_array_to_host_on(array, back.data(), 2 * sizeof(float), stream));
  QUERN_GOOD(quern_stream_synchronize(stream));
  CHECK(values == std::vector<float>{4, 4, 2, 2});
  CHECK(back == std::vector<float>{2, 2});
}

TEST_CASE("a transposed array goes to a pointer by its address only") {
  const Session session = open_cpu();
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  const float by = 2;
  const QuernArgument factor = scalar_argument(QUERN_FLOAT32, &by);
  const Array array = new_array(session, QUERN_FLOAT32, {2, 3});
  const std::vector<float> ones(6, 1.f);
  QUERN_GOOD(quern_array_from_host(array, ones.data(), 24));
  Array turned;
  QUERN_GOOD(quern_array_transpose(array, turned.place()));
  QUERN_FAILS(QUERN_USAGE, "its strides are (4, 12) bytes",
              launch(scale, launch_of(1, 6), {array_argument(turned), factor}));
  QuernArgument address{};
  address.kind = QUERN_ARGUMENT_ADDRESS;
  address.data = description_of(turned).data;
  QUERN_GOOD(launch(scale, launch_of(1, 6), {address, factor}));
  CHECK(values_of<float>(array, 6) == std::vector<float>(6, 2.f));
  // A host array in Fortran order is copied without reordering.
  std::vector<float> host(6, 1.f);
  const Host fortran(host.data(), QUERN_FLOAT32, {2, 3}, {4, 8});
  QUERN_FAILS(QUERN_USAGE, "a pointer has no strides",
              launch(scale, launch_of(1, 6), {host_argument(QUERN_ARGUMENT_IN_OUT, fortran.array), factor}));
  CHECK(host == std::vector<float>(6, 1.f));
}

TEST_CASE(
    "one thread a task: the grid follows from the block, which follows from the kernel if none is given") {
  const Session session = open_cpu();
  const Kernel kernel = cuda_kernel(session, kCuda, "count_threads");
  const auto count = [&](QuernLaunch config, std::uint64_t tasks) {
    const Array counter = to_device(session, QUERN_UINT32, std::vector<std::uint32_t>{0});
    const QuernArgument arguments[] = {array_argument(counter), scalar_argument(QUERN_UINT64, &tasks)};
    QUERN_GOOD(quern_launch_for_all(kernel, tasks, &config, arguments, 2));
    return values_of<std::uint32_t>(counter, 1)[0];
  };
  CHECK(count(launch_of(0, 0), 1000) == 1000);
  CHECK(count(launch_of(77, 32), 1000) == 1000);
  CHECK(count(launch_of(0, 1), 0) == 0);
  QuernLaunch zeros = launch_of(0, 0);
  zeros.block[1] = zeros.block[2] = 0;
  CHECK(count(zeros, 33) == 33);
  const QuernLaunch config = launch_of(1, 32);
  QUERN_FAILS(QUERN_USAGE, "extent", quern_launch_for_all(kernel, ~std::uint64_t{0}, &config, nullptr, 0));

  std::uint32_t block = 0, within = 0, active = 0;
  std::uint64_t cooperative = 0;
  QUERN_GOOD(quern_kernel_suggested_block(kernel, 0, &block));
  CHECK(block % 32 == 0);
  CHECK(block > 0);
  QUERN_GOOD(quern_kernel_suggested_block_within(kernel, 0, 64, &within));
  std::uint32_t none = 0;
  QUERN_FAILS(QUERN_UNSUPPORTED, "dynamic shared memory",
              quern_kernel_suggested_block(kernel, UINT64_MAX, &none));
  QUERN_FAILS(QUERN_UNSUPPORTED, "dynamic shared memory",
              quern_kernel_suggested_block(kernel, 1 << 20, &none));
  CHECK(none == 0);
  QUERN_GOOD(quern_kernel_suggested_block(kernel, 96 << 10, &none));  // only one block of it is resident
  CHECK(none == 1024);
  CHECK(within <= 64);
  CHECK(within > 0);
  QUERN_GOOD(quern_kernel_active_blocks(kernel, 128, 0, &active));
  QUERN_GOOD(quern_kernel_max_cooperative_blocks(kernel, 128, 0, &cooperative));
  QuernDeviceInfo device{};
  device.struct_bytes = sizeof device;
  QUERN_GOOD(quern_session_device(session, &device));
  CHECK(active >= 1);
  CHECK(cooperative == std::uint64_t{active} * static_cast<std::uint32_t>(device.multiprocessor_count));
}

TEST_CASE("a Kernel Python kernel is code once its types are known, and takes constants from the host") {
  const Session session = open_cpu();
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.language = QUERN_LANGUAGE_PYTHON;
  source.text = R"(
from numba import cuda
FACTOR = 2

@cuda.jit
def times(x):
    i = cuda.grid(1)
    if i < x.size:
        x[i] *= FACTOR
)";
  Module module, bound;
  Kernel kernel, special, by_arguments;
  QUERN_GOOD(quern_load(session, &source, module.place()));
  QUERN_GOOD(quern_kernel(module, nullptr, kernel.place()));
  void *function = nullptr, *cu_module = nullptr;
  QUERN_FAILS(QUERN_UNSUPPORTED, "Kernel Python", quern_module_native(module, &cu_module));
  QUERN_FAILS(QUERN_UNSUPPORTED, "times", quern_kernel_native(kernel, &function, nullptr));
  std::uint32_t block = 0;
  QUERN_FAILS(QUERN_USAGE, "types of its arguments", quern_kernel_suggested_block(kernel, 0, &block));
  QUERN_GOOD(quern_kernel_specialise(kernel, "(float32[::1],)", special.place()));
  QUERN_GOOD(quern_kernel_native(special, &function, &cu_module));
  CHECK(function != nullptr);
  CHECK(cu_module != nullptr);
  QUERN_GOOD(quern_kernel_suggested_block(special, 0, &block));
  QUERN_FAILS(QUERN_COMPILE, "", quern_kernel_specialise(kernel, "float99", by_arguments.place()));

  const Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2, 3});
  const QuernArgument argument = array_argument(array);
  QUERN_GOOD(quern_kernel_specialise_for(kernel, &argument, 1, by_arguments.place()));
  void* same = nullptr;
  QUERN_GOOD(quern_kernel_native(by_arguments, &same, nullptr));
  CHECK(same == function);
  const QuernLaunch config = launch_of(0, 0);
  QUERN_GOOD(quern_launch_for_all(kernel, 3, &config, &argument, 1));
  CHECK(values_of<float>(array, 3) == std::vector<float>{2, 4, 6});

  std::int64_t ten = 10;
  const Host value(&ten, QUERN_INT64, {});
  QUERN_GOOD(quern_module_bind(module, "FACTOR", &value.array, bound.place()));
  QUERN_GOOD(quern_kernel(bound, nullptr, kernel.place()));
  QUERN_GOOD(launch(kernel, launch_of(1, 32), {argument}));
  CHECK(values_of<float>(array, 3) == std::vector<float>{20, 40, 60});
  QUERN_FAILS(QUERN_USAGE, "NOTHING", quern_module_bind(module, "NOTHING", &value.array, bound.place()));
  // Source in other languages already contains the types.
  const Kernel scale = kernel_of(session, kScalePtx, "scale");
  QUERN_FAILS(QUERN_UNSUPPORTED, "its source gives its types",
              quern_kernel_specialise(scale, "float32", special.place()));
}

TEST_CASE("variables of a module are arrays, and a source includes headers that are texts") {
  const Session session = open_cpu();
  const QuernHeader headers[] = {
      {"lib/gain.cuh", "#include \"type.cuh\"\n__constant__ real gain[2] = {3, 4};\n"},
      {"lib/type.cuh", "#include <type_traits>\nusing real = std::decay_t<float&>;\n"}};
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.language = QUERN_LANGUAGE_CUDA;
  source.text =
      "#include <lib/gain.cuh>\n__device__ int calls;\n"
      "extern \"C\" __global__ void scale(float* x) { x[threadIdx.x] *= gain[1]; if (threadIdx.x == 0) "
      "++calls; }";
  source.headers = headers;
  source.header_count = 2;
  Module module;
  QUERN_GOOD(quern_load(session, &source, module.place()));
  std::size_t count = 0;
  QUERN_GOOD(quern_module_global_count(module, &count));
  CHECK(count == 2);
  char name[16];
  QUERN_GOOD(quern_module_global_name(module, 0, name, sizeof name, nullptr));
  CHECK(std::string(name) == "gain");
  QUERN_FAILS(QUERN_NOT_FOUND, "there are 2",
              quern_module_global_name(module, 2, name, sizeof name, nullptr));

  Array gain, calls;
  const std::int64_t two[] = {2};
  QuernArrayType type{};
  type.struct_bytes = sizeof type;
  type.element.dtype = QUERN_FLOAT32;
  type.ndim = 1;
  type.shape = two;
  QUERN_GOOD(quern_module_global(module, "gain", &type, gain.place()));
  CHECK(values_of<float>(gain, 2) == std::vector<float>{3, 4});
  const float values[] = {5, 6};
  QUERN_GOOD(quern_array_from_host(gain, values, sizeof values));
  Kernel kernel;
  QUERN_GOOD(quern_kernel(module, "scale", kernel.place()));
  QUERN_GOOD(quern_kernel_global(kernel, "calls", nullptr, calls.place()));
  const Array x = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2, 3});
  QUERN_GOOD(launch(kernel, launch_of(1, 3), {array_argument(x)}));
  module.reset(), kernel.reset();
  CHECK(values_of<float>(x, 3) == std::vector<float>{6, 12, 18});
  CHECK(values_of<std::uint8_t>(calls, 4) == std::vector<std::uint8_t>{1, 0, 0, 0});
}

TEST_CASE("variables of another size, order or name are refused, and headers that are none") {
  const Session session = open_cpu();
  Module module;
  Array array;
  QUERN_GOOD(
      quern_load_cuda(session, "__device__ double d; extern \"C\" __global__ void k() {}", module.place()));
  QuernArrayType type{};
  type.struct_bytes = sizeof type;
  type.element.dtype = QUERN_FLOAT32;
  QUERN_FAILS(QUERN_USAGE, "4 bytes, and it has 8", quern_module_global(module, "d", &type, array.place()));
  type.element.dtype = QUERN_FLOAT64;
  type.order = QUERN_ORDER_FORTRAN;
  QUERN_FAILS(QUERN_USAGE, "C order", quern_module_global(module, "d", &type, array.place()));
  QUERN_FAILS(QUERN_NOT_FOUND, "it has d", quern_module_global(module, "e", nullptr, array.place()));
  CHECK(array.id() == 0);
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.text = "";
  source.header_count = 1;
  QUERN_FAILS(QUERN_USAGE, "a count of headers, but no headers",
              quern_load(session, &source, module.place()));
  const QuernHeader nothing{"a.h", nullptr};
  source.headers = &nothing;
  QUERN_FAILS(QUERN_USAGE, "a name and a text", quern_load(session, &source, module.place()));
}

TEST_CASE("sources are linked to one module") {
  const Session session = open_cpu();
  QuernSource user{}, definer{};
  user.struct_bytes = definer.struct_bytes = sizeof user;
  user.text = "extern __device__ float gain; extern \"C\" __global__ void k(float* x) { *x *= gain; }";
  definer.text = "__device__ float gain = 4;";
  definer.file_name = "definer.cu";
  const QuernSource* const both[] = {&user, &definer};
  Module module;
  Kernel kernel;
  QUERN_GOOD(quern_link(session, both, 2, module.place()));
  QUERN_GOOD(quern_kernel(module, "k", kernel.place()));
  const Array x = to_device(session, QUERN_FLOAT32, std::vector<float>{2});
  QUERN_GOOD(launch(kernel, launch_of(1, 1), {array_argument(x)}));
  CHECK(values_of<float>(x, 1) == std::vector<float>{8});
  QUERN_FAILS(QUERN_COMPILE, "cannot link", quern_link(session, both, 1, module.place()));
  QUERN_FAILS(QUERN_USAGE, "needs sources", quern_link(session, both, 0, module.place()));
  definer.language = QUERN_LANGUAGE_PYTHON;
  QUERN_FAILS(QUERN_USAGE, "CUDA C++ and PTX", quern_link(session, both, 2, module.place()));
  const QuernSource* const none[] = {nullptr};
  QUERN_FAILS(QUERN_USAGE, "is null", quern_link(session, none, 1, module.place()));
}
