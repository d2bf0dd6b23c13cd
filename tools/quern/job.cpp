// SPDX-License-Identifier: Apache-2.0
#include "job.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

namespace quern::cli {
namespace {

constexpr std::uint32_t kDefaultBlock = 256;

[[noreturn]] void fail(const Kernel& kernel, const std::string& message, const char* hint) {
  throw Error(ErrorCode::usage, fmt::format("{}\n    {}\nhint: {}", message, kernel.signature(), hint));
}

/// Assigns one argument to each parameter: positional ones in order, then those with a name.
std::vector<const cli::Argument*> in_order(const Kernel& kernel, const std::vector<cli::Argument>& given) {
  const std::vector<Parameter>& parameters = kernel.parameters();
  std::vector<const cli::Argument*> ordered;
  for (const cli::Argument& argument : given) {
    if (!argument.name) {
      ordered.push_back(&argument);
      continue;
    }
    const auto found = std::find_if(parameters.begin(), parameters.end(),
                                    [&](const Parameter& p) { return p.name == *argument.name; });
    if (found == parameters.end())
      fail(kernel, fmt::format("kernel {} has no parameter named '{}'", kernel.name(), *argument.name),
           "name a parameter of the kernel, or give the arguments in order");
    const auto index = static_cast<std::size_t>(found - parameters.begin());
    if (ordered.size() <= index) ordered.resize(index + 1, nullptr);
    if (ordered[index] != nullptr)
      fail(kernel, fmt::format("parameter '{}' of kernel {} is given twice", *argument.name, kernel.name()),
           "give each argument once");
    ordered[index] = &argument;
  }
  for (std::size_t i = 0; i < ordered.size(); ++i)
    if (ordered[i] == nullptr)
      fail(kernel,
           fmt::format("no argument is given for parameter '{}' of kernel {}", parameters[i].name,
                       kernel.name()),
           "give one argument for each parameter");
  return ordered;
}

std::uint64_t blocks_for(std::uint64_t count, std::uint32_t block) {
  return block == 0 ? 0 : (count + block - 1) / block;
}

/// The grid that covers an array: a block with one axis runs along all elements; a block with several axes
/// runs along the array's last axes, with x along the last one.
Dim3 covering_grid(const Dim3& block, std::span<const std::int64_t> shape) {
  const auto extent = [&](std::size_t from_last) {
    return from_last < shape.size() ? static_cast<std::uint64_t>(shape[shape.size() - 1 - from_last]) : 1;
  };
  std::uint64_t rest = 1;
  for (std::size_t i = 0; i < shape.size(); ++i) rest *= static_cast<std::uint64_t>(shape[i]);
  if (block.y == 1 && block.z == 1) return Dim3(blocks_for(rest, block.x));
  rest = 1;
  for (std::size_t i = 2; i < shape.size(); ++i) rest *= extent(i);
  return Dim3(blocks_for(extent(0), block.x), blocks_for(extent(1), block.y), blocks_for(rest, block.z));
}

/// Uses the driver's text: that of the CPU device names the threads.
std::string fault_text(const DriverError& error) {
  return error.result_text().empty() ? std::string("the kernel was stopped") : error.result_text();
}

struct FaultHint {
  std::string_view of;  ///< a part of the result's name, or of the CPU device's text about it
  const char* hint;
};
constexpr FaultHint kFaultHints[] = {
    {"CUDA_ERROR_LAUNCH_TIMEOUT",
     "see that the kernel's loops end; the CPU device's limit is QUERN_CPU_TIMEOUT, in seconds, a GPU's the "
     "system's"},
    {"CUDA_ERROR_HARDWARE_STACK_ERROR",
     "see that the kernel's recursion ends, and make the arrays in its functions smaller; a thread's stack "
     "is "
     "CU_LIMIT_STACK_SIZE bytes, and 512 KiB are the most"},
    {"CUDA_ERROR_ASSERT", "the assertion is named above; correct the kernel, or what it is given"},
    {"CUDA_ERROR_MISALIGNED_ADDRESS",
     "an access needs an address that is a multiple of its size: check the casts of pointers, and offsets in "
     "bytes"},
    {"CUDA_ERROR_INVALID_PC", "check the function pointers that the kernel calls"},
    {"CUDA_ERROR_ILLEGAL_INSTRUCTION", "check the kernel's asm(), and that the code is for this device"},
    {"CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES", "use a smaller grid or block, or less memory in the kernel"},
    {"barrier", "let all threads of the block come to the same barrier, those that have nothing to do too"},
    {"trap", "the kernel ended itself with __trap(): see why, in the line named above"},
};

std::string_view fault_hint(const DriverError& error) {
  // The reason for a failed launch is at the end of the text. Before it are names, which may contain any
  // word.
  std::string_view why =
      error.result_name() == "CUDA_ERROR_LAUNCH_FAILED" ? error.result_text() : std::string_view();
  if (const std::size_t colon = why.rfind(": "); colon != std::string_view::npos) why.remove_prefix(colon);
  for (const FaultHint& row : kFaultHints)
    if (error.result_name() == row.of || why.find(row.of) != std::string_view::npos) return row.hint;
  return "check the grid, the lengths that the kernel is given, and its bounds checks";
}

/// True if a parameter passes strides to the kernel: parameters of Kernel Python (which have no type before
/// the launch), unless they are declared C-contiguous, and quern::array. A pointer is read in C order.
bool takes_strides(const Parameter& parameter) {
  if (parameter.type.empty()) return !parameter.pointer && parameter.size == 0;
  return parameter.type.find("array<") != std::string::npos &&
         parameter.type.find("c_array<") == std::string::npos && !parameter.pointer;
}

Dim3 read_dimensions(const std::string& text, const char* option) {
  const auto extents = parse_dimensions(text, option);
  return Dim3(extents[0], extents[1], extents[2]);
}

}  // namespace

Array in_c_order(const Array& array) {
  const std::size_t bytes = static_cast<std::size_t>(array.count()) * array.element.size_bytes;
  if (array.c_contiguous() && array.offset == 0 && array.bytes->size() == bytes) return array;
  Array copy = make_array(array.element, array.shape);
  if (bytes == 0) return copy;
  if (array.c_contiguous()) {
    std::memcpy(copy.bytes->data(), array.data(), bytes);
    return copy;
  }
  const std::int64_t count = array.count();
  for (std::int64_t i = 0; i < count; ++i)
    std::memcpy(copy.bytes->data() + static_cast<std::size_t>(i) * array.element.size_bytes,
                element_at(array, i), array.element.size_bytes);
  return copy;
}

std::vector<Constant> parse_constants(const LaunchText& text) {
  std::vector<Constant> constants;
  for (const std::string& word : text.bind) {
    const cli::Argument given = parse_argument(word, text.folder);
    if (!given.name)
      throw Error(ErrorCode::usage,
                  fmt::format("--bind '{}' is not of the form NAME=ARG\nhint: write --bind N=16", word));
    if (const auto* scalar = std::get_if<Scalar>(&given.value)) {
      const Dtype dtype = scalar->dtype.value_or(scalar->natural_dtype());
      const NDArray value({}, dtype);
      std::memcpy(value.data(), to_bytes(*scalar, dtype).data(), value.size_bytes());
      constants.emplace_back(*given.name, value);
    } else if (const auto* array = std::get_if<Array>(&given.value)) {
      const Array ordered = in_c_order(*array);
      const NDArray value(ordered.shape, ordered.element.type);
      if (value.size_bytes() > 0) std::memcpy(value.data(), ordered.data(), value.size_bytes());
      constants.emplace_back(*given.name, value);
    } else {
      throw Error(
          ErrorCode::usage,
          fmt::format("--bind '{}' gives neither a number nor an array\nhint: write N=16 or TABLE=x.npy",
                      word));
    }
  }
  return constants;
}

namespace {

Dtype dtype_of(const Scalar& scalar) { return scalar.dtype.value_or(scalar.natural_dtype()); }
std::string type_name(Dtype dtype) {
  return dtype == Dtype::bool_ ? "boolean" : std::string(quern::name(dtype));
}

/// Lays out the members as a C++ compiler does for a struct.
std::vector<std::byte> struct_of(const TupleOf& tuple) {
  std::vector<std::byte> bytes;
  std::size_t widest = 1;
  for (const Scalar& item : tuple.items) {
    const Dtype dtype = dtype_of(item);
    const std::size_t size = size_bytes(dtype);
    const std::size_t alignment = dtype >= Dtype::complex64 ? size / 2 : size;
    widest = std::max(widest, alignment);
    bytes.resize((bytes.size() + alignment - 1) / alignment * alignment);
    const std::vector<std::byte> part = to_bytes(item, dtype);
    bytes.insert(bytes.end(), part.begin(), part.end());
  }
  bytes.resize((bytes.size() + widest - 1) / widest * widest);
  return bytes;
}

/// The types of the arguments as a signature writes them.
std::string types_of(const Kernel& kernel, const std::vector<cli::Argument>& given) {
  std::string text;
  for (const cli::Argument* each : in_order(kernel, given)) {
    if (!text.empty()) text += ", ";
    if (const auto* scalar = std::get_if<Scalar>(&each->value)) {
      text += type_name(dtype_of(*scalar));
    } else if (const auto* tuple = std::get_if<TupleOf>(&each->value)) {
      std::string items;
      for (const Scalar& item : tuple->items) items += type_name(dtype_of(item)) + ",";
      text += "Tuple((" + items + "))";
    } else if (std::holds_alternative<LengthOf>(each->value)) {
      text += "int64";
    } else {
      const auto* array = std::get_if<Array>(&each->value);
      if (array == nullptr || !array->element.dtype)
        fail(kernel, fmt::format("the type of '{}' beside a tuple is not known", each->text),
             "give the types of all arguments: --sig \"...\"");
      std::string axes;
      for (std::size_t axis = 0; axis < array->shape.size(); ++axis)
        axes += axis + 1 == array->shape.size() ? "::1" : ":, ";
      const std::string element = type_name(*array->element.dtype);
      text += axes.empty() ? fmt::format("Array({}, 0, 'C')", element) : fmt::format("{}[{}]", element, axes);
    }
  }
  return "(" + text + ",)";
}

}  // namespace

Job::Job(const Session& session, Kernel kernel, const LaunchText& text)
    : session_(session), kernel_(std::move(kernel)), begin_(session.event()), end_(session.event()) {
  std::vector<cli::Argument> given;
  for (const std::string& word : text.args) given.push_back(parse_argument(word, text.folder));
  if (text.own_stream) stream_.emplace(session_.stream());
  place(given);
  const bool tuples = std::any_of(given.begin(), given.end(), [](const cli::Argument& each) {
    return std::holds_alternative<TupleOf>(each.value);
  });
  // The bytes of a tuple have no types, but its text does.
  kernel_ = tuples && kernel_.handle() == nullptr ? kernel_.specialise(types_of(kernel_, given))
                                                  : kernel_.specialise(arguments_);
  configure(text);
}

void Job::place(const std::vector<cli::Argument>& given) {
  const std::vector<const cli::Argument*> ordered = in_order(kernel_, given);
  arrays_.reserve(ordered.size());  // the launch's arguments refer into these two
  values_.reserve(ordered.size());
  for (std::size_t i = 0; i < ordered.size(); ++i) add(i, *ordered[i], ordered);
}

void Job::add(std::size_t index, const cli::Argument& given, const std::vector<const cli::Argument*>& all) {
  if (const auto* scalar = std::get_if<Scalar>(&given.value)) {
    const Dtype dtype = scalar->dtype.value_or(scalar->natural_dtype());
    arguments_.push_back(quern::Argument::scalar(dtype, to_bytes(*scalar, dtype)));
  } else if (const auto* length = std::get_if<LengthOf>(&given.value)) {
    const Array* array =
        length->argument < all.size() ? std::get_if<Array>(&all[length->argument]->value) : nullptr;
    if (array == nullptr || array->shape.empty())
      fail(kernel_,
           fmt::format("'{}' is the length of argument {}, which is no array with a length", given.text,
                       length->argument),
           "count the arguments from 0");
    arguments_.emplace_back(array->shape.front());
  } else if (const auto* value = std::get_if<ByValue>(&given.value)) {
    const std::byte* bytes = element_at(value->array, 0);
    values_.emplace_back(bytes, bytes + value->array.element.size_bytes);
    const std::optional<Dtype> dtype = value->array.element.dtype;
    arguments_.push_back(dtype ? quern::Argument::scalar(*dtype, values_.back())
                               : quern::Argument::value(values_.back()));
  } else if (const auto* tuple = std::get_if<TupleOf>(&given.value)) {
    values_.push_back(struct_of(*tuple));
    arguments_.push_back(quern::Argument::value(values_.back()));
  } else {
    add_array(index, std::get<Array>(given.value));
  }
}

/// A view with strides has the same layout in device memory as on the host, from the first to the last byte
/// that it accesses.
DeviceNDArray Job::send(const Array& array, bool with_strides) const {
  if (!with_strides || array.c_contiguous()) {
    const Array ordered = in_c_order(array);
    return session_.to_device(*ordered.bytes, ordered.shape, array.element.type);
  }
  const Layout layout(array.shape, array.element.size_bytes, array.strides);
  const Layout::Reach reach = layout.reach();
  const DeviceBuffer buffer = session_.allocate(reach.size_bytes());
  buffer.copy_from_host({array.data() + reach.lowest, reach.size_bytes()});
  return DeviceNDArray(buffer, array.element.type, layout, -reach.lowest);
}

void Job::add_array(std::size_t index, const Array& array) {
  const std::vector<Parameter>& parameters = kernel_.parameters();
  const bool named = index < parameters.size() && !parameters[index].name.empty();
  ArrayArgument argument{
      named ? parameters[index].name : fmt::format("#{}", index), index, array.element, {}};
  argument.device = send(array, index < parameters.size() && takes_strides(parameters[index]));
  arrays_.push_back(std::move(argument));
  arguments_.emplace_back(arrays_.back().device);
}

void Job::configure(const LaunchText& text) {
  const std::uint32_t most = kernel_.info().max_threads_per_block;
  config_.block = text.block.empty() ? Dim3(std::min(kDefaultBlock, std::max(most, 1u)))
                                     : read_dimensions(text.block, "--block");
  if (!text.grid.empty())
    config_.grid = read_dimensions(text.grid, "--grid");
  else if (!arrays_.empty())
    config_.grid = covering_grid(config_.block, arrays_.front().device.shape());
  else
    config_.grid = Dim3(1);
  config_.shared_bytes = text.shared_bytes;
  config_.cooperative = text.cooperative;
  config_.stream = stream_ ? stream_->view() : session_.default_stream();
}

double Job::launch() {
  try {
    begin_.record(config_.stream);
    kernel_.launch(config_, arguments_);
    end_.record(config_.stream);
    config_.stream.synchronize();
    return end_.elapsed_ms_since(begin_);
  } catch (const DriverError& error) {
    // The next call reports the kernel's fault.
    if (error.code() != ErrorCode::device_fault) throw;
    throw DriverError(
        error.code(), error.result(), error.result_name(), error.call(),
        fmt::format("kernel {} ended with {} in grid ({}, {}, {}) and block ({}, {}, {}): {}\nhint: {}",
                    kernel_.name(), error.result_name(), config_.grid.x, config_.grid.y, config_.grid.z,
                    config_.block.x, config_.block.y, config_.block.z, fault_text(error), fault_hint(error)),
        error.result_text(), error.shared_fault());
  }
}

const ArrayArgument& Job::array(const std::string& name) const {
  for (const ArrayArgument& argument : arrays_)
    if (argument.name == name || fmt::format("#{}", argument.index) == name) return argument;
  std::string names;
  for (const ArrayArgument& argument : arrays_) names += (names.empty() ? "" : ", ") + argument.name;
  fail(kernel_, fmt::format("'{}' is no array argument of kernel {}", name, kernel_.name()),
       names.empty() ? "this launch has no arrays" : fmt::format("its arrays are {}", names).c_str());
}

Array Job::fetch(const ArrayArgument& argument) const {
  const std::span<const std::int64_t> shape = argument.device.shape();
  Array array = make_array(argument.element, std::vector<std::int64_t>(shape.begin(), shape.end()));
  argument.device.copy_bytes_to_host(*array.bytes);
  return array;
}

Array Job::fetch_in_its_order(const ArrayArgument& argument) const {
  if (argument.device.is_c_contiguous() || !argument.device.is_f_contiguous()) return fetch(argument);
  const NDArray host = argument.device.copy_to_host();
  const std::span<const std::int64_t> shape = host.shape(), strides = host.strides_bytes();
  Array array = make_array(argument.element, {shape.begin(), shape.end()});
  array.strides.assign(strides.begin(), strides.end());
  std::memcpy(array.bytes->data(), host.data(), array.bytes->size());
  return array;
}

}  // namespace quern::cli
