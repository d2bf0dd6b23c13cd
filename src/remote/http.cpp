// SPDX-License-Identifier: Apache-2.0
#include "remote/http.hpp"

#include <fmt/format.h>

#include <charconv>

#include "base/clock.hpp"

namespace quern::remote {
namespace {

constexpr std::uint64_t kMaxHeadBytes = 64 << 10;
constexpr std::uint64_t kMaxBodyBytes = std::uint64_t{256} << 20;
constexpr std::size_t kMaxHeaders = 100;

std::int64_t after(std::chrono::milliseconds timeout) {
  return base::now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
}

std::string lower(std::string_view text) {
  std::string result(text);
  for (char& c : result)
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  return result;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && (text.front() == ' ' || text.front() == '\t')) text.remove_prefix(1);
  while (!text.empty() && (text.back() == ' ' || text.back() == '\t')) text.remove_suffix(1);
  return text;
}

bool read_number(std::string_view text, int base, std::uint64_t& number) {
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number, base);
  return error == std::errc() && end == text.data() + text.size();
}

}  // namespace

std::string HttpAnswer::header(const std::string& name) const {
  const auto found = headers.find(name);
  return found == headers.end() ? std::string() : found->second;
}

Diagnostic HttpConnection::failure(const char* code, const std::string& reason) const {
  return stream_.failure(code, reason);
}

Expected<HttpConnection> HttpConnection::open(const Endpoint& endpoint, const TlsClientContext& tls,
                                              const Timeouts& timeouts, const std::string& peer) {
  Expected<Stream> stream = Stream::open(endpoint, tls, peer + ' ' + endpoint.text, after(timeouts.connect));
  if (!stream) return std::move(stream).errors();
  return HttpConnection(*std::move(stream), endpoint);
}

Expected<std::string> HttpConnection::line() {
  for (;;) {
    if (const std::size_t end = buffer_.find("\r\n"); end != std::string::npos) {
      std::string text = buffer_.substr(0, end);
      buffer_.erase(0, end + 2);
      return text;
    }
    if (buffer_.size() > kMaxHeadBytes) return failure("protocol", "its answer is no HTTP");
    Expected<bool> more = stream_.receive(buffer_);
    if (!more) return std::move(more).errors();
    if (!*more) return failure("lost", "it closed the connection");
  }
}

Expected<std::string> HttpConnection::exactly(std::uint64_t size) {
  if (size > kMaxBodyBytes) return failure("protocol", "its answer is too large");
  while (buffer_.size() < size) {
    Expected<bool> more = stream_.receive(buffer_);
    if (!more) return std::move(more).errors();
    if (!*more) return failure("lost", "it closed the connection");
  }
  std::string text = buffer_.substr(0, size);
  buffer_.erase(0, size);
  return text;
}

Expected<void> HttpConnection::read_head(HttpAnswer& answer) {
  Expected<std::string> status = line();
  if (!status) return std::move(status).errors();
  std::uint64_t number = 0;
  if (!status->starts_with("HTTP/1.") || status->size() < 12 ||
      !read_number(std::string_view(*status).substr(9, 3), 10, number))
    return failure("protocol", "its answer is no HTTP");
  answer.status = static_cast<int>(number);
  for (std::size_t count = 0; count < kMaxHeaders; ++count) {
    Expected<std::string> text = line();
    if (!text) return std::move(text).errors();
    if (text->empty()) return {};
    const std::size_t colon = text->find(':');
    if (colon == std::string::npos) break;
    const std::string value(trim(std::string_view(*text).substr(colon + 1)));
    const auto [known, is_new] = answer.headers.try_emplace(lower(text->substr(0, colon)), value);
    const bool tells_size = known->first == "content-length" || known->first == "transfer-encoding";
    if (!is_new && tells_size) return failure("protocol", "its answer has two sizes");
    known->second = value;
  }
  return failure("protocol", "the headers of its answer are no HTTP");
}

Expected<void> HttpConnection::read_chunks(HttpAnswer& answer) {
  for (;;) {
    Expected<std::string> head = line();
    if (!head) return std::move(head).errors();
    std::uint64_t size = 0;
    if (!read_number(trim(std::string_view(*head).substr(0, head->find(';'))), 16, size))
      return failure("protocol", "the body of its answer is no HTTP");
    if (size > kMaxBodyBytes - answer.body.size()) return failure("protocol", "its answer is too large");
    Expected<std::string> chunk = exactly(size);
    if (!chunk) return std::move(chunk).errors();
    answer.body += *chunk;
    if (size == 0) break;
    if (Expected<std::string> end = line(); !end || !end->empty())
      return failure("protocol", "the body of its answer is no HTTP");
  }
  for (std::size_t count = 0; count < kMaxHeaders; ++count) {
    Expected<std::string> trailer = line();
    if (!trailer) return std::move(trailer).errors();
    if (trailer->empty()) return {};
  }
  return failure("protocol", "the body of its answer is no HTTP");
}

Expected<void> HttpConnection::read_body(HttpAnswer& answer) {
  if (answer.status == 204 || answer.status == 304) return {};
  if (lower(answer.header("transfer-encoding")) == "chunked") return read_chunks(answer);
  std::uint64_t size = 0;
  if (!read_number(answer.header("content-length"), 10, size))
    return failure("protocol", "the size of its answer is not known");
  Expected<std::string> body = exactly(size);
  if (!body) return std::move(body).errors();
  answer.body = *std::move(body);
  return {};
}

Expected<HttpAnswer> HttpConnection::ask(const HttpRequest& request, const Timeouts& timeouts) {
  usable_ = false;
  stream_.set_goes_on(timeouts.goes_on);
  stream_.set_pace(timeouts.pace ? *timeouts.pace : Pace{after(timeouts.answer), 0});
  const std::string host = endpoint_.socket_path.empty() ? endpoint_.host : "quern";
  std::string head = fmt::format("{} {} HTTP/1.1\r\nHost: {}\r\nContent-Length: {}\r\n", request.method,
                                 request.path, host, request.body.size());
  for (const auto& [name, value] : request.headers) head += fmt::format("{}: {}\r\n", name, value);
  head += "\r\n";
  if (Expected<void> sent = stream_.send(head); !sent) return std::move(sent).errors();
  // A server that refuses a body answers and closes before it has read it all.
  const Expected<void> body_sent = stream_.send(request.body);
  if (!body_sent && body_sent.errors().front().code != "lost") return body_sent.errors();
  if (!timeouts.pace) stream_.set_pace({after(timeouts.answer), 0});
  HttpAnswer answer;
  do {
    answer.headers.clear();
    if (Expected<void> read = read_head(answer); !read) return std::move(read).errors();
  } while (answer.status >= 100 && answer.status < 200);
  if (Expected<void> read = read_body(answer); !read) return std::move(read).errors();
  usable_ = body_sent && lower(answer.header("connection")) != "close" && buffer_.empty();
  stream_.set_goes_on(nullptr);
  return answer;
}

// A server that sends anything now is closing.
bool HttpConnection::is_usable() const { return usable_ && stream_.is_quiet(); }

}  // namespace quern::remote
