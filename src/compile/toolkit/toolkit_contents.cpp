// SPDX-License-Identifier: Apache-2.0
#include "compile/toolkit/toolkit_contents.hpp"

#include <fmt/format.h>

#include "compile/source/device_headers.hpp"
#include "compile/source/source_digest.hpp"
#include "frontend/source_digest.hpp"

namespace quern::compile {

std::optional<ToolkitContents> toolkit_contents(const Toolkit& toolkit, bool with_headers) {
  if (!toolkit.facts || toolkit.facts->identity.empty()) return std::nullopt;
  ToolkitContents result;
  result.nvrtc = fmt::format("{}.{} {}", toolkit.facts->major, toolkit.facts->minor, toolkit.facts->identity);
  if (!with_headers) return result;
  const std::optional<base::Digest> tree = toolkit.header_tree->contents_digest();
  if (!tree) return result;
  base::DigestBuilder headers;
  headers.add(tree->hex());
  for (const abi::HeaderText& header : toolkit.standard_headers) headers.add(header.name).add(header.text);
  result.headers = fmt::format("{} {}", toolkit.headers_version, headers.finish().hex());
  return result;
}

std::string own_contents() {
  return base::DigestBuilder()
      .add(source_digest())
      .add(device_headers_digest())
      .add(frontend::source_digest())
      .finish()
      .hex();
}

}  // namespace quern::compile
