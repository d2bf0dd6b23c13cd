// SPDX-License-Identifier: Apache-2.0
#include "cache/bundle.hpp"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <cstring>
#include <exception>

#include "base/log.hpp"
#include "base/thread.hpp"

namespace quern::cache {
namespace {

Diagnostic refusal(const char* code, std::string why) {
  Diagnostic diagnostic;
  diagnostic.code = code;
  diagnostic.message = std::move(why);
  return diagnostic;
}

Diagnostic refusal(const std::string& path, const Diagnostic& why) {
  Diagnostic diagnostic =
      refusal(why.code.c_str(), fmt::format("cannot use bundle {}: {}", path, why.message));
  diagnostic.hint = why.hint;
  return diagnostic;
}

std::string text_of(const Diagnostic& why) {
  return why.hint.empty() ? why.message : why.message + "; " + why.hint;
}

bool read_at(const File& file, std::uint64_t at, std::string& bytes) {
  std::size_t done = 0;
  while (done < bytes.size()) {
    const ssize_t got =
        ::pread(file.get(), bytes.data() + done, bytes.size() - done, static_cast<off_t>(at + done));
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return false;
    done += static_cast<std::size_t>(got);
  }
  return true;
}

bool is_same(const struct stat& a, const struct stat& b) noexcept {
  return a.st_dev == b.st_dev && a.st_ino == b.st_ino && a.st_size == b.st_size &&
         a.st_mtim.tv_sec == b.st_mtim.tv_sec && a.st_mtim.tv_nsec == b.st_mtim.tv_nsec &&
         a.st_ctim.tv_sec == b.st_ctim.tv_sec && a.st_ctim.tv_nsec == b.st_ctim.tv_nsec;
}

/// Opens the file and looks at it; its index is not read.
Expected<OpenBundle> open_file(const std::string& path) {
  OpenBundle open;
  // Without O_NONBLOCK, opening a pipe would wait for its writer.
  open.file = File(::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_NOCTTY | O_CLOEXEC));
  if (!open.file || ::fstat(open.file.get(), &open.info) != 0) return refusal("io", std::strerror(errno));
  if (!S_ISREG(open.info.st_mode)) return refusal("bundle", "it is no regular file");
  return open;
}

/// Without keys, every user who may write the file decides which kernels run.
Expected<void> check_owner(const struct stat& info) {
  if (!is_of_trusted_owner(info, FolderUse::read))
    return refusal("bundle", "it belongs to another user, and no key file is given to check it with");
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return refusal("bundle", "other users may write to it, and no key file is given to check it with");
  return {};
}

Expected<BundleIndex> read_index(const OpenBundle& open, const base::SigningKeys* keys) {
  if (keys == nullptr)
    if (Expected<void> owned = check_owner(open.info); !owned) return std::move(owned).errors();
  const auto file_bytes = static_cast<std::uint64_t>(open.info.st_size);
  std::string head(std::min<std::uint64_t>(file_bytes, kBundleHeaderBytes), '\0');
  if (!read_at(open.file, 0, head)) return refusal("io", "it cannot be read");
  const Expected<std::uint64_t> head_bytes = bundle_head_bytes(head, file_bytes);
  if (!head_bytes) return head_bytes.errors();
  head.resize(*head_bytes);
  if (!read_at(open.file, 0, head)) return refusal("io", "it cannot be read");
  return read_bundle_index(head, keys);
}

/// A program whose bundle is replaced more often is not to fill its memory with indexes.
constexpr unsigned kMostReplacements = 256;

}  // namespace

std::optional<std::string> OpenBundle::body(const BundleRow& row) const {
  std::string body(row.body_bytes(), '\0');
  if (!read_at(file, row.offset, body) || !is_body_of(row, body)) return std::nullopt;
  return body;
}

Expected<OpenBundle> open_bundle(const std::string& path, const BundleKeys& keys) {
  Expected<OpenBundle> open = open_file(path);
  if (!open) return refusal(path, open.errors().front());
  Expected<BundleIndex> index = read_index(*open, keys.get());
  if (!index) return refusal(path, index.errors().front());
  open->index = *std::move(index);
  return open;
}

/// An index as it was read from a file in a certain state. Kept until the bundle is destroyed: other threads
/// may be reading it.
struct Bundle::Loaded {
  struct stat info{};
  BundleIndex index;  ///< empty if the file is refused
  const Loaded* former = nullptr;
  unsigned depth = 1;
};

Bundle::Bundle(std::string path, BundleKeys keys) : path_(std::move(path)), keys_(std::move(keys)) {}
Bundle::~Bundle() {
  for (const Loaded* each = loaded_.load(); each != nullptr;) {
    const std::unique_ptr<const Loaded> owner(each);
    each = each->former;
  }
}

void Bundle::tell(const std::string& why) {
  // libquern.so and the CPU device's plug-in read the same bundles.
  const bool is_first = !told_.exchange(true) && !base::is_log_forwarded();
  base::log({is_first ? LogLevel::warning : LogLevel::debug, why, {{"bundle", path_}}});
}

const Bundle::Loaded* Bundle::load(OpenBundle& open) {
  const Loaded* former = loaded_.load();
  if (former != nullptr && (is_same(former->info, open.info) || former->depth >= kMostReplacements))
    return former;
  auto fresh = std::make_unique<Loaded>();
  fresh->info = open.info;
  fresh->former = former;
  fresh->depth = former == nullptr ? 1 : former->depth + 1;
  if (Expected<BundleIndex> index = read_index(open, keys_.get()))
    fresh->index = *std::move(index);
  else
    tell(text_of(refusal(path_, index.errors().front())));
  // If several threads read the same file, one keeps its index.
  if (loaded_.compare_exchange_strong(former, fresh.get())) return fresh.release();
  return former;
}

std::optional<std::string> Bundle::read(EntryKind kind, const base::Digest& key) {
  Expected<OpenBundle> open = open_file(path_);
  if (!open) {
    tell(text_of(refusal(path_, open.errors().front())));
    return std::nullopt;
  }
  const Loaded* const loaded = load(*open);
  const BundleRow* const row = is_same(loaded->info, open->info) ? loaded->index.find(kind, key) : nullptr;
  if (row == nullptr) return std::nullopt;
  std::optional<std::string> body = open->body(*row);
  if (!body) {
    ++damaged_;
    tell(fmt::format("the bundle {} is damaged: its {} {} does not match its checksum", path_,
                     to_string(kind), key.hex()));
    return std::nullopt;
  }
  body->erase(0, row->components_bytes);
  ++hits_;
  return body;
}

std::optional<std::string> Bundle::get(EntryKind kind, const base::Digest& key) noexcept try {
  const base::NoCancellation whole;
  return read(kind, key);
} catch (const std::exception& error) {  // no memory
  base::log({LogLevel::debug, error.what(), {}});
  return std::nullopt;
}

}  // namespace quern::cache
