// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace quern::serve {

/// The page for browsers at `/`, which reads /v1/stats itself.
struct Page {
  std::string_view html;
  std::string policy;  ///< Content-Security-Policy: its own script and style by their digests, nothing else
};
const Page& live_page();

}  // namespace quern::serve
