// SPDX-License-Identifier: Apache-2.0
#include "base/signing_keys.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>

#include <doctest/doctest.h>

using namespace quern::base;

namespace {

const std::string kFirst(64, 'a');
const std::string kSecond(128, '7');

SigningKeys keys_of(const std::string& text) {
  auto keys = SigningKeys::parse(text, "k");
  REQUIRE(keys);
  return *keys;
}

std::string refusal_of(const std::string& text) {
  const auto keys = SigningKeys::parse(text, "keys.txt");
  REQUIRE_FALSE(keys);
  CHECK(keys.errors().front().code == "key-file");
  return keys.errors().front().message;
}

}  // namespace

// The examples of RFC 4231, sections 4.2, 4.3, 4.4 and 4.7.
TEST_CASE("hmac_sha256 gives the examples of RFC 4231") {
  CHECK(hmac_sha256(std::string(20, '\x0b'), "Hi There").hex() ==
        "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  CHECK(hmac_sha256("Jefe", "what do ya want for nothing?").hex() ==
        "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
  CHECK(hmac_sha256(std::string(20, '\xaa'), std::string(50, '\xdd')).hex() ==
        "773ea91e36800e46854db8ebd09181a72959098b3ef8c122d9635514ced565fe");
  CHECK(
      hmac_sha256(std::string(131, '\xaa'), "Test Using Larger Than Block-Size Key - Hash Key First").hex() ==
      "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

TEST_CASE("a seal is good for its key, purpose and bytes alone") {
  const SigningKeys keys = keys_of(kFirst);
  const Seal seal = Seal::from_bytes(keys.seal("store", "value").bytes());
  CHECK(keys.check(seal, "store", "value") == SealCheck::good);
  CHECK(keys.check(seal, "store", "valuf") == SealCheck::wrong);
  CHECK(keys.check(seal, "bundle", "value") == SealCheck::wrong);
  // The end of the purpose must not count as the beginning of the bytes.
  CHECK(keys.check(seal, "storev", "alue") == SealCheck::wrong);
  CHECK(keys_of(kSecond).check(seal, "store", "value") == SealCheck::unknown_key);
  Seal changed = seal;
  changed.code.bytes[31] ^= 1;
  CHECK(keys.check(changed, "store", "value") == SealCheck::wrong);
}

TEST_CASE("a key is replaced in three steps, and no seal is refused between them") {
  const SigningKeys before = keys_of(kFirst);
  const SigningKeys accepts = keys_of("# rotation\n\n" + kFirst + "\n  " + kSecond + "\r\n");
  const SigningKeys signs = keys_of(kSecond + "\n" + kFirst);
  const SigningKeys after = keys_of(kSecond);
  const auto good = [](const SigningKeys& writer, const SigningKeys& reader) {
    return reader.check(writer.seal("p", "x"), "p", "x") == SealCheck::good;
  };
  for (const auto& [one, other] : {std::pair{&before, &accepts}, {&accepts, &signs}, {&signs, &after}}) {
    CHECK(good(*one, *other));
    CHECK(good(*other, *one));
  }
  CHECK_FALSE(good(before, after));
}

TEST_CASE("what is no key is refused with its line") {
  CHECK(refusal_of("") == "cannot use key file keys.txt: it has no keys");
  CHECK(refusal_of("# nothing\n") == "cannot use key file keys.txt: it has no keys");
  for (const std::string& line :
       {std::string(62, 'a'), std::string(65, 'a'), std::string(258, 'a'), std::string(63, 'a') + "g"})
    CHECK(refusal_of(kFirst + "\n" + line).find("line 2 is no key") != std::string::npos);
}

TEST_CASE("a key file that others may read is refused") {
  char path[] = "/tmp/quern-keys-XXXXXX";
  const int file = mkstemp(path);
  REQUIRE(file >= 0);
  close(file);
  std::ofstream(path) << kFirst << "\n";
  CHECK(SigningKeys::read(path));
  for (const mode_t mode : {0604u, 0602u, 0620u}) {
    chmod(path, mode);
    const auto keys = SigningKeys::read(path);
    REQUIRE_FALSE(keys);
    CHECK(keys.errors().front().message.find("others can read or change it") != std::string::npos);
  }
  chmod(path, 0640);
  CHECK(SigningKeys::read(path));
  unlink(path);
  CHECK_FALSE(SigningKeys::read(path));
}
