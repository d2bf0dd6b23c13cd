// SPDX-License-Identifier: Apache-2.0
// hiredis writes commands and reads replies; the bytes go through remote::Stream, which has deadlines for a
// whole exchange and TLS. (hiredis 0.14, which Debian 12 has, knows neither.)
#include "store/redis.hpp"

#include <fmt/format.h>
#include <hiredis/hiredis.h>

#include <initializer_list>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "store/sealed_value.hpp"

namespace quern::store {
namespace {

constexpr std::uint64_t kMaxReplyBytes = kMaxValueBytes + (1 << 20);
constexpr std::string_view kExtend =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('pexpire', KEYS[1], ARGV[2]) end return "
    "0";
constexpr std::string_view kUnlock =
    "if redis.call('get', KEYS[1]) == ARGV[1] then return redis.call('del', KEYS[1]) end return 0";

struct Reply {
  int type = REDIS_REPLY_NIL;
  std::string text;
  long long integer = 0;
};

void* make_reply(int type, std::string text, long long integer) {
  return new Reply{type, std::move(text), integer};
}

// No command has an array as its answer: an array of any length ends the connection.
redisReplyObjectFunctions reply_functions() {
  redisReplyObjectFunctions functions{};
  functions.createString = [](const redisReadTask* task, char* text, std::size_t size) {
    return make_reply(task->type, std::string(text, size), 0);
  };
  functions.createArray = [](const redisReadTask*, int) -> void* { return nullptr; };
  functions.createInteger = [](const redisReadTask* task, long long value) {
    return make_reply(task->type, {}, value);
  };
  // A missing string has the task's type "string".
  functions.createNil = [](const redisReadTask*) { return make_reply(REDIS_REPLY_NIL, {}, 0); };
  functions.freeObject = [](void* reply) { delete static_cast<Reply*>(reply); };
  return functions;
}

struct FreeReader {
  void operator()(redisReader* reader) const noexcept { redisReaderFree(reader); }
};

class RedisConnection final : public Connection {
 public:
  explicit RedisConnection(remote::Stream stream)
      : stream_(std::move(stream)), reader_(redisReaderCreateWithFunctions(&functions_)) {}

  Expected<void> log_in(const Login& login, std::uint32_t database, const remote::Pace& pace);
  Expected<void> ping(const remote::Pace& pace) override { return done(command({"PING"}, pace)); }
  Expected<std::optional<std::string>> get(const base::Digest& key, const remote::Pace& pace) override;
  Expected<void> put(const base::Digest& key, std::string_view value, const remote::Pace& pace) override {
    return done(command({"SET", value_name(key), value}, pace));
  }
  Expected<LockResult> try_lock(Lock& lock, const remote::Pace& pace) override;
  Expected<bool> extend(Lock& lock, const remote::Pace& pace) override;
  Expected<void> unlock(Lock& lock, const remote::Pace& pace) override {
    return done(command({"EVAL", kUnlock, "1", lock_name(lock.key), lock.owner}, pace));
  }
  bool is_usable() const override { return stream_.is_quiet(); }

 private:
  static std::string value_name(const base::Digest& key) { return "quern:value:" + key.hex(); }
  static std::string lock_name(const base::Digest& key) { return "quern:lock:" + key.hex(); }
  static Expected<void> done(Expected<Reply> reply) {
    if (!reply) return std::move(reply).errors();
    return {};
  }
  /// An error reply is a Diagnostic, "refused".
  Expected<Reply> command(std::initializer_list<std::string_view> words, const remote::Pace& pace);
  Expected<Reply> reply();

  remote::Stream stream_;
  redisReplyObjectFunctions functions_ = reply_functions();
  std::unique_ptr<redisReader, FreeReader> reader_;
};

Expected<Reply> RedisConnection::command(std::initializer_list<std::string_view> words,
                                         const remote::Pace& pace) {
  std::vector<const char*> texts;
  std::vector<std::size_t> sizes;
  for (const std::string_view word : words) {
    texts.push_back(word.data());
    sizes.push_back(word.size());
  }
  char* bytes = nullptr;
  const int size = redisFormatCommandArgv(&bytes, static_cast<int>(texts.size()), texts.data(), sizes.data());
  if (size < 0) return stream_.failure("protocol", "the command is too large");
  const std::unique_ptr<char, decltype(&redisFreeCommand)> owner(bytes, redisFreeCommand);
  stream_.set_pace(pace);
  if (Expected<void> sent = stream_.send({bytes, static_cast<std::size_t>(size)}); !sent)
    return std::move(sent).errors();
  Expected<Reply> answer = reply();
  if (answer && answer->type == REDIS_REPLY_ERROR)
    return stream_.failure("refused", "it answered " + answer->text.substr(0, 200));
  return answer;
}

Expected<Reply> RedisConnection::reply() {
  std::uint64_t total = 0;
  std::string block;
  for (;;) {
    void* got = nullptr;
    if (redisReaderGetReply(reader_.get(), &got) != REDIS_OK)
      return stream_.failure("protocol", "its answer is not one of Redis");
    if (got != nullptr) {
      const std::unique_ptr<Reply> each(static_cast<Reply*>(got));
      return std::move(*each);
    }
    block.clear();
    Expected<bool> more = stream_.receive(block);
    if (!more) return std::move(more).errors();
    if (!*more) return stream_.failure("lost", "it closed the connection");
    total += block.size();
    if (total > kMaxReplyBytes) return stream_.failure("protocol", "its answer is too large");
    if (redisReaderFeed(reader_.get(), block.data(), block.size()) != REDIS_OK)
      return stream_.failure("protocol", "its answer is not one of Redis");
  }
}

Expected<void> RedisConnection::log_in(const Login& login, std::uint32_t database, const remote::Pace& pace) {
  if (!login.password.empty() || !login.user.empty()) {
    Expected<Reply> answer = login.user.empty() ? command({"AUTH", login.password}, pace)
                                                : command({"AUTH", login.user, login.password}, pace);
    if (!answer) return std::move(answer).errors();
  }
  if (database != 0) return done(command({"SELECT", std::to_string(database)}, pace));
  return {};
}

Expected<std::optional<std::string>> RedisConnection::get(const base::Digest& key, const remote::Pace& pace) {
  Expected<Reply> answer = command({"GET", value_name(key)}, pace);
  if (!answer) return std::move(answer).errors();
  if (answer->type == REDIS_REPLY_NIL) return std::optional<std::string>();
  if (answer->type != REDIS_REPLY_STRING) return stream_.failure("protocol", "its answer is no value");
  return std::optional<std::string>(std::move(answer->text));
}

Expected<LockResult> RedisConnection::try_lock(Lock& lock, const remote::Pace& pace) {
  Expected<Reply> answer =
      command({"SET", lock_name(lock.key), lock.owner, "NX", "PX", std::to_string(lock.lease.count())}, pace);
  if (!answer) return std::move(answer).errors();
  return answer->type == REDIS_REPLY_NIL ? LockResult::held : LockResult::acquired;
}

Expected<bool> RedisConnection::extend(Lock& lock, const remote::Pace& pace) {
  Expected<Reply> answer = command(
      {"EVAL", kExtend, "1", lock_name(lock.key), lock.owner, std::to_string(lock.lease.count())}, pace);
  if (!answer) return std::move(answer).errors();
  return answer->integer == 1;
}

class RedisConnector final : public Connector {
 public:
  RedisConnector(const Address& address, remote::TlsClientContext tls, LoginSource login)
      : address_(address), tls_(std::move(tls)), login_(std::move(login)) {}

  Expected<std::unique_ptr<Connection>> connect(std::chrono::milliseconds timeout) override {
    const std::int64_t deadline_ns =
        base::now_ns() + std::chrono::duration_cast<std::chrono::nanoseconds>(timeout).count();
    Expected<remote::Stream> stream =
        remote::Stream::open(address_.endpoint, tls_, "store " + address_.endpoint.text, deadline_ns);
    if (!stream) return std::move(stream).errors();
    auto connection = std::make_unique<RedisConnection>(*std::move(stream));
    if (Expected<void> in = connection->log_in(login_(), address_.database, {deadline_ns, 0}); !in)
      return std::move(in).errors();
    return std::unique_ptr<Connection>(std::move(connection));
  }

 private:
  const Address address_;
  const remote::TlsClientContext tls_;
  const LoginSource login_;
};

}  // namespace

std::unique_ptr<Connector> make_redis(const Address& address, remote::TlsClientContext tls,
                                      LoginSource login) {
  return std::make_unique<RedisConnector>(address, std::move(tls), std::move(login));
}

}  // namespace quern::store
