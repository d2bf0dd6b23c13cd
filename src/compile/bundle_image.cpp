// SPDX-License-Identifier: Apache-2.0
#include "compile/bundle_image.hpp"

#include <fmt/format.h>

#include <array>
#include <span>

#include "base/byte_stream.hpp"
#include "compile/image_format.hpp"
#include "compile/options.hpp"
#include "compile/source/device_headers.hpp"
#include "compile/source/source_digest.hpp"
#include "compile/toolkit/nvrtc_environment.hpp"

namespace quern::compile {
namespace {

using std::string_view;

Diagnostic not_bundled(const std::string& reason) {
  Diagnostic diagnostic;
  diagnostic.code = "not-remote";
  diagnostic.message = "cannot be in a bundle: " + reason;
  return diagnostic;
}

/// The key of the entry in which a bundle names its toolkit.
base::Digest toolkit_key() { return base::DigestBuilder().add("quern bundle toolkit").finish(); }

/// The text without the file names of its #line directives, and without a comment in its first line, in which
/// translated Kernel Python names its file.
std::string without_file_names(string_view text) {
  constexpr string_view kLine = "#line ";
  std::string kept;
  kept.reserve(text.size());
  const string_view first = text.substr(0, text.find('\n'));
  if (first.starts_with("//") && !first.ends_with('\\')) text.remove_prefix(first.size());
  while (!text.empty()) {
    const string_view line = text.substr(0, text.find('\n'));
    const std::size_t quote = line.starts_with(kLine) ? line.find('"') : string_view::npos;
    kept.append(line.substr(0, quote)).append(text.substr(line.size(), 1));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return kept;
}

base::Digest digest_of_request(const WholeRequest& whole) {
  abi::KernelRequest request = whole.request;
  request.source.text = without_file_names(request.source.text);
  request.source.file_name.clear();
  request.target.sm.reset();
  request.target.driver_version = 0;
  const base::Digest given = digest_of(request);
  return base::DigestBuilder()
      .add("quern bundle cuda")
      .add(given.hex())
      .add(source_digest())
      .add(device_headers_digest())
      .finish();
}

void remove_all(std::string& text, string_view part) {
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at))
    text.erase(at, part.size());
}

/// Names the toolkit's headers by their paths below its directories.
void remove_directory(abi::PtxImage& image, const std::string& prefix) {
  constexpr string_view kMarker = "\n\t.file\t";
  for (std::size_t at = image.ptx.find(kMarker); at != std::string::npos;
       at = image.ptx.find(kMarker, at + 1)) {
    const std::size_t begin = image.ptx.find('"', at) + 1;
    if (begin != 0 && image.ptx.compare(begin, prefix.size(), prefix) == 0)
      image.ptx.erase(begin, prefix.size());
  }
  for (Diagnostic& diagnostic : image.log) {
    for (std::string* text : {&diagnostic.span.file, &diagnostic.message, &diagnostic.hint})
      remove_all(*text, prefix);
    for (Note& note : diagnostic.notes) {
      remove_all(note.span.file, prefix);
      remove_all(note.message, prefix);
    }
  }
}

}  // namespace

cache::BundleEntry toolkit_entry(const ToolkitContents& toolkit) {
  return {cache::EntryKind::toolkit_facts, toolkit_key(), "",
          base::ByteWriter().text(toolkit.nvrtc).text(toolkit.headers).take()};
}

std::optional<ToolkitContents> toolkit_of(cache::Bundle& bundle) {
  const std::optional<std::string> bytes = bundle.get(cache::EntryKind::toolkit_facts, toolkit_key());
  if (!bytes) return std::nullopt;
  base::ByteReader from(*bytes);
  ToolkitContents toolkit{from.string(), from.string()};
  if (!from.good() || !from.at_end()) return std::nullopt;
  return toolkit;
}

Expected<BundleRequest> bundle_request(const abi::KernelRequest& cuda) {
  const Expected<UserOptions> options = read_options(cuda.options);
  if (!options) return options.errors();
  Expected<WholeRequest> whole = with_own_headers(cuda, {});
  if (!whole) return std::move(whole).errors();
  if (options->debug) return not_bundled("with -G the code holds the working directory");
  if (!nvrtc_environment().is_plain()) return not_bundled("an environment variable changes what NVRTC does");
  BundleRequest request{*std::move(whole), {}};
  request.digest = digest_of_request(request.whole);
  return request;
}

base::Digest bundle_key(const BundleRequest& request, const ToolkitContents& toolkit, std::uint32_t sm) {
  return base::DigestBuilder()
      .add(request.digest.hex())
      .add(toolkit.nvrtc)
      .add(request.whole.needs_toolkit ? toolkit.headers : "")
      .add(std::uint64_t{sm})
      .finish();
}

Components bundle_components(const BundleRequest& request, const ToolkitContents& toolkit, std::uint32_t sm) {
  const abi::KernelRequest& whole = request.whole.request;
  std::string options;
  for (const std::string& option : whole.options) options += (options.empty() ? "" : " ") + option;
  Components components = {
      {"file", whole.source.file_name},
      {"source", base::sha256(std::as_bytes(std::span(whole.source.text))).hex()},
      {"options", options},
      {"target", fmt::format("compute_{} sm_{}", whole.target.compute, sm)},
      {"nvrtc", toolkit.nvrtc},
      {"toolkit headers", request.whole.needs_toolkit ? toolkit.headers : ""},
      {"quern", std::string(source_digest())},
      {"quern headers", std::string(device_headers_digest())},
  };
  for (const abi::HeaderText& header : whole.headers)
    components.emplace_back("included file",
                            header.name + " " + base::sha256(std::as_bytes(std::span(header.text))).hex());
  return components;
}

cache::BundleEntry image_entry(const BundleRequest& request, const ToolkitContents& toolkit,
                               const std::vector<std::string>& toolkit_directories, abi::PtxImage image) {
  const std::uint32_t sm = image.machine_code.empty() ? 0 : request.whole.request.target.sm.value_or(0);
  for (const std::string& directory : toolkit_directories) remove_directory(image, directory + "/");
  image.compile_ms = 0;
  return {cache::EntryKind::ptx_image, bundle_key(request, toolkit, sm),
          components_bytes({{}, bundle_components(request, toolkit, sm), {}}), write_image(image)};
}

}  // namespace quern::compile
