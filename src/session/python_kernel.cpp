// SPDX-License-Identifier: Apache-2.0
#include "session/python_kernel.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "quern/error.hpp"
#include "session/gate.hpp"

namespace quern::session {
namespace {

std::string_view type_name(Dtype dtype) { return dtype == Dtype::bool_ ? "boolean" : quern::name(dtype); }

std::string element_name(const ElementType& element);

/// Record([('x', float32, 0), ('v', float32, 4, (3,))], 16)
std::string record_name(const RecordType& record) {
  std::vector<const Field*> fields;
  for (const Field& field : record.fields()) fields.push_back(&field);
  std::sort(fields.begin(), fields.end(),
            [](const Field* a, const Field* b) { return a->offset_bytes < b->offset_bytes; });
  std::string text = "Record([";
  for (const Field* field : fields) {
    const std::string element = element_name(field->element);
    if (element.empty()) return {};
    text += fmt::format("{}('{}', {}, {}", text.ends_with('[') ? "" : ", ", field->name, element,
                        field->offset_bytes);
    if (!field->shape.empty()) text += ", " + shape_text(field->shape);
    text += ")";
  }
  return text + fmt::format("], {})", record.size_bytes());
}

/// Empty for elements without a type in kernels: bytes that are not described.
std::string element_name(const ElementType& element) {
  if (element.dtype) return std::string(type_name(*element.dtype));
  return element.record == nullptr ? std::string() : record_name(*element.record);
}

/// A read-only array has a type of its own, as in Numba: a kernel that writes to it is rejected. Records are
/// read and written through references, which have no such type; read-only ones are rejected at launch.
bool has_read_only_type(const Argument& argument) {
  return argument.array() != nullptr && argument.array()->is_read_only() && argument.array()->element().dtype;
}

/// float32[:, ::1]; without the 1 if the elements are not contiguous.
std::string array_type(const ElementType& element, const Layout& layout, bool read_only) {
  const std::string name = element_name(element);
  if (name.empty()) return {};
  const std::size_t ndim = layout.ndim();
  const char order = layout.is_c_contiguous() ? 'C' : layout.is_f_contiguous() ? 'F' : 'A';
  if (read_only) return fmt::format("Array({}, {}, '{}', readonly=True)", name, ndim, order);
  if (ndim == 0) return element.record != nullptr ? name : fmt::format("Array({}, 0, 'C')", name);
  std::string axes;
  for (std::size_t axis = 0; axis < ndim; ++axis) {
    const bool unit = (order == 'C' && axis + 1 == ndim) || (order == 'F' && axis == 0);
    axes += std::string(axis == 0 ? "" : ", ") + (unit ? "::1" : ":");
  }
  return fmt::format("{}[{}]", name, axes);
}

const ElementType* element_of(const Argument& argument) {
  if (argument.host() != nullptr) return &argument.host()->array.element();
  if (argument.array() != nullptr) return &argument.array()->element();
  return argument.smart() != nullptr ? &argument.smart()->element() : nullptr;
}
const Layout* layout_of(const Argument& argument) {
  if (argument.host() != nullptr) return &argument.host()->array.layout();
  if (argument.array() != nullptr) return &argument.array()->layout();
  return argument.smart() != nullptr ? &argument.smart()->layout() : nullptr;
}

template <class T>
void append_bytes(const T& value, std::string& key) {
  key.append(reinterpret_cast<const char*>(&value), sizeof value);
}

/// The facts of record_name(), for comparisons only.
void append_record(const RecordType& record, std::string& key) {
  append_bytes(record.size_bytes(), key);
  append_bytes(record.fields().size(), key);
  for (const Field& field : record.fields()) {
    append_bytes(field.name.size(), key);
    key += field.name;
    append_bytes(field.offset_bytes, key);
    append_bytes(field.element.size_bytes, key);
    append_bytes(field.shape.size(), key);
    for (const std::int64_t extent : field.shape) append_bytes(extent, key);
    key += field.element.dtype ? static_cast<char>('A' + static_cast<int>(*field.element.dtype)) : '?';
    if (field.element.record != nullptr) append_record(*field.element.record, key);
  }
}

/// Appends the facts that determine the type, a few bytes for each argument.
void append_key(const Argument& argument, std::string& key) {
  const ElementType* element = element_of(argument);
  const std::optional<Dtype> dtype = element != nullptr ? element->dtype : argument.dtype();
  key += element != nullptr ? 'a' : argument.kind() == Argument::Kind::scalar ? 's' : '?';
  key += dtype ? static_cast<char>('A' + static_cast<int>(*dtype)) : '?';
  if (element == nullptr) return;
  const Layout& layout = *layout_of(argument);
  key += static_cast<char>('0' + layout.ndim());
  key += layout.is_c_contiguous() ? 'C' : layout.is_f_contiguous() ? 'F' : 'A';
  key += has_read_only_type(argument) ? 'r' : 'w';
  if (element->record != nullptr) append_record(*element->record, key);
}

const char* kind_name(const Argument& argument) {
  switch (argument.kind()) {
    case Argument::Kind::pointer:
      return "a plain address";
    case Argument::Kind::array:
    case Argument::Kind::host:
    case Argument::Kind::smart:
      return "an array of structs without a description";
    default:
      return "a struct";
  }
}

/// The argument's type in a signature; throws if it has none.
std::string type_of(const std::string& kernel, std::size_t index, const Argument& argument) {
  std::string type;
  if (const ElementType* element = element_of(argument))
    type = array_type(*element, *layout_of(argument), has_read_only_type(argument));
  else if (argument.kind() == Argument::Kind::scalar)
    type = type_name(*argument.dtype());
  if (!type.empty()) return type;
  throw Error(
      ErrorCode::usage,
      fmt::format("cannot specialise kernel {} on argument {}: {} has no type of Kernel Python\nhint: "
                  "give arrays and numbers, or write the kernel's types in its decorator",
                  kernel, index, kind_name(argument)));
}

}  // namespace

std::string plain_types(std::string_view types) {
  std::string text;
  for (const char c : types)
    if (c != ' ' && c != '\t' && c != '\n') text += c == ',' ? ", " : std::string(1, c);
  if (text.starts_with("void(")) text.erase(0, 4);
  int depth = 0;
  std::size_t closed = 0;
  do depth += text[closed] == '(' ? 1 : text[closed] == ')' ? -1 : 0;
  while (depth > 0 && ++closed < text.size());
  if (!text.starts_with('(') || closed + 1 != text.size()) return text;
  text = text.substr(1, text.size() - 2);
  if (text.ends_with(", ")) text.resize(text.size() - 2);
  return text;
}

Expected<CodeTable::Image> specialisation_image(const SessionState& session, const ModuleOrigin& origin,
                                                const std::string& kernel, const std::string& types) {
  const std::string key = plain_types(types);
  if (CodeTable::Image known = origin.code->find(kernel, key)) return known;
  if (!origin.has_source)
    return origin.not_saved(
        fmt::format("compile kernel {} of {} for the types '{}'", kernel, origin.file_name(), key), kernel);
  abi::KernelRequest request = origin.request;
  request.entry = kernel;
  request.signature = types;
  Expected<CodeTable::Image> image = session.compile(request);
  if (!image) return image;
  if ((*image)->entries.empty())
    return make_diagnostic("internal", "the compiled kernel has no entry",
                           "please report this with the kernel's source");
  origin.code->add(kernel, key, *image);
  return image;
}

Expected<std::shared_ptr<const launch::LoadedKernel>> load_specialisation(const SessionState& session,
                                                                          const ModuleOrigin& origin,
                                                                          const std::string& kernel,
                                                                          const std::string& types) {
  Expected<CodeTable::Image> image = specialisation_image(session, origin, kernel, types);
  if (!image) return std::move(image).errors();
  Expected<std::shared_ptr<runtime::Module>> module = load_image(session, **image, origin.request.source);
  if (!module) return std::move(module).errors();
  return std::make_shared<const launch::LoadedKernel>(
      *std::move(module), *image, (*image)->entries.front(),
      std::make_shared<const std::string>((*image)->cuda_source));
}

PythonKernel::PythonKernel(std::shared_ptr<SessionState> session, std::shared_ptr<const ModuleOrigin> origin,
                           abi::EntryInfo outline)
    : session_(std::move(session)),
      origin_(std::move(origin)),
      outline_(std::move(outline)),
      signature_(outline_.name + "(") {
  for (const abi::ParameterInfo& parameter : outline_.parameters) {
    signature_ += (signature_.ends_with('(') ? "" : ", ") + parameter.name;
    parameters_.push_back({parameter.name, {}, 0, 0, 1, false});
  }
  signature_ += ")";
}

KernelInfo PythonKernel::info() const {
  KernelInfo info;
  info.name = outline_.name;
  info.signature = signature_;
  info.parameters = parameters_;
  info.max_threads_per_block = session_->context()->device().max_threads_per_block;
  return info;
}

std::string PythonKernel::types_of(std::span<const Argument> arguments) const {
  std::string types;
  for (std::size_t i = 0; i < arguments.size(); ++i)
    types += (i == 0 ? "" : ", ") + type_of(outline_.name, i, arguments[i]);
  return arguments.size() == 1 ? "(" + types + ",)" : types;
}

PythonKernel::Specialisation PythonKernel::compile(const std::string& types) const {
  const std::string key = plain_types(types);
  {
    const base::LockGuard lock(mutex_);
    if (const auto found = known_.find(key); found != known_.end()) return found->second;
  }
  Specialisation made = value_or_throw(load_specialisation(*session_, *origin_, outline_.name, types));
  const base::LockGuard lock(mutex_);
  return known_.emplace(key, std::move(made)).first->second;
}

PythonKernel::Specialisation PythonKernel::find(std::span<const Argument> arguments) const {
  if (arguments.size() != parameters_.size())
    throw Error(ErrorCode::usage,
                fmt::format("kernel {} takes {} argument{}, {} {} given\n    {}\nhint: give one argument for "
                            "each parameter, in this order",
                            outline_.name, parameters_.size(), parameters_.size() == 1 ? "" : "s",
                            arguments.size(), arguments.size() == 1 ? "was" : "were", signature_));
  thread_local std::string key;  // keeps its memory: launches after the first need none
  key.clear();
  for (const Argument& argument : arguments) append_key(argument, key);
  {
    const base::LockGuard lock(mutex_);
    if (const auto found = launched_.find(key); found != launched_.end()) return found->second;
  }
  std::string made_for = key;
  Specialisation made = compile(types_of(arguments));
  const base::LockGuard lock(mutex_);
  return launched_.emplace(std::move(made_for), std::move(made)).first->second;
}

std::shared_ptr<const launch::KernelState> PythonKernel::specialise(
    std::span<const Argument> arguments) const {
  return find(arguments);
}

std::shared_ptr<const launch::KernelState> PythonKernel::specialise(std::string_view signature) const {
  return compile(std::string(signature));
}

std::vector<std::string> PythonKernel::specialisations() const {
  return origin_->code->types_of(outline_.name);
}

void PythonKernel::prepare(const Dim3&) const {
  throw Error(ErrorCode::usage,
              fmt::format("cannot prepare kernel {}: it is compiled for the types of its arguments\n    {}\n"
                          "hint: give them: prepare(block, \"float32[::1], float32\")",
                          outline_.name, signature_));
}

void PythonKernel::launch(const LaunchConfig& config, std::span<const Argument> arguments) const {
  find(arguments)->launch(config, arguments);
}

}  // namespace quern::session
