// SPDX-License-Identifier: Apache-2.0
#include "serve/service.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>

#include "base/clock.hpp"
#include "serve/log.hpp"
#include "serve/page.hpp"
#include "serve/policy.hpp"

namespace quern::serve {
namespace {

using Json = nlohmann::ordered_json;
using std::string_view;

constexpr std::uint64_t kMaxHeadBytes = std::uint64_t{32} << 10;
constexpr std::size_t kMaxPathSize = 256;
constexpr std::size_t kMaxRefusals = 20;
constexpr string_view kArtifactPath = "/v1/artifact/";
constexpr const char* kJsonType = "application/json";
constexpr const char* kTextType = "text/plain; charset=utf-8";

std::chrono::milliseconds milliseconds(double seconds) {
  return std::chrono::milliseconds(static_cast<std::int64_t>(seconds * 1e3));
}

bool is_id(const std::string& text) {
  const auto fits = [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '_' || c == '-';
  };
  return !text.empty() && text.size() <= 64 && std::all_of(text.begin(), text.end(), fits);
}

std::string new_id() {
  unsigned char bytes[8];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return "none";
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

/// The route that a path belongs to, for the counters: there are few of these.
std::string route_of(const std::string& path) {
  for (const char* each : {"/", "/healthz", "/readyz", "/metrics", "/v1/stats", "/v1/compile"})
    if (path == each) return path;
  return path.starts_with(kArtifactPath) ? "/v1/artifact" : "other";
}

}  // namespace

struct Exchange {
  Connection& connection;
  std::string id = new_id();
  std::string route = "other";
  std::int64_t begin_ns = base::now_ns();
  std::uint64_t body_bytes = 0;
  bool has_body = false;
  bool body_read = false;
  bool known = false;  // line and headers were read
  bool answered = false;
  bool is_chunked = false;  // by a reader that takes more spellings of sizes than others
};

namespace {
thread_local Exchange* current = nullptr;  // httplib's handlers are not told of the connection
}  // namespace

Service::Service(const Settings& settings)
    : settings_(settings), artifacts_(settings.artifact_bytes), pool_(settings, metrics_, artifacts_) {
  set_pre_routing_handler(
      [this](const Request& request, Response& response) { return before_body(request, response); });
  Get(".*", [this](const Request& request, Response& response) { get(request, response); });
  Post(".*", [this](const Request& request, Response& response, const httplib::ContentReader& reader) {
    post(request, response, reader);
  });
  Put(".*", [this](const Request& request, Response& response, const httplib::ContentReader& reader) {
    put(request, response, reader);
  });
  set_error_handler([this](const Request&, Response& response) { on_error(response); });
  set_logger([this](const Request& request, const Response& response) { note(request, response); });
  set_exception_handler(
      [](const Request&, Response& response, std::exception_ptr) { response.status = 500; });
  set_keep_alive_timeout(static_cast<time_t>(settings_.idle_timeout_s));
  set_expect_100_continue_handler([this](const Request& request, Response&) {
    return request.get_header_value<std::uint64_t>("Content-Length") > settings_.max_body_bytes() ? 417 : 100;
  });
}

void Service::set_tokens(Tokens tokens) {
  const base::LockGuard lock(mutex_);
  tokens_ = std::make_shared<const Tokens>(std::move(tokens));
}

namespace {

void refuse(httplib::Response& response, int status, const std::string& code, const std::string& message,
            const std::string& hint = {}, Diagnostics diagnostics = {},
            std::vector<std::string> missing = {}) {
  remote::ErrorAnswer error;
  error.code = code;
  error.message = message;
  error.hint = hint;
  error.diagnostics = std::move(diagnostics);
  error.missing = std::move(missing);
  error.request_id = response.get_header_value("Quern-Request-Id");
  response.status = status;
  response.set_content(remote::write_error(error), kJsonType);
  if (status == 429 || status == 503) response.set_header("Retry-After", "1");
  if (status == 401) response.set_header("WWW-Authenticate", "Bearer");
}

}  // namespace

bool Service::serve_one(Connection& connection, bool last) {
  Exchange exchange{connection};
  current = &exchange;
  connection.begin_request(milliseconds(settings_.request_timeout_s), kMaxHeadBytes);
  bool closed = false;
  const bool written = process_request(connection, last || draining_, closed, {});
  // cpp-httplib closes without an answer where the first line is too long.
  if (!exchange.known && connection.failure() == Connection::Failure::too_large && !exchange.answered)
    refuse_head(connection);
  current = nullptr;
  body_bytes_ -= exchange.body_bytes;
  // The rest of a request that cannot be read is no request.
  const bool is_read = exchange.known && (!exchange.has_body || exchange.body_read) && !exchange.is_chunked;
  return written && !closed && !last && !draining_ && is_read;
}

httplib::Server::HandlerResponse Service::before_body(const Request& request, Response& response) {
  Exchange& exchange = *current;
  exchange.known = true;
  exchange.connection.begin_body();
  exchange.route = route_of(request.path);
  exchange.is_chunked = request.has_header("Transfer-Encoding");
  exchange.has_body =
      request.has_header("Transfer-Encoding") ||
      (request.has_header("Content-Length") && request.get_header_value("Content-Length") != "0");
  if (const std::string id = request.get_header_value("Quern-Request-Id"); is_id(id)) exchange.id = id;
  response.set_header("Quern-Request-Id", exchange.id);
  response.set_header("Quern-Protocol", std::to_string(remote::kProtocol));
  // cpp-httplib would cut every answer to the range, a refusal too.
  const_cast<Request&>(request).ranges.clear();
  if (check_head(request, response) && check_path(request, response)) return HandlerResponse::Unhandled;
  exchange.connection.begin_answer(milliseconds(settings_.request_timeout_s));
  return HandlerResponse::Handled;
}

bool Service::check_head(const Request& request, Response& response) const {
  if (request.path.size() > kMaxPathSize) {
    refuse(response, 404, "not-found", "the path is too long");
    return false;
  }
  if (request.method != "GET" && request.method != "HEAD" && request.method != "POST" &&
      request.method != "PUT") {
    refuse(response, 405, "method", "only GET, HEAD, POST and PUT are used here");
    return false;
  }
  const bool ambiguous = request.get_header_value_count("Content-Length") > 1 ||
                         (request.has_header("Content-Length") && request.has_header("Transfer-Encoding"));
  const std::string length = request.get_header_value("Content-Length");
  const bool is_number = length.size() < 20 && length.find_first_not_of("0123456789") == std::string::npos;
  if (ambiguous || !is_number || (request.has_header("Content-Length") && length.empty())) {
    refuse(response, 400, "bad-request", "the length of the body is not one whole number");
    return false;
  }
  if (request.has_header("Range")) {
    refuse(response, 400, "bad-request", "ranges are not accepted");
    return false;
  }
  if (request.is_multipart_form_data()) {
    refuse(response, 400, "bad-request", "the body is JSON, not a form");
    return false;
  }
  if (request.has_header("Content-Encoding") && request.get_header_value("Content-Encoding") != "identity") {
    refuse(response, 415, "encoding", "the body must not be compressed");
    return false;
  }
  if (request.get_header_value<std::uint64_t>("Content-Length") > settings_.max_body_bytes()) {
    refuse(response, 413, "too-large",
           fmt::format("the body is larger than {} bytes", settings_.max_body_bytes()));
    return false;
  }
  return true;
}

bool Service::check_path(const Request& request, Response& response) {
  const std::string& path = request.path;
  if (path == "/" || path == "/healthz" || path == "/readyz") return true;
  std::shared_ptr<const Tokens> tokens;
  {
    const base::LockGuard lock(mutex_);
    tokens = tokens_;
  }
  if (!tokens->accept(request.get_header_value("Authorization"))) {
    refuse(response, 401, "unauthorised", "this server wants a bearer token that it knows",
           "set QUERN_REMOTE_TOKEN_FILE to a file with a token of the server's operator");
    return false;
  }
  const bool of_version = path.size() > 2 && path[1] == 'v' && path[2] >= '0' && path[2] <= '9';
  if (of_version && !path.starts_with("/v1/")) {
    refuse(response, 404, "protocol-version", "this server speaks version 1 of the protocol: /v1/...",
           "use a client of this version, or a newer server");
    return false;
  }
  return true;
}

void Service::refuse_head(Connection& connection) {
  remote::ErrorAnswer error;
  error.code = "too-large";
  error.message = fmt::format("request line and headers have more than {} bytes", kMaxHeadBytes);
  error.request_id = current->id;
  const std::string body = remote::write_error(error);
  const std::string answer = fmt::format(
      "HTTP/1.1 431 Request Header Fields Too Large\r\nConnection: close\r\nContent-Type: {}\r\n"
      "Quern-Protocol: {}\r\nQuern-Request-Id: {}\r\nContent-Length: {}\r\n\r\n{}",
      kJsonType, remote::kProtocol, current->id, body.size(), body);
  connection.begin_answer(milliseconds(settings_.request_timeout_s));
  connection.write(answer.data(), answer.size());
  metrics_.count_request("other", 431);
}

void Service::on_error(Response& response) {
  Exchange& exchange = *current;
  const Connection::Failure failure = exchange.connection.failure();
  exchange.connection.begin_answer(milliseconds(settings_.request_timeout_s));
  if (!response.body.empty()) return;
  if (!exchange.known) {
    response.set_header("Quern-Request-Id", exchange.id);
    response.set_header("Quern-Protocol", std::to_string(remote::kProtocol));
  }
  if (failure == Connection::Failure::timeout)
    refuse(response, 408, "timeout", "the request did not arrive in time");
  else if (failure == Connection::Failure::too_large || response.status == 414)
    refuse(response, 431, "too-large",
           fmt::format("request line and headers have more than {} bytes", kMaxHeadBytes));
  else if (response.status == 416)
    refuse(response, 400, "bad-request", "ranges are not accepted");
  else if (response.status == 500)
    refuse(response, 500, "internal", "the server failed on this request");
  else
    refuse(response, response.status, "bad-request", "the request is not well-formed HTTP");
}

/// Counts and logs an answer that was sent.
void Service::note(const Request& request, const Response& response) {
  current->answered = true;
  const Exchange& exchange = *current;
  metrics_.count_request(exchange.route, response.status);
  const double seconds = static_cast<double>(base::now_ns() - exchange.begin_ns) * 1e-9;
  if (exchange.route == "/v1/compile") metrics_.request_seconds.add(seconds);
  if (exchange.route == "/healthz" || exchange.route == "/readyz" || exchange.route == "/metrics") return;
  log_event(response.status >= 500 ? Level::warning : Level::info, "request",
            {{"request_id", exchange.id},
             {"peer", request.remote_addr},
             {"method", request.method.substr(0, 16)},
             {"path", request.path.substr(0, kMaxPathSize)},
             {"status", std::int64_t{response.status}},
             {"cache", response.get_header_value("Quern-Cache")},
             {"ms", seconds * 1e3}});
}

bool Service::read_body(const httplib::ContentReader& reader, std::uint64_t most, std::string& body,
                        Response& response) {
  Exchange& exchange = *current;
  enum class Stop : std::uint8_t { none, too_large, overloaded } stop = Stop::none;
  const bool whole = reader([&](const char* data, std::size_t size) {
    if (body.size() + size > most) stop = Stop::too_large;
    if (body_bytes_ + size > settings_.max_body_memory_bytes) stop = Stop::overloaded;
    if (stop != Stop::none) return false;
    body_bytes_ += size;
    exchange.body_bytes += size;
    body.append(data, size);
    return true;
  });
  const Connection::Failure failure = exchange.connection.failure();
  exchange.connection.begin_answer(milliseconds(settings_.request_timeout_s));
  if (whole && stop == Stop::none) {
    exchange.body_read = true;
    return true;
  }
  if (stop == Stop::overloaded)
    refuse(response, 503, "overloaded", "this server is receiving too much at once");
  else if (stop == Stop::too_large)
    refuse(response, 413, "too-large", fmt::format("the body is larger than {} bytes", most));
  else if (failure == Connection::Failure::timeout)
    refuse(response, 408, "timeout",
           fmt::format("the request did not arrive within {} s", settings_.request_timeout_s));
  else
    refuse(response, 400, "bad-request", "the body did not arrive");
  return false;
}

namespace {

void show_page(httplib::Response& response) {
  const Page& page = live_page();
  response.set_header("Content-Security-Policy", page.policy);
  response.set_header("Cache-Control", "no-cache");
  response.set_header("Referrer-Policy", "no-referrer");
  response.set_header("X-Content-Type-Options", "nosniff");
  response.set_content(page.html.data(), page.html.size(), "text/html; charset=utf-8");
}

}  // namespace

void Service::get(const Request& request, Response& response) {
  Exchange& exchange = *current;
  exchange.connection.begin_answer(milliseconds(settings_.request_timeout_s));
  if (request.path == "/")
    show_page(response);
  else if (request.path == "/healthz")
    response.set_content("ok\n", kTextType);
  else if (request.path == "/readyz")
    ready(response);
  else if (request.path == "/metrics")
    response.set_content(
        metrics_.text(pool_.cache_bytes(), artifacts_.bytes(), pool_.fleet() ? pool_.fleet()->metrics() : ""),
        "application/openmetrics-text; version=1.0.0; charset=utf-8");
  else if (request.path == "/v1/stats")
    response.set_content(stats(), kJsonType);
  else if (request.path.starts_with(kArtifactPath))
    artifact(request, response);
  else if (request.path == "/v1/compile")
    refuse(response, 405, "method", "compile is asked for with POST");
  else
    refuse(response, 404, "not-found", "there is nothing here", "docs/protocol.md lists the paths");
}

const char* Service::state() const {
  const std::shared_ptr<const PoolFacts> facts = pool_.facts();
  return draining_                ? "draining"
         : facts == nullptr       ? "starting"
         : facts->problem.empty() ? "ready"
                                  : "no-toolkit";
}

void Service::ready(Response& response) const {
  const char* const word = state();
  if (word != string_view("ready")) {
    response.status = 503;
    response.set_header("Retry-After", "1");
  }
  response.set_content(std::string(word) + "\n", kTextType);
}

void Service::artifact(const Request& request, Response& response) {
  const std::string name = request.path.substr(kArtifactPath.size());
  const std::optional<base::Digest> digest = remote::digest_named(name);
  const ArtifactStore::Value bytes = digest ? artifacts_.find(*digest) : nullptr;
  if (bytes == nullptr) {
    refuse(response, 404, "not-found", "this server has no artifact of that digest");
    return;
  }
  response.set_header("ETag", "\"" + name + "\"");
  response.set_header("Cache-Control", "private, max-age=31536000, immutable");
  if (request.get_header_value("If-None-Match").find(name) != std::string::npos) {
    response.status = 304;
    return;
  }
  response.set_content(*bytes, "application/octet-stream");
}

void Service::put(const Request& request, Response& response, const httplib::ContentReader& reader) {
  if (!request.path.starts_with(kArtifactPath)) {
    refuse(response, request.path == "/v1/compile" ? 405 : 404, "not-found", "nothing is put here");
    return;
  }
  std::string body;
  if (!read_body(reader, settings_.max_source_bytes, body, response)) return;
  const base::Digest digest = base::sha256(std::as_bytes(std::span(body)));
  if (digest.hex() != request.path.substr(kArtifactPath.size())) {
    refuse(response, 400, "digest-mismatch", "the body's SHA-256 is " + digest.hex());
    return;
  }
  const std::uint64_t size = body.size();
  const bool fresh = artifacts_.put(digest, std::make_shared<const std::string>(std::move(body)), size);
  response.status = fresh ? 201 : 200;
  response.set_content("", kTextType);
}

void Service::post(const Request& request, Response& response, const httplib::ContentReader& reader) {
  if (request.path != "/v1/compile") {
    refuse(response, 404, "not-found", "nothing is posted here");
    return;
  }
  std::string body;
  if (read_body(reader, settings_.max_body_bytes(), body, response)) compile(body, response);
}

/// Texts of headers are kept for later requests; digests become texts. Returns false if that failed and the
/// response has the reason.
bool Service::take_headers(remote::CompileMessage& message, Response& response) {
  std::vector<std::string> missing;
  std::uint64_t total = message.request.source.text.size();
  for (remote::HeaderEntry& header : message.headers) {
    if (header.by_digest) {
      const ArtifactStore::Value text = artifacts_.find(header.digest);
      if (text == nullptr) {
        missing.push_back(header.digest.hex());
        continue;
      }
      header.text = *text;
      header.by_digest = false;
    } else {
      artifacts_.put(base::sha256(std::as_bytes(std::span(header.text))),
                     std::make_shared<const std::string>(header.text), header.text.size());
    }
    total += header.text.size();
    if (total > settings_.max_source_bytes) break;
  }
  if (total > settings_.max_source_bytes) {
    refuse(response, 413, "too-large",
           fmt::format("the source and its headers have more than {} bytes", settings_.max_source_bytes));
    return false;
  }
  if (missing.empty()) return true;
  refuse(response, 409, "headers-missing", "this server lacks some of the headers",
         "send the request again with their texts", {}, std::move(missing));
  return false;
}

namespace {

Diagnostics refused_parts(const remote::CompileMessage& message) {
  std::set<std::string, std::less<>> names;
  for (const remote::HeaderEntry& header : message.headers) names.insert(header.name);
  Diagnostics refused = refused_includes(message.request.source.text, "", names);
  for (Diagnostic& each : refused) each.span.file = message.request.source.file_name;
  for (const remote::HeaderEntry& header : message.headers) {
    const Diagnostics more = refused_includes(header.text, header.name, names);
    refused.insert(refused.end(), more.begin(), more.end());
  }
  if (refused.size() > kMaxRefusals) refused.resize(kMaxRefusals);
  return refused;
}

}  // namespace

void Service::compile(const std::string& body, Response& response) {
  Exchange& exchange = *current;
  const std::shared_ptr<const PoolFacts> facts = pool_.facts();
  if (draining_) return refuse(response, 503, "draining", "this server is about to stop");
  if (facts == nullptr) return refuse(response, 503, "starting", "this server is not ready yet");
  if (!facts->problem.empty()) return refuse(response, 503, "no-toolkit", facts->problem);
  Expected<remote::CompileMessage> message = remote::read_compile_message(body);
  if (!message)
    return refuse(response, 400, message.errors().front().code, message.errors().front().message,
                  message.errors().front().hint);
  if (Diagnostics refused = refused_options(message->request.options); !refused.empty())
    return refuse(response, 400, "option-refused", refused.front().message, refused.front().hint, refused);
  if (!take_headers(*message, response)) return;
  if (Diagnostics refused = refused_parts(*message); !refused.empty())
    return refuse(response, 422, "include-refused", refused.front().message, refused.front().hint, refused);
  CompilePool::Request request;
  request.key = remote::message_key(*message, facts->toolkit.digest);
  request.facts = facts;
  request.text = [&] { return *remote::write_compile_message(*message); };
  request.gone = [&] { return exchange.connection.is_gone(); };
  request.request_id = exchange.id;
  request.source_name = message->request.source.file_name;
  request.language = remote::language_name(message->request.source.language);
  const CompilePool::Answer answer = pool_.compile(request);
  exchange.connection.begin_answer(milliseconds(settings_.request_timeout_s));
  if (!answer.result) return refuse(response, 400, "bad-request", "the client has gone");
  response.status = answer.result->status;
  response.set_header("Quern-Cache", std::string(name(answer.tier)));
  if (response.status == 429 || response.status == 503) response.set_header("Retry-After", "1");
  response.set_content(answer.result->body, kJsonType);
}

namespace {

Json slowest_rows(const SlowestCompiles& slowest) {
  Json rows = Json::array();
  for (const SlowCompile& each : slowest.list())
    rows.push_back({{"ms", each.ms},
                    {"status", each.status},
                    {"time_s", each.time_s},
                    {"name", each.name},
                    {"language", each.language},
                    {"request_id", each.request_id}});
  return rows;
}

Json store_json(const Fleet* fleet) {
  if (fleet == nullptr) return nullptr;
  const store::Statistics statistics = fleet->statistics();
  Json refused = Json::object();
  for (std::size_t i = 0; i < statistics.refused.size(); ++i)
    refused[std::string(name(static_cast<store::Refusal>(i)))] = statistics.refused[i];
  return {{"address", fleet->address()},
          {"up", statistics.is_up},
          {"failures", statistics.failures},
          {"gets",
           {{"hit", statistics.hits}, {"miss", statistics.misses}, {"unavailable", statistics.unavailable}}},
          {"refused", std::move(refused)},
          {"puts", {{"ok", statistics.puts}, {"failed", statistics.puts_failed}}},
          {"locks",
           {{"acquired", statistics.locks_acquired},
            {"held", statistics.locks_held},
            {"unavailable", statistics.locks_failed}}},
          {"waiting", fleet->waiting()}};
}

Json toolkit_json(const PoolFacts& facts) {
  const remote::ToolkitIdentity& toolkit = facts.toolkit;
  return {{"nvrtc", toolkit.nvrtc},
          {"headers", toolkit.headers},
          {"digest", toolkit.digest},
          {"libraries", toolkit.libraries},
          {"header_contents", toolkit.header_contents},
          {"quern", toolkit.quern},
          {"problem", facts.problem}};
}

}  // namespace

std::string Service::stats() const {
  const std::shared_ptr<const PoolFacts> facts = pool_.facts();
  Json requests = Json::array();
  for (const auto& [label, count] : metrics_.requests())
    requests.push_back({{"path", label.first}, {"status", label.second}, {"count", count}});
  Json json = {{"protocol", remote::kProtocol},
               {"state", state()},
               {"time_s", unix_time_s()},
               {"started_s", metrics_.started_s},
               {"uptime_s", static_cast<double>(base::now_ns() - metrics_.begin_ns) * 1e-9},
               {"requests", std::move(requests)},
               {"nvrtc_runs", metrics_.nvrtc_runs.load()},
               {"precompiled",
                {{"uses", metrics_.precompiled_uses.load()},
                 {"headers", metrics_.precompiled_headers.load()},
                 {"bytes", metrics_.precompiled_bytes.load()}}},
               {"compiles",
                {{"ok", metrics_.compiles_ok.load()},
                 {"error", metrics_.compiles_error.load()},
                 {"crashed", metrics_.compiles_crashed.load()},
                 {"timeout", metrics_.compiles_timeout.load()},
                 {"abandoned", metrics_.compiles_abandoned.load()}}},
               {"hits",
                {{"memory", metrics_.hits_memory.load()},
                 {"disk", metrics_.hits_disk.load()},
                 {"shared", metrics_.hits_shared.load()},
                 {"store", metrics_.hits_store.load()}}},
               {"workers",
                {{"count", metrics_.workers.load()},
                 {"busy", metrics_.workers_busy.load()},
                 {"restarts", metrics_.worker_restarts.load()}}},
               {"queue_length", metrics_.queue_length.load()},
               {"connections", metrics_.connections.load()},
               {"cache_bytes", pool_.cache_bytes()},
               {"artifact_bytes", artifacts_.bytes()},
               {"slowest", slowest_rows(metrics_.slowest)},
               {"limits",
                {{"source_bytes", settings_.max_source_bytes},
                 {"body_bytes", settings_.max_body_bytes()},
                 {"queue", settings_.max_queue},
                 {"connections", settings_.max_connections},
                 {"compile_timeout_s", settings_.compile_timeout_s},
                 {"worker_memory_bytes", settings_.worker_memory_bytes}}},
               {"store", store_json(pool_.fleet())},
               {"toolkit", nullptr},
               {"sandbox", nullptr}};
  if (facts) {
    json["toolkit"] = toolkit_json(*facts);
    json["sandbox"] = {{"landlock", facts->sandbox.landlock},
                       {"seccomp", facts->sandbox.seccomp},
                       {"no_new_privileges", facts->sandbox.no_new_privileges},
                       {"limits", facts->sandbox.limits},
                       {"missing", facts->sandbox.missing}};
  }
  return json.dump();
}

}  // namespace quern::serve
