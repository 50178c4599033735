#!/usr/bin/env bash
# static-build.sh TARGET_DIR: builds the binary that our Dockerfile ships, without Docker.
#
# Holds no build command of its own: it reads the Dockerfile's one `ENV RUSTFLAGS=`
# line and the one `RUN cargo build` line after it, and runs just that in the
# checkout, with CARGO_TARGET_DIR set to TARGET_DIR.
# Promises: after exit 0 the only thing on stdout is the absolute path of the
# binary. Exits non-zero, saying why, if the Dockerfile has not just those two
# lines, if the RUN line is more than a plain cargo command, or if the build fails.
set -euo pipefail

die() {
  echo "static-build.sh: $*" >&2
  exit 1
}

[[ $# -eq 1 && -n $1 ]] || die "usage: static-build.sh TARGET_DIR"
mkdir -p "$1"
CARGO_TARGET_DIR=$(cd "$1" && pwd)
export CARGO_TARGET_DIR
cd "$(dirname "${BASH_SOURCE[0]}")/.."
[[ -f Dockerfile ]] || die "no Dockerfile in the checkout"

mapfile -t lines < <(grep -E '^(ENV RUSTFLAGS=|RUN cargo build)' Dockerfile)
[[ ${#lines[@]} -eq 2 && ${lines[0]} == ENV* && ${lines[1]} == RUN* ]] ||
  die "the Dockerfile must have one 'ENV RUSTFLAGS=' line and, after it, one 'RUN cargo build' line"

flags=${lines[0]#ENV RUSTFLAGS=}
if [[ $flags =~ ^\"([^\"\\\$]*)\"$ || $flags =~ ^\'([^\']*)\'$ || $flags =~ ^([^\"\'\\\$[:space:]]+)$ ]]; then
  export RUSTFLAGS=${BASH_REMATCH[1]}
else
  die "cannot read the value in: ${lines[0]}"
fi
unset CARGO_ENCODED_RUSTFLAGS CARGO_BUILD_TARGET # either would change what is built

command=${lines[1]#RUN }
[[ $command =~ ^[A-Za-z0-9\ =_./,:@+-]+$ ]] || die "not a plain one-line cargo command: $command"
profile=debug triple=
[[ " $command " == *" --release "* ]] && profile=release
[[ $command =~ \ --profile[=\ ]([^ ]+) ]] && profile=${BASH_REMATCH[1]}
[[ $command =~ \ --target[=\ ]([^ ]+) ]] && triple=${BASH_REMATCH[1]}/

echo "static-build.sh: RUSTFLAGS='$RUSTFLAGS' $command" >&2
sh -c "$command" >&2 || die "the Dockerfile's build command failed"
binary=$CARGO_TARGET_DIR/$triple$profile/berth
[[ -x $binary ]] || die "the build passed but left no $binary"
echo "$binary"
