// SPDX-License-Identifier: Apache-2.0
#include "remote/messages.hpp"

#include <doctest/doctest.h>

#include <set>

#include "remote/base64.hpp"

using namespace quern;
using namespace quern::remote;

namespace {

std::string code_of(std::string_view json) {
  const Expected<CompileMessage> message = read_compile_message(json);
  return message ? "" : message.errors().front().code;
}

std::vector<std::byte> bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

CompileMessage full_message() {
  CompileMessage message;
  abi::KernelRequest& request = message.request;
  request.source = {abi::Language::python, "line one\nsay \"hi\"\t\xC3\xBC", "dir/k.py"};
  request.name_expressions = {"a<int>", "&b"};
  request.target = {90, 100, 12040};
  request.options = {"-DX=\"y\"", "--fmad=false"};
  request.entry = "k";
  request.signature = "float32[::1]";
  request.constants = {{"N", Dtype::int32, {2}, bytes_of("12345678")},
                       {"Z", Dtype::float64, {}, bytes_of("abcdefgh")}};
  message.headers = {{"a.h", false, "text", {}}, {"b.h", true, "", base::sha256(bytes_of("other"))}};
  return message;
}

}  // namespace

TEST_CASE("base64 has RFC 4648's vectors and one spelling of each text") {
  const std::pair<const char*, const char*> vectors[] = {{"", ""},
                                                         {"f", "Zg=="},
                                                         {"fo", "Zm8="},
                                                         {"foo", "Zm9v"},
                                                         {"foob", "Zm9vYg=="},
                                                         {"fooba", "Zm9vYmE="},
                                                         {"foobar", "Zm9vYmFy"}};
  for (const auto& [text, encoded] : vectors) {
    CHECK_EQ(to_base64(bytes_of(text)), encoded);
    REQUIRE(from_base64(encoded).has_value());
    CHECK(*from_base64(encoded) == bytes_of(text));
  }
  for (const char* wrong : {"Z", "Zg", "Zg=", "Zh==", "Zm9=", "====", "Zg==Zg==", "Zm9v\n", "Z-8=", "Zm=v"})
    CHECK_FALSE(from_base64(wrong).has_value());
}

TEST_CASE("a request reads back as it was written") {
  const CompileMessage message = full_message();
  const Expected<std::string> json = write_compile_message(message);
  REQUIRE(json);
  const Expected<CompileMessage> again = read_compile_message(*json);
  REQUIRE(again);
  CHECK_EQ(again->request.source.text, message.request.source.text);
  CHECK_EQ(again->request.source.file_name, "dir/k.py");
  CHECK(again->request.source.language == abi::Language::python);
  CHECK(again->request.target == message.request.target);
  CHECK(again->request.options == message.request.options);
  CHECK(again->request.name_expressions == message.request.name_expressions);
  REQUIRE_EQ(again->request.constants.size(), 2);
  CHECK(again->request.constants[0].bytes == bytes_of("12345678"));
  CHECK(again->request.constants[0].shape == std::vector<std::int64_t>{2});
  REQUIRE_EQ(again->headers.size(), 2);
  CHECK_EQ(again->headers[0].text, "text");
  CHECK(again->headers[1].by_digest);
  // echo -n other | sha256sum
  CHECK_EQ(again->headers[1].digest.hex(),
           "d9298a10d1b0735837dc4bd85dac641b0f3cef27a47e5d53a54f2f3f5b2fcffa");
  CHECK(message_key(*again, "t") == message_key(message, "t"));
}

TEST_CASE("text that is not UTF-8 is not sent changed") {
  CompileMessage message = full_message();
  message.request.source.text = "// caf\xE9";
  const Expected<std::string> json = write_compile_message(message);
  REQUIRE_FALSE(json);
  CHECK_EQ(json.errors().front().code, "not-utf8");
}

TEST_CASE("every part of a request, and the toolkit, is in its key") {
  std::set<std::string> keys{message_key(full_message(), "t").hex(), message_key(full_message(), "u").hex()};
  const auto differs = [&](auto change) {
    CompileMessage message = full_message();
    change(message.request, message.headers);
    CHECK(keys.insert(message_key(message, "t").hex()).second);
  };
  using Request = abi::KernelRequest;
  using Headers = std::vector<HeaderEntry>;
  differs([](Request& r, Headers&) { r.source.language = abi::Language::cuda; });
  differs([](Request& r, Headers&) { r.source.text += " "; });
  differs([](Request& r, Headers&) { r.source.file_name = "dir/l.py"; });
  differs([](Request& r, Headers&) { r.entry = "l"; });
  differs([](Request& r, Headers&) { r.signature = ""; });
  differs([](Request& r, Headers&) { r.name_expressions = {"a<int>"}; });
  differs([](Request& r, Headers&) { r.name_expressions = {"&b", "a<int>"}; });
  differs([](Request& r, Headers&) { r.options.emplace_back("-w"); });
  differs([](Request& r, Headers&) { r.target.compute = 89; });
  differs([](Request& r, Headers&) { r.target.sm.reset(); });
  differs([](Request& r, Headers&) { r.target.driver_version = 0; });
  differs([](Request& r, Headers&) { r.constants[0].name = "M"; });
  differs([](Request& r, Headers&) { r.constants[0].dtype = Dtype::float32; });
  differs([](Request& r, Headers&) { r.constants[0].shape = {1, 2}; });
  differs([](Request& r, Headers&) { r.constants[0].bytes[7] = std::byte{0}; });
  differs([](Request& r, Headers&) { r.constants.pop_back(); });
  differs([](Request&, Headers& h) { h[0].name = "c.h"; });
  differs([](Request&, Headers& h) { h[0].text = "texts"; });
  differs([](Request&, Headers& h) { std::swap(h[0], h[1]); });
  differs([](Request&, Headers& h) { h.pop_back(); });
}

TEST_CASE("a header by digest and the same by text have one key") {
  CompileMessage by_text = full_message(), by_digest = full_message();
  by_text.headers = {{"a.h", false, "other", {}}};
  by_digest.headers = {{"a.h", true, "", base::sha256(bytes_of("other"))}};
  CHECK(message_key(by_text, "t") == message_key(by_digest, "t"));
}

TEST_CASE("requests with wrong or unknown fields are refused") {
  CHECK_EQ(code_of(R"({"source": ""})"), "");
  CHECK_EQ(code_of(R"({"source": "", "name": null})"), "");
  CHECK_EQ(code_of(R"({"source": "", "sources": 1})"), "unknown-field");
  CHECK_EQ(code_of(R"({"source": "", "headers": [{"name": "a", "text": "", "size": 0}]})"), "unknown-field");
  for (const char* wrong :
       {"", "1", "[]", "{}", R"({"source": 1})", R"({"source": "a\u0000b"})",
        R"({"source": "", "options": "x"})", R"({"source": "", "options": ["a", null]})",
        R"({"source": "", "target": 89})", R"({"source": "", "target": {"compute": 1000}})",
        R"({"source": "", "target": {"compute": 8.9}})",
        R"({"source": "", "headers": [{"name": "a", "text": "", "sha256": "00"}]})",
        R"({"source": "", "headers": [{"text": ""}]})", R"({"source": "", "language": "CUDA"})"})
    CHECK_EQ(code_of(wrong), "bad-request");
}

TEST_CASE("small texts that would become large trees are refused") {
  CHECK_EQ(code_of(std::string(100'000, '[')), "bad-request");
  std::string many = R"({"source": "", "options": [)";
  for (int i = 0; i < 200'000; ++i) many += "1,";
  CHECK_EQ(code_of(many + "1]}"), "bad-request");
}

TEST_CASE("an answer reads back as it was written") {
  CompileAnswer answer;
  answer.key = "k";
  answer.toolkit = {"13.0", "13.1", "d", "l", "c", "q"};
  answer.image.ptx = ".version 8.0\n";
  answer.image.entries = {{"k<int>", "_Z1kIiE", {{"p", "const int*", 8, 8, 8, true, true, "int"}}, 48, 256}};
  answer.image.variables = {{"v", "_v"}};
  answer.image.cuda_source = "int x;";
  answer.image.compile_ms = 1.5;
  Diagnostic warning{
      Severity::warning, "cuda-1", {"k.cu", 3, 4, 5}, "odd", {{{"h.h", 1, 2, 0}, "here"}}, "do", "int"};
  answer.image.log = {warning};
  answer.machine_code_digest = "ff";
  answer.machine_code_bytes = 7;
  const Expected<CompileAnswer> again = read_answer(write_answer(answer));
  REQUIRE(again);
  CHECK_EQ(again->toolkit.headers, "13.1");
  CHECK_EQ(again->toolkit.libraries + again->toolkit.header_contents + again->toolkit.quern, "lcq");
  CHECK_EQ(again->image.ptx, answer.image.ptx);
  CHECK_EQ(again->image.compile_ms, 1.5);
  REQUIRE_EQ(again->image.entries.size(), 1);
  const abi::EntryInfo& entry = again->image.entries[0];
  CHECK_EQ(entry.lowered_name, "_Z1kIiE");
  CHECK_EQ(entry.static_shared_bytes, 48);
  CHECK_EQ(entry.max_threads, 256);
  REQUIRE_EQ(entry.parameters.size(), 1);
  CHECK_EQ(entry.parameters[0].offset, 8);
  CHECK(entry.parameters[0].read_only);
  CHECK_EQ(entry.parameters[0].pointee, "int");
  CHECK_EQ(again->image.variables.at(0).lowered_name, "_v");
  REQUIRE_EQ(again->image.log.size(), 1);
  CHECK_EQ(to_string(again->image.log), to_string(Diagnostics{warning}));
  CHECK_EQ(again->machine_code_bytes, 7);
}

TEST_CASE("an error reads back, and anything else is an error without a code") {
  ErrorAnswer error{"compile", "no", "yes", "id", {}, {"a", "b"}};
  error.diagnostics.resize(1);
  error.diagnostics[0].message = "m";
  const ErrorAnswer again = read_error(write_error(error));
  CHECK_EQ(again.code, "compile");
  CHECK_EQ(again.request_id, "id");
  CHECK(again.missing == error.missing);
  CHECK_EQ(again.diagnostics.at(0).message, "m");
  for (const char* other : {"", "{}", "<html>", R"({"error": 1})", R"({"error": {"code": 1}})"})
    CHECK_EQ(read_error(other).code, "");
}

TEST_CASE("a digest is 64 lower-case digits") {
  const std::string good = "00ff" + std::string(60, 'a');
  REQUIRE(digest_named(good).has_value());
  CHECK_EQ(digest_named(good)->hex(), good);
  for (const std::string& wrong :
       {std::string(), good + "0", good.substr(1), "FF" + good.substr(2), "0x" + good.substr(2)})
    CHECK_FALSE(digest_named(wrong).has_value());
}
