// SPDX-License-Identifier: Apache-2.0
// Compiles through servers: QUERN_REMOTE.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "abi/kernel_request.hpp"
#include "quern/expected.hpp"
#include "remote/endpoint.hpp"
#include "remote/http.hpp"
#include "remote/messages.hpp"

namespace quern::remote {

/// The code of a reason: the compiler crashed on this source, or exhausted its memory, on two tries.
inline constexpr const char* kWorkerFailed = "worker-failed";

/// The code of a reason: the request is larger than the server takes.
inline constexpr const char* kTooLarge = "too-large";

struct ClientOptions {
  std::vector<Endpoint> servers;  ///< tried in this order
  bool only = false;              ///< this process must not compile itself
  std::string token;              ///< empty if none is sent
  std::string authority;          ///< PEM file for TLS; empty for the system's
  std::string certificate;        ///< the client's own, PEM; empty if there is none
  std::string key;
  Timeouts timeouts;
};

/// The meaning of QUERN_REMOTE and its relatives; nothing where QUERN_REMOTE is not set. Fails for values
/// that cannot be used: to go on without a server would hide that.
Expected<std::optional<ClientOptions>> client_options_of_environment();

/// The same for these servers instead of those of QUERN_REMOTE.
Expected<ClientOptions> client_options_for(std::string_view servers);

/// The body of GET /v1/stats of the first server, by a connection of its own. Errors have the codes of
/// HttpConnection's, and "unauthorised".
Expected<std::string> fetch_stats(const ClientOptions& options);

/// Equal for equal options; holds no token.
std::string identity_of(const ClientOptions& options);

/// Thread-safe. Connections stay open between requests; a server that cannot be reached is not tried again
/// for some seconds.
class Client {
 public:
  explicit Client(ClientOptions options);
  ~Client();
  Client(const Client&) = delete;
  Client& operator=(const Client&) = delete;

  struct Outcome {
    /// A server's answer: the image, or the errors of the source. Returns nothing if no server could.
    std::optional<Expected<CompileAnswer>> answer;
    /// The reason why no server could; also codes "cancelled", and "not-remote" for a request that no server
    /// would take, which is no failure of theirs.
    Diagnostics reasons;
    std::string server;
    std::string request_id;
  };
  /// Why an image cannot be the request's; empty if it can.
  using Judge = std::function<std::string(const abi::PtxImage&)>;
  /// Every header that the source needs from the author is in `request.headers`. `goes_on` (may be empty) is
  /// asked ten times a second; false cancels. An image that `judge` (may be empty) refuses is no answer.
  Outcome compile(const abi::KernelRequest& request, const std::function<bool()>& goes_on,
                  const Judge& judge = {});

  /// The toolkit of the first server that answers; nothing if none does.
  std::optional<ToolkitIdentity> toolkit();

  const ClientOptions& options() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace quern::remote
