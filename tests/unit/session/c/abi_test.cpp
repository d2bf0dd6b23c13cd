// SPDX-License-Identifier: Apache-2.0
// Calls with all kinds of arguments: from callers with older and newer headers, with null, and with wrong
// handles.
#include <cstdlib>
#include <cstring>
#include <functional>
#include <thread>

#include "support.hpp"

using namespace c;

namespace {

// The structs of the header of version 3.
struct OldCudaArray {
  std::uint32_t struct_bytes, version;
  void* data;
  std::int32_t read_only, ndim;
  const std::int64_t* shape;
  const std::int64_t* strides;
  const char* typestr;
  const void* mask;
  std::int32_t has_stream, reserved;
  std::uint64_t stream;
};
struct OldAllocator {
  std::uint32_t struct_bytes, reserved;
  void* user;
  void* (*allocate)(void*, std::size_t, std::size_t, void*);
  void (*deallocate)(void*, void*, std::size_t, std::size_t, void*);
  void (*release)(void*);
};
struct OldSource {
  std::uint32_t struct_bytes;
  std::int32_t language;
  const char* text;
  const char* file_name;
  const char* const* options;
  std::size_t option_count;
};
/// A struct of a future header.
template <class T>
struct Newer {
  T known;
  std::uint64_t added = 0;
};

struct Everything {
  Session session = open_cpu();
  Module module;
  Kernel kernel = kernel_of(session, kScalePtx, "scale");
  Array array = to_device(session, QUERN_FLOAT32, std::vector<float>{1, 2, 3, 4});
  Stream stream;
  Event event;
  Pin pin;
  Deferral deferral;
  Everything() {
    void* memory = nullptr;
    QUERN_GOOD(quern_load_ptx(session, kScalePtx, module.place()));
    QUERN_GOOD(quern_stream_new(session, stream.place()));
    QUERN_GOOD(quern_event_new(session, event.place()));
    QUERN_GOOD(quern_pinned_new(session, 64, pin.place(), &memory));
    QUERN_GOOD(quern_defer_begin(session, deferral.place()));
  }
};

using Call = std::function<QuernStatus(std::uint64_t)>;

// Places for results, which failing calls must not change.
std::uint64_t place[64];
void* address;
template <class Handle>
Handle* out() {
  return reinterpret_cast<Handle*>(place);
}

/// Every function that begins with a session. The other arguments are valid or, if necessary, null.
QuernSource empty_source() {
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.text = "";
  return source;
}
const QuernSource kEmptySource = empty_source();
const QuernSource* const kLinkSources[] = {&kEmptySource};
const QuernStreamOptions kStreamOptions = {sizeof(QuernStreamOptions), -1, 1, 0};
const Call kOfSessions[] = {
    [](auto id) { return quern_session_synchronize({id}); },
    [](auto id) { return quern_session_device_name({id}, nullptr, 0, nullptr); },
    [](auto id) { return quern_session_memory({id}, nullptr, nullptr); },
    [](auto id) { return quern_session_set_allocator({id}, nullptr); },
    [](auto id) { return quern_session_use_stream_ordered_pool({id}, 0); },
    [](auto id) { return quern_session_use_caching_pool({id}, 0); },
    [](auto id) { return quern_session_set_progress({id}, nullptr, nullptr); },
    [](auto id) { return quern_defer_begin({id}, out<QuernDeferral>()); },
    [](auto id) { return quern_session_release_pending({id}); },
    [](auto id) { return quern_session_leak_report({id}, nullptr, 0, nullptr); },
    [](auto id) { return quern_session_context({id}, &address); },
    [](auto id) { return quern_session_memory_pool({id}, &address); },
    [](auto id) { return quern_session_driver_function({id}, "cuInit", &address); },
    [](auto id) { return quern_session_cancel({id}); },
    [](auto id) { return quern_load_ptx({id}, kScalePtx, out<QuernModule>()); },
    [](auto id) { return quern_load_cuda({id}, "", out<QuernModule>()); },
    [](auto id) { return quern_load_file({id}, "x.ptx", out<QuernModule>()); },
    [](auto id) { return quern_array_new({id}, QUERN_INT32, 0, nullptr, out<QuernArray>()); },
    [](auto id) {
      return quern_array_new_mapped({id}, QUERN_INT32, 0, nullptr, out<QuernArray>(), &address);
    },
    [](auto id) { return quern_pin({id}, place, 8, out<QuernPin>()); },
    [](auto id) { return quern_pinned_new({id}, 8, out<QuernPin>(), &address); },
    [](auto id) { return quern_stream_new({id}, out<QuernStream>()); },
    [](auto id) { return quern_stream_make({id}, &kStreamOptions, out<QuernStream>()); },
    [](auto id) { return quern_link({id}, kLinkSources, 1, out<QuernModule>()); },
    [](auto id) { return quern_session_stream_priorities({id}, nullptr, nullptr); },
    [](auto id) { return quern_stream_external({id}, nullptr, out<QuernStream>()); },
    [](auto id) { return quern_stream_legacy_default({id}, out<QuernStream>()); },
    [](auto id) { return quern_stream_per_thread_default({id}, out<QuernStream>()); },
    [](auto id) { return quern_event_new({id}, out<QuernEvent>()); },
    [](auto id) { return quern_event_new_untimed({id}, out<QuernEvent>()); },
    [](auto id) { return quern_event_external({id}, place, out<QuernEvent>()); },
};
const Call kOfModules[] = {
    [](auto id) { return quern_kernel({id}, nullptr, out<QuernKernel>()); },
    [](auto id) { return quern_module_kernel_count({id}, reinterpret_cast<std::size_t*>(place)); },
    [](auto id) { return quern_module_kernel_name({id}, 0, nullptr, 0, nullptr); },
    [](auto id) { return quern_module_log({id}, nullptr, 0, nullptr); },
    [](auto id) { return quern_module_native({id}, &address); },
    [](auto id) { return quern_module_global({id}, "x", nullptr, out<QuernArray>()); },
    [](auto id) { return quern_module_global_count({id}, reinterpret_cast<std::size_t*>(place)); },
    [](auto id) { return quern_module_global_name({id}, 0, nullptr, 0, nullptr); },
};
const QuernLaunch kLaunch = launch_of(1, 1);
const Call kOfKernels[] = {
    [](auto id) { return quern_launch({id}, &kLaunch, nullptr, 0); },
    [](auto id) { return quern_launch_for_all({id}, 1, &kLaunch, nullptr, 0); },
    [](auto id) { return quern_kernel_specialise({id}, "", out<QuernKernel>()); },
    [](auto id) { return quern_kernel_specialise_for({id}, nullptr, 0, out<QuernKernel>()); },
    [](auto id) { return quern_kernel_suggested_block({id}, 0, reinterpret_cast<std::uint32_t*>(place)); },
    [](auto id) {
      return quern_kernel_suggested_block_within({id}, 0, 0, reinterpret_cast<std::uint32_t*>(place));
    },
    [](auto id) { return quern_kernel_active_blocks({id}, 1, 0, reinterpret_cast<std::uint32_t*>(place)); },
    [](auto id) { return quern_kernel_max_cooperative_blocks({id}, 1, 0, place); },
    [](auto id) { return quern_kernel_parameter({id}, 0, nullptr); },
    [](auto id) { return quern_kernel_text({id}, QUERN_KERNEL_NAME, nullptr, 0, nullptr); },
    [](auto id) { return quern_kernel_native({id}, nullptr, nullptr); },
    [](auto id) { return quern_kernel_global({id}, "x", nullptr, out<QuernArray>()); },
};
const Call kOfArrays[] = {
    [](auto id) { return quern_array_index({id}, nullptr, 0, out<QuernArray>()); },
    [](auto id) { return quern_array_reshape({id}, 0, nullptr, QUERN_ORDER_C, out<QuernArray>()); },
    [](auto id) { return quern_array_transpose({id}, out<QuernArray>()); },
    [](auto id) { return quern_array_prefetch({id}, QUERN_WHERE_HOST, {}); },
    [](auto id) { return quern_array_advise({id}, QUERN_ADVICE_READ_MOSTLY, QUERN_WHERE_HOST); },
    [](auto id) { return quern_array_field({id}, "x", out<QuernArray>()); },
    [](auto id) { return quern_array_clone({id}, QUERN_ORDER_C, {}, out<QuernArray>()); },
    [](auto id) { return quern_array_from_host({id}, place, 16); },
    [](auto id) { return quern_array_to_host({id}, place, 16); },
    [](auto id) { return quern_array_from_host_on({id}, place, 16, {}); },
    [](auto id) { return quern_array_to_host_on({id}, place, 16, {}); },
    [](auto id) { return quern_array_copy({id}, {id}); },
    [](auto id) { return quern_array_copy_on({id}, {id}, {}); },
    [](auto id) { return quern_array_to_dlpack({id}, 0, &address); },
    [](auto id) { return quern_array_to_dlpack_unversioned({id}, 0, &address); },
};
const Call kOfStreams[] = {
    [](auto id) { return quern_stream_synchronize({id}); },
    [](auto id) { return quern_stream_cancel({id}); },
    [](auto id) { return quern_stream_query({id}, reinterpret_cast<std::int32_t*>(place)); },
    [](auto id) { return quern_stream_add_callback({id}, [](void*) {}, nullptr); },
    [](auto id) { return quern_stream_native({id}, &address); },
};
const Call kOfEvents[] = {
    [](auto id) { return quern_event_record({id}, {}); },
    [](auto id) { return quern_event_wait({id}, {}); },
    [](auto id) { return quern_event_synchronize({id}); },
    [](auto id) { return quern_event_query({id}, reinterpret_cast<std::int32_t*>(place)); },
    [](auto id) { return quern_event_elapsed_ms({id}, {id}, reinterpret_cast<double*>(place)); },
    [](auto id) { return quern_event_native({id}, &address); },
};

template <std::size_t N>
void refuse_handles(const Call (&calls)[N], const std::vector<std::uint64_t>& wrong) {
  for (std::size_t i = 0; i < N; ++i)
    for (const std::uint64_t id : wrong) {
      CAPTURE(i);
      CAPTURE(id);
      CHECK(calls[i](id) == QUERN_BAD_HANDLE);
      CHECK(holds(last_error(), "released, is of another kind"));
    }
}

}  // namespace

TEST_CASE("handles that are null, invented, released or of another kind are refused by every function") {
  Everything all;
  Array gone = to_device(all.session, QUERN_INT32, std::vector<int>{1});
  const std::uint64_t released = gone.id();
  gone.reset();
  const auto but = [&](std::uint64_t right) {
    std::vector<std::uint64_t> wrong = {0, 1, ~std::uint64_t{0}, released};
    for (const std::uint64_t id : {all.session.id(), all.module.id(), all.kernel.id(), all.array.id(),
                                   all.stream.id(), all.event.id(), all.pin.id(), all.deferral.id()})
      if (id != right) wrong.push_back(id);
    return wrong;
  };
  std::memset(place, 0x5a, sizeof place);
  refuse_handles(kOfSessions, but(all.session.id()));
  refuse_handles(kOfModules, but(all.module.id()));
  refuse_handles(kOfKernels, but(all.kernel.id()));
  refuse_handles(kOfArrays, but(all.array.id()));
  refuse_handles(kOfStreams, but(all.stream.id()));
  refuse_handles(kOfEvents, but(all.event.id()));
  for (const std::uint64_t id : but(all.deferral.id())) CHECK(quern_defer_end({id}) == QUERN_BAD_HANDLE);
  for (const std::uint64_t value : place) CHECK(value == 0x5a5a5a5a5a5a5a5a);  // results are left alone
  CHECK(address == nullptr);
  for (const std::uint64_t id : {std::uint64_t{0}, released, ~std::uint64_t{0}})
    CHECK(quern_release(id) == QUERN_BAD_HANDLE);
  // The same for other arguments.
  std::uint32_t flag = 0;
  const QuernArgument argument = array_argument({all.stream.id()});
  CHECK(quern_launch(all.kernel, &kLaunch, &argument, 1) == QUERN_BAD_HANDLE);
  CHECK(quern_event_record(all.event, {all.array.id()}) == QUERN_BAD_HANDLE);
  CHECK(quern_array_copy(all.array, {all.session.id()}) == QUERN_BAD_HANDLE);
  Host host(&flag, QUERN_UINT32, {});
  host.array.pin = {all.array.id()};
  CHECK(quern_to_device(all.session, &host.array, out<QuernArray>()) == QUERN_BAD_HANDLE);
}

TEST_CASE("every place and text that is needed and null is an error that says so") {
  Everything all;
  const QuernSession s = all.session;
  const QuernModule m = all.module;
  const QuernKernel k = all.kernel;
  const QuernArray a = all.array;
  std::uint32_t value = 7;
  const Host good(&value, QUERN_UINT32, {});
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.text = kScalePtx;
  source.language = QUERN_LANGUAGE_PTX;
  const QuernArgument no_data[] = {scalar_argument(QUERN_INT32, nullptr)};
  const QuernElement element{QUERN_INT32, 0, 0, nullptr};
  const QuernStatus answers[] = {
      quern_device_count(nullptr),
      quern_device_info(0, nullptr),
      quern_session_open("cpu", nullptr),
      quern_session_open_with("cpu", nullptr, out<QuernSession>()),
      quern_session_adopt("cpu", nullptr),
      quern_session_device(s, nullptr),
      quern_session_memory_stats(s, QUERN_MEMORY_ALL, nullptr),
      quern_defer_begin(s, nullptr),
      quern_session_context(s, nullptr),
      quern_session_memory_pool(s, nullptr),
      quern_session_driver_function(s, nullptr, &address),
      quern_session_driver_function(s, "cuInit", nullptr),
      quern_load_cuda(s, nullptr, out<QuernModule>()),
      quern_load_cuda(s, "", nullptr),
      quern_load_ptx(s, nullptr, out<QuernModule>()),
      quern_load_ptx(s, kScalePtx, nullptr),
      quern_load_file(s, nullptr, out<QuernModule>()),
      quern_load_file(s, "x.ptx", nullptr),
      quern_load_file_with(s, nullptr, &source, out<QuernModule>()),
      quern_load_file_with(s, "x.ptx", nullptr, out<QuernModule>()),
      quern_load_file_with(s, "x.ptx", &source, nullptr),
      quern_load(s, nullptr, out<QuernModule>()),
      quern_load(s, &source, nullptr),
      quern_module_bind(m, nullptr, &good.array, out<QuernModule>()),
      quern_module_bind(m, "x", nullptr, out<QuernModule>()),
      quern_module_bind(m, "x", &good.array, nullptr),
      quern_module_kernel_count(m, nullptr),
      quern_module_native(m, nullptr),
      quern_module_global(m, nullptr, nullptr, out<QuernArray>()),
      quern_module_global(m, "x", nullptr, nullptr),
      quern_kernel_global(k, nullptr, nullptr, out<QuernArray>()),
      quern_module_global_count(m, nullptr),
      quern_stream_make(s, nullptr, out<QuernStream>()),
      quern_stream_make(s, &kStreamOptions, nullptr),
      quern_array_prefetch(a, static_cast<QuernWhere>(7), {}),
      quern_array_advise(a, static_cast<QuernMemoryAdvice>(77), QUERN_WHERE_HOST),
      quern_kernel(m, "scale", nullptr),
      quern_launch(k, nullptr, nullptr, 0),
      quern_launch(k, &kLaunch, nullptr, 2),
      quern_launch(k, &kLaunch, no_data, 1),
      quern_launch(k, &kLaunch, no_data, SIZE_MAX),
      quern_launch_for_all(k, 1, nullptr, nullptr, 0),
      quern_launch_for_all(k, 1, &kLaunch, nullptr, 2),
      quern_kernel_specialise(k, nullptr, out<QuernKernel>()),
      quern_kernel_specialise(k, "", nullptr),
      quern_kernel_specialise_for(k, nullptr, 1, out<QuernKernel>()),
      quern_kernel_specialise_for(k, nullptr, 0, nullptr),
      quern_kernel_suggested_block(k, 0, nullptr),
      quern_kernel_suggested_block_within(k, 0, 0, nullptr),
      quern_kernel_active_blocks(k, 1, 0, nullptr),
      quern_kernel_max_cooperative_blocks(k, 1, 0, nullptr),
      quern_kernel_info(k, nullptr),
      quern_kernel_parameter(k, 0, nullptr),
      quern_array_new(s, QUERN_INT32, 0, nullptr, nullptr),
      quern_array_new(s, QUERN_INT32, 1, nullptr, out<QuernArray>()),
      quern_array_new_mapped(s, QUERN_INT32, 0, nullptr, out<QuernArray>(), nullptr),
      quern_array_new_mapped(s, QUERN_INT32, 0, nullptr, nullptr, &address),
      quern_array_make(s, nullptr, {}, out<QuernArray>()),
      quern_array_make(s, &good.type, {}, nullptr),
      quern_array_make_mapped(s, nullptr, 0, out<QuernArray>(), &address),
      quern_array_make_mapped(s, &good.type, 0, out<QuernArray>(), nullptr),
      quern_array_make_managed(s, nullptr, out<QuernArray>(), &address),
      quern_array_make_managed(s, &good.type, nullptr, &address),
      quern_to_device(s, nullptr, out<QuernArray>()),
      quern_to_device(s, &good.array, nullptr),
      quern_to_device_on(s, nullptr, {}, out<QuernArray>()),
      quern_map(s, nullptr, {}, out<QuernArray>()),
      quern_map(s, &good.array, {}, nullptr),
      quern_array_index(a, nullptr, 0, nullptr),
      quern_array_index(a, nullptr, 1, out<QuernArray>()),
      quern_array_reshape(a, 1, nullptr, QUERN_ORDER_C, out<QuernArray>()),
      quern_array_transpose(a, nullptr),
      quern_array_field(a, nullptr, out<QuernArray>()),
      quern_array_as(a, nullptr, out<QuernArray>()),
      quern_array_as(a, &element, nullptr),
      quern_array_clone(a, QUERN_ORDER_C, {}, nullptr),
      quern_array_from_host(a, nullptr, 16),
      quern_array_to_host(a, nullptr, 16),
      quern_array_from_host_on(a, nullptr, 16, {}),
      quern_array_to_host_on(a, nullptr, 16, {}),
      quern_array_from_host_array(a, nullptr),
      quern_array_from_host_array_on(a, nullptr, {}),
      quern_array_to_host_array(a, nullptr),
      quern_array_to_host_array_on(a, nullptr, {}),
      quern_array_assign(a, nullptr),
      quern_array_assign_on(a, nullptr, {}),
      quern_pin(s, nullptr, 8, out<QuernPin>()),
      quern_pin(s, place, 8, nullptr),
      quern_pinned_new(s, 8, nullptr, &address),
      quern_pinned_new(s, 8, out<QuernPin>(), nullptr),
      quern_array_describe(a, nullptr),
      quern_array_describe_on(a, {}, nullptr),
      quern_array_adopt(s, nullptr, nullptr, nullptr, out<QuernArray>()),
      quern_array_to_dlpack(a, 0, nullptr),
      quern_array_to_dlpack_unversioned(a, 0, nullptr),
      quern_array_from_dlpack(s, nullptr, out<QuernArray>()),
      quern_array_from_dlpack_unversioned(s, nullptr, out<QuernArray>()),
      quern_stream_new(s, nullptr),
      quern_stream_external(s, nullptr, nullptr),
      quern_stream_legacy_default(s, nullptr),
      quern_stream_per_thread_default(s, nullptr),
      quern_stream_query(all.stream, nullptr),
      quern_stream_add_callback(all.stream, nullptr, nullptr),
      quern_stream_native(all.stream, nullptr),
      quern_event_new(s, nullptr),
      quern_event_new_untimed(s, nullptr),
      quern_event_external(s, nullptr, out<QuernEvent>()),
      quern_event_external(s, place, nullptr),
      quern_event_query(all.event, nullptr),
      quern_event_elapsed_ms(all.event, all.event, nullptr),
      quern_event_native(all.event, nullptr)};
  for (std::size_t i = 0; i < std::size(answers); ++i) {
    CAPTURE(i);
    CHECK(answers[i] == QUERN_USAGE);
  }
}

TEST_CASE("numbers that no enumeration has are refused by name") {
  Everything all;
  const std::int64_t shape[] = {4};
  constexpr int kStrange = 1234;
  QUERN_FAILS(QUERN_USAGE, "QuernDtype",
              quern_array_new(all.session, static_cast<QuernDtype>(kStrange), 1, shape, out<QuernArray>()));
  QUERN_FAILS(QUERN_USAGE, "QuernDtype",
              quern_array_new(all.session, static_cast<QuernDtype>(-1), 1, shape, out<QuernArray>()));
  QUERN_FAILS(QUERN_USAGE, "QuernOrder",
              quern_array_clone(all.array, static_cast<QuernOrder>(kStrange), {}, out<QuernArray>()));
  QUERN_FAILS(QUERN_USAGE, "64 dimensions",
              quern_array_new(all.session, QUERN_INT32, 65, shape, out<QuernArray>()));
  QUERN_FAILS(QUERN_USAGE, "64 dimensions",
              quern_array_new(all.session, QUERN_INT32, -1, shape, out<QuernArray>()));
  QuernArgument argument = array_argument(all.array);
  argument.kind = static_cast<QuernArgumentKind>(kStrange);
  QUERN_FAILS(QUERN_USAGE, "QuernArgumentKind", quern_launch(all.kernel, &kLaunch, &argument, 1));
  QuernIndex index{static_cast<QuernIndexKind>(kStrange), 0, 0, 0, 1};
  QUERN_FAILS(QUERN_USAGE, "QuernIndexKind", quern_array_index(all.array, &index, 1, out<QuernArray>()));
  index = {QUERN_INDEX_SLICE, 4, 0, 0, 1};
  QUERN_FAILS(QUERN_USAGE, "HAS_START", quern_array_index(all.array, &index, 1, out<QuernArray>()));
  QuernMemoryStats stats{};
  stats.struct_bytes = sizeof stats;
  QUERN_FAILS(QUERN_USAGE, "QuernMemoryKind",
              quern_session_memory_stats(all.session, static_cast<QuernMemoryKind>(99), &stats));
  QUERN_FAILS(QUERN_USAGE, "QuernKernelText",
              quern_kernel_text(all.kernel, static_cast<QuernKernelText>(-5), nullptr, 0, nullptr));
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.language = static_cast<QuernLanguage>(kStrange);
  source.text = "";
  QUERN_FAILS(QUERN_USAGE, "QuernLanguage", quern_load(all.session, &source, out<QuernModule>()));
  std::uint32_t value = 0;
  const Host host(&value, QUERN_UINT32, {});
  QUERN_FAILS(QUERN_USAGE, "flags",
              quern_array_make_mapped(all.session, &host.type, 4, out<QuernArray>(), &address));
  QUERN_FAILS(QUERN_NOT_FOUND, "there are 2",
              quern_kernel_parameter(all.kernel, 2, reinterpret_cast<QuernParameter*>(place)));
  QUERN_FAILS(QUERN_NOT_FOUND, "there are 2", quern_module_kernel_name(all.module, 2, nullptr, 0, nullptr));
}

TEST_CASE("a struct whose size is not set, or impossible, is refused") {
  Everything all;
  for (const std::uint32_t bytes : {0u, 4u, 1u << 20}) {
    CAPTURE(bytes);
    QuernLaunch launch = launch_of(1, 1);
    launch.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernLaunch)", quern_launch(all.kernel, &launch, nullptr, 0));
    QuernSessionOptions options{};
    options.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernSessionOptions)",
                quern_session_open_with("cpu", &options, out<QuernSession>()));
    QuernCudaArray array = description_of(all.array);
    array.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernCudaArray)", quern_array_describe(all.array, &array));
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernCudaArray)",
                quern_array_adopt(all.session, &array, nullptr, nullptr, out<QuernArray>()));
    QuernMemoryStats stats{};
    stats.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernMemoryStats)",
                quern_session_memory_stats(all.session, QUERN_MEMORY_ALL, &stats));
    QuernKernelInfo info{};
    info.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernKernelInfo)", quern_kernel_info(all.kernel, &info));
    QuernParameter parameter{};
    parameter.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernParameter)", quern_kernel_parameter(all.kernel, 0, &parameter));
    QuernDeviceInfo device{};
    device.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernDeviceInfo)", quern_session_device(all.session, &device));
    QuernAllocator allocator{};
    allocator.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernAllocator)", quern_session_set_allocator(all.session, &allocator));
    QuernSource source{};
    source.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernSource)", quern_load(all.session, &source, out<QuernModule>()));
    std::uint32_t value = 0;
    Host host(&value, QUERN_UINT32, {});
    host.type.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernArrayType)",
                quern_to_device(all.session, &host.array, out<QuernArray>()));
    host.type.struct_bytes = sizeof host.type;
    host.array.struct_bytes = bytes;
    QUERN_FAILS(QUERN_USAGE, "sizeof(QuernHostArray)",
                quern_to_device(all.session, &host.array, out<QuernArray>()));
  }
}

TEST_CASE("a caller of version 3 is answered as before, and nothing is written behind his structs") {
  Everything all;
  struct {
    OldCudaArray array;
    std::uint64_t behind = 0x1122334455667788;
  } old{};
  old.array.struct_bytes = sizeof old.array;
  auto* const array = reinterpret_cast<QuernCudaArray*>(&old.array);
  QUERN_GOOD(quern_array_describe(all.array, array));
  CHECK(old.behind == 0x1122334455667788);
  CHECK(old.array.struct_bytes == sizeof old.array);
  CHECK(old.array.version == 3);
  CHECK(old.array.shape[0] == 4);
  CHECK(std::strcmp(old.array.typestr, "<f4") == 0);
  // The bytes after the struct must not be used as the element type.
  Array view;
  QUERN_GOOD(quern_array_adopt(all.session, array, nullptr, nullptr, view.place()));
  CHECK(values_of<float>(view, 4) == std::vector<float>{1, 2, 3, 4});

  struct {
    OldSource source;
    const char* behind[6] = {"not", "options", "of", "mine", "at", "all"};
  } text{};
  text.source = {sizeof(OldSource), QUERN_LANGUAGE_PTX, kScalePtx, "old.ptx", nullptr, 0};
  Module module;
  QUERN_GOOD(quern_load(all.session, reinterpret_cast<const QuernSource*>(&text.source), module.place()));

  static int given = 0, taken_back = 0;
  static void* memory = nullptr;
  const QuernCudaArray pool = description_of(all.array);
  memory = pool.data;
  struct {
    OldAllocator allocator;
    void (*behind[3])() = {[] { std::abort(); }, [] { std::abort(); }, [] { std::abort(); }};
  } pools{};
  pools.allocator = {sizeof(OldAllocator),
                     0,
                     nullptr,
                     [](void*, std::size_t bytes, std::size_t, void*) {
                       ++given;
                       return bytes <= 16 ? memory : nullptr;
                     },
                     [](void*, void*, std::size_t, std::size_t, void*) { ++taken_back; },
                     nullptr};
  QUERN_GOOD(quern_session_set_allocator(all.session, reinterpret_cast<QuernAllocator*>(&pools.allocator)));
  Array pooled = new_array(all.session, QUERN_INT32, {4});
  CHECK(given == 1);
  const std::int64_t large[] = {100};
  CHECK(quern_array_new(all.session, QUERN_INT32, 1, large, out<QuernArray>()) == QUERN_OUT_OF_MEMORY);
  QUERN_GOOD(quern_session_set_allocator(all.session, nullptr));
  pooled.reset();
  all.deferral.reset();
  QUERN_GOOD(quern_session_release_pending(all.session));
  CHECK(taken_back == 1);
}

TEST_CASE("a caller of a version to come is refused what this one does not know, and served the rest") {
  Everything all;
  Newer<QuernLaunch> launch{launch_of(1, 4)};
  launch.known.struct_bytes = sizeof launch;
  const float by = 2;
  const QuernArgument arguments[] = {array_argument(all.array), scalar_argument(QUERN_FLOAT32, &by)};
  QUERN_GOOD(quern_launch(all.kernel, &launch.known, arguments, 2));
  launch.added = 1;
  QUERN_FAILS(QUERN_UNSUPPORTED, "QuernLaunch has fields after its first 56 bytes that are not 0",
              quern_launch(all.kernel, &launch.known, arguments, 2));
  CHECK(values_of<float>(all.array, 4) == std::vector<float>{2, 4, 6, 8});
  Newer<QuernCudaArray> array{{}, 77};
  array.known.struct_bytes = sizeof array;
  QUERN_GOOD(quern_array_describe(all.array, &array.known));
  CHECK(array.known.ndim == 1);
  CHECK(array.added == 77);
}

TEST_CASE("each thread has its own latest error, whole or cut, and the driver's result behind it") {
  CHECK(quern_abi_version() == QUERN_ABI_VERSION);
  CHECK(std::string(quern_version()).size() >= 5);
  const Session session = open_cpu();
  const std::int64_t huge[] = {std::int64_t{1} << 45};
  QuernArray array{};
  CHECK(quern_array_new(session, QUERN_UINT8, 1, huge, &array) == QUERN_OUT_OF_MEMORY);
  CHECK(quern_last_driver_result() == 2);  // CUDA_ERROR_OUT_OF_MEMORY
  const std::string whole = last_error();
  CHECK(whole.size() > 20);
  char cut[8] = "-------";
  CHECK(quern_last_error(cut, sizeof cut) == whole.size() + 1);
  CHECK(std::string(cut) == whole.substr(0, 7));
  std::thread([] { CHECK(last_error().empty()); }).join();
  CHECK(quern_release(0) == QUERN_BAD_HANDLE);
  CHECK(quern_last_driver_result() == 0);
}
