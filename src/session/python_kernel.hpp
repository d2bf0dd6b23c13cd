// SPDX-License-Identifier: Apache-2.0
// A kernel of a Kernel Python file, compiled for each list of argument types that it is launched with.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "base/thread_annotations.hpp"
#include "launch/loaded_kernel.hpp"
#include "session/state.hpp"

namespace quern::session {

/// The types alone, written one way: "void( int32,)" is "int32". A specialisation's key in the code table.
std::string plain_types(std::string_view types);

/// The code of a kernel for these types, from the module's table or compiled now. `types` empty: those that
/// its decorator gives.
Expected<CodeTable::Image> specialisation_image(const SessionState& session, const ModuleOrigin& origin,
                                                const std::string& kernel, const std::string& types);

/// The same, loaded.
Expected<std::shared_ptr<const launch::LoadedKernel>> load_specialisation(const SessionState& session,
                                                                          const ModuleOrigin& origin,
                                                                          const std::string& kernel,
                                                                          const std::string& types);

class PythonKernel final : public launch::KernelState {
 public:
  using Specialisation = std::shared_ptr<const launch::LoadedKernel>;

  /// `outline` names the kernel and its parameters.
  PythonKernel(std::shared_ptr<SessionState> session, std::shared_ptr<const ModuleOrigin> origin,
               abi::EntryInfo outline);

  const std::string& name() const noexcept override { return outline_.name; }
  const std::string& signature_text() const noexcept override { return signature_; }
  const std::vector<Parameter>& parameters() const noexcept override { return parameters_; }
  KernelInfo info() const override;
  const launch::LoadedKernel* loaded() const noexcept override { return nullptr; }
  std::shared_ptr<const launch::KernelState> specialise(std::span<const Argument> arguments) const override;
  std::shared_ptr<const launch::KernelState> specialise(std::string_view signature) const override;
  std::vector<std::string> specialisations() const override;
  void launch(const LaunchConfig& config, std::span<const Argument> arguments) const override;
  void prepare(const Dim3& block) const override;

 private:
  Specialisation find(std::span<const Argument> arguments) const QUERN_EXCLUDES(mutex_);
  Specialisation compile(const std::string& types) const QUERN_EXCLUDES(mutex_);
  std::string types_of(std::span<const Argument> arguments) const;

  const std::shared_ptr<SessionState> session_;
  const std::shared_ptr<const ModuleOrigin> origin_;
  const abi::EntryInfo outline_;
  std::string signature_;  // "saxpy(a, x, y)"
  std::vector<Parameter> parameters_;
  mutable base::Mutex mutex_;
  mutable std::map<std::string, Specialisation, std::less<>> known_
      QUERN_GUARDED_BY(mutex_);  ///< by their types
  /// The same by the arguments of launches, so that a launch of known types neither writes nor reads a
  /// signature.
  mutable std::map<std::string, Specialisation, std::less<>> launched_ QUERN_GUARDED_BY(mutex_);
};

}  // namespace quern::session
