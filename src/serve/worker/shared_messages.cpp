// SPDX-License-Identifier: Apache-2.0
#include "serve/worker/shared_messages.hpp"

#include <nlohmann/json.hpp>

namespace quern::serve {
namespace {

using Json = nlohmann::json;

}  // namespace

std::string write_hello(const WorkerHello& hello) {
  const SandboxState& sandbox = hello.sandbox;
  const Json json = {{"nvrtc_path", hello.nvrtc_path},
                     {"nvrtc_version", hello.nvrtc_version},
                     {"headers_version", hello.headers_version},
                     {"libraries", hello.libraries},
                     {"header_contents", hello.header_contents},
                     {"quern", hello.quern},
                     {"include_directories", hello.include_directories},
                     {"problem", hello.problem},
                     {"landlock", sandbox.landlock},
                     {"seccomp", sandbox.seccomp},
                     {"no_new_privileges", sandbox.no_new_privileges},
                     {"limits", sandbox.limits},
                     {"missing", sandbox.missing}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Expected<WorkerHello> read_hello(std::string_view text) {
  WorkerHello hello;
  try {
    const Json json = Json::parse(text);
    json.at("nvrtc_path").get_to(hello.nvrtc_path);
    json.at("nvrtc_version").get_to(hello.nvrtc_version);
    json.at("headers_version").get_to(hello.headers_version);
    json.at("libraries").get_to(hello.libraries);
    json.at("header_contents").get_to(hello.header_contents);
    json.at("quern").get_to(hello.quern);
    json.at("include_directories").get_to(hello.include_directories);
    json.at("problem").get_to(hello.problem);
    json.at("landlock").get_to(hello.sandbox.landlock);
    json.at("seccomp").get_to(hello.sandbox.seccomp);
    json.at("no_new_privileges").get_to(hello.sandbox.no_new_privileges);
    json.at("limits").get_to(hello.sandbox.limits);
    json.at("missing").get_to(hello.sandbox.missing);
  } catch (const Json::exception& error) {
    Diagnostic diagnostic;
    diagnostic.code = "worker";
    diagnostic.message = std::string("a worker's first message cannot be read: ") + error.what();
    return diagnostic;
  }
  return hello;
}

Frame image_frame(const abi::PtxImage& image) {
  remote::CompileAnswer answer;
  answer.key = "-";
  answer.image = image;
  answer.image.machine_code.clear();
  const auto* const code = reinterpret_cast<const char*>(image.machine_code.data());
  return {kImageFrame, remote::write_answer(answer), std::string(code, code + image.machine_code.size())};
}

Frame error_frame(const Diagnostics& errors) {
  remote::ErrorAnswer answer;
  answer.code = "compile";
  answer.message = errors.empty() ? "the compile failed" : errors.front().message;
  answer.diagnostics = errors;
  return {kErrorFrame, remote::write_error(answer), ""};
}

}  // namespace quern::serve
