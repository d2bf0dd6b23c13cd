// SPDX-License-Identifier: Apache-2.0
// diagnostic_codes_test.py compares the rows with the sources.
#include "base/diagnostic_codes.hpp"

#include <doctest/doctest.h>

using namespace quern;
using base::error_code_of;
using base::is_diagnostic_code;

TEST_CASE("a diagnostic's code decides the kind of error") {
  CHECK(error_code_of("usage") == ErrorCode::usage);
  CHECK(error_code_of("syntax") == ErrorCode::compile);
  CHECK(error_code_of("unknown-kernel") == ErrorCode::not_found);
  CHECK(error_code_of("no-such-stage") == ErrorCode::usage);
}

TEST_CASE("the code that a diagnostic of an exception has is of the exception's kind") {
  for (int i = 0; i <= static_cast<int>(ErrorCode::cancelled); ++i) {
    const auto code = static_cast<ErrorCode>(i);
    CHECK(error_code_of(to_string(code)) == code);
  }
}

TEST_CASE("numbered messages of NVRTC are about source, and other unknown codes are a defect") {
  CHECK(error_code_of("cuda-20012") == ErrorCode::compile);
  CHECK(is_diagnostic_code("cuda-20012"));
  CHECK(is_diagnostic_code("internal"));
  for (const char* unknown : {"", "cuda-", "cuda-x1", "no-such-code", "zz"})
    CHECK((error_code_of(unknown) == ErrorCode::internal && !is_diagnostic_code(unknown)));
}
