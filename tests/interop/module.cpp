// SPDX-License-Identifier: Apache-2.0
// quern's arrays for Python, as far as the checks of interop need them: the array interfaces and DLPack.
#include <nanobind/nanobind.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/string_view.h>
#include <nanobind/stl/vector.h>
#include <quern/quern.hpp>

#include <cstring>

namespace nb = nanobind;
using namespace quern;

namespace {

/// A capsule that gives the tensor back if nobody took it, as DLPack's Python protocol says.
nb::object capsule(dlpack::ManagedTensorVersioned* tensor) {
  return nb::steal(PyCapsule_New(tensor, "dltensor_versioned", [](PyObject* object) {
    if (PyCapsule_IsValid(object, "dltensor_versioned") == 0) return;  // consumed
    auto* unused =
        static_cast<dlpack::ManagedTensorVersioned*>(PyCapsule_GetPointer(object, "dltensor_versioned"));
    unused->deleter(unused);
  }));
}

dlpack::ManagedTensorVersioned* consume(nb::handle object) {
  auto* tensor =
      static_cast<dlpack::ManagedTensorVersioned*>(PyCapsule_GetPointer(object.ptr(), "dltensor_versioned"));
  if (tensor == nullptr) throw nb::python_error();
  PyCapsule_SetName(object.ptr(), "used_dltensor_versioned");
  return tensor;
}

template <class Values>
nb::tuple tuple(const Values& values) {
  nb::list list;
  for (const auto value : values) list.append(value);
  return nb::tuple(list);
}

nb::dict cuda_interface(const DeviceNDArray& array) {
  const CudaArrayInterface description = array.cuda_array_interface(StreamView());
  nb::dict dict;
  dict["shape"] = tuple(description.shape);
  dict["typestr"] = description.typestr;
  dict["data"] = nb::make_tuple(reinterpret_cast<std::uintptr_t>(description.data), description.read_only);
  if (description.strides_bytes) dict["strides"] = tuple(*description.strides_bytes);
  if (description.stream) dict["stream"] = *description.stream;
  dict["version"] = description.version;
  return dict;
}

struct Host {
  NDArray array;
};

}  // namespace

NB_MODULE(quern_interop, module) {
  nb::class_<Host>(module, "Host")
      .def("__dlpack__", [](const Host& host, nb::kwargs) { return capsule(to_dlpack(host.array)); })
      .def("__dlpack_device__", [](const Host&) { return nb::make_tuple(1, 0); })
      .def("sum", [](const Host& host) {
        double sum = 0;
        const NDArray flat = host.array.ravel();
        for (std::int64_t i = 0; i < flat.shape()[0]; ++i) sum += static_cast<double>(flat.at<float>(i));
        return sum;
      });
  nb::class_<DeviceNDArray>(module, "DeviceNDArray")
      .def_prop_ro("__cuda_array_interface__", &cuda_interface)
      .def("copy_to_host", [](const DeviceNDArray& array) { return Host{array.copy_to_host()}; })
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
      .def("as_cuda_array", [](const Session& session, nb::object object) {
        const nb::dict dict = nb::cast<nb::dict>(object.attr("__cuda_array_interface__"));
        CudaArrayInterface description;
        description.shape = nb::cast<std::vector<std::int64_t>>(nb::list(dict["shape"]));
        description.typestr = nb::cast<std::string>(nb::str(dict["typestr"]));
        description.data = reinterpret_cast<void*>(nb::cast<std::uintptr_t>(dict["data"][0]));
        if (dict.contains("strides") && !dict["strides"].is_none())
          description.strides_bytes = nb::cast<std::vector<std::int64_t>>(nb::list(dict["strides"]));
        if (dict.contains("stream") && !dict["stream"].is_none())
          description.stream = nb::cast<std::uintptr_t>(dict["stream"]);
        auto* keep = new nb::object(std::move(object));
        return session.adopt(description, std::shared_ptr<const void>(keep, [](const void* object_) {
                               const nb::gil_scoped_acquire gil;
                               delete static_cast<const nb::object*>(object_);
                             }));
      });
  module.def("from_dlpack", [](nb::object object) {
    nb::object tensor = object.attr("__dlpack__")(nb::arg("max_version") = nb::make_tuple(1, 0));
    return Host{from_dlpack(consume(tensor))};
  });
}
