// SPDX-License-Identifier: Apache-2.0
#include "compile/remote_toolkits.hpp"

#include "base/byte_stream.hpp"

namespace quern::compile {

std::optional<RemoteToolkit> RemoteToolkits::toolkit() {
  if (servers_ == nullptr || store_ == nullptr) return std::nullopt;
  std::call_once(asked_, [this] {
    const std::optional<RemoteToolkit> answered = servers_->toolkit();
    if (answered && answered->is_known()) return note(*answered);
    // A server that does not say its toolkit may have another than the noted one.
    std::optional<RemoteToolkit> noted = answered ? std::nullopt : recall();
    const base::LockGuard lock(mutex_);
    if (!last_) last_ = std::move(noted);
  });
  const base::LockGuard lock(mutex_);
  return last_;
}

void RemoteToolkits::note(const RemoteToolkit& toolkit) {
  {
    const base::LockGuard lock(mutex_);
    if (last_ == toolkit) return;
    last_ = toolkit;
  }
  if (store_ == nullptr || servers_ == nullptr) return;
  store_->put(cache::EntryKind::toolkit_facts, key(),
              base::ByteWriter()
                  .text(toolkit.contents.nvrtc)
                  .text(toolkit.contents.headers)
                  .text(toolkit.own)
                  .take());
}

base::Digest RemoteToolkits::key() const {
  return base::DigestBuilder().add("toolkit of servers").add(servers_->name()).finish();
}

std::optional<RemoteToolkit> RemoteToolkits::recall() {
  const std::optional<std::string> bytes = store_->get(cache::EntryKind::toolkit_facts, key());
  if (!bytes) return std::nullopt;
  base::ByteReader from(*bytes);
  RemoteToolkit toolkit;
  toolkit.contents.nvrtc = from.string();
  toolkit.contents.headers = from.string();
  toolkit.own = from.string();
  if (!from.good() || !from.at_end() || !toolkit.is_known()) return std::nullopt;
  return toolkit;
}

CudaKey remote_key(const WholeRequest& whole, const RemoteToolkit& toolkit) {
  base::DigestBuilder files;
  for (const auto& [name, path] : whole.files) files.add(name).add(path);
  CudaKey key;
  key.components = {{"request", digest_of(whole.request).hex()},
                    {"included files", files.finish().hex()},
                    {"server's nvrtc", toolkit.contents.nvrtc},
                    {"server's toolkit headers", toolkit.contents.headers},
                    {"server's quern", toolkit.own},
                    {"quern", own_contents()}};
  base::DigestBuilder digest;
  digest.add("quern cuda of a server");
  for (const auto& [name, value] : key.components) digest.add(name).add(value);
  key.digest = digest.finish();
  return key;
}

}  // namespace quern::compile
