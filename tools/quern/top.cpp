// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "command.hpp"
#include "commands.hpp"
#include "watch.hpp"

namespace quern::cli {
namespace {

std::vector<std::string> addresses_of(const TopSettings& settings) {
  std::string text;
  for (const std::string& word : settings.servers) text += word + " ";
  if (const char* known = std::getenv("QUERN_REMOTE"); text.empty() && known != nullptr) text = known;
  std::vector<std::string> addresses;
  for (std::size_t at = 0; (at = text.find_first_not_of(" ,\t\n", at)) != std::string::npos;) {
    const std::size_t end = std::min(text.find_first_of(" ,\t\n", at), text.size());
    addresses.push_back(text.substr(at, end - at));
    at = end;
  }
  if (!addresses.empty()) return addresses;
  throw Error(ErrorCode::usage,
              "no server is named\nhint: quern top http://HOST:PORT or unix:PATH, or set QUERN_REMOTE");
}

}  // namespace

int top_command(const TopSettings& settings) {
  std::vector<Watched> servers;
  for (const std::string& address : addresses_of(settings))
    servers.push_back({address, [address](const std::function<bool()>& goes_on) {
                         return service_stats(address, {.goes_on = goes_on});
                       }});
  WatchSettings wishes;
  wishes.interval_s = settings.interval_s;
  wishes.count = settings.once ? 1 : settings.count;
  wishes.json = settings.json;
  const WatchEnd end = watch(servers, wishes);
  if (end.by_user) return kDone;
  if (end.signal != 0) return 128 + end.signal;
  return end.answered ? kDone : kFailed;
}

}  // namespace quern::cli
