// SPDX-License-Identifier: Apache-2.0
// The scenarios of the C functions.
#include <quern/quern.h>

#include <algorithm>
#include <vector>

#include "scenarios.hpp"
#include "session/state.hpp"

namespace quern::failure {
namespace {

/// Releases the objects that C functions returned. Reports their failures as failures of this test.
struct CHandles {
  std::vector<std::uint64_t> ids;
  ~CHandles() {
    for (const std::uint64_t id : ids) quern_release(id);
  }
  template <class Handle>
  Handle take(QuernStatus status, const Handle& handle) {
    check(status);
    ids.push_back(handle.id);
    return handle;
  }
  static void check(QuernStatus status) {
    if (status == QUERN_OK) return;
    char text[512];
    quern_last_error(text, sizeof text);
    if (text[0] == '\0') throw Error(ErrorCode::internal, "no error text");
    throw Error(ErrorCode::driver, text);
  }
};

/// Launches kAddOne on `kCount` elements of `array`, which is of that kind.
QuernStatus add_one(QuernKernel kernel, QuernArgumentKind kind, QuernArray array, QuernStream stream) {
  const std::uint32_t count = kCount;
  QuernArgument arguments[2] = {};
  arguments[0].kind = kind;
  arguments[0].array = array;
  arguments[1].kind = QUERN_ARGUMENT_SCALAR;
  arguments[1].dtype = QUERN_UINT32;
  arguments[1].data = &count;
  QuernLaunch launch{};
  launch.struct_bytes = sizeof launch;
  std::fill_n(launch.grid, 3, 1u);
  std::fill_n(launch.block, 3, 1u);
  launch.block[0] = 128;
  launch.stream = stream;
  return quern_launch(kernel, &launch, arguments, 2);
}

}  // namespace

bool c_functions(const Session& session) {
  CHandles handles;
  handles.ids.reserve(16);
  QuernSession in{session::c_handle(session)};
  handles.ids.push_back(in.id);
  QuernModule module{};
  QuernKernel kernel{};
  QuernArray array{}, mapped{}, view{}, shared{};
  QuernStream stream{};
  handles.take(quern_load_ptx(in, kAddOne, &module), module);
  module.id = handles.ids.back();
  handles.take(quern_kernel(module, "add_one", &kernel), kernel);
  const std::int64_t shape[] = {kCount};
  void* host = nullptr;
  handles.take(quern_array_new(in, QUERN_FLOAT32, 1, shape, &array), array);
  handles.take(quern_array_new_mapped(in, QUERN_FLOAT32, 1, shape, &mapped, &host), mapped);
  handles.take(quern_stream_new(in, &stream), stream);
  std::vector<float> values(kCount, 3.0f), back(kCount);
  handles.check(quern_array_from_host_on(array, values.data(), 4 * kCount, stream));
  QuernCudaArray description{};
  description.struct_bytes = sizeof description;
  handles.check(quern_array_describe(array, &description));
  handles.take(quern_array_adopt(in, &description, nullptr, nullptr, &view), view);
  void* tensor = nullptr;
  handles.check(quern_array_to_dlpack(mapped, 0, &tensor));
  handles.take(quern_array_from_dlpack(in, tensor, &shared), shared);
  handles.check(add_one(kernel, QUERN_ARGUMENT_ARRAY, view, stream));
  handles.check(quern_array_to_host_on(array, back.data(), 4 * kCount, stream));
  handles.check(quern_stream_synchronize(stream));
  handles.check(quern_array_from_host(shared, back.data(), 4 * kCount));
  return back[99] == 4 && static_cast<const float*>(host)[99] == 4;
}
/// Existing host memory, arrays that are copied when needed, copies.
bool c_memory(const Session& session) {
  CHandles handles;
  handles.ids.reserve(16);
  QuernSession in{session::c_handle(session)};
  handles.ids.push_back(in.id);
  const std::int64_t shape[] = {kCount};
  QuernArrayType type{};
  type.struct_bytes = sizeof type;
  type.element.dtype = QUERN_FLOAT32;
  type.ndim = 1;
  type.shape = shape;
  std::vector<float> own(kCount, 3.0f), pinned(kCount), back(kCount);
  QuernHostArray host{};
  host.struct_bytes = sizeof host;
  host.data = own.data();
  host.type = &type;
  QuernModule module{};
  QuernKernel kernel{};
  QuernStream stream{};
  QuernArray mapped{}, clone{}, device{};
  QuernSmartArray smart{}, placed{};
  QuernPin pin{}, fresh{};
  void *memory = nullptr, *side = nullptr;
  handles.take(quern_load_ptx(in, kAddOne, &module), module);
  module.id = handles.ids.back();
  handles.take(quern_kernel(module, "add_one", &kernel), kernel);
  handles.take(quern_stream_new(in, &stream), stream);
  handles.take(quern_smart_from_host(in, &host, 1, &smart), smart);
  handles.take(quern_map(in, &host, stream, &mapped), mapped);
  handles.check(add_one(kernel, QUERN_ARGUMENT_SMART, {smart.id}, stream));
  handles.check(add_one(kernel, QUERN_ARGUMENT_ARRAY, mapped, stream));
  handles.take(quern_array_clone(mapped, QUERN_ORDER_C, stream, &clone), clone);
  handles.take(quern_pin(in, pinned.data(), 4 * kCount, &pin), pin);
  handles.check(quern_array_to_host_on(clone, pinned.data(), 4 * kCount, stream));
  handles.check(quern_stream_synchronize(stream));
  handles.check(quern_smart_host(smart, &side));
  const bool launched = own[99] == 4 && pinned[99] == 4 && static_cast<const float*>(side)[99] == 4;

  handles.take(quern_pinned_new(in, 4 * kCount, &fresh, &memory), fresh);
  std::fill_n(static_cast<float*>(memory), kCount, 6.0f);
  host.data = memory;
  host.pin = fresh;
  handles.check(quern_array_from_host_array_on(clone, &host, stream));
  handles.check(quern_stream_synchronize(stream));
  handles.take(quern_smart_from_array(in, clone, 0, &placed), placed);
  handles.check(quern_smart_host(placed, &side));
  static_cast<float*>(side)[0] = 8;
  handles.check(quern_smart_mark_changed(placed, QUERN_WHERE_HOST, stream));
  handles.take(quern_smart_device(placed, &device), device);
  handles.check(quern_array_to_host(device, back.data(), 4 * kCount));
  return launched && back[0] == 8 && back[99] == 6;
}

}  // namespace quern::failure
