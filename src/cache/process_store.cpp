// SPDX-License-Identifier: Apache-2.0
#include <sys/auxv.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <exception>

#include "base/env.hpp"
#include "base/log.hpp"
#include "cache/counts.hpp"
#include "cache/disk_store.hpp"

namespace quern::cache {
namespace {

Diagnostic absent(const char* code, std::string message) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.message = std::move(message);
  diagnostic.hint = "set QUERN_CACHE_DIR to a folder of your own";
  return diagnostic;
}

/// The first of $XDG_CACHE_HOME/quern and $HOME/.cache/quern that there is a base for. A base of another user
/// is skipped: under sudo, root would make folders there that the user could not write to.
Expected<std::string> default_directory() {
  struct Base {
    const char* variable;
    const char* rest;
  };
  for (const Base& base : {Base{"XDG_CACHE_HOME", "/quern"}, Base{"HOME", "/.cache/quern"}}) {
    const std::optional<std::string> path = base::env(base.variable);
    if (!path || !path->starts_with('/')) continue;  // the XDG specification has relative ones ignored
    struct stat info{};
    const bool is_there = ::stat(path->c_str(), &info) == 0;
    if (is_there && info.st_uid == ::geteuid()) return *path + base.rest;
    if (!is_there && std::string_view(base.variable) == "XDG_CACHE_HOME") return *path + base.rest;
  }
  return absent(
      "cache-absent",
      "there is no folder for the compile cache: neither HOME nor XDG_CACHE_HOME is a folder of this user");
}

struct ProcessStore {
  std::unique_ptr<DiskStore> store;  ///< null if there is none
};

std::unique_ptr<ProcessStore> make_process_store() {
  auto made = std::make_unique<ProcessStore>();
  Expected<DiskStoreOptions> options = store_options_of_environment();
  if (options)
    made->store = std::make_unique<DiskStore>(*std::move(options));
  else
    base::log({LogLevel::debug, options.errors().front().message, {}});
  return made;
}

}  // namespace

Expected<DiskStoreOptions> store_options_of_environment() {
  constexpr std::string_view kWords[] = {"0", "1", "ro"};
  const std::size_t mode = base::env_word("QUERN_CACHE", kWords, &base::warn_of_env).value_or(1);
  if (mode == 0) return absent("cache-off", "the compile cache is off: QUERN_CACHE=0");
  // A program with more rights than its caller must not read what its caller's environment names.
  if (::getauxval(AT_SECURE) != 0)
    return absent("cache-absent", "there is no compile cache: this program has other rights than its caller");
  DiskStoreOptions options;
  options.read_only = mode == 2;
  options.max_bytes = base::env_bytes("QUERN_CACHE_MAXSIZE", &base::warn_of_env).value_or(options.max_bytes);
  if (std::optional<std::string> directory = base::env("QUERN_CACHE_DIR")) {
    if (!directory->starts_with('/')) {
      const std::string message =
          "QUERN_CACHE_DIR is not an absolute path, and there is no compile cache: " + *directory;
      base::warn_of_env("QUERN_CACHE_DIR", message);
      return absent("cache-absent", message);
    }
    options.directory = *std::move(directory);
    return options;
  }
  Expected<std::string> directory = default_directory();
  if (!directory) return std::move(directory).errors();
  options.directory = *std::move(directory);
  options.is_users_choice = false;
  return options;
}

DiskStore* process_store() noexcept {
  // Not a static object with a guard: a child that is forked while another thread makes it would wait
  // forever.
  static std::atomic<ProcessStore*> made{nullptr};
  if (const ProcessStore* store = made.load()) return store->store.get();
  try {
    std::unique_ptr<ProcessStore> fresh = make_process_store();
    ProcessStore* expected = nullptr;
    if (made.compare_exchange_strong(expected, fresh.get())) {
      DiskStore* const store = fresh.release()->store.get();
      if (store != nullptr) add_counts_at_exit(*store);
      return store;
    }
    return expected->store.get();
  } catch (const std::exception&) {  // no memory
    return nullptr;
  }
}

}  // namespace quern::cache
