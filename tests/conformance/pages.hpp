// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstddef>
#include <cstring>
#include <string>

#include "suite.hpp"

namespace quern::conformance {

/// Pages of the host, mapped side by side.
class Pages {
 public:
  /// `file`: a descriptor, from whose beginning they are mapped; -1: none.
  explicit Pages(std::size_t count, int file = -1) : count_(count) {
    void* const got = ::mmap(nullptr, count * size(), PROT_READ | PROT_WRITE,
                             file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED, file, 0);
    REQUIRE(got != MAP_FAILED);
    base_ = static_cast<char*>(got);
  }
  ~Pages() { ::munmap(base_, count_ * size()); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;

  static std::size_t size() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }
  char* at(std::size_t page) const { return base_ + page * size(); }
  void protect(std::size_t page, int protection) const {
    REQUIRE(::mprotect(at(page), size(), protection) == 0);
  }
  void unmap(std::size_t page) const { REQUIRE(::munmap(at(page), size()) == 0); }
  /// Writes the bytes so that they end where that page begins.
  char* put_before(std::size_t page, const std::string& bytes) const {
    char* const begin = at(page) - bytes.size();
    std::memcpy(begin, bytes.data(), bytes.size());
    return begin;
  }

 private:
  std::size_t count_;
  char* base_ = nullptr;
};

}  // namespace quern::conformance
