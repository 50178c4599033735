#!/usr/bin/env bash
# Holds the pinned versions of the outside tools that CI uses: grpcurl, ghz, buf.
#
# Promises: after exit 0 each of them, at its pinned version, is in
# ${BERTH_CI_TOOLS:-$HOME/.cache/berth-ci}/bin, and its version and path have
# been printed. A tool that is there already is not installed again, and one
# whose install broke off is. If one cannot be had it says which and why, and
# exits 1. Needs go (grpcurl, ghz), python3 with venv (buf) and their registries.
#
# Use:  bash .ci/tools.sh && PATH="${BERTH_CI_TOOLS:-$HOME/.cache/berth-ci}/bin:$PATH"
set -euo pipefail

# Before raising one, try it: the module's go.mod must not want a newer go than
# CI's. ghz is never "@latest": the module proxy may answer that with a release
# from 2021 that speaks only the older reflection protocol.
GRPCURL_VERSION=v1.9.4
GHZ_VERSION=v0.120.0
BUF_VERSION=1.75.0

cache=${BERTH_CI_TOOLS:-$HOME/.cache/berth-ci}
mkdir -p "$cache/bin"
cache=$(cd "$cache" && pwd)
tmp=$(mktemp -d "$cache/tmp.XXXXXX")
trap 'rm -rf "$tmp"' EXIT

die() {
  echo "tools.sh: $*" >&2
  exit 1
}

# need COMMAND TOOL: COMMAND must be on the PATH, since TOOL is installed with it.
need() {
  command -v "$1" >/dev/null || die "$2 cannot be had: it is installed with '$1', which is not on the PATH"
}

# get_go TOOL VERSION MODULE PACKAGE: builds TOOL into $tmp, outside any module.
get_go() {
  need go "$1"
  (cd "$tmp" && GOBIN="$tmp" go install -trimpath -ldflags "-s -w -X main.version=$2" "$3/$4@$2")
}

# get_pip TOOL VERSION PACKAGE: takes the binary TOOL out of a wheel into $tmp.
# It must run without the venv that it came in (buf's is a static binary).
get_pip() {
  need python3 "$1"
  python3 -m venv "$tmp/venv" &&
    "$tmp/venv/bin/pip" install --quiet --disable-pip-version-check --no-deps --only-binary :all: "$3==$2" &&
    cp "$tmp/venv/bin/$1" "$tmp/$1"
}

# have TOOL VERSION VERSION-FLAG GETTER ARGS...: unless TOOL is there at VERSION,
# has GETTER TOOL VERSION ARGS... make it; checks that it runs, and prints it.
have() {
  local tool=$1 version=$2 flag=$3 getter=$4 file=$cache/$1-$2 said
  shift 4
  if [[ ! -x $file ]]; then
    echo "tools.sh: installing $tool $version" >&2
    "$getter" "$tool" "$version" "$@" >&2 || die "$tool $version cannot be had: its install failed (above)"
    mv "$tmp/$tool" "$file"
  fi
  said=$("$file" "$flag" 2>&1) || die "$tool $version is at $file but does not run: $said"
  [[ $said == *"$version"* ]] || die "$file is not $tool $version: it says '$said'"
  ln -sfn "../$tool-$version" "$cache/bin/$tool"
  echo "$tool $version $cache/bin/$tool"
}

have grpcurl "$GRPCURL_VERSION" -version get_go github.com/fullstorydev/grpcurl cmd/grpcurl
have ghz "$GHZ_VERSION" --version get_go github.com/bojand/ghz cmd/ghz
have buf "$BUF_VERSION" --version get_pip buf-bin
