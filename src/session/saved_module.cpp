// SPDX-License-Identifier: Apache-2.0
#include "session/saved_module.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/byte_stream.hpp"
#include "base/digest.hpp"
#include "compile/compiler.hpp"
#include "compile/image_format.hpp"
#include "compile/ptx/ptx_text.hpp"
#include "quern/session.hpp"
#include "session/gate.hpp"

namespace quern::session {
namespace {

using base::ByteReader;
using base::ByteWriter;

constexpr std::size_t kDigestBytes = 32;
constexpr std::size_t kPrefixBytes = kSavedMagic.size() + 12;  // before the digest
constexpr std::size_t kHeaderBytes = kPrefixBytes + kDigestBytes;
constexpr std::size_t kTextBytes = 8;

Expected<base::Digest> digest_of(std::string_view prefix, std::string_view payload,
                                 const std::string& attempted) {
  base::Digest digest;
  const Expected<void> done = compile::within_gate(attempted, [&] {
    const std::string all = std::string(prefix) + std::string(payload);
    digest = base::sha256(std::as_bytes(std::span(all)));
  });
  if (!done) return done.errors();
  return digest;
}

void write(ByteWriter& writer, const std::vector<std::string>& texts) {
  writer.count(texts.size());
  for (const std::string& text : texts) writer.text(text);
}

std::vector<std::string> read_texts(ByteReader& reader) {
  std::vector<std::string> texts(reader.count(kTextBytes));
  for (std::string& text : texts) text = reader.string();
  return texts;
}

/// Without the time that its compilation took, and without source.
std::string saved_image(const abi::PtxImage& image) {
  abi::PtxImage kept = image;
  kept.cuda_source.clear();
  kept.compile_ms = 0;
  return compile::write_image(kept);
}

std::string payload_of(const SavedModule& module) {
  ByteWriter writer;
  writer.text(module.writer).number(static_cast<std::uint8_t>(module.language)).text(module.file_name);
  writer.number(module.target.compute)
      .flag(module.target.sm.has_value())
      .number(module.target.sm.value_or(0))
      .number(module.target.driver_version);
  for (const auto* const texts : {&module.options, &module.name_expressions, &module.constants})
    write(writer, *texts);
  writer.count(module.parts.size());
  for (const SavedModule::Part& part : module.parts) writer.text(part.name).text(saved_image(*part.image));
  writer.count(module.pieces.size());
  for (const CodeTable::Piece& piece : module.pieces)
    writer.text(piece.kernel).text(piece.types).text(saved_image(*piece.image));
  return writer.take();
}

Diagnostic damaged(const std::string& name, const std::string& why) {
  return make_diagnostic("saved-damaged", fmt::format("cannot load {}: {}", name, why),
                         "save the module again with Module::save");
}

/// Reads images and remembers the first error.
class ImageReader {
 public:
  explicit ImageReader(const std::string& name) : name_(name) {}

  SavedModule::Image read(std::string_view bytes, bool has_code) {
    Expected<abi::PtxImage> image = compile::read_image(bytes);
    if (!image) {
      const bool is_version = image.errors().front().code == "image-version";
      note(is_version
               ? make_diagnostic("saved-version",
                                 fmt::format("cannot load {}: {}", name_, image.errors().front().message),
                                 "save the module again with this version of quern")
               : damaged(name_, image.errors().front().message));
      return std::make_shared<const abi::PtxImage>();
    }
    if (has_code && !compile::fits_ptx(*image))
      note(damaged(name_, "its list of kernels does not fit its PTX"));
    return std::make_shared<const abi::PtxImage>(*std::move(image));
  }
  const Diagnostics& errors() const noexcept { return errors_; }

 private:
  void note(Diagnostic diagnostic) {
    if (errors_.empty()) errors_.push_back(std::move(diagnostic));
  }
  const std::string& name_;
  Diagnostics errors_;
};

Expected<SavedModule> read_payload(std::string_view payload, const std::string& name) {
  ByteReader reader(payload);
  ImageReader images(name);
  SavedModule module;
  module.writer = reader.string();
  module.language = reader.enumerator(abi::Language::python);
  module.file_name = reader.string();
  module.target.compute = reader.number<std::uint32_t>();
  const bool has_sm = reader.flag();
  const auto sm = reader.number<std::uint32_t>();
  if (has_sm) module.target.sm = sm;
  module.target.driver_version = reader.number<std::uint32_t>();
  for (auto* const texts : {&module.options, &module.name_expressions, &module.constants})
    *texts = read_texts(reader);
  module.parts.resize(reader.count(2 * kTextBytes));
  for (SavedModule::Part& part : module.parts) {
    part.name = reader.string();
    part.image = images.read(reader.text(), module.language != abi::Language::python);
  }
  module.pieces.resize(reader.count(3 * kTextBytes));
  for (CodeTable::Piece& piece : module.pieces) {
    piece.kernel = reader.string();
    piece.types = reader.string();
    piece.image = images.read(reader.text(), true);
    if (piece.image->entries.empty() && images.errors().empty() && reader.good())
      return damaged(name, "the code of kernel " + piece.kernel + " has no kernel");
  }
  if (!reader.good() || !reader.at_end() || module.parts.empty())
    return damaged(name, "its parts do not fit into its bytes");
  if (!images.errors().empty()) return images.errors();
  return module;
}

}  // namespace

Expected<std::string> with_saved_header(std::string_view payload, const std::string& attempted) {
  ByteWriter header;
  header.number(kSavedFormatVersion).number(static_cast<std::uint64_t>(payload.size()));
  const std::string prefix = std::string(kSavedMagic) + header.take();
  const Expected<base::Digest> digest = digest_of(prefix, payload, attempted);
  if (!digest) return digest.errors();
  const std::string_view hash(reinterpret_cast<const char*>(digest->bytes.data()), kDigestBytes);
  return prefix + std::string(hash) + std::string(payload);
}

Expected<std::string> write_saved(const SavedModule& module) {
  return with_saved_header(payload_of(module), "save " + module.file_name);
}

Expected<SavedModule> read_saved(std::string_view bytes, const std::string& name) {
  if (!bytes.starts_with(kSavedMagic))
    return damaged(name, bytes.empty() ? "it is empty" : "it is not a saved module of quern");
  if (bytes.size() < kHeaderBytes) return damaged(name, "it ends within its header");
  ByteReader header(bytes.substr(kSavedMagic.size()));
  const auto version = header.number<std::uint32_t>();
  const auto payload_bytes = header.number<std::uint64_t>();
  const std::string_view payload = bytes.substr(kHeaderBytes);
  if (version == kSavedFormatVersion && payload.size() != payload_bytes)
    return damaged(
        name, fmt::format("{} bytes should follow its header, and {} do", payload_bytes, payload.size()));
  const std::string_view prefix = bytes.substr(0, kPrefixBytes);
  const Expected<base::Digest> digest = digest_of(prefix, payload, "load " + name);
  if (!digest) return digest.errors();
  const std::string_view stored = bytes.substr(kPrefixBytes, kDigestBytes);
  if (!std::ranges::equal(digest->bytes, std::as_bytes(std::span(stored)),
                          [](std::uint8_t a, std::byte b) { return std::byte{a} == b; }))
    return damaged(name, "its checksum does not match its bytes");
  // Read the version only after the checksum has been compared.
  if (version != kSavedFormatVersion)
    return make_diagnostic(
        "saved-version",
        fmt::format("cannot load {}: it has format {} of saved modules, and quern {} reads "
                    "format {}",
                    name, version, quern::version(), kSavedFormatVersion),
        version > kSavedFormatVersion ? "load it with a newer quern, or save it with this one"
                                      : "save the module again with this version of quern");
  return read_payload(payload, name);
}

}  // namespace quern::session
