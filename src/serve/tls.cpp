// SPDX-License-Identifier: Apache-2.0
#include "serve/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>

namespace quern::serve {
namespace {

Diagnostic failure(const std::string& what, const std::string& file) {
  char reason[256] = "unknown reason";
  if (const unsigned long error = ERR_get_error(); error != 0)
    ERR_error_string_n(error, reason, sizeof reason);
  ERR_clear_error();
  Diagnostic diagnostic;
  diagnostic.code = "tls";
  diagnostic.message = fmt::format("cannot use {} {}: {}", what, file, static_cast<const char*>(reason));
  diagnostic.hint =
      "it must be a PEM file that this user can read, and key and certificate must belong together";
  return diagnostic;
}

}  // namespace

Expected<TlsContext> make_tls_context(const Settings& settings) {
  if (settings.tls_certificate.empty()) return TlsContext();
  const TlsContext context(SSL_CTX_new(TLS_server_method()), SSL_CTX_free);
  if (!context) return failure("TLS", "");
  SSL_CTX_set_min_proto_version(context.get(), TLS1_2_VERSION);
  SSL_CTX_set_options(context.get(), SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION);
  SSL_CTX_set_mode(context.get(), SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  const char* const certificate = settings.tls_certificate.c_str();
  if (SSL_CTX_use_certificate_chain_file(context.get(), certificate) != 1)
    return failure("certificate", settings.tls_certificate);
  if (SSL_CTX_use_PrivateKey_file(context.get(), settings.tls_key.c_str(), SSL_FILETYPE_PEM) != 1 ||
      SSL_CTX_check_private_key(context.get()) != 1)
    return failure("key", settings.tls_key);
  if (!settings.tls_client_ca.empty()) {
    const char* const authority = settings.tls_client_ca.c_str();
    if (SSL_CTX_load_verify_locations(context.get(), authority, nullptr) != 1)
      return failure("client CA", settings.tls_client_ca);
    SSL_CTX_set_client_CA_list(context.get(), SSL_load_client_CA_file(authority));
    SSL_CTX_set_verify(context.get(), SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, nullptr);
    SSL_CTX_set_session_cache_mode(context.get(), SSL_SESS_CACHE_OFF);
  }
  return context;
}

}  // namespace quern::serve
