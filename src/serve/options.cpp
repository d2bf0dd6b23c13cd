// SPDX-License-Identifier: Apache-2.0
#include "serve/options.hpp"

#include <CLI/CLI.hpp>

#include <sstream>

namespace quern::serve {
namespace {

void add_limits(CLI::App& app, Settings& settings) {
  const auto bytes = [&](const char* name, std::uint64_t& value, const char* help) {
    app.add_option(name, value, help)
        ->transform(CLI::AsSizeValue(false))
        ->capture_default_str()
        ->type_name("BYTES");
  };
  const auto count = [&](const char* name, std::uint64_t& value, const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(1, 1'000'000))->capture_default_str()->type_name("N");
  };
  const auto seconds = [&](const char* name, double& value, const char* help) {
    app.add_option(name, value, help)->check(CLI::Range(0.1, 86400.0))->capture_default_str()->type_name("S");
  };
  bytes("--max-source", settings.max_source_bytes, "Largest source with its headers, and largest artifact");
  count("--max-queue", settings.max_queue, "Compiles that may wait for a worker; more are answered with 429");
  count("--max-connections", settings.max_connections, "Connections at a time");
  seconds("--compile-timeout", settings.compile_timeout_s, "Longest time of a compile");
  seconds("--request-timeout", settings.request_timeout_s,
          "Longest time for a request to arrive, and for an answer to be taken");
  seconds("--idle-timeout", settings.idle_timeout_s, "Longest time between the requests of a connection");
  seconds("--drain-timeout", settings.drain_timeout_s, "Longest time to end after SIGTERM");
  bytes("--worker-memory", settings.worker_memory_bytes, "Address space of a worker; 0: not limited");
  count("--worker-requests", settings.worker_requests,
        "Compiles after which a worker is replaced; 1: a new process for each");
  bytes("--precompiled-headers", settings.precompiled_bytes,
        "Memory for precompiled headers of the toolkit, which workers share; 0: none");
  bytes("--cache-memory", settings.cache_bytes, "Results kept in memory");
  bytes("--artifact-memory", settings.artifact_bytes, "Headers and machine code kept in memory");
}

void add_store(CLI::App& app, Settings& settings) {
  CLI::Option* const store =
      app.add_option("--store", settings.store,
                     "Store that several servers share: redis://, rediss://, redis+unix:, http(s):// as "
                     "bazel-remote, dav(s)://")
          ->type_name("URL");
  const auto file = [&](const char* name, std::string& value, const char* help) {
    return app.add_option(name, value, help)->check(CLI::ExistingFile)->needs(store)->type_name("FILE");
  };
  const auto seconds = [&](const char* name, double& value, const char* help) {
    app.add_option(name, value, help)
        ->check(CLI::Range(0.001, 3600.0))
        ->needs(store)
        ->capture_default_str()
        ->type_name("S");
  };
  file("--store-key", settings.store_key,
       "Keys that authenticate stored values, one a line; the first seals");
  file("--store-password-file", settings.store_password_file, "The store's password, in the first line");
  file("--store-ca", settings.store_ca, "Authority of the store's certificate (PEM; default: the system's)");
  CLI::Option* const certificate =
      file("--store-cert", settings.store_certificate, "Certificate to show to the store (PEM)");
  CLI::Option* const key =
      file("--store-cert-key", settings.store_certificate_key, "The key of that certificate (PEM)");
  certificate->needs(key);
  key->needs(certificate);
  app.add_flag("--store-trusted", settings.store_trusted,
               "Use a store on the network without --store-key: all who write to it are trusted")
      ->needs(store);
  seconds("--store-timeout", settings.store_timeout_s, "Longest time for the store to answer");
  seconds("--store-lease", settings.store_lease_s,
          "Time after which the lock of a server that was killed ends");
}

void add_options(CLI::App& app, Settings& settings) {
  app.add_option("--listen", settings.listen, "unix:PATH or tcp:HOST:PORT; repeatable")
      ->required()
      ->allow_extra_args(false)
      ->type_name("ADDRESS");
  app.add_option("--workers", settings.workers, "Worker processes (default: one for each processor)")
      ->check(CLI::Range(1, 1024))
      ->type_name("N");
  app.add_option("--token-file", settings.token_file, "Bearer tokens that are accepted, one a line")
      ->check(CLI::ExistingFile)
      ->type_name("FILE");
  CLI::Option* const certificate =
      app.add_option("--tls-cert", settings.tls_certificate, "TLS on TCP: the certificate chain (PEM)")
          ->check(CLI::ExistingFile)
          ->type_name("FILE");
  CLI::Option* const key = app.add_option("--tls-key", settings.tls_key, "TLS: the certificate's key (PEM)")
                               ->check(CLI::ExistingFile)
                               ->type_name("FILE");
  certificate->needs(key);
  key->needs(certificate);
  app.add_option("--tls-client-ca", settings.tls_client_ca,
                 "Accept only clients with a certificate of this authority (PEM)")
      ->check(CLI::ExistingFile)
      ->needs(certificate)
      ->type_name("FILE");
  app.add_flag("--open-to-all", settings.open_to_all,
               "Listen beyond this machine without tokens and client certificates");
  app.add_option("--log-file", settings.log_file,
                 "Append the log to a file instead of stderr; SIGHUP opens it again")
      ->type_name("FILE");
  app.add_option(
         "--stats-fd", settings.stats_descriptor,
         "Answer each byte that arrives on this open socket with /v1/stats's document in a line; end when "
         "it is closed (quern serve --top)")
      ->check(CLI::Range(3, 1 << 20))
      ->type_name("N");
  add_store(app, settings);
  add_limits(app, settings);
  app.set_config("--config", "", "Read options from a TOML file: the same names without dashes")
      ->type_name("FILE");
}

}  // namespace

CommandLine read_command_line(int argc, char** argv) {
  CLI::App app("Compiles kernels for other machines and processes, over HTTP (docs/service.md).",
               "quern serve");
  app.footer("quern serve --top ... shows what the server does, as quern top does, while it runs.");
  CommandLine line;
  Settings settings;
  add_options(app, settings);
  try {
    app.parse(argc, argv);
    line.settings = std::move(settings);
  } catch (const CLI::ParseError& error) {
    std::ostringstream text;
    app.exit(error, text, text);
    line.text = text.str();
    line.status = error.get_exit_code() == 0 ? 0 : 2;
  }
  return line;
}

}  // namespace quern::serve
