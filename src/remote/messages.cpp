// SPDX-License-Identifier: Apache-2.0
#include "remote/messages.hpp"

#include <fmt/format.h>

#include "base/printable.hpp"
#include "remote/base64.hpp"
#include "remote/json_reader.hpp"

namespace quern::remote {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kMostDimensions = 31;
constexpr std::size_t kMaxRequestValues = 100'000;
constexpr std::size_t kMaxAnswerValues = 10'000'000;
// A change of what a key covers, or of what an answer holds, is a new number.
constexpr std::string_view kKeyFormat = "quern compile 1";

constexpr std::string_view kLanguages[] = {"cuda", "ptx", "python"};  // abi::Language's order

[[noreturn]] void bad(const std::string& message) { throw BadJson("bad-request", message); }

Diagnostic diagnostic_of(const BadJson& error) {
  Diagnostic diagnostic;
  diagnostic.code = error.code;
  diagnostic.message = error.what();
  diagnostic.hint = "docs/protocol.md has every field";
  return diagnostic;
}

template <class Read>
auto gate(const Read& read) -> Expected<decltype(read())> {
  try {
    return read();
  } catch (const BadJson& error) {
    return diagnostic_of(error);
  }
}

abi::Language language_named(const std::string& name) {
  for (std::size_t i = 0; i < std::size(kLanguages); ++i)
    if (kLanguages[i] == name) return static_cast<abi::Language>(i);
  bad("'language' must be cuda, python or ptx");
}

abi::Target read_target(const Json& json) {
  ObjectReader object(json, "target");
  abi::Target target;
  target.compute = static_cast<std::uint32_t>(object.number("compute", target.compute, 999));
  if (object.find("sm") != nullptr) target.sm = static_cast<std::uint32_t>(object.number("sm", 0, 999));
  target.driver_version = static_cast<std::uint32_t>(object.number("driver_version", 0, 1'000'000));
  object.finish();
  return target;
}

abi::Constant read_constant(const Json& json, std::size_t index) {
  ObjectReader object(json, fmt::format("constants[{}]", index));
  abi::Constant constant;
  constant.name = object.required_text("name");
  const std::optional<Dtype> dtype = dtype_named(object.required_text("dtype"));
  if (!dtype) bad(fmt::format("'{}' names no element type", object.path_of("dtype")));
  constant.dtype = *dtype;
  std::uint64_t bytes = size_bytes(*dtype);
  if (object.array("shape").size() > kMostDimensions)
    bad(fmt::format("'{}' has more than {} dimensions", object.path_of("shape"), kMostDimensions));
  for (const Json& extent : object.array("shape")) {
    if (!extent.is_number_unsigned() || extent.get<std::uint64_t>() > (1u << 30))
      bad(fmt::format("'{}' holds something that is no extent", object.path_of("shape")));
    constant.shape.push_back(extent.get<std::int64_t>());
    bytes = std::min<std::uint64_t>(bytes * extent.get<std::uint64_t>(), std::uint64_t{1} << 32);
  }
  std::optional<std::vector<std::byte>> data = from_base64(object.required_text("data"));
  if (!data) bad(fmt::format("'{}' is not base64", object.path_of("data")));
  if (data->size() != bytes)
    bad(fmt::format("'{}' has {} bytes, and the shape has {}", object.path_of("data"), data->size(), bytes));
  constant.bytes = *std::move(data);
  object.finish();
  return constant;
}

HeaderEntry read_header(const Json& json, std::size_t index) {
  ObjectReader object(json, fmt::format("headers[{}]", index));
  HeaderEntry header;
  header.name = object.required_text("name");
  header.by_digest = object.find("text") == nullptr;
  header.text = object.text("text");
  const std::string digest = object.text("sha256");
  if (header.by_digest == digest.empty())
    bad(fmt::format("'headers[{}]' needs either 'text' or 'sha256'", index));
  if (header.by_digest) {
    const std::optional<base::Digest> named = digest_named(digest);
    if (!named) bad(fmt::format("'{}' is not 64 hexadecimal digits", object.path_of("sha256")));
    header.digest = *named;
  }
  object.finish();
  return header;
}

CompileMessage read_message(std::string_view text) {
  const Json json = parse_limited(text, kMaxRequestValues);
  ObjectReader object(json, "");
  CompileMessage message;
  abi::KernelRequest& request = message.request;
  request.source.text = object.required_text("source");
  request.source.file_name = object.text("name", request.source.file_name);
  request.source.language = language_named(object.text("language", "cuda"));
  request.name_expressions = object.texts("names");
  request.entry = object.text("kernel");
  request.signature = object.text("signature");
  request.options = object.texts("options");
  if (const Json* target = object.find("target")) request.target = read_target(*target);
  for (const Json& each : object.array("constants"))
    request.constants.push_back(read_constant(each, request.constants.size()));
  for (const Json& each : object.array("headers"))
    message.headers.push_back(read_header(each, message.headers.size()));
  object.finish();
  return message;
}

Json target_json(const abi::Target& target) {
  Json json = {{"compute", target.compute}, {"driver_version", target.driver_version}};
  if (target.sm) json["sm"] = *target.sm;
  return json;
}

Json to_json(const CompileMessage& message) {
  const abi::KernelRequest& request = message.request;
  Json json = {{"source", request.source.text},
               {"name", request.source.file_name},
               {"language", language_name(request.source.language)},
               {"names", request.name_expressions},
               {"kernel", request.entry},
               {"signature", request.signature},
               {"options", request.options},
               {"target", target_json(request.target)},
               {"constants", Json::array()},
               {"headers", Json::array()}};
  for (const abi::Constant& constant : request.constants)
    json["constants"].push_back({{"name", constant.name},
                                 {"dtype", name(constant.dtype)},
                                 {"shape", constant.shape},
                                 {"data", to_base64(constant.bytes)}});
  for (const HeaderEntry& header : message.headers) {
    if (header.by_digest)
      json["headers"].push_back({{"name", header.name}, {"sha256", header.digest.hex()}});
    else
      json["headers"].push_back({{"name", header.name}, {"text", header.text}});
  }
  return json;
}

std::string dump(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

}  // namespace

std::string_view language_name(abi::Language language) noexcept {
  return kLanguages[static_cast<std::size_t>(language)];
}

Expected<CompileMessage> read_compile_message(std::string_view json) {
  return gate([&] { return read_message(json); });
}

Expected<std::string> write_compile_message(const CompileMessage& message) {
  try {
    return to_json(message).dump();
  } catch (const Json::exception&) {
    return diagnostic_of(BadJson("not-utf8", fmt::format("cannot send {}: it holds bytes that are not UTF-8",
                                                         message.request.source.file_name)));
  }
}

std::optional<base::Digest> digest_named(std::string_view hex) {
  base::Digest digest;
  if (hex.size() != 2 * digest.bytes.size()) return std::nullopt;
  for (std::size_t i = 0; i < hex.size(); ++i) {
    const std::size_t value = std::string_view("0123456789abcdef").find(hex[i]);
    if (value == std::string_view::npos) return std::nullopt;
    std::uint8_t& byte = digest.bytes[i / 2];
    byte = static_cast<std::uint8_t>(std::size_t{byte} << 4 | value);
  }
  return digest;
}

base::Digest message_key(const CompileMessage& message, const std::string& toolkit_digest) {
  const abi::KernelRequest& request = message.request;
  base::DigestBuilder digest;
  digest.add(kKeyFormat).add(toolkit_digest);
  digest.add(language_name(request.source.language));
  digest.add(request.source.text).add(request.source.file_name).add(request.entry).add(request.signature);
  for (const std::vector<std::string>* list : {&request.name_expressions, &request.options}) {
    digest.add(list->size());
    for (const std::string& each : *list) digest.add(each);
  }
  digest.add(request.target.compute).add(request.target.sm ? *request.target.sm + 1u : 0u);
  digest.add(request.target.driver_version).add(request.constants.size());
  for (const abi::Constant& constant : request.constants) {
    digest.add(constant.name).add(name(constant.dtype)).add(constant.shape.size());
    for (const std::int64_t extent : constant.shape) digest.add(static_cast<std::uint64_t>(extent));
    digest.add({reinterpret_cast<const char*>(constant.bytes.data()), constant.bytes.size()});
  }
  digest.add(message.headers.size());
  for (const HeaderEntry& header : message.headers) {
    const base::Digest of_text =
        header.by_digest ? header.digest : base::sha256(std::as_bytes(std::span(header.text)));
    digest.add(header.name).add(of_text.hex());
  }
  return digest.finish();
}

// The JSON of answers is below.

namespace {

Json to_json(const Diagnostics& diagnostics) {
  Json list = Json::array();
  for (const Diagnostic& each : diagnostics) {
    Json notes = Json::array();
    for (const Note& note : each.notes)
      notes.push_back({{"file", note.span.file},
                       {"line", note.span.line},
                       {"column", note.span.column},
                       {"message", note.message}});
    list.push_back({{"severity", to_string(each.severity)},
                    {"code", each.code},
                    {"file", each.span.file},
                    {"line", each.span.line},
                    {"column", each.span.column},
                    {"end_column", each.span.end_column},
                    {"message", each.message},
                    {"notes", std::move(notes)},
                    {"hint", each.hint},
                    {"source_line", each.source_line}});
  }
  return list;
}

std::uint32_t small(ObjectReader& object, const char* field) {
  return static_cast<std::uint32_t>(object.number(field, 0, UINT32_MAX));
}

Span read_span(ObjectReader& object) {
  return {base::printable_line(object.text("file")), small(object, "line"), small(object, "column"),
          small(object, "end_column")};
}

Diagnostics read_diagnostics(const Json& list) {
  Diagnostics diagnostics;
  for (const Json& each : list) {
    ObjectReader object(each, "diagnostics");
    Diagnostic& diagnostic = diagnostics.emplace_back();
    const std::string severity = object.text("severity");
    diagnostic.severity = severity == "note"      ? Severity::note
                          : severity == "warning" ? Severity::warning
                                                  : Severity::error;
    diagnostic.code = object.text("code");
    diagnostic.span = read_span(object);
    diagnostic.message = base::printable_line(object.text("message"));
    diagnostic.hint = base::printable_line(object.text("hint"));
    diagnostic.source_line = base::printable_line(object.text("source_line"));
    for (const Json& note : object.array("notes")) {
      ObjectReader inner(note, "notes");
      diagnostic.notes.push_back({read_span(inner), base::printable_line(inner.text("message"))});
    }
  }
  return diagnostics;
}

Json to_json(const abi::EntryInfo& entry) {
  Json parameters = Json::array();
  for (const abi::ParameterInfo& each : entry.parameters)
    parameters.push_back({{"name", each.name},
                          {"type", each.type},
                          {"offset", each.offset},
                          {"size", each.size},
                          {"align", each.align},
                          {"pointer", each.pointer},
                          {"read_only", each.read_only},
                          {"pointee", each.pointee}});
  return {{"name", entry.name},
          {"lowered_name", entry.lowered_name},
          {"parameters", std::move(parameters)},
          {"static_shared_bytes", entry.static_shared_bytes},
          {"max_threads", entry.max_threads}};
}

abi::EntryInfo read_entry(const Json& json) {
  ObjectReader object(json, "entries");
  abi::EntryInfo entry;
  entry.name = object.required_text("name");
  entry.lowered_name = object.required_text("lowered_name");
  entry.static_shared_bytes = object.number("static_shared_bytes", 0, UINT32_MAX);
  entry.max_threads = small(object, "max_threads");
  for (const Json& each : object.array("parameters")) {
    ObjectReader inner(each, "parameters");
    abi::ParameterInfo& parameter = entry.parameters.emplace_back();
    parameter.name = inner.text("name");
    parameter.type = inner.text("type");
    parameter.offset = small(inner, "offset");
    parameter.size = small(inner, "size");
    parameter.align = small(inner, "align");
    parameter.pointer = inner.flag("pointer");
    parameter.read_only = inner.flag("read_only");
    parameter.pointee = inner.text("pointee");
  }
  return entry;
}

ToolkitIdentity read_toolkit(const Json& json) {
  ObjectReader object(json, "toolkit");
  return {object.text("nvrtc"),     object.text("headers"),         object.text("digest"),
          object.text("libraries"), object.text("header_contents"), object.text("quern")};
}

CompileAnswer read_answer_json(std::string_view text) {
  const Json json = parse_limited(text, kMaxAnswerValues);
  ObjectReader object(json, "");
  CompileAnswer answer;
  if (object.number("protocol", 0, UINT32_MAX) != kProtocol)
    throw BadJson("protocol", "it answers in another version of the protocol");
  answer.key = object.required_text("key");
  if (const Json* toolkit = object.find("toolkit")) {
    answer.toolkit = read_toolkit(*toolkit);
  }
  abi::PtxImage& image = answer.image;
  image.ptx = object.required_text("ptx");
  image.cuda_source = object.text("cuda_source");
  image.compile_ms = object.real("compile_ms");
  for (const Json& each : object.array("entries")) image.entries.push_back(read_entry(each));
  for (const Json& each : object.array("variables")) {
    ObjectReader inner(each, "variables");
    image.variables.push_back({inner.required_text("name"), inner.required_text("lowered_name")});
  }
  image.log = read_diagnostics(object.array("diagnostics"));
  if (const Json* code = object.find("machine_code")) {
    ObjectReader inner(*code, "machine_code");
    answer.machine_code_digest = inner.required_text("sha256");
    answer.machine_code_bytes = inner.number("bytes", 0, UINT32_MAX);
  }
  return answer;
}

}  // namespace

std::string write_answer(const CompileAnswer& answer) {
  const abi::PtxImage& image = answer.image;
  Json json = {{"protocol", kProtocol},
               {"key", answer.key},
               {"toolkit",
                {{"nvrtc", answer.toolkit.nvrtc},
                 {"headers", answer.toolkit.headers},
                 {"digest", answer.toolkit.digest},
                 {"libraries", answer.toolkit.libraries},
                 {"header_contents", answer.toolkit.header_contents},
                 {"quern", answer.toolkit.quern}}},
               {"ptx", image.ptx},
               {"entries", Json::array()},
               {"variables", Json::array()},
               {"machine_code", nullptr},
               {"cuda_source", image.cuda_source},
               {"diagnostics", to_json(image.log)},
               {"compile_ms", image.compile_ms}};
  for (const abi::EntryInfo& entry : image.entries) json["entries"].push_back(to_json(entry));
  for (const abi::VariableInfo& variable : image.variables)
    json["variables"].push_back({{"name", variable.name}, {"lowered_name", variable.lowered_name}});
  if (!answer.machine_code_digest.empty())
    json["machine_code"] = {{"sha256", answer.machine_code_digest}, {"bytes", answer.machine_code_bytes}};
  return dump(json);
}

Expected<CompileAnswer> read_answer(std::string_view json) {
  return gate([&] { return read_answer_json(json); });
}

std::optional<ToolkitIdentity> read_toolkit_of_stats(std::string_view json) {
  const Expected<ToolkitIdentity> identity = gate([&]() -> ToolkitIdentity {
    const Json stats = parse_limited(json, kMaxAnswerValues);
    ObjectReader object(stats, "");
    const Json* const toolkit = object.find("toolkit");
    if (toolkit == nullptr || toolkit->is_null()) return {};
    return read_toolkit(*toolkit);
  });
  if (!identity || identity->nvrtc.empty()) return std::nullopt;
  return *identity;
}

std::string write_error(const ErrorAnswer& error) {
  Json json = {{"code", error.code},
               {"message", error.message},
               {"hint", error.hint},
               {"request_id", error.request_id},
               {"diagnostics", to_json(error.diagnostics)}};
  if (!error.missing.empty()) json["missing"] = error.missing;
  if (error.code == "protocol-version") json["supported"] = {kProtocol};
  return dump({{"error", std::move(json)}});
}

ErrorAnswer read_error(std::string_view text) {
  ErrorAnswer error;
  try {
    const Json json = parse_limited(text, kMaxRequestValues);
    ObjectReader outer(json, "");
    const Json* const inner = outer.find("error");
    if (inner == nullptr) return error;
    ObjectReader object(*inner, "error");
    error.message = base::printable_line(object.text("message"));
    error.hint = base::printable_line(object.text("hint"));
    error.request_id = object.text("request_id");
    error.diagnostics = read_diagnostics(object.array("diagnostics"));
    error.missing = object.texts("missing");
    error.code = object.text("code");
  } catch (const BadJson&) {
    return {};
  }
  return error;
}

}  // namespace quern::remote
