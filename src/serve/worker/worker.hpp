// SPDX-License-Identifier: Apache-2.0
// The process that compiles: forked from the nursery, which has loaded NVRTC, it gives up rights that
// compiling does not need, and answers one request after the other.
#pragma once

#include "serve/worker/shared_messages.hpp"
#include "session/request_compiler.hpp"

namespace quern::serve {

/// The folders that a worker reads: the toolkit's headers, and the libraries beside NVRTC.
std::vector<std::string> readable_folders(const WorkerHello& hello);

/// Enters the sandbox, sends `hello` with its state, and runs until the server closes the socket.
[[noreturn]] void run_worker(int socket, session::RequestCompiler& compiler, WorkerHello hello);

}  // namespace quern::serve
