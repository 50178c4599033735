#!/usr/bin/env bash
# chroot-check.sh BINARY: proves that berth needs no file but itself, as in the
# container image, which has no other.
#
# Holds the one-node cluster that makes a server SERVING. Promises, by exit 0:
# ldd calls BINARY static; alone in an empty root, with an empty environment, it
# serves; `berth healthcheck` in the same root exits 0; grpcurl lists a berth.v1
# service; and SIGTERM ends the server within 10 s. Otherwise it exits non-zero,
# saying what failed and what the server said. Either way it leaves no process
# and no file behind. Run it as root, with grpcurl on the PATH or from tools.sh.
set -euo pipefail

work='' server=''

cleanup() {
  if [[ -n $server ]]; then { kill -KILL "$server" && wait "$server"; } 2>/dev/null || true; fi
  if [[ -n $work ]]; then rm -rf "$work"; fi
}
trap cleanup EXIT
trap 'exit 130' INT TERM HUP

die() {
  echo "chroot-check.sh: FAILED: $*" >&2
  if [[ -n $work && -s $work/log ]]; then sed 's/^/  server: /' "$work/log" >&2; fi
  exit 1
}

[[ $# -eq 1 && -x $1 && -f $1 ]] || die "usage: chroot-check.sh BINARY"
[[ $EUID -eq 0 ]] || die "chroot needs root"
PATH=${BERTH_CI_TOOLS:-${HOME:-}/.cache/berth-ci}/bin:$PATH
command -v grpcurl >/dev/null || die "no grpcurl: run tools.sh first"
chroot=$(command -v chroot) || die "no chroot command"

# "not a dynamic executable" is what ldd calls a static one that is not a PIE.
linked=$(LC_ALL=C ldd "$1" 2>&1) || true
[[ $linked == *"statically linked"* || $linked == *"not a dynamic executable"* ]] ||
  die "$1 is not static, says ldd: $linked"

work=$(mktemp -d)
jail=$work/jail
mkdir "$jail"
cp "$1" "$jail/berth"
cat >"$jail/cluster.yaml" <<'YAML'
apiVersion: v1
kind: Node
metadata:
  name: n1
status:
  allocatable:
    cpu: "4"
    memory: 8Gi
    pods: "110"
YAML

# A free port below the range that the kernel gives out by itself.
for _ in {1..50}; do
  addr=127.0.0.1:$((20000 + RANDOM % 12000))
  (: <>"/dev/tcp/${addr/://}") 2>/dev/null || break
  addr=''
done
[[ -n $addr ]] || die "found no free port"

# /berth in the empty root, with an empty environment.
berth=(env -i "$chroot" "$jail" /berth)

"${berth[@]}" serve --addr "$addr" --cluster /cluster.yaml >"$work/log" 2>&1 </dev/null &
server=$!

said='' healthy=''
for ((end = SECONDS + 30; SECONDS < end; )); do
  kill -0 "$server" 2>/dev/null || die "the server ended before it was healthy"
  if said=$(timeout 5 "${berth[@]}" healthcheck --addr "$addr" 2>&1); then
    healthy=yes
    break
  fi
  sleep 0.2
done
[[ -n $healthy ]] || die "healthcheck in the chroot did not exit 0 within 30 s; last it said: $said"

services=$(grpcurl -plaintext -max-time 10 "$addr" list 2>&1) || die "grpcurl list: $services"
grep -q '^berth\.v1\.' <<<"$services" || die "grpcurl lists no berth.v1 service: $services"

kill -TERM "$server"
for _ in {1..50}; do
  kill -0 "$server" 2>/dev/null || break
  sleep 0.2
done
! kill -0 "$server" 2>/dev/null || die "the server did not end within 10 s of SIGTERM"
status=0
wait "$server" || status=$?
server=''
[[ $status -eq 0 || $status -eq 143 ]] || die "the server exited $status on SIGTERM"

echo "chroot-check.sh: ok: static, served alone in a chroot (healthcheck 0, exit $status on SIGTERM); services: ${services//$'\n'/ }"
