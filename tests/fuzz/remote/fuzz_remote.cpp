// SPDX-License-Identifier: Apache-2.0
// Any bytes as the body of a compile request and as a server's answer: a message or an error. A message is
// unchanged after it is written and read again, and so is its key.
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string_view>

#include "remote/messages.hpp"

using namespace quern;

namespace {

void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::abort();
}

void try_request(std::string_view text) {
  const Expected<remote::CompileMessage> message = remote::read_compile_message(text);
  if (!message) {
    if (message.errors().empty() || message.errors().front().message.empty())
      fail("an error without a message");
    return;
  }
  const Expected<std::string> written = remote::write_compile_message(*message);
  if (!written) fail("a message that was read cannot be written");
  const Expected<remote::CompileMessage> again = remote::read_compile_message(*written);
  if (!again) fail("a message that was written cannot be read");
  if (remote::message_key(*again, "t") != remote::message_key(*message, "t"))
    fail("reading back changed the key");
}

void try_answer(std::string_view text) {
  (void)remote::read_error(text);
  const Expected<remote::CompileAnswer> answer = remote::read_answer(text);
  if (!answer) return;
  const std::string written = remote::write_answer(*answer);
  const Expected<remote::CompileAnswer> again = remote::read_answer(written);
  if (!again || remote::write_answer(*again) != written) fail("reading back changed the answer");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  try_request(text);
  try_answer(text);
  return 0;
}
