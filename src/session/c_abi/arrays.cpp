// SPDX-License-Identifier: Apache-2.0
// The C ABI: arrays, their views and copies, and their exchange with other libraries.
#include <algorithm>
#include <span>
#include <vector>

#include "session/c_abi/handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

static_assert(static_cast<int>(MemoryAdvice::read_mostly) == QUERN_ADVICE_READ_MOSTLY &&
              static_cast<int>(MemoryAdvice::accessed_by) == QUERN_ADVICE_ACCESSED_BY &&
              static_cast<int>(MemoryAdvice::unset_accessed_by) == QUERN_ADVICE_UNSET_ACCESSED_BY);

std::span<const std::byte> source_of(const void* source, std::size_t bytes) {
  require(source != nullptr || bytes == 0, "a copy from the host needs a source");
  return {static_cast<const std::byte*>(source), bytes};
}
std::span<std::byte> target_of(void* target, std::size_t bytes) {
  require(target != nullptr || bytes == 0, "a copy to the host needs a target");
  return {static_cast<std::byte*>(target), bytes};
}

/// A view of an array, made by `view`.
template <class View>
QuernStatus view_of(QuernArray array, QuernArray* target, const View& view) {
  return guarded([&] {
    require(target != nullptr, "a view needs a pointer for its handle");
    *target = insert_array(view(array_of(array)->array));
  });
}

QuernStatus to_device(QuernSession session, const QuernHostArray* source, std::optional<QuernStream> stream,
                      QuernArray* array) {
  return guarded([&] {
    require(array != nullptr, "quern_to_device needs a pointer for the array");
    const StreamObject on = stream_of(stream.value_or(QuernStream{0}));
    ToDevice options;
    if (stream) options.stream = on.view;
    *array = insert_array(session_of(session).to_device(host_array_of(source), options));
  });
}

void give_description(const ArrayObject& array, std::optional<StreamView> stream, QuernCudaArray* target) {
  const CudaArrayInterface& known = array.description;
  QuernCudaArray result{};
  result.version = 3;
  result.data = known.data;
  result.read_only = known.read_only ? 1 : 0;
  result.ndim = static_cast<std::int32_t>(known.shape.size());
  result.shape = known.shape.data();
  result.strides = known.strides_bytes ? known.strides_bytes->data() : nullptr;
  result.typestr = known.typestr.c_str();
  result.descr = &array.element.get();
  if (stream) {
    result.has_stream = 1;
    result.stream = *array.array.cuda_array_interface(stream).stream;
  }
  write_struct(target, result);
}

template <class Tensor>
QuernStatus take_tensor(QuernSession session, void* managed_tensor, QuernArray* array) {
  struct GiveBack {
    void operator()(Tensor* tensor) const {
      if (tensor->deleter != nullptr) tensor->deleter(tensor);
    }
  };
  return guarded([&] {
    std::unique_ptr<Tensor, GiveBack> taken(
        static_cast<Tensor*>(managed_tensor));  // also where the rest fails
    require(taken != nullptr && array != nullptr, "taking a tensor needs it and a pointer for the array");
    const Session in = session_of(session);
    *array = insert_array(from_dlpack(in, taken.release()));
  });
}

/// A host array while kernels see it.
struct Mapping {
  StreamObject stream;
  MappedScope scope;
};

}  // namespace

QuernStatus quern_array_new(QuernSession session, QuernDtype dtype, int32_t ndim, const int64_t* shape,
                            QuernArray* array) {
  return guarded([&] {
    require(array != nullptr, "quern_array_new needs a pointer for the array");
    *array = insert_array(session_of(session).device_array(
        std::span<const std::int64_t>(shape_of(ndim, shape)), dtype_of(dtype)));
  });
}
QuernStatus quern_array_new_mapped(QuernSession session, QuernDtype dtype, int32_t ndim, const int64_t* shape,
                                   QuernArray* array, void** host) {
  return guarded([&] {
    require(array != nullptr && host != nullptr,
            "quern_array_new_mapped needs pointers for the array and its host address");
    const MappedNDArray mapped = session_of(session).mapped_array(shape_of(ndim, shape), dtype_of(dtype));
    void* const address = mapped.host().data();
    *array = insert_array(mapped);
    *host = address;
  });
}

QuernStatus quern_array_make(QuernSession session, const QuernArrayType* type, QuernStream stream,
                             QuernArray* array) {
  return guarded([&] {
    require(array != nullptr, "quern_array_make needs a pointer for the array");
    const ArrayType wanted = array_type_of(type);
    const StreamObject on = stream_of(stream);
    *array = insert_array(session_of(session).device_array(std::span(wanted.shape), wanted.element,
                                                           {wanted.order, wanted.strides_bytes, on.view}));
  });
}
QuernStatus quern_array_make_mapped(QuernSession session, const QuernArrayType* type, uint32_t flags,
                                    QuernArray* array, void** host) {
  return guarded([&] {
    constexpr std::uint32_t kKnown = QUERN_MAPPED_PORTABLE | QUERN_MAPPED_WRITE_COMBINED;
    require(array != nullptr && host != nullptr,
            "quern_array_make_mapped needs pointers for the array and its host address");
    require((flags & ~kKnown) == 0,
            "the flags of mapped memory are QUERN_MAPPED_PORTABLE and _WRITE_COMBINED");
    const ArrayType wanted = array_type_of(type);
    const MappedNDArray mapped = session_of(session).mapped_array(
        wanted.shape, wanted.element,
        {wanted.order, wanted.strides_bytes, (flags & QUERN_MAPPED_PORTABLE) != 0,
         (flags & QUERN_MAPPED_WRITE_COMBINED) != 0});
    void* const address = mapped.host().data();
    *array = insert_array(mapped);
    *host = address;
  });
}
QuernStatus quern_array_make_managed(QuernSession session, const QuernArrayType* type, QuernArray* array,
                                     void** host) {
  return guarded([&] {
    require(array != nullptr && host != nullptr,
            "quern_array_make_managed needs pointers for the array and its host address");
    const ArrayType wanted = array_type_of(type);
    const ManagedNDArray managed = session_of(session).managed_array(
        wanted.shape, wanted.element, {wanted.order, wanted.strides_bytes, {}});
    void* const address = managed.host().data();
    *array = insert_array(managed);
    *host = address;
  });
}

QuernStatus quern_array_prefetch(QuernArray array, QuernWhere where, QuernStream stream) {
  return guarded([&] {
    const StreamObject on = stream_of(stream);
    ManagedNDArray(array_of(array)->array).prefetch(where_of(where), on.view);
  });
}
QuernStatus quern_array_advise(QuernArray array, QuernMemoryAdvice advice, QuernWhere where) {
  return guarded([&] {
    require(advice >= QUERN_ADVICE_READ_MOSTLY && advice <= QUERN_ADVICE_UNSET_ACCESSED_BY,
            "the advice is not a value of QuernMemoryAdvice");
    ManagedNDArray(array_of(array)->array).advise(static_cast<MemoryAdvice>(advice), where_of(where));
  });
}

QuernStatus quern_to_device(QuernSession session, const QuernHostArray* source, QuernArray* array) {
  return to_device(session, source, std::nullopt, array);
}
QuernStatus quern_to_device_on(QuernSession session, const QuernHostArray* source, QuernStream stream,
                               QuernArray* array) {
  return to_device(session, source, stream, array);
}
QuernStatus quern_map(QuernSession session, const QuernHostArray* host, QuernStream stream,
                      QuernArray* array) {
  return guarded([&] {
    require(array != nullptr, "quern_map needs a pointer for the array");
    const Session in = session_of(session);
    const NDArray memory = host_array_of(host);
    StreamObject on = stream_of(stream);
    const StreamView view = on.view;
    const auto mapping = std::make_shared<const Mapping>(Mapping{std::move(on), in.mapped({memory}, view)});
    CudaArrayInterface description = mapping->scope[0].cuda_array_interface();
    description.descr = memory.element();
    description.read_only = memory.is_read_only();
    *array = insert_array(in.adopt(description, mapping, false));  // all its views keep it mapped
  });
}

QuernStatus quern_array_index(QuernArray array, const QuernIndex* indices, size_t count, QuernArray* view) {
  return view_of(array, view, [&](const DeviceNDArray& of) {
    require(count == 0 || indices != nullptr, "quern_array_index needs as many indices as it is told");
    require(count <= 256, "an array has at most 64 dimensions; give fewer indices");
    std::vector<Index> list;
    for (const QuernIndex& index : std::span(indices, count)) list.push_back(index_of(index));
    return of.indexed(list);
  });
}
QuernStatus quern_array_reshape(QuernArray array, int32_t ndim, const int64_t* shape, QuernOrder order,
                                QuernArray* view) {
  return view_of(array, view, [&](const DeviceNDArray& of) {
    return of.reshape(std::span<const std::int64_t>(shape_of(ndim, shape)), order_of(order));
  });
}
QuernStatus quern_array_transpose(QuernArray array, QuernArray* view) {
  return view_of(array, view, [](const DeviceNDArray& of) { return of.transpose(); });
}
QuernStatus quern_array_field(QuernArray array, const char* name, QuernArray* view) {
  return view_of(array, view, [&](const DeviceNDArray& of) {
    require(name != nullptr, "quern_array_field needs the field's name");
    return of.field(name);
  });
}
QuernStatus quern_array_as(QuernArray array, const QuernElement* element, QuernArray* view) {
  return view_of(array, view, [&](const DeviceNDArray& of) {
    require(element != nullptr, "quern_array_as needs an element type");
    return of.as_element(element_of(*element));
  });
}
QuernStatus quern_array_clone(QuernArray array, QuernOrder order, QuernStream stream, QuernArray* copy) {
  return view_of(array, copy, [&](const DeviceNDArray& of) {
    const StreamObject on = stream_of(stream);
    return of.copy(order_of(order), on.view);
  });
}

QuernStatus quern_array_from_host(QuernArray array, const void* source, size_t bytes) {
  return guarded([&] { array_of(array)->array.copy_bytes_from_host(source_of(source, bytes)); });
}
QuernStatus quern_array_to_host(QuernArray array, void* target, size_t bytes) {
  return guarded([&] { array_of(array)->array.copy_bytes_to_host(target_of(target, bytes)); });
}
QuernStatus quern_array_from_host_on(QuernArray array, const void* source, size_t bytes, QuernStream stream) {
  return guarded(
      [&] { array_of(array)->array.copy_bytes_from_host(source_of(source, bytes), stream_of(stream).view); });
}
QuernStatus quern_array_to_host_on(QuernArray array, void* target, size_t bytes, QuernStream stream) {
  return guarded(
      [&] { array_of(array)->array.copy_bytes_to_host(target_of(target, bytes), stream_of(stream).view); });
}

QuernStatus quern_array_from_host_array(QuernArray array, const QuernHostArray* source) {
  return guarded([&] { array_of(array)->array.copy_to_device(host_array_of(source)); });
}
QuernStatus quern_array_from_host_array_on(QuernArray array, const QuernHostArray* source,
                                           QuernStream stream) {
  return guarded(
      [&] { array_of(array)->array.copy_to_device(host_array_of(source), stream_of(stream).view); });
}
QuernStatus quern_array_to_host_array(QuernArray array, const QuernHostArray* target) {
  return guarded([&] { array_of(array)->array.copy_to_host(host_array_of(target)); });
}
QuernStatus quern_array_to_host_array_on(QuernArray array, const QuernHostArray* target, QuernStream stream) {
  return guarded([&] { array_of(array)->array.copy_to_host(host_array_of(target), stream_of(stream).view); });
}
QuernStatus quern_array_assign(QuernArray array, const QuernHostArray* values) {
  return guarded([&] { array_of(array)->array.assign(host_array_of(values)); });
}
QuernStatus quern_array_assign_on(QuernArray array, const QuernHostArray* values, QuernStream stream) {
  return guarded([&] { array_of(array)->array.assign(host_array_of(values), stream_of(stream).view); });
}
QuernStatus quern_array_copy(QuernArray to, QuernArray from) {
  return guarded([&] { array_of(to)->array.copy_to_device(array_of(from)->array); });
}
QuernStatus quern_array_copy_on(QuernArray to, QuernArray from, QuernStream stream) {
  return guarded([&] { array_of(to)->array.copy_to_device(array_of(from)->array, stream_of(stream).view); });
}

QuernStatus quern_array_describe(QuernArray array, QuernCudaArray* description) {
  return guarded([&] { give_description(*array_of(array), std::nullopt, description); });
}
QuernStatus quern_array_describe_on(QuernArray array, QuernStream stream, QuernCudaArray* description) {
  return guarded([&] { give_description(*array_of(array), stream_of(stream).view, description); });
}
QuernStatus quern_array_adopt(QuernSession session, const QuernCudaArray* description,
                              void (*release)(void* user), void* user, QuernArray* array) {
  return guarded([&] {
    const std::shared_ptr<const void> owner(user, [release](const void* of) {  // runs also if this fails
      if (release != nullptr) release(const_cast<void*>(of));
    });
    require(array != nullptr && description != nullptr,
            "quern_array_adopt needs a QuernCudaArray and a pointer for the array");
    *array = insert_array(session_of(session).adopt(interface_of(read_struct(description)), owner));
  });
}

QuernStatus quern_array_to_dlpack(QuernArray array, int32_t as_host, void** managed_tensor) {
  return guarded([&] {
    require(managed_tensor != nullptr, "quern_array_to_dlpack needs a pointer for the tensor");
    const DeviceNDArray& known = array_of(array)->array;
    *managed_tensor = as_host != 0 ? to_dlpack(MappedNDArray(known).host()) : to_dlpack(known);
  });
}
QuernStatus quern_array_to_dlpack_unversioned(QuernArray array, int32_t as_host, void** managed_tensor) {
  return guarded([&] {
    require(managed_tensor != nullptr, "quern_array_to_dlpack_unversioned needs a pointer for the tensor");
    const DeviceNDArray& known = array_of(array)->array;
    *managed_tensor =
        as_host != 0 ? to_dlpack_unversioned(MappedNDArray(known).host()) : to_dlpack_unversioned(known);
  });
}
QuernStatus quern_array_from_dlpack(QuernSession session, void* managed_tensor, QuernArray* array) {
  return take_tensor<dlpack::ManagedTensorVersioned>(session, managed_tensor, array);
}
QuernStatus quern_array_from_dlpack_unversioned(QuernSession session, void* managed_tensor,
                                                QuernArray* array) {
  return take_tensor<dlpack::ManagedTensor>(session, managed_tensor, array);
}
