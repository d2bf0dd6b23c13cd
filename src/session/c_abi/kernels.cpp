// SPDX-License-Identifier: Apache-2.0
// The C ABI: modules, kernels, launches.
#include <algorithm>
#include <cstddef>
#include <memory_resource>
#include <span>
#include <vector>

#include "session/c_abi/handles.hpp"

namespace {

using namespace quern;
using namespace quern::session::c_abi;

/// `count` texts, none of them null.
std::vector<std::string> texts(const char* const* given, std::size_t count) {
  require(count == 0 || given != nullptr, "a QuernSource has a count of texts, but no texts");
  std::vector<std::string> list;
  for (std::size_t i = 0; i < count; ++i) {
    require(given[i] != nullptr, "a text of a QuernSource is null");
    list.emplace_back(given[i]);
  }
  return list;
}

std::vector<Header> headers(const QuernHeader* given, std::size_t count) {
  require(count == 0 || given != nullptr, "a QuernSource has a count of headers, but no headers");
  std::vector<Header> list;
  for (const QuernHeader& header : std::span(given, count)) {
    require(header.name != nullptr && header.text != nullptr,
            "a QuernHeader of a QuernSource needs a name and a text");
    list.push_back({header.name, header.text});
  }
  return list;
}

LoadOptions options_of(const QuernSource& source) {
  require(source.reserved == 0, "the reserved fields of a QuernSource must be 0");
  LoadOptions options;
  options.options = texts(source.options, source.option_count);
  options.defines = texts(source.defines, source.define_count);
  options.include_dirs = texts(source.include_dirs, source.include_dir_count);
  options.name_expressions = texts(source.name_expressions, source.name_expression_count);
  options.fastmath = source.fastmath != 0;
  options.headers = headers(source.headers, source.header_count);
  return options;
}

Module load_text(const Session& session, SourceLanguage language, const char* text,
                 const LoadOptions& options) {
  switch (language) {
    case SourceLanguage::cuda:
      return session.load_cuda(text, options);
    case SourceLanguage::ptx:
      return session.load_ptx(text, options);
    case SourceLanguage::python:
      break;
  }
  return session.load_python(text, options);
}

LinkSource link_source_of(const QuernSource& given) {
  require(given.text != nullptr, "a source of quern_link needs its text");
  require(given.language == QUERN_LANGUAGE_CUDA || given.language == QUERN_LANGUAGE_PTX,
          "sources of quern_link are CUDA C++ and PTX");
  LinkSource source{given.text, load_options_of(given)};
  if (given.language == QUERN_LANGUAGE_PTX) source.language = SourceLanguage::ptx;
  return source;
}

QuernStatus load(QuernSession session, SourceLanguage language, const char* text, QuernModule* module) {
  return guarded([&] {
    require(text != nullptr && module != nullptr, "loading needs source text and a pointer for the module");
    module->id = insert(load_text(session_of(session), language, text, {}));
  });
}

Transfer transfer_of(QuernArgumentKind kind) {
  return kind == QUERN_ARGUMENT_IN    ? Transfer::in
         : kind == QUERN_ARGUMENT_OUT ? Transfer::out
                                      : Transfer::in_out;
}

/// A launch's arguments, and the owners of the arrays that they refer to. They are stored in the object
/// itself, which lives on the stack: as many as the layer below packs without heap memory.
class LaunchArguments {
 public:
  LaunchArguments(const QuernArgument* given, std::size_t count) {
    require(count == 0 || given != nullptr, "a launch has a count of arguments, but no arguments");
    require(count <= kMost, "a launch has at most 8192 arguments");
    list_.reserve(count);
    arrays_.reserve(count);
    smart_.reserve(count);
    for (const QuernArgument& argument : std::span(given, count)) list_.push_back(read(argument));
  }
  LaunchArguments(const LaunchArguments&) = delete;
  LaunchArguments& operator=(const LaunchArguments&) = delete;

  std::span<const Argument> list() const noexcept { return list_; }

 private:
  Argument read(const QuernArgument& argument) {
    const auto* bytes = static_cast<const std::byte*>(argument.data);
    switch (argument.kind) {
      case QUERN_ARGUMENT_ARRAY:
        return arrays_.emplace_back(array_of(argument.array))->array;
      case QUERN_ARGUMENT_SCALAR: {
        require(bytes != nullptr, "a scalar argument needs its value's address");
        const Dtype dtype = dtype_of(argument.dtype);
        return Argument::scalar(dtype, {bytes, size_bytes(dtype)});
      }
      case QUERN_ARGUMENT_ADDRESS:
        return argument.data;
      case QUERN_ARGUMENT_STRUCT:
        require(bytes != nullptr, "a struct argument needs its address");
        return Argument::value({bytes, argument.bytes});
      case QUERN_ARGUMENT_IN:
      case QUERN_ARGUMENT_OUT:
      case QUERN_ARGUMENT_IN_OUT:
        return HostArgument{host_array_of(static_cast<const QuernHostArray*>(argument.data)),
                            transfer_of(argument.kind)};
      case QUERN_ARGUMENT_SMART:
        return smart_.emplace_back(find<SmartArray>(argument.array.id));
    }
    throw Error(ErrorCode::usage, "the argument's kind is not a value of QuernArgumentKind");
  }

  static constexpr std::size_t kMost = 8192;
  static constexpr std::size_t kInline = 48;
  using Held = std::shared_ptr<const ArrayObject>;
  alignas(Argument) std::byte room_[kInline * (sizeof(Argument) + sizeof(Held) + sizeof(SmartArray))];
  std::pmr::monotonic_buffer_resource memory_{room_, sizeof room_};
  // In parentheses: braces would make the resource an element, since an argument may be any pointer.
  std::pmr::vector<Argument> list_ = std::pmr::vector<Argument>(&memory_);
  std::pmr::vector<Held> arrays_ = std::pmr::vector<Held>(&memory_);
  std::pmr::vector<SmartArray> smart_ = std::pmr::vector<SmartArray>(&memory_);
};

QuernKernelInfo info_of(const Kernel& kernel) {
  const KernelInfo known = kernel.info();
  QuernKernelInfo info{};
  info.registers = known.registers;
  info.shared_bytes = known.shared_bytes;
  info.local_bytes = known.local_bytes;
  info.constant_bytes = known.constant_bytes;
  info.max_threads_per_block = known.max_threads_per_block;
  info.parameter_count = static_cast<std::uint32_t>(known.parameters.size());
  info.compile_ms = known.compile_ms;
  info.nvrtc_ms = known.nvrtc_ms;
  info.load_ms = known.load_ms;
  info.machine_code_ms = known.machine_code_ms;
  return info;
}

std::string text_of(const Kernel& kernel, QuernKernelText which) {
  switch (which) {
    case QUERN_KERNEL_NAME:
      return kernel.name();
    case QUERN_KERNEL_LOWERED_NAME:
      return kernel.info().lowered_name;
    case QUERN_KERNEL_SIGNATURE:
      return kernel.signature();
    case QUERN_KERNEL_PTX:
      return kernel.info().ptx;
    case QUERN_KERNEL_CUDA_SOURCE:
      return kernel.info().cuda_source;
  }
  throw Error(ErrorCode::usage, "the text is not a value of QuernKernelText");
}

/// A variable of a module or of a kernel's module.
template <class Owner>
QuernStatus give_global(std::uint64_t id, const char* name, const QuernArrayType* type, QuernArray* array) {
  return guarded([&] {
    require(name != nullptr && array != nullptr, "a variable needs a name and a pointer for the array");
    const GlobalVariable variable = find<Owner>(id).global(name);
    ArrayType wanted;
    if (type != nullptr) {
      wanted = array_type_of(type);
      require(wanted.order == Order::c && !wanted.strides_bytes, "a variable's elements lie in C order");
    } else {
      wanted.element = Dtype::uint8;
      wanted.shape = {static_cast<std::int64_t>(variable.size_bytes())};
    }
    *array = insert_array(variable.array(wanted.element, wanted.shape));
  });
}

}  // namespace

LoadOptions quern::session::c_abi::load_options_of(const QuernSource& source) {
  LoadOptions options = options_of(source);
  if (source.file_name != nullptr) options.file_name = source.file_name;
  return options;
}

SourceLanguage quern::session::c_abi::language_of(QuernLanguage language) {
  switch (language) {
    case QUERN_LANGUAGE_CUDA:
      return SourceLanguage::cuda;
    case QUERN_LANGUAGE_PTX:
      return SourceLanguage::ptx;
    case QUERN_LANGUAGE_PYTHON:
      return SourceLanguage::python;
  }
  throw Error(ErrorCode::usage, "the language is not a value of QuernLanguage");
}

void quern::session::c_abi::refuse_index(const char* what, std::size_t index, std::size_t count) {
  throw Error(ErrorCode::not_found, std::string("there is no ") + what + " " + std::to_string(index) +
                                        "; there are " + std::to_string(count));
}

QuernStatus quern_load_cuda(QuernSession session, const char* source, QuernModule* module) {
  return load(session, SourceLanguage::cuda, source, module);
}
QuernStatus quern_load_ptx(QuernSession session, const char* ptx, QuernModule* module) {
  return load(session, SourceLanguage::ptx, ptx, module);
}
QuernStatus quern_load(QuernSession session, const QuernSource* source, QuernModule* module) {
  return guarded([&] {
    require(source != nullptr && module != nullptr, "quern_load needs a source and a pointer for the module");
    const QuernSource given = read_struct(source);
    require(given.text != nullptr, "quern_load needs source text");
    module->id = insert(
        load_text(session_of(session), language_of(given.language), given.text, load_options_of(given)));
  });
}
QuernStatus quern_load_file(QuernSession session, const char* path, QuernModule* module) {
  return guarded([&] {
    require(path != nullptr && module != nullptr,
            "quern_load_file needs a path and a pointer for the module");
    module->id = insert(session_of(session).load_file(path));
  });
}
QuernStatus quern_load_file_with(QuernSession session, const char* path, const QuernSource* options,
                                 QuernModule* module) {
  return guarded([&] {
    require(path != nullptr && options != nullptr && module != nullptr,
            "quern_load_file_with needs a path, options and a pointer for the module");
    module->id = insert(session_of(session).load_file(path, options_of(read_struct(options))));
  });
}

QuernStatus quern_link(QuernSession session, const QuernSource* const* sources, size_t count,
                       QuernModule* module) {
  return guarded([&] {
    require(count > 0 && sources != nullptr && module != nullptr,
            "quern_link needs sources and a pointer for the module");
    std::vector<LinkSource> list;
    for (const QuernSource* source : std::span(sources, count)) {
      require(source != nullptr, "a source of quern_link is null");
      list.push_back(link_source_of(read_struct(source)));
    }
    module->id = insert(session_of(session).link(list));
  });
}

QuernStatus quern_module_bind(QuernModule module, const char* name, const QuernHostArray* value,
                              QuernModule* bound) {
  return guarded([&] {
    require(name != nullptr && bound != nullptr,
            "quern_module_bind needs a name and a pointer for the module");
    bound->id = insert(find<Module>(module.id).bind(name, host_array_of(value)));
  });
}
QuernStatus quern_module_kernel_count(QuernModule module, size_t* count) {
  return guarded([&] {
    require(count != nullptr, "quern_module_kernel_count needs a pointer for the count");
    *count = find<Module>(module.id).kernel_names().size();
  });
}
QuernStatus quern_module_kernel_name(QuernModule module, size_t index, char* buffer, size_t bytes,
                                     size_t* needed) {
  return guarded([&] {
    const std::vector<std::string> names = find<Module>(module.id).kernel_names();
    if (index >= names.size()) refuse_index("kernel", index, names.size());
    give_text(names[index], buffer, bytes, needed);
  });
}
QuernStatus quern_module_log(QuernModule module, char* buffer, size_t bytes, size_t* needed) {
  return guarded([&] { give_text(to_string(find<Module>(module.id).log()), buffer, bytes, needed); });
}
QuernStatus quern_module_global(QuernModule module, const char* name, const QuernArrayType* type,
                                QuernArray* array) {
  return give_global<Module>(module.id, name, type, array);
}
QuernStatus quern_kernel_global(QuernKernel kernel, const char* name, const QuernArrayType* type,
                                QuernArray* array) {
  return give_global<Kernel>(kernel.id, name, type, array);
}
QuernStatus quern_module_global_count(QuernModule module, size_t* count) {
  return guarded([&] {
    require(count != nullptr, "quern_module_global_count needs a pointer for the count");
    *count = find<Module>(module.id).global_names().size();
  });
}
QuernStatus quern_module_global_name(QuernModule module, size_t index, char* buffer, size_t bytes,
                                     size_t* needed) {
  return guarded([&] {
    const std::vector<std::string> names = find<Module>(module.id).global_names();
    if (index >= names.size()) refuse_index("variable", index, names.size());
    give_text(names[index], buffer, bytes, needed);
  });
}
QuernStatus quern_module_native(QuernModule module, void** cu_module) {
  return guarded([&] {
    require(cu_module != nullptr, "quern_module_native needs a pointer for the CUmodule");
    void* const handle = find<Module>(module.id).handle();
    if (handle == nullptr)
      throw Error(ErrorCode::unsupported,
                  "a Kernel Python file has no CUmodule: each of its kernels becomes one for the types that "
                  "it is compiled for; ask quern_kernel_native()");
    *cu_module = handle;
  });
}

QuernStatus quern_kernel(QuernModule module, const char* name, QuernKernel* kernel) {
  return guarded([&] {
    require(kernel != nullptr, "quern_kernel needs a pointer for the kernel");
    const Module in = find<Module>(module.id);
    kernel->id = insert(name != nullptr && *name != '\0' ? in.kernel(name) : in.kernel());
  });
}

QuernStatus quern_launch(QuernKernel kernel, const QuernLaunch* launch, const QuernArgument* arguments,
                         size_t count) {
  return guarded([&] {
    require(launch != nullptr, "quern_launch needs a QuernLaunch");
    const QuernLaunch given = read_struct(launch);
    const Kernel code = find<Kernel>(kernel.id);
    const LaunchArguments list(arguments, count);
    const StreamObject stream = stream_of(given.stream);
    code.launch(config_of(given, stream.view), list.list());
  });
}
QuernStatus quern_launch_for_all(QuernKernel kernel, uint64_t task_count, const QuernLaunch* launch,
                                 const QuernArgument* arguments, size_t count) {
  return guarded([&] {
    require(launch != nullptr, "quern_launch_for_all needs a QuernLaunch");
    QuernLaunch given = read_struct(launch);
    if (std::ranges::all_of(given.block, [](std::uint32_t extent) { return extent <= 1; }))
      std::ranges::fill(given.block, 1u);
    const Kernel code = find<Kernel>(kernel.id);
    const LaunchArguments list(arguments, count);
    const StreamObject stream = stream_of(given.stream);
    code.launch_for_all(task_count, config_of(given, stream.view), list.list());
  });
}

QuernStatus quern_kernel_specialise_for(QuernKernel kernel, const QuernArgument* arguments, size_t count,
                                        QuernKernel* special) {
  return guarded([&] {
    require(special != nullptr, "quern_kernel_specialise_for needs a pointer for the kernel");
    const Kernel code = find<Kernel>(kernel.id);
    const LaunchArguments list(arguments, count);
    special->id = insert(code.specialise(list.list()));
  });
}
QuernStatus quern_kernel_specialise(QuernKernel kernel, const char* types, QuernKernel* special) {
  return guarded([&] {
    require(types != nullptr && special != nullptr,
            "quern_kernel_specialise needs types and a pointer for the kernel");
    special->id = insert(find<Kernel>(kernel.id).specialise(types));
  });
}

QuernStatus quern_kernel_suggested_block(QuernKernel kernel, uint64_t shared_bytes, uint32_t* threads) {
  return quern_kernel_suggested_block_within(kernel, shared_bytes, 0, threads);
}
QuernStatus quern_kernel_suggested_block_within(QuernKernel kernel, uint64_t shared_bytes, uint32_t limit,
                                                uint32_t* threads) {
  return guarded([&] {
    require(threads != nullptr, "quern_kernel_suggested_block needs a pointer for the number of threads");
    *threads = find<Kernel>(kernel.id).suggested_block(shared_bytes, limit);
  });
}
QuernStatus quern_kernel_active_blocks(QuernKernel kernel, uint32_t block, uint64_t shared_bytes,
                                       uint32_t* blocks) {
  return guarded([&] {
    require(blocks != nullptr, "quern_kernel_active_blocks needs a pointer for the number of blocks");
    *blocks = find<Kernel>(kernel.id).active_blocks(block, shared_bytes);
  });
}
QuernStatus quern_kernel_max_cooperative_blocks(QuernKernel kernel, uint32_t block, uint64_t shared_bytes,
                                                uint64_t* blocks) {
  return guarded([&] {
    require(blocks != nullptr,
            "quern_kernel_max_cooperative_blocks needs a pointer for the number of blocks");
    *blocks = find<Kernel>(kernel.id).max_cooperative_blocks(block, shared_bytes);
  });
}

QuernStatus quern_kernel_info(QuernKernel kernel, QuernKernelInfo* info) {
  return guarded([&] { write_struct(info, info_of(find<Kernel>(kernel.id))); });
}
QuernStatus quern_kernel_parameter(QuernKernel kernel, size_t index, QuernParameter* parameter) {
  return guarded([&] {
    const Kernel code = find<Kernel>(kernel.id);
    const std::vector<Parameter>& all = code.parameters();
    if (index >= all.size()) refuse_index("parameter", index, all.size());
    const Parameter& known = all[index];  // the kernel's state holds it, and the handle that
    write_struct(parameter, QuernParameter{0, known.pointer ? 1 : 0, known.offset, known.size, known.align,
                                           known.name.c_str(), known.type.c_str()});
  });
}
QuernStatus quern_kernel_text(QuernKernel kernel, QuernKernelText which, char* buffer, size_t bytes,
                              size_t* needed) {
  return guarded([&] { give_text(text_of(find<Kernel>(kernel.id), which), buffer, bytes, needed); });
}
QuernStatus quern_kernel_native(QuernKernel kernel, void** cu_function, void** cu_module) {
  return guarded([&] {
    const Kernel code = find<Kernel>(kernel.id);
    if (code.handle() == nullptr)
      throw Error(ErrorCode::unsupported, "the Kernel Python kernel " + code.name() +
                                              " is no CUfunction before its types are known; ask the one "
                                              "that quern_kernel_specialise() gives");
    if (cu_function != nullptr) *cu_function = code.handle();
    if (cu_module != nullptr) *cu_module = code.module_handle();
  });
}
