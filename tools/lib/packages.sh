# SPDX-License-Identifier: Apache-2.0
# The packages that quern needs on Debian 12, level by level. Each row: package, and a command that succeeds where it is there already in
# another form ("-": only the package itself will do). Sourced by tools/setup.

packages_of_run() {
  cat <<'ROWS'
g++                g++ --version
meson              meson_is_new_enough
ninja-build        ninja --version
pkg-config         pkg-config --version
python3            python3 --version
libfmt-dev         -
libssl-dev         -
libpng-dev         -
libcli11-dev       -
nlohmann-json3-dev -
libtomlplusplus-dev -
libcpp-httplib-dev -
libspdlog-dev      -
llvm-19-dev        -
libzstd-dev        -
libxxhash-dev      -
libhiredis-dev     -
zlib1g-dev         -
ROWS
}

packages_of_test() {
  packages_of_run
  cat <<'ROWS'
doctest-dev        -
clang-19           -
clang-format-19    -
clang-tidy-19      -
libclang-rt-19-dev -
libc++-19-dev      -
lld-19             -
llvm-19            -
cmake              cmake --version
git                git --version
python3-numpy      python3 -c 'import numpy'
redis-server       redis-server --version
nginx              nginx -v
openssl            openssl version
ROWS
}

packages_of_bench() {
  packages_of_run
  cat <<'ROWS'
clang-19           -
libbenchmark-dev   -
ROWS
}

# Large: tests that need these are skipped without them.
packages_of_deploy() {
  packages_of_test
  cat <<'ROWS'
chromium-headless-shell command -v chromium || command -v google-chrome
prometheus         promtool --version
haproxy            haproxy -v
systemd            systemd-analyze --version
python3-yaml       python3 -c 'import yaml'
ROWS
}

meson_is_new_enough() {
  local version
  version="$(meson --version 2>/dev/null)" || return 1
  [[ "$(printf '1.0.0\n%s\n' "$version" | sort -V | head -n 1)" == 1.0.0 ]]
}

# The wheels that stand in for a CUDA toolkit: one version, so that NVRTC and its headers go together.
TOOLKIT_WHEELS=(nvidia-cuda-nvrtc==13.0.88 nvidia-cuda-runtime==13.0.96 nvidia-cuda-crt==13.0.88 nvidia-cuda-cccl==13.0.85)
