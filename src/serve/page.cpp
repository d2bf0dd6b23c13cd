// SPDX-License-Identifier: Apache-2.0
#include "serve/page.hpp"

#include <fmt/format.h>

#include <span>

#include "base/digest.hpp"
#include "base/embedded_text.hpp"
#include "remote/base64.hpp"

namespace quern::serve {

std::span<const base::EmbeddedText> page_files();  // src/serve/page

namespace {

/// The content of the page's only element of that name, as CSP names it.
std::string digest_of(std::string_view html, std::string_view element) {
  const std::string open = fmt::format("<{}>", element), close = fmt::format("</{}>", element);
  const std::size_t begin = html.find(open) + open.size();
  const std::string_view content = html.substr(begin, html.find(close, begin) - begin);
  const base::Digest digest = base::sha256(std::as_bytes(std::span(content)));
  return "'sha256-" + remote::to_base64(std::as_bytes(std::span(digest.bytes))) + "'";
}

Page make_page() {
  const std::string_view html = page_files().front().text;
  return {html,
          fmt::format("default-src 'none'; script-src {}; style-src {}; connect-src 'self'; img-src data:; "
                      "base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
                      digest_of(html, "script"), digest_of(html, "style"))};
}

}  // namespace

const Page& live_page() {
  static const Page page = make_page();
  return page;
}

}  // namespace quern::serve
