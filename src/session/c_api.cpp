// SPDX-License-Identifier: Apache-2.0
// The C ABI: sessions, modules, kernels, arrays.
#include <algorithm>
#include <cstring>

#include "session/c_handles.hpp"
#include "session/state.hpp"

namespace quern::session::c_abi {

Table& table() {
  static auto* const instance = new Table;
  return *instance;
}

LastError& last_error() {
  thread_local LastError error;
  return error;
}

}  // namespace quern::session::c_abi

namespace {

using namespace quern;
using namespace quern::session::c_abi;

QuernArray insert_array(DeviceNDArray array) {
  auto object = std::make_shared<ArrayObject>();
  object->description = array.cuda_array_interface();
  object->array = std::move(array);
  return {insert(std::move(object))};
}

QuernStatus open(const char* device, ContextChoice context, QuernSession* session) {
  return guarded([&] {
    require(session != nullptr, "quern_session_open needs a place for the session");
    session->id = insert(Session({device != nullptr ? device : "", context}));
  });
}

Module load_text(const Session& session, QuernLanguage language, const char* text,
                 const LoadOptions& options) {
  switch (language) {
    case QUERN_LANGUAGE_CUDA:
      return session.load_cuda(text, options);
    case QUERN_LANGUAGE_PTX:
      return session.load_ptx(text, options);
    case QUERN_LANGUAGE_PYTHON:
      return session.load_python(text, options);
  }
  throw Error(ErrorCode::usage, "the language is none of QuernLanguage");
}

QuernStatus load(QuernSession session, QuernLanguage language, const char* text, QuernModule* module,
                 const LoadOptions& options = {}) {
  return guarded([&] {
    require(text != nullptr && module != nullptr, "loading needs source text and a place for the module");
    module->id = insert(load_text(session_of(session), language, text, options));
  });
}

Dtype dtype_of(int dtype) {
  require(dtype >= 0 && dtype <= QUERN_COMPLEX128, "the dtype is none of QuernDtype");
  return static_cast<Dtype>(dtype);
}

/// Arguments as launches take them; `arrays` keeps the arrays they refer to.
std::vector<Argument> arguments_of(const QuernArgument* given, std::size_t count,
                                   std::vector<std::shared_ptr<ArrayObject>>& arrays) {
  std::vector<Argument> arguments;
  for (std::size_t i = 0; i < count; ++i) {
    const QuernArgument& argument = given[i];
    const auto* bytes = static_cast<const std::byte*>(argument.data);
    switch (argument.kind) {
      case QUERN_ARGUMENT_ARRAY:
        arrays.push_back(array_of(argument.array));
        arguments.emplace_back(arrays.back()->array);
        break;
      case QUERN_ARGUMENT_SCALAR:
        require(bytes != nullptr, "a scalar argument needs its value's address");
        arguments.push_back(
            Argument::scalar(dtype_of(argument.dtype), {bytes, size_bytes(dtype_of(argument.dtype))}));
        break;
      case QUERN_ARGUMENT_ADDRESS:
        arguments.emplace_back(argument.data);
        break;
      case QUERN_ARGUMENT_STRUCT:
        require(bytes != nullptr, "a struct argument needs its address");
        arguments.push_back(Argument::value({bytes, argument.bytes}));
        break;
      default:
        require(false, "the argument is of no kind of QuernArgumentKind");
    }
  }
  return arguments;
}

CudaArrayInterface interface_of(const QuernCudaArray& given) {
  require(given.ndim >= 0 && (given.ndim == 0 || given.shape != nullptr) && given.typestr != nullptr,
          "the array's description needs a shape and a typestr");
  CudaArrayInterface array;
  array.version = static_cast<int>(given.version);
  array.shape.assign(given.shape, given.shape + given.ndim);
  if (given.strides != nullptr) array.strides_bytes.emplace(given.strides, given.strides + given.ndim);
  array.typestr = given.typestr;
  array.data = given.data;
  array.read_only = given.read_only != 0;
  array.mask = given.mask;
  if (given.has_stream != 0) array.stream = given.stream;
  return array;
}

}  // namespace

std::uint64_t quern::session::c_handle(Session session) { return insert(std::move(session)); }

uint32_t quern_abi_version(void) { return QUERN_ABI_VERSION; }
const char* quern_version(void) { return version().data(); }

size_t quern_last_error(char* buffer, size_t bytes) {
  const std::string_view text = last_error().view();
  if (buffer != nullptr && bytes > 0) {
    const std::size_t kept = std::min(text.size(), bytes - 1);
    std::memcpy(buffer, text.data(), kept);
    buffer[kept] = '\0';
  }
  return text.size() + 1;
}

QuernStatus quern_session_open(const char* device, QuernSession* session) {
  return open(device, ContextChoice::primary, session);
}
QuernStatus quern_session_adopt(const char* device, QuernSession* session) {
  return open(device, ContextChoice::current, session);
}
QuernStatus quern_session_synchronize(QuernSession session) {
  return guarded([&] { session_of(session).synchronize(); });
}
QuernStatus quern_session_context(QuernSession session, void** context) {
  return guarded([&] {
    require(context != nullptr, "quern_session_context needs a place for the context");
    *context = session_of(session).native_context();
  });
}

QuernStatus quern_load_cuda(QuernSession session, const char* source, QuernModule* module) {
  return load(session, QUERN_LANGUAGE_CUDA, source, module);
}
QuernStatus quern_load_ptx(QuernSession session, const char* ptx, QuernModule* module) {
  return load(session, QUERN_LANGUAGE_PTX, ptx, module);
}
QuernStatus quern_load(QuernSession session, const QuernSource* source, QuernModule* module) {
  LoadOptions options;
  const QuernStatus read = guarded([&] {
    require(source != nullptr && source->struct_bytes >= sizeof(QuernSource),
            "quern_load needs a whole QuernSource");
    require(source->option_count == 0 || source->options != nullptr,
            "quern_load needs as many options as it is told");
    if (source->file_name != nullptr) options.file_name = source->file_name;
    options.options.assign(source->options, source->options + source->option_count);
  });
  return read != QUERN_OK ? read : load(session, source->language, source->text, module, options);
}
QuernStatus quern_load_file(QuernSession session, const char* path, QuernModule* module) {
  return guarded([&] {
    require(path != nullptr && module != nullptr, "quern_load_file needs a path and a place for the module");
    module->id = insert(session_of(session).load_file(path));
  });
}
QuernStatus quern_kernel(QuernModule module, const char* name, QuernKernel* kernel) {
  return guarded([&] {
    require(kernel != nullptr, "quern_kernel needs a place for the kernel");
    const Module in = find<Module>(module.id);
    kernel->id = insert(name != nullptr && *name != '\0' ? in.kernel(name) : in.kernel());
  });
}

QuernStatus quern_kernel_suggested_block(QuernKernel kernel, uint64_t shared_bytes, uint32_t* threads) {
  return guarded([&] {
    require(threads != nullptr, "quern_kernel_suggested_block needs a place for the number of threads");
    *threads = find<Kernel>(kernel.id).suggested_block(shared_bytes);
  });
}
QuernStatus quern_launch(QuernKernel kernel, const QuernLaunch* launch, const QuernArgument* arguments,
                         size_t count) {
  return guarded([&] {
    require(launch != nullptr && launch->struct_bytes >= sizeof(QuernLaunch),
            "quern_launch needs a whole QuernLaunch");
    require(count == 0 || arguments != nullptr, "quern_launch needs as many arguments as it is told");
    std::vector<std::shared_ptr<ArrayObject>> arrays;
    const std::vector<Argument> list = arguments_of(arguments, count, arrays);
    LaunchConfig config;
    config.grid = {launch->grid[0], launch->grid[1], launch->grid[2]};
    config.block = {launch->block[0], launch->block[1], launch->block[2]};
    config.shared_bytes = launch->shared_bytes;
    config.stream = stream_of(launch->stream);
    config.cooperative = launch->cooperative != 0;
    find<Kernel>(kernel.id).launch(config, list);
  });
}

QuernStatus quern_array_new(QuernSession session, QuernDtype dtype, int32_t ndim, const int64_t* shape,
                            QuernArray* array) {
  return guarded([&] {
    require(array != nullptr && ndim >= 0 && (ndim == 0 || shape != nullptr),
            "quern_array_new needs a shape and a place for the array");
    *array = insert_array(
        session_of(session).device_array(std::span(shape, static_cast<std::size_t>(ndim)), dtype_of(dtype)));
  });
}

QuernStatus quern_array_new_mapped(QuernSession session, QuernDtype dtype, int32_t ndim, const int64_t* shape,
                                   QuernArray* array, void** host) {
  return guarded([&] {
    require(array != nullptr && host != nullptr && ndim >= 0 && (ndim == 0 || shape != nullptr),
            "quern_array_new_mapped needs a shape and places for the array and its host address");
    const MappedNDArray mapped =
        session_of(session).mapped_array(Shape(shape, shape + ndim), dtype_of(dtype));
    void* const address = mapped.host().data();
    *array = insert_array(mapped);
    *host = address;
  });
}

QuernStatus quern_array_to_dlpack(QuernArray array, int32_t as_host, void** managed_tensor) {
  return guarded([&] {
    require(managed_tensor != nullptr, "quern_array_to_dlpack needs a place for the tensor");
    const DeviceNDArray& known = array_of(array)->array;
    *managed_tensor = as_host != 0 ? to_dlpack(MappedNDArray(known).host()) : to_dlpack(known);
  });
}
QuernStatus quern_array_from_dlpack(QuernSession session, void* managed_tensor, QuernArray* array) {
  return guarded([&] {
    auto* const tensor = static_cast<dlpack::ManagedTensorVersioned*>(managed_tensor);
    std::unique_ptr<dlpack::ManagedTensorVersioned, GiveBack> taken(tensor);  // also where the rest is wrong
    require(tensor != nullptr && array != nullptr,
            "quern_array_from_dlpack needs a tensor and a place for the array");
    const Session in = session_of(session);
    *array = insert_array(from_dlpack(in, taken.release()));
  });
}

QuernStatus quern_array_copy(QuernArray to, QuernArray from) {
  return guarded([&] { array_of(to)->array.copy_to_device(array_of(from)->array); });
}
QuernStatus quern_array_copy_on(QuernArray to, QuernArray from, QuernStream stream) {
  return guarded([&] { array_of(to)->array.copy_to_device(array_of(from)->array, stream_of(stream)); });
}

QuernStatus quern_array_from_host(QuernArray array, const void* source, size_t bytes) {
  return guarded([&] {
    require(source != nullptr || bytes == 0, "quern_array_from_host needs a source");
    array_of(array)->array.copy_bytes_from_host({static_cast<const std::byte*>(source), bytes});
  });
}
QuernStatus quern_array_to_host(QuernArray array, void* target, size_t bytes) {
  return guarded([&] {
    require(target != nullptr || bytes == 0, "quern_array_to_host needs a target");
    array_of(array)->array.copy_bytes_to_host({static_cast<std::byte*>(target), bytes});
  });
}
QuernStatus quern_array_from_host_on(QuernArray array, const void* source, size_t bytes, QuernStream stream) {
  return guarded([&] {
    require(source != nullptr || bytes == 0, "quern_array_from_host_on needs a source");
    array_of(array)->array.copy_bytes_from_host({static_cast<const std::byte*>(source), bytes},
                                                stream_of(stream));
  });
}
QuernStatus quern_array_to_host_on(QuernArray array, void* target, size_t bytes, QuernStream stream) {
  return guarded([&] {
    require(target != nullptr || bytes == 0, "quern_array_to_host_on needs a target");
    array_of(array)->array.copy_bytes_to_host({static_cast<std::byte*>(target), bytes}, stream_of(stream));
  });
}

QuernStatus quern_array_describe(QuernArray array, QuernCudaArray* description) {
  return guarded([&] {
    require(description != nullptr && description->struct_bytes >= sizeof(QuernCudaArray),
            "quern_array_describe needs a QuernCudaArray with its struct_bytes set");
    const std::shared_ptr<ArrayObject> object = array_of(array);
    const CudaArrayInterface& known = object->description;
    QuernCudaArray result{};
    result.struct_bytes = description->struct_bytes;
    result.version = 3;
    result.data = known.data;
    result.read_only = known.read_only ? 1 : 0;
    result.ndim = static_cast<std::int32_t>(known.shape.size());
    result.shape = known.shape.data();
    result.strides = known.strides_bytes ? known.strides_bytes->data() : nullptr;
    result.typestr = known.typestr.c_str();
    std::memcpy(description, &result, sizeof result);
  });
}

QuernStatus quern_array_adopt(QuernSession session, const QuernCudaArray* description,
                              void (*release)(void* user), void* user, QuernArray* array) {
  return guarded([&] {
    const std::shared_ptr<const void> owner(user, [release](const void* of) {  // runs also where this fails
      if (release != nullptr) release(const_cast<void*>(of));
    });
    require(array != nullptr && description != nullptr && description->struct_bytes >= sizeof(QuernCudaArray),
            "quern_array_adopt needs a whole QuernCudaArray and a place for the array");
    *array = insert_array(session_of(session).adopt(interface_of(*description), owner));
  });
}

QuernStatus quern_release(uint64_t id) {
  return guarded([&] {
    std::optional<Object> object;  // let go of outside the lock: that may call the driver
    {
      Table& all = table();
      const base::LockGuard lock(all.mutex);
      object = all.slots.remove(id);
    }
    if (!object) throw BadHandle{kBadHandle<void>};
  });
}
