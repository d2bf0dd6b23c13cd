// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <map>
#include <optional>

#include "store_test.hpp"

using namespace quern;
using namespace quern::cache;
using quern::test::Messages;
using quern::test::Scratch;

namespace {

bool is_not_root(const char* skipped) {
  if (::geteuid() != 0) MESSAGE(skipped);
  return ::geteuid() != 0;
}

/// During its lifetime, only the given variables select the folder of the store.
class Environment {
 public:
  explicit Environment(const std::map<std::string, std::string>& given) {
    for (const char* name :
         {"QUERN_CACHE", "QUERN_CACHE_DIR", "QUERN_CACHE_MAXSIZE", "XDG_CACHE_HOME", "HOME"}) {
      const char* value = std::getenv(name);
      former_[name] = value != nullptr ? std::optional<std::string>(value) : std::nullopt;
      ::unsetenv(name);
    }
    for (const auto& [name, value] : given) ::setenv(name.c_str(), value.c_str(), 1);
  }
  ~Environment() {
    for (const auto& [name, value] : former_)
      value ? ::setenv(name.c_str(), value->c_str(), 1) : ::unsetenv(name.c_str());
  }
  Environment(const Environment&) = delete;
  Environment& operator=(const Environment&) = delete;

 private:
  std::map<std::string, std::optional<std::string>> former_;
};

std::string directory_with(const std::map<std::string, std::string>& given) {
  const Environment environment(given);
  const Expected<DiskStoreOptions> options = store_options_of_environment();
  return options ? options->directory : options.errors().front().code;
}

}  // namespace

TEST_CASE("the environment says where the store is") {
  const Scratch scratch;
  const std::string home = scratch.path.string();
  CHECK(directory_with({{"HOME", home}}) == home + "/.cache/quern");
  CHECK(directory_with({{"HOME", home}, {"XDG_CACHE_HOME", home + "/xdg"}}) == home + "/xdg/quern");
  CHECK(directory_with({{"HOME", home}, {"XDG_CACHE_HOME", "relative"}}) == home + "/.cache/quern");
  CHECK(directory_with({{"HOME", home}, {"QUERN_CACHE_DIR", "/some/where"}}) == "/some/where");
  CHECK(directory_with({}) == "cache-absent");
  CHECK(directory_with({{"HOME", "/nonexistent"}}) == "cache-absent");
  CHECK(directory_with({{"HOME", home}, {"QUERN_CACHE", "0"}}) == "cache-off");
}

TEST_CASE("root makes no folders in another user's home") {
  if (is_not_root("SKIPPED: giving a folder to another user takes root")) return;
  const Scratch scratch;
  REQUIRE(::chown(scratch.path.c_str(), 4321, 4321) == 0);
  CHECK(directory_with({{"HOME", scratch.path.string()}}) == "cache-absent");
}

TEST_CASE("the environment says the store's bound and mode; malformed values are warned of") {
  Messages messages;
  {
    const Environment environment(
        {{"QUERN_CACHE_DIR", "/x"}, {"QUERN_CACHE_MAXSIZE", "20M"}, {"QUERN_CACHE", "ro"}});
    const Expected<DiskStoreOptions> options = store_options_of_environment();
    REQUIRE(options);
    CHECK(options->max_bytes == 20u << 20);
    CHECK(options->read_only);
    CHECK(options->is_users_choice);
    CHECK(messages.count(LogLevel::warning) == 0);
  }
  const Environment environment(
      {{"QUERN_CACHE_DIR", "/x"}, {"QUERN_CACHE_MAXSIZE", "much"}, {"QUERN_CACHE", "on"}});
  const Expected<DiskStoreOptions> options = store_options_of_environment();
  REQUIRE(options);
  CHECK(options->max_bytes == 1u << 30);
  CHECK_FALSE(options->read_only);
  CHECK(messages.count(LogLevel::warning, "QUERN_CACHE_MAXSIZE is not a size") == 1);
  CHECK(messages.count(LogLevel::warning, "QUERN_CACHE is not 0, 1 or ro") == 1);
}

TEST_CASE("a folder that is not named in full is warned of") {
  Messages messages;
  CHECK(directory_with({{"QUERN_CACHE_DIR", "here"}}) == "cache-absent");
  CHECK(messages.count(LogLevel::warning, "QUERN_CACHE_DIR is not an absolute path") == 1);
}

TEST_CASE("tests have no process store: nothing they do is served from the user's cache") {
  CHECK(process_store() == nullptr);
}
