// SPDX-License-Identifier: Apache-2.0
// quern's arrays in Python, as far as the interoperability checks need them: the array interfaces, DLPack
// according to the Python array API standard, .npy files, and streams that wait until they are released.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <quern/quern.hpp>

#include <atomic>
#include <cstddef>
#include <cstring>
#include <stdexcept>

#include "dlpack_header.hpp"

namespace nb = nanobind;
using namespace quern;

namespace {

// --- DLPack

template <class Tensor>
constexpr const char* kName = "dltensor_versioned";
template <>
constexpr const char* kName<dlpack::ManagedTensor> = "dltensor";
template <class Tensor>
constexpr const char* kUsedName = "used_dltensor_versioned";
template <>
constexpr const char* kUsedName<dlpack::ManagedTensor> = "used_dltensor";

/// A capsule that releases the tensor if no consumer took it.
template <class Tensor>
nb::object capsule(Tensor* tensor) {
  return nb::steal(PyCapsule_New(tensor, kName<Tensor>, [](PyObject* object) {
    if (PyCapsule_IsValid(object, kName<Tensor>) == 0) return;  // consumed
    auto* unused = static_cast<Tensor*>(PyCapsule_GetPointer(object, kName<Tensor>));
    unused->deleter(unused);
  }));
}

template <class Tensor>
Tensor* consume(nb::handle object) {
  auto* tensor = static_cast<Tensor*>(PyCapsule_GetPointer(object.ptr(), kName<Tensor>));
  if (tensor == nullptr) throw nb::python_error();
  PyCapsule_SetName(object.ptr(), kUsedName<Tensor>);
  return tensor;
}

/// The arguments of `__dlpack__(stream, max_version, dl_device, copy)`.
struct Request {
  std::optional<StreamView> consumer = StreamView();
  bool versioned = false;
  bool to_host = false;
  std::optional<bool> copy;

  explicit Request(const nb::kwargs& asked) {
    const auto given = [&](const char* name) { return asked.contains(name) && !asked[name].is_none(); };
    if (given("stream")) consumer = dlpack_consumer(nb::cast<std::int64_t>(asked["stream"]));
    if (given("max_version")) versioned = nb::cast<int>(asked["max_version"][0]) >= 1;
    if (given("dl_device")) to_host = nb::cast<int>(asked["dl_device"][0]) == 1;
    if (given("copy")) copy = nb::cast<bool>(asked["copy"]);
  }
};

nb::object host_capsule(const NDArray& array, const Request& request, bool is_copy) {
  if (!request.versioned) return capsule(to_dlpack_unversioned(array));
  return capsule(to_dlpack(array, is_copy));
}

nb::object device_capsule(const DeviceNDArray& array, StreamView producer, const Request& request) {
  const bool copied = request.copy.value_or(false);
  if (request.to_host) {
    if (request.copy == false) throw nb::buffer_error("device memory reaches the host only as a copy");
    if (producer.context() != nullptr) producer.synchronize();
    return host_capsule(array.copy_to_host(), request, true);
  }
  const ToDlpack options = {.producer = producer, .consumer = request.consumer, .copied = copied};
  const DeviceNDArray given = copied ? array.copy(Order::c, producer) : array;
  if (!request.versioned) return capsule(to_dlpack_unversioned(given, options));
  return capsule(to_dlpack(given, options));
}

/// Takes the tensor from the capsule, in either ABI, with `take`.
template <class Take>
auto taken(nb::handle tensor, Take&& take) {
  if (PyCapsule_IsValid(tensor.ptr(), kName<dlpack::ManagedTensor>) != 0)
    return take(consume<dlpack::ManagedTensor>(tensor));
  return take(consume<dlpack::ManagedTensorVersioned>(tensor));
}

// --- the CUDA Array Interface

template <class Values>
nb::tuple tuple(const Values& values) {
  nb::list list;
  for (const auto value : values) list.append(value);
  return nb::tuple(list);
}

nb::dict cuda_interface(const DeviceNDArray& array, std::optional<StreamView> producer) {
  const CudaArrayInterface description = array.cuda_array_interface(producer);
  nb::dict dict;
  dict["shape"] = tuple(description.shape);
  dict["typestr"] = description.typestr;
  dict["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(description.data), description.read_only);
  if (description.strides_bytes) dict["strides"] = tuple(*description.strides_bytes);
  if (description.stream) dict["stream"] = *description.stream;
  dict["version"] = description.version;
  return dict;
}

CudaArrayInterface read_interface(nb::handle object) {
  const nb::dict dict = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
  const auto given = [&](const char* name) { return dict.contains(name) && !dict[name].is_none(); };
  CudaArrayInterface description;
  description.shape = nb::cast<std::vector<std::int64_t>>(nb::list(dict["shape"]));
  description.typestr = nb::cast<std::string>(nb::str(dict["typestr"]));
  description.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(dict["data"][0]));
  description.read_only = nb::cast<bool>(dict["data"][1]);
  if (given("strides"))
    description.strides_bytes = nb::cast<std::vector<std::int64_t>>(nb::list(dict["strides"]));
  if (given("stream")) description.stream = nb::cast<std::uintptr_t>(dict["stream"]);
  return description;
}

std::shared_ptr<const void> owner_of(nb::object object) {
  auto* keep = new nb::object(std::move(object));
  return {keep, [](const void* done) {
            const nb::gil_scoped_acquire gil;
            delete static_cast<const nb::object*>(done);
          }};
}

/// A Python object with the interface, as copy_to_device() takes it.
struct PythonArray {
  CudaArrayInterface description;
  std::shared_ptr<const void> owner;
  CudaArrayInterface cuda_array_interface() const { return description; }
};

// --- streams

/// A stream that the default stream is not ordered with. Never destroyed.
struct FreeStream {
  StreamView view;
  std::shared_ptr<std::atomic<bool>> open = std::make_shared<std::atomic<bool>>(true);

  explicit FreeStream(const Session& session) {
    using Create = int(void**, unsigned);
    constexpr unsigned kNonBlocking = 1;
    void* handle = nullptr;
    auto* const create = reinterpret_cast<Create*>(driver_function(session.device(), "cuStreamCreate"));
    if (create(&handle, kNonBlocking) != 0) throw std::runtime_error("cuStreamCreate failed");
    view = session.external_stream(handle);
  }
  /// Work queued from now on waits for go_on().
  void stop() {
    open->store(false);
    view.add_callback([gate = open] { gate->wait(false); });
  }
  void go_on() {
    open->store(true);
    open->notify_all();
  }
};

struct Host {
  NDArray array;
};

/// A device array whose values are produced by a stream.
struct Made {
  DeviceNDArray array;
  StreamView producer;
};

}  // namespace

NB_MODULE(quern_interop, module) {
  nb::class_<FreeStream>(module, "FreeStream")
      .def(nb::init<const Session&>())
      .def_prop_ro(
          "handle",
          [](const FreeStream& stream) { return reinterpret_cast<std::uintptr_t>(stream.view.handle()); })
      .def("stop", &FreeStream::stop)
      .def("go_on", &FreeStream::go_on)
      .def("query", [](const FreeStream& stream) { return stream.view.query(); })
      .def(
          "synchronize", [](const FreeStream& stream) { stream.view.synchronize(); },
          nb::call_guard<nb::gil_scoped_release>());
  nb::class_<Host>(module, "Host")
      .def("__dlpack__",
           [](const Host& host, nb::kwargs asked) {
             const Request request(asked);
             const bool copy = request.copy.value_or(false);
             return host_capsule(copy ? host.array.copy() : host.array, request, copy);
           })
      .def("__dlpack_device__", [](const Host&) { return nb::make_tuple(1, 0); })
      .def_prop_ro("dtype", [](const Host& host) { return to_string(host.array.element()); })
      .def_prop_ro("read_only", [](const Host& host) { return host.array.is_read_only(); })
      .def("save_npy", [](const Host& host, const std::string& path) { host.array.save_npy(path); })
      .def("bytes",
           [](const Host& host) {
             const NDArray whole = host.array.copy();
             return nb::bytes(reinterpret_cast<const char*>(whole.data()), whole.size_bytes());
           })
      .def("field", [](const Host& host, std::string_view name) { return Host{host.array.field(name)}; })
      .def("sum", [](const Host& host) {
        double sum = 0;
        const NDArray flat = host.array.ravel();
        for (std::int64_t i = 0; i < flat.shape()[0]; ++i) sum += static_cast<double>(flat.at<float>(i));
        return sum;
      });
  nb::class_<Made>(module, "Made")
      .def_prop_ro("__cuda_array_interface__",
                   [](const Made& made) { return cuda_interface(made.array, made.producer); })
      .def("__dlpack__",
           [](const Made& made, nb::kwargs asked) {
             return device_capsule(made.array, made.producer, Request(asked));
           })
      .def("__dlpack_device__", [](const Made&) { return nb::make_tuple(2, 0); });
  nb::class_<DeviceNDArray>(module, "DeviceNDArray")
      .def_prop_ro("__cuda_array_interface__",
                   [](const DeviceNDArray& array) { return cuda_interface(array, StreamView()); })
      .def("__dlpack__", [](const DeviceNDArray& array,
                            nb::kwargs asked) { return device_capsule(array, StreamView(), Request(asked)); })
      .def("__dlpack_device__", [](const DeviceNDArray&) { return nb::make_tuple(2, 0); })
      .def_prop_ro("address",
                   [](const DeviceNDArray& array) { return reinterpret_cast<std::uintptr_t>(array.data()); })
      .def_prop_ro("dtype", [](const DeviceNDArray& array) { return to_string(array.element()); })
      .def_prop_ro("read_only", &DeviceNDArray::is_read_only)
      .def("made_on",
           [](const DeviceNDArray& array, const FreeStream& stream) { return Made{array, stream.view}; })
      .def("assign", [](const DeviceNDArray& array, float value,
                        const FreeStream& stream) { array.assign(value, stream.view); })
      .def(
          "copy_to_host", [](const DeviceNDArray& array) { return Host{array.copy_to_host()}; },
          nb::call_guard<nb::gil_scoped_release>())
      .def(
          "copy_from_cuda_array",
          [](const DeviceNDArray& array, nb::object object, const FreeStream* stream) {
            const PythonArray from{read_interface(object), owner_of(object)};
            const nb::gil_scoped_release released;
            stream != nullptr ? array.copy_to_device(from, stream->view) : array.copy_to_device(from);
          },
          nb::arg("object"), nb::arg("stream").none() = nb::none())
      .def("copy_on", [](const DeviceNDArray& array,
                         const FreeStream& stream) { return Host{array.copy_to_host(stream.view)}; })
      .def("every_other", [](const DeviceNDArray& array) { return array(Slice{{}, {}, 2}); })
      .def("add", [](const DeviceNDArray& array, float value) {
        NDArray host = array.copy_to_host();
        for (std::int64_t i = 0; i < host.shape()[0]; ++i) host.at<float>(i) += value;
        array.copy_to_device(host);
      });
  nb::class_<Session>(module, "Session")
      .def(nb::init<std::string_view>())
      .def("to_device",
           [](const Session& session, const Host& host) { return session.to_device(host.array); })
      .def("mapped",
           [](const Session& session, std::int64_t count, float value) {
             const MappedNDArray mapped = session.mapped_array({count}, Dtype::float32);
             mapped.host().assign(value);
             return nb::make_tuple(Host{mapped.host()}, static_cast<const DeviceNDArray&>(mapped));
           })
      .def(
          "as_cuda_array",
          [](const Session& session, nb::object object, bool sync) {
            const CudaArrayInterface description = read_interface(object);
            const std::shared_ptr<const void> owner = owner_of(std::move(object));
            const nb::gil_scoped_release released;
            return session.adopt(description, owner, sync);
          },
          nb::arg("object"), nb::arg("sync") = true)
      .def(
          "from_dlpack",
          [](const Session& session, nb::object object, std::int64_t stream, bool versioned) {
            nb::object tensor = versioned
                                    ? object.attr("__dlpack__")(nb::arg("stream") = stream,
                                                                nb::arg("max_version") = nb::make_tuple(1, 3))
                                    : object.attr("__dlpack__")(nb::arg("stream") = stream);
            return taken(tensor, [&](auto* managed) { return from_dlpack(session, managed); });
          },
          nb::arg("object"), nb::arg("stream") = 1, nb::arg("versioned") = true);
  module.def(
      "from_dlpack",
      [](nb::object object, bool versioned) {
        nb::object tensor = versioned
                                ? object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 3))
                                : object.attr("__dlpack__")();
        return taken(tensor, [](auto* managed) { return Host{from_dlpack(managed)}; });
      },
      nb::arg("object"), nb::arg("versioned") = true);
  module.def("load_npy", [](const std::string& path) { return Host{NDArray::load_npy(path)}; });
}
