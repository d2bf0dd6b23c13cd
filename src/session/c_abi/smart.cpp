// SPDX-License-Identifier: Apache-2.0
// The C ABI: arrays that are copied between host and device when needed.
#include "session/c_abi/handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

template <class Make>
QuernStatus make_smart(QuernSession session, QuernSmartArray* smart, const Make& make) {
  return guarded([&] {
    require(smart != nullptr, "a smart array needs a pointer for its handle");
    smart->id = insert(make(session_of(session)));
  });
}

}  // namespace

QuernStatus quern_smart_new(QuernSession session, const QuernArrayType* type, QuernWhere where,
                            QuernSmartArray* smart) {
  return make_smart(session, smart, [&](const Session& in) {
    const ArrayType wanted = array_type_of(type);
    require(!wanted.strides_bytes, "a smart array lies in C or Fortran order; give no strides");
    return in.smart_array(wanted.shape, wanted.element, wanted.order, where_of(where));
  });
}
QuernStatus quern_smart_from_host(QuernSession session, const QuernHostArray* array, int32_t copy,
                                  QuernSmartArray* smart) {
  return make_smart(session, smart, [&](const Session& in) {
    const NDArray host = host_array_of(array);
    require(copy != 0 || !host.is_read_only(), "a read-only array cannot be a smart array's side; copy it");
    return in.smart_array(host, copy != 0);
  });
}
QuernStatus quern_smart_from_array(QuernSession session, QuernArray array, int32_t copy,
                                   QuernSmartArray* smart) {
  return make_smart(session, smart, [&](const Session& in) {
    const DeviceNDArray& device = array_of(array)->array;
    require(copy != 0 || !device.is_read_only(), "a read-only array cannot be a smart array's side; copy it");
    return in.smart_array(device, copy != 0);
  });
}

QuernStatus quern_smart_host(QuernSmartArray smart, void** data) {
  return guarded([&] {
    require(data != nullptr, "quern_smart_host needs a pointer for the address");
    *data = find<SmartArray>(smart.id).host().data();
  });
}
QuernStatus quern_smart_device(QuernSmartArray smart, QuernArray* array) {
  return guarded([&] {
    require(array != nullptr, "quern_smart_device needs a pointer for the array");
    *array = insert_array(find<SmartArray>(smart.id).device());
  });
}
QuernStatus quern_smart_mark_changed(QuernSmartArray smart, QuernWhere where, QuernStream stream) {
  return guarded([&] {
    const StreamObject on = stream_of(stream);
    find<SmartArray>(smart.id).mark_changed(where_of(where), on.view);
  });
}
QuernStatus quern_smart_is_current(QuernSmartArray smart, QuernWhere where, int32_t* current) {
  return guarded([&] {
    require(current != nullptr, "quern_smart_is_current needs a pointer for the answer");
    *current = find<SmartArray>(smart.id).is_current(where_of(where)) ? 1 : 0;
  });
}
