// SPDX-License-Identifier: Apache-2.0
#include "remote/client.hpp"

#include <fmt/format.h>
#include <openssl/rand.h>

#include <algorithm>
#include <atomic>

#include "base/clock.hpp"
#include "base/diagnostic_codes.hpp"
#include "base/env.hpp"
#include "base/file.hpp"
#include "base/thread_annotations.hpp"

namespace quern::remote {
namespace {

constexpr std::int64_t kPause_ns = 5'000'000'000;  // a server that failed is not asked for this time
constexpr std::size_t kMaxIdleConnections = 16;
constexpr int kRounds = 3;  // of all servers, if they are busy and this process must not compile
constexpr base::EnvRange kTimeoutRange{0.1, 86400, "a number of seconds from 0.1 to 86400"};

Diagnostic diagnostic(const char* code, const std::string& message, const std::string& hint = {}) {
  Diagnostic made;
  made.code = code;
  made.message = message;
  made.hint = hint;
  return made;
}

std::string new_id() {
  unsigned char bytes[8];
  if (RAND_bytes(bytes, sizeof bytes) != 1) return "none";
  std::string text;
  for (const unsigned char byte : bytes) text += fmt::format("{:02x}", byte);
  return text;
}

CompileMessage message_of(const abi::KernelRequest& request) {
  CompileMessage message{request, {}};
  message.request.headers.clear();
  for (const abi::HeaderText& header : request.headers)
    message.headers.push_back(
        {header.name, true, header.text, base::sha256(std::as_bytes(std::span(header.text)))});
  return message;
}

/// Sends the texts of these headers; of all, where none is named.
void add_texts(CompileMessage& message, const std::vector<std::string>& missing) {
  for (HeaderEntry& header : message.headers)
    if (missing.empty() || std::find(missing.begin(), missing.end(), header.digest.hex()) != missing.end())
      header.by_digest = false;
}

}  // namespace

Expected<ClientOptions> client_options_for(std::string_view servers) {
  ClientOptions options;
  Expected<std::vector<Endpoint>> endpoints = read_endpoints(servers);
  if (!endpoints) return std::move(endpoints).errors();
  options.servers = *std::move(endpoints);
  options.only = base::env_switch("QUERN_REMOTE_ONLY", base::warn_of_env).value_or(false);
  options.authority = base::env("QUERN_REMOTE_CA").value_or("");
  options.certificate = base::env("QUERN_REMOTE_CERT").value_or("");
  options.key = base::env("QUERN_REMOTE_KEY").value_or("");
  if (const auto seconds = base::env_real("QUERN_REMOTE_TIMEOUT", kTimeoutRange, base::warn_of_env))
    options.timeouts.answer = std::chrono::milliseconds(static_cast<std::int64_t>(*seconds * 1e3));
  if (const auto file = base::env("QUERN_REMOTE_TOKEN_FILE")) {
    Expected<std::string> text = base::read_file(*file);
    if (!text) return std::move(text).errors();
    options.token = text->substr(0, text->find_first_of("\r\n"));
  }
  return options;
}

Expected<std::optional<ClientOptions>> client_options_of_environment() {
  const std::optional<std::string> servers = base::env("QUERN_REMOTE");
  if (!servers) return std::optional<ClientOptions>();
  Expected<ClientOptions> options = client_options_for(*servers);
  if (!options) return std::move(options).errors();
  return std::optional<ClientOptions>(*std::move(options));
}

std::string identity_of(const ClientOptions& options) {
  base::DigestBuilder digest;
  for (const Endpoint& server : options.servers) digest.add(server.text);
  digest.add("").add(std::uint64_t{options.only}).add(options.token).add(options.authority);
  digest.add(options.certificate).add(options.key);
  digest.add(static_cast<std::uint64_t>(options.timeouts.answer.count()));
  return digest.finish().hex();
}

struct Client::State {
  /// One server and the connections to it that wait for a request.
  struct Server {
    Endpoint endpoint;
    std::int64_t rests_until_ns = 0;
    bool refused = false;  // wrong protocol or token: another request would fail, too
    std::vector<HttpConnection> idle;
  };
  enum class Step : std::uint8_t { answered, next, busy, crashed, stop };

  explicit State(ClientOptions given) : options(std::move(given)) {
    for (const Endpoint& endpoint : options.servers) servers.push_back({endpoint, 0, false, {}});
    const bool tls_wanted = std::any_of(options.servers.begin(), options.servers.end(),
                                        [](const Endpoint& each) { return each.tls; });
    if (!tls_wanted) return;
    Expected<TlsClientContext> made = make_client_tls(options.authority, options.certificate, options.key);
    if (made)
      tls = *std::move(made);
    else
      tls_problem = std::move(made).errors();
  }

  const ClientOptions options;
  TlsClientContext tls;
  Diagnostics tls_problem;
  base::Mutex mutex;
  std::vector<Server> servers QUERN_GUARDED_BY(mutex);

  std::optional<HttpConnection> idle_connection(std::size_t index) QUERN_EXCLUDES(mutex) {
    const base::LockGuard lock(mutex);
    std::vector<HttpConnection>& idle = servers[index].idle;
    while (!idle.empty()) {
      HttpConnection connection = std::move(idle.back());
      idle.pop_back();
      if (connection.is_usable()) return connection;
    }
    return std::nullopt;
  }
  void keep(std::size_t index, HttpConnection connection) QUERN_EXCLUDES(mutex) {
    if (!connection.is_usable()) return;
    const base::LockGuard lock(mutex);
    if (servers[index].idle.size() < kMaxIdleConnections)
      servers[index].idle.push_back(std::move(connection));
  }
  void rest(std::size_t index, bool for_ever) QUERN_EXCLUDES(mutex) {
    const base::LockGuard lock(mutex);
    servers[index].rests_until_ns = base::now_ns() + kPause_ns;
    servers[index].refused = servers[index].refused || for_ever;
    servers[index].idle.clear();
  }
  bool is_awake(std::size_t index) QUERN_EXCLUDES(mutex) {
    const base::LockGuard lock(mutex);
    return !servers[index].refused && servers[index].rests_until_ns <= base::now_ns();
  }

  Expected<HttpAnswer> ask(std::size_t index, const HttpRequest& request, const Timeouts& timeouts) {
    if (std::optional<HttpConnection> connection = idle_connection(index)) {
      Expected<HttpAnswer> answer = connection->ask(request, timeouts);
      // The server may have closed it at this very moment; a compile may be asked for again.
      if (answer || answer.errors().front().code != "lost") {
        if (answer) keep(index, *std::move(connection));
        return answer;
      }
    }
    const Endpoint& endpoint = options.servers[index];
    if (endpoint.tls && !tls) return tls_problem;
    Expected<HttpConnection> fresh = HttpConnection::open(endpoint, tls, timeouts);
    if (!fresh) return std::move(fresh).errors();
    Expected<HttpAnswer> answer = fresh->ask(request, timeouts);
    if (answer) keep(index, *std::move(fresh));
    return answer;
  }

  std::map<std::string, std::string> headers(const std::string& id) const {
    std::map<std::string, std::string> all{{"Content-Type", "application/json"}, {"Quern-Request-Id", id}};
    if (!options.token.empty()) all["Authorization"] = "Bearer " + options.token;
    return all;
  }

  Expected<HttpAnswer> post(std::size_t index, CompileMessage message, const Timeouts& timeouts,
                            const std::string& id) {
    Expected<HttpAnswer> answer = Diagnostics{};
    for (int attempt = 0; attempt < 3; ++attempt) {
      const Expected<std::string> body = write_compile_message(message);
      if (!body) return body.errors();
      answer = ask(index, {"POST", "/v1/compile", headers(id), *body}, timeouts);
      if (!answer || answer->status != 409) return answer;
      // A server that forgot some meanwhile gets all.
      add_texts(message, attempt == 0 ? read_error(answer->body).missing : std::vector<std::string>());
    }
    return answer;
  }

  Expected<void> fetch_code(std::size_t index, CompileAnswer& answer, const Timeouts& timeouts,
                            const std::string& id) {
    if (answer.machine_code_digest.empty()) return {};
    Expected<HttpAnswer> got =
        ask(index, {"GET", "/v1/artifact/" + answer.machine_code_digest, headers(id), ""}, timeouts);
    if (!got) return std::move(got).errors();
    const auto bytes = std::as_bytes(std::span(got->body));
    if (got->status != 200 || base::sha256(bytes).hex() != answer.machine_code_digest)
      return diagnostic("lost", fmt::format("compile server {}: it does not have the machine code any more",
                                            options.servers[index].text));
    answer.image.machine_code.assign(bytes.begin(), bytes.end());
    return {};
  }

  /// The request that is sent to one server after another.
  struct ServerRequest {
    const CompileMessage& message;
    const Timeouts& timeouts;
    const Judge& judge;
  };

  /// Sorts an answer: done, or why the next server is to be asked.
  Step take(std::size_t index, const HttpAnswer& http, const ServerRequest& request, Outcome& outcome) {
    const std::string& server = options.servers[index].text;
    outcome.server = server;
    const auto no_answer = [&](const std::string& reason) {
      outcome.reasons.push_back(diagnostic(
          "protocol", fmt::format("compile server {}: {} (request {})", server, reason, outcome.request_id)));
      rest(index, false);
      return Step::next;
    };
    const bool is_result = http.status == 200 || http.status == 422;
    if (is_result && http.header("quern-protocol") != std::to_string(kProtocol))
      return no_answer(fmt::format("its answer is not of version {} of the protocol", kProtocol));
    if (http.status == 200) {
      Expected<CompileAnswer> answer = read_answer(http.body);
      if (!answer) return no_answer(answer.errors().front().message);
      if (Expected<void> code = fetch_code(index, *answer, request.timeouts, outcome.request_id); !code)
        return outcome.reasons.push_back(code.errors().front()), Step::next;
      const std::string wrong = request.judge ? request.judge(answer->image) : std::string();
      if (!wrong.empty()) return no_answer(wrong);
      outcome.answer = std::move(answer);
      return Step::answered;
    }
    ErrorAnswer error = read_error(http.body);
    if (http.status == 422 && error.code == "compile") {
      if (!has_error(error.diagnostics))
        return no_answer("it tells an error of the source without a message");
      // A later version's code for an error of the source.
      for (Diagnostic& each : error.diagnostics)
        if (!base::is_diagnostic_code(each.code)) each.code = "compile";
      const std::string place = fmt::format("compiled by {}, request {}", server, outcome.request_id);
      error.diagnostics.back().notes.push_back({{}, place});
      outcome.answer = Expected<CompileAnswer>(std::move(error.diagnostics));
      return Step::answered;
    }
    const std::string reason = error.message.empty() ? fmt::format("status {}", http.status) : error.message;
    const bool ours = error.code == "option-refused" || error.code == "include-refused" || http.status == 413;
    outcome.reasons.push_back(diagnostic(
        http.status == 413 ? kTooLarge
        : ours             ? "not-remote"
        : error.code == "" ? "protocol"
                           : error.code.c_str(),
        fmt::format("compile server {}: {} (request {})", server, reason, outcome.request_id), error.hint));
    if (http.status == 401 || http.status == 404 || http.status == 426) rest(index, true);
    if (http.status == 429 || http.status == 503) return Step::busy;
    if (error.code == kWorkerFailed) return Step::crashed;
    return ours ? Step::stop : Step::next;
  }

  Step try_server(std::size_t index, const ServerRequest& request, Outcome& outcome) {
    const Expected<HttpAnswer> http = post(index, request.message, request.timeouts, outcome.request_id);
    if (http) return take(index, *http, request, outcome);
    Diagnostic reason = http.errors().front();
    const bool cancelled = reason.code == "cancelled" || reason.code == "not-utf8";
    if (!cancelled) rest(index, false);
    if (reason.code == "not-utf8") reason.code = "not-remote";
    outcome.reasons.push_back(std::move(reason));
    return cancelled ? Step::stop : Step::next;
  }
};

Expected<std::string> fetch_stats(const ClientOptions& options) {
  const Endpoint& server = options.servers.front();
  TlsClientContext tls;
  if (server.tls) {
    Expected<TlsClientContext> made = make_client_tls(options.authority, options.certificate, options.key);
    if (!made) return std::move(made).errors();
    tls = *std::move(made);
  }
  Expected<HttpConnection> connection = HttpConnection::open(server, tls, options.timeouts);
  if (!connection) return std::move(connection).errors();
  HttpRequest request{"GET", "/v1/stats", {{"Quern-Request-Id", new_id()}, {"Connection", "close"}}, ""};
  if (!options.token.empty()) request.headers["Authorization"] = "Bearer " + options.token;
  Expected<HttpAnswer> answer = connection->ask(request, options.timeouts);
  if (!answer) return std::move(answer).errors();
  if (answer->status == 200) return std::move(answer->body);
  const ErrorAnswer error = read_error(answer->body);
  return diagnostic(
      answer->status == 401 ? "unauthorised" : "protocol",
      fmt::format("compile server {}: {}", server.text,
                  error.message.empty() ? fmt::format("status {}", answer->status) : error.message),
      error.hint);
}

Client::Client(ClientOptions options) : state_(std::make_unique<State>(std::move(options))) {}
Client::~Client() = default;

const ClientOptions& Client::options() const noexcept { return state_->options; }

std::optional<ToolkitIdentity> Client::toolkit() {
  const std::string id = new_id();
  for (std::size_t i = 0; i < state_->options.servers.size(); ++i) {
    if (!state_->is_awake(i)) continue;
    const Expected<HttpAnswer> answer =
        state_->ask(i, {"GET", "/v1/stats", state_->headers(id), ""}, state_->options.timeouts);
    if (!answer) state_->rest(i, false);
    if (!answer || answer->status != 200) continue;
    if (std::optional<ToolkitIdentity> identity = read_toolkit_of_stats(answer->body)) return identity;
  }
  return std::nullopt;
}

Client::Outcome Client::compile(const abi::KernelRequest& request, const std::function<bool()>& goes_on,
                                const Judge& judge) {
  Outcome outcome;
  outcome.request_id = new_id();
  const CompileMessage message = message_of(request);
  Timeouts timeouts = state_->options.timeouts;
  timeouts.goes_on = goes_on;
  int crashes = 0;
  for (int round = 0; round < kRounds; ++round) {
    bool busy = false;
    for (std::size_t i = 0; i < state_->options.servers.size(); ++i) {
      // A process that must not compile itself has no alternative.
      if (!state_->is_awake(i) && !state_->options.only) continue;
      const State::Step step = state_->try_server(i, {message, timeouts, judge}, outcome);
      if (step == State::Step::answered || step == State::Step::stop) return outcome;
      busy = busy || step == State::Step::busy;
      // A worker can end without a fault of the source: the request is tried again, here or on another
      // server.
      if (step == State::Step::crashed && ++crashes == 2) return outcome;
      if (step == State::Step::crashed && i + 1 == state_->options.servers.size()) --i;
    }
    if (!busy || !state_->options.only) break;
    const std::int64_t until = base::now_ns() + 1'000'000'000;
    while (base::now_ns() < until && (!goes_on || goes_on())) {
      const timespec tick{0, 50'000'000};
      ::nanosleep(&tick, nullptr);
    }
  }
  return outcome;
}

}  // namespace quern::remote
