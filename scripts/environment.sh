# Sourced by ./quickstart and ./test: makes the private Python environment .venv of this checkout.
# Nothing is written outside the checkout.

say() { printf '== %s\n' "$*"; }
fail() { printf '%s\n' "$@" >&2; exit 1; }

# The first Python of version 3.10 or newer; PYTHON=... chooses one.
find_python() {
  local candidate
  for candidate in ${PYTHON:-} python3 python3.13 python3.12 python3.11 python3.10 python3.14; do
    if "$candidate" -c 'import sys; sys.exit(sys.version_info < (3, 10))' >/dev/null 2>&1; then
      command -v "$candidate"
      return
    fi
  done
  return 1
}

# Debian and Ubuntu ship Python without what `python -m venv` needs.
make_venv() {
  local python=$1
  if "$python" -c 'import ensurepip' >/dev/null 2>&1; then
    "$python" -m venv .venv
  elif command -v uv >/dev/null 2>&1; then
    uv venv --quiet --seed --python "$python" .venv
  elif "$python" -m pip --version >/dev/null 2>&1; then
    "$python" -m venv --without-pip .venv
    "$python" -m pip --python .venv/bin/python install --quiet pip
  elif [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then
    say "installing Debian's python3-venv, which $python lacks"
    apt-get update -qq >/dev/null
    DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends python3-venv >/dev/null
    "$python" -m venv .venv
  else
    fail "$python cannot make a virtual environment: it has neither ensurepip nor pip." \
      "  try:  sudo apt-get install python3-venv, then this command again"
  fi
}

# A line every half minute, while something says nothing itself.
with_signs_of_life() {
  local began=$SECONDS code=0 signs
  (while sleep 30; do say "still at it, after $((SECONDS - began)) s"; done) &
  signs=$!
  "$@" || code=$?
  kill "$signs" 2>/dev/null
  wait "$signs" 2>/dev/null || true
  return "$code"
}

# uv takes a tenth of pip's time. What it cannot get, pip may: it has settings of its own.
install_checkout() {
  local extra=$1 uv
  if [ -z "${PIP_NO_INDEX:-}" ]; then
    # Developers get uv in any case: it is one of [dev].
    [ "$extra" != dev ] || .venv/bin/python -m pip install --quiet uv || true
    uv=$(PATH="$PWD/.venv/bin:$PATH" command -v uv || true)
    if [ -n "$uv" ] && UV_CACHE_DIR="$PWD/.cache/uv" UV_FIND_LINKS="${UV_FIND_LINKS:-${PIP_FIND_LINKS:-}}" \
      "$uv" pip install --quiet --python .venv/bin/python --editable ".[$extra]"; then
      return
    fi
  fi
  .venv/bin/python -m pip install --quiet --editable ".[$extra]"
}

# make_environment EXTRA: .venv with this checkout installed, and what [EXTRA] of pyproject.toml lists.
make_environment() {
  local extra=$1 python stamp wanted
  export PIP_CACHE_DIR="$PWD/.cache/pip" PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
  python=$(find_python) || fail "runyard needs Python 3.10 or newer, and none was found." \
    "  try:  install one, or name it: PYTHON=/path/to/python3 $0"
  if [ -d .venv ] && ! .venv/bin/python -c pass >/dev/null 2>&1; then
    say "the environment in .venv is broken (its Python has moved?): making it again"
    rm -rf .venv
  fi
  stamp=".venv/.installed-$extra"
  # The page is built by the installation: other sources of it need another one.
  wanted=$(cksum <pyproject.toml; pwd; find dashboard/app -name node_modules -prune -o -type f -exec cksum {} + | sort)
  if [ -f "$stamp" ] && [ "$(cat "$stamp")" = "$wanted" ]; then
    say "the environment in .venv is ready"
    return
  fi
  if [ ! -d .venv ]; then
    say "making a private Python environment in .venv, with $python ($("$python" -V 2>&1))"
    make_venv "$python" || { rm -rf .venv; fail "could not make .venv"; }
  fi
  say "installing runyard and what it needs into .venv: packages are downloaded and the page is built"
  with_signs_of_life install_checkout "$extra" || fail "the installation failed." \
    "  try:  check the network (pip's own message is above), then this command again"
  printf '%s\n' "$wanted" >"$stamp"
}
