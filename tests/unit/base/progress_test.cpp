// SPDX-License-Identifier: Apache-2.0
#include "base/progress.hpp"

#include <doctest/doctest.h>

#include <stdexcept>
#include <string>
#include <vector>

#include "../support/captured_output.hpp"
#include "quern/log.hpp"

using namespace quern;

namespace {

std::string text(const Progress& progress) {
  return std::string(to_string(progress.stage)) + " " + std::string(progress.name) + " " +
         std::to_string(progress.done) + "/" + std::to_string(progress.total) +
         (progress.finished ? " finished" : "");
}

}  // namespace

TEST_CASE("a piece of work is told from its begin to its end") {
  base::ProgressSlot slot;
  std::vector<std::string> told;
  slot.exchange([&](const Progress& progress) {
    told.push_back(text(progress));
    return true;
  });
  base::Work work(&slot, ProgressStage::load, "k.cu", 2);
  CHECK(work.begin());
  CHECK(work.advance(1));
  work.finish(2);
  CHECK(told == std::vector<std::string>{"load k.cu 0/2", "load k.cu 1/2", "load k.cu 2/2 finished"});
}

TEST_CASE("work that nobody hears of goes on") {
  base::Work nobody(nullptr, ProgressStage::compile, "k.cu", 0);
  CHECK(nobody.begin());
  base::ProgressSlot slot;
  base::Work unheard(&slot, ProgressStage::compile, "k.cu", 0);
  CHECK(unheard.begin());
  CHECK(unheard.advance(3));
}

TEST_CASE("the handler's false cancels, and what it throws is a warning") {
  base::ProgressSlot slot;
  slot.exchange([](const Progress& progress) { return progress.done < 2; });
  base::Work work(&slot, ProgressStage::compile, "k.cu", 0);
  CHECK(work.begin());
  CHECK(work.advance(1));
  CHECK_FALSE(work.advance(2));
  slot.exchange([](const Progress&) -> bool { throw std::runtime_error("no window"); });
  bool goes_on = false;
  CHECK(test::output_of([&] { goes_on = work.advance(2); }) ==
        "quern: warning: the progress handler threw: no window\n");
  CHECK(goes_on);
}
