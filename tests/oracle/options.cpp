// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <CLI/CLI.hpp>

#include <algorithm>
#include <cstdlib>

namespace quern::oracle {

Options::Options(const std::string& description) : app_(std::make_unique<CLI::App>(description)) {}
Options::~Options() = default;

void Options::add(const std::string& name, std::uint64_t& number, const std::string& help) {
  app_->add_option(name, number, help);
}
void Options::add(const std::string& name, unsigned& number, const std::string& help) {
  app_->add_option(name, number, help);
}
void Options::add(const std::string& name, std::optional<std::uint64_t>& number, const std::string& help) {
  app_->add_option(name, number, help);
}
void Options::add(const std::string& name, std::string& text, const std::string& help) {
  app_->add_option(name, text, help);
}
void Options::add(const std::string& name, bool& flag, const std::string& help) {
  app_->add_flag(name, flag, help);
}
void Options::add_choice(const std::string& name, std::string& word, const std::vector<std::string>& words) {
  app_->add_option(name, word)->check(CLI::IsMember(words));
}

std::optional<int> Options::read(int argc, char** argv) {
  try {
    app_->parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app_->exit(error);
  }
  return std::nullopt;
}

std::uint64_t part_of(std::uint64_t count) {
  const char* const fraction = std::getenv("QUERN_TEST_FRACTION");
  return count / (fraction == nullptr ? 1 : std::max<std::uint64_t>(std::strtoull(fraction, nullptr, 10), 1));
}

bool tries_a_part() { return std::getenv("QUERN_TEST_FRACTION") != nullptr; }

}  // namespace quern::oracle
