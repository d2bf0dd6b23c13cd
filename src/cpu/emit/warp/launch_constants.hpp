// SPDX-License-Identifier: Apache-2.0
// Fields of LaunchState and WorkerState that do not change during a launch. Each is loaded once, in the
// function's entry block, and marked invariant.
#pragma once

#include <map>

#include "cpu/emit/warp/body_state.hpp"

namespace quern::cpu::emit {

class LaunchConstants : private BodyPart {
 public:
  explicit LaunchConstants(BodyState& body) : BodyPart(body), local_bases_(body.gang.width) {}

  llvm::Value* params();
  llvm::Value* window_base();
  llvm::Value* window_bytes();
  llvm::Value* window_limit(std::uint32_t param, std::uint32_t mask, std::uint32_t low);
  llvm::Value* streams(ir::Value store);
  llvm::Value* shared_base();
  llvm::Value* local_base();
  llvm::Value* local_stride();
  llvm::Value* local_begin();
  /// The grid extent in `dimension`, i32; each call emits a load.
  llvm::Value* grid(unsigned dimension);

 private:
  llvm::Value* load(llvm::Value* base, std::uint64_t offset, llvm::Type* type,
                    std::uint64_t pointee_bytes = 0);
  llvm::Value* cached(unsigned which, llvm::Value* base, std::uint64_t offset, llvm::Type* type,
                      std::uint64_t bytes = 0);

  std::array<llvm::Value*, 8> cache_{};
  std::map<std::array<std::uint32_t, 3>, llvm::Value*> limits_;  ///< by parameter, mask and low bits
  std::map<std::uint32_t, llvm::Value*> streams_;                ///< by parameter
  std::vector<llvm::Value*> local_bases_;                        ///< by warp of the gang
};

}  // namespace quern::cpu::emit
