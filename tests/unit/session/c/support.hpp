// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the C ABI. It includes only quern.h, so the tests see what a C program sees.
#pragma once

#include <doctest/doctest.h>
#include <quern/quern.h>

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

namespace c {

inline std::string last_error() {
  std::string text(quern_last_error(nullptr, 0), '\0');
  quern_last_error(text.data(), text.size());
  text.pop_back();  // the NUL
  return text;
}
inline bool holds(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

/// A handle that is released at the end of its scope.
template <class Handle>
class Own {
 public:
  Own() = default;
  Own(Own&& other) noexcept : handle_(std::exchange(other.handle_, Handle{})) {}
  Own& operator=(Own&& other) noexcept {
    std::swap(handle_, other.handle_);
    return *this;
  }
  ~Own() { reset(); }
  operator Handle() const { return handle_; }  // NOLINT(google-explicit-constructor)
  std::uint64_t id() const { return handle_.id; }
  /// The address at which a function stores a new handle.
  Handle* place() {
    reset();
    return &handle_;
  }
  void reset() {
    if (handle_.id != 0) quern_release(std::exchange(handle_, Handle{}).id);
  }

 private:
  Handle handle_{};
};
using Session = Own<QuernSession>;
using Module = Own<QuernModule>;
using Kernel = Own<QuernKernel>;
using Array = Own<QuernArray>;
using SmartArray = Own<QuernSmartArray>;
using Stream = Own<QuernStream>;
using Event = Own<QuernEvent>;
using Pin = Own<QuernPin>;
using Deferral = Own<QuernDeferral>;

}  // namespace c

/// Checks that the call succeeds.
#define QUERN_GOOD(...)                                    \
  do {                                                     \
    const QuernStatus status_ = (__VA_ARGS__);             \
    REQUIRE_MESSAGE(status_ == QUERN_OK, c::last_error()); \
  } while (false)
/// Checks that the call fails with that status, and that the message contains the text.
#define QUERN_FAILS(status, part, ...)                               \
  do {                                                               \
    CHECK((__VA_ARGS__) == (status));                                \
    CHECK_MESSAGE(c::holds(c::last_error(), part), c::last_error()); \
  } while (false)

namespace c {

inline Session open_cpu() {
  Session session;
  QUERN_GOOD(quern_session_open("cpu", session.place()));
  return session;
}

/// x[i] *= by, with one thread for each element.
inline constexpr const char* kScalePtx = R"(.version 6.0
.target sm_50
.address_size 64
.visible .entry scale(.param .u64 x, .param .f32 by)
{
  .reg .b32 %r<4>; .reg .f32 %f<3>; .reg .b64 %d<3>;
  mov.u32 %r0, %tid.x; mov.u32 %r1, %ctaid.x; mov.u32 %r2, %ntid.x; mad.lo.u32 %r3, %r1, %r2, %r0;
  ld.param.u64 %d1, [x]; ld.param.f32 %f2, [by];
  mul.wide.u32 %d2, %r3, 4; add.u64 %d1, %d1, %d2;
  ld.global.f32 %f1, [%d1]; mul.f32 %f1, %f1, %f2; st.global.f32 [%d1], %f1; ret;
}
// Waits until the host sets *flag, then adds 1 to *count.
.visible .entry hold(.param .u64 flag, .param .u64 count)
{
  .reg .b32 %r<3>; .reg .pred %p; .reg .b64 %d<3>;
  ld.param.u64 %d1, [flag]; ld.param.u64 %d2, [count];
again:
  ld.volatile.global.u32 %r1, [%d1]; setp.eq.u32 %p, %r1, 0;
  @%p bra again;
  ld.global.u32 %r2, [%d2]; add.u32 %r2, %r2, 1; st.global.u32 [%d2], %r2; ret;
}
)";

inline Kernel kernel_of(QuernSession session, const char* ptx, const char* name) {
  Module module;
  Kernel kernel;
  QUERN_GOOD(quern_load_ptx(session, ptx, module.place()));
  QUERN_GOOD(quern_kernel(module, name, kernel.place()));
  return kernel;
}
inline Kernel cuda_kernel(QuernSession session, const char* source, const char* name) {
  Module module;
  Kernel kernel;
  QUERN_GOOD(quern_load_cuda(session, source, module.place()));
  QUERN_GOOD(quern_kernel(module, name, kernel.place()));
  return kernel;
}
inline Kernel python_kernel(QuernSession session, const char* text, const char* name) {
  QuernSource source{};
  source.struct_bytes = sizeof source;
  source.language = QUERN_LANGUAGE_PYTHON;
  source.text = text;
  Module module;
  Kernel kernel;
  QUERN_GOOD(quern_load(session, &source, module.place()));
  QUERN_GOOD(quern_kernel(module, name, kernel.place()));
  return kernel;
}

inline QuernLaunch launch_of(std::uint32_t grid, std::uint32_t block, QuernStream stream = {}) {
  return {sizeof(QuernLaunch), 0, {grid, 1, 1}, {block, 1, 1}, 0, stream};
}
inline QuernArgument array_argument(QuernArray array) {
  QuernArgument argument{};
  argument.kind = QUERN_ARGUMENT_ARRAY;
  argument.array = array;
  return argument;
}
inline QuernArgument scalar_argument(QuernDtype dtype, const void* value) {
  QuernArgument argument{};
  argument.kind = QUERN_ARGUMENT_SCALAR;
  argument.dtype = dtype;
  argument.data = value;
  return argument;
}
inline QuernArgument host_argument(QuernArgumentKind kind, const QuernHostArray& host) {
  QuernArgument argument{};
  argument.kind = kind;
  argument.data = &host;
  return argument;
}
inline QuernStatus launch(QuernKernel kernel, const QuernLaunch& launch,
                          const std::vector<QuernArgument>& arguments) {
  return quern_launch(kernel, &launch, arguments.data(), arguments.size());
}

/// The description of a host array. It must live as long as the calls that read it.
struct Host {
  std::vector<std::int64_t> shape;
  std::vector<std::int64_t> strides;
  QuernArrayType type{};
  QuernHostArray array{};

  Host(void* data, QuernElement element, std::vector<std::int64_t> extents,
       std::vector<std::int64_t> strides_bytes = {}, QuernOrder order = QUERN_ORDER_C)
      : shape(std::move(extents)), strides(std::move(strides_bytes)) {
    type.struct_bytes = sizeof type;
    type.order = order;
    type.element = element;
    type.ndim = static_cast<std::int32_t>(shape.size());
    type.shape = shape.data();
    type.strides = strides.empty() ? nullptr : strides.data();
    array.struct_bytes = sizeof array;
    array.data = data;
    array.type = &type;
  }
  Host(void* data, QuernDtype dtype, std::vector<std::int64_t> extents,
       std::vector<std::int64_t> strides_bytes = {}, QuernOrder order = QUERN_ORDER_C)
      : Host(data, QuernElement{dtype, 0, 0, nullptr}, std::move(extents), std::move(strides_bytes), order) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
};

inline Array new_array(QuernSession session, QuernDtype dtype, std::vector<std::int64_t> shape) {
  Array array;
  QUERN_GOOD(
      quern_array_new(session, dtype, static_cast<std::int32_t>(shape.size()), shape.data(), array.place()));
  return array;
}
template <class T>
Array to_device(QuernSession session, QuernDtype dtype, const std::vector<T>& values) {
  Array array = new_array(session, dtype, {static_cast<std::int64_t>(values.size())});
  QUERN_GOOD(quern_array_from_host(array, values.data(), values.size() * sizeof(T)));
  return array;
}
template <class T>
std::vector<T> values_of(QuernArray array, std::size_t count) {
  std::vector<T> values(count);
  QUERN_GOOD(quern_array_to_host(array, values.data(), count * sizeof(T)));
  return values;
}
inline QuernCudaArray description_of(QuernArray array) {
  QuernCudaArray description{};
  description.struct_bytes = sizeof description;
  QUERN_GOOD(quern_array_describe(array, &description));
  return description;
}
inline QuernMemoryStats stats_of(QuernSession session, QuernMemoryKind kind) {
  QuernMemoryStats stats{};
  stats.struct_bytes = sizeof stats;
  QUERN_GOOD(quern_session_memory_stats(session, kind, &stats));
  return stats;
}

/// A function of the Driver API, from the session's driver.
template <class F>
F* driver(QuernSession session, const char* name) {
  void* address = nullptr;
  QUERN_GOOD(quern_session_driver_function(session, name, &address));
  return reinterpret_cast<F*>(address);
}

/// A flag in mapped memory for which the kernel `hold` waits. It is set at the end, so that nothing waits
/// forever.
struct Flag {
  Array array;
  Array count;
  volatile std::uint32_t* host = nullptr;

  explicit Flag(QuernSession session) {
    const std::int64_t one[] = {1};
    void* memory = nullptr;
    QUERN_GOOD(quern_array_new_mapped(session, QUERN_UINT32, 1, one, array.place(), &memory));
    host = static_cast<volatile std::uint32_t*>(memory);
    *host = 0;
    count = to_device(session, QUERN_UINT32, std::vector<std::uint32_t>{0});
  }
  ~Flag() { *host = 1; }
  Flag(const Flag&) = delete;
  Flag& operator=(const Flag&) = delete;
  void open() const { *host = 1; }
  std::vector<QuernArgument> arguments() const { return {array_argument(array), array_argument(count)}; }
};

}  // namespace c
