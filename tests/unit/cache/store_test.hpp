// SPDX-License-Identifier: Apache-2.0
// Shared by the tests of the disk tier.
#pragma once

#include <filesystem>
#include <mutex>
#include <string>
#include <vector>

#include "../support/scratch.hpp"
#include "cache/disk_store.hpp"
#include "quern/log.hpp"

namespace quern::test {

inline base::Digest key(std::uint8_t number) {
  base::Digest digest;
  digest.bytes.fill(number);
  return digest;
}

inline cache::DiskStoreOptions in(const std::filesystem::path& directory) {
  cache::DiskStoreOptions options;
  options.directory = directory.string();
  return options;
}

/// The place of an entry, as docs/cache-format.md says.
inline std::filesystem::path file_of(const std::filesystem::path& directory, std::uint8_t number,
                                     const std::string& kind = "ptx_image-1") {
  const std::string hex = key(number).hex();
  return directory / "v1" / hex.substr(0, 2) / (hex.substr(2) + "." + kind);
}

inline std::string read(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write(const std::filesystem::path& path, const std::string& bytes) {
  std::ofstream(path, std::ios::binary | std::ios::trunc) << bytes;
}

/// Collects the messages of the log while it lives.
class Messages {
 public:
  Messages() {
    former_ = set_log_handler([this](const LogRecord& record) {
      const std::lock_guard lock(mutex_);
      records_.push_back(record);
    });
  }
  ~Messages() { set_log_handler(std::move(former_)); }
  Messages(const Messages&) = delete;
  Messages& operator=(const Messages&) = delete;

  std::size_t count(LogLevel level, const std::string& part = "") {
    const std::lock_guard lock(mutex_);
    std::size_t count = 0;
    for (const LogRecord& record : records_)
      if (record.level == level && record.text.find(part) != std::string::npos) ++count;
    return count;
  }

 private:
  std::mutex mutex_;
  std::vector<LogRecord> records_;
  LogHandler former_;
};

}  // namespace quern::test
