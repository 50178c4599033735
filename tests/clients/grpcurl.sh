#!/usr/bin/env bash
# grpcurl.sh BINARY: drives a served BINARY with the clients that its users have: grpcurl to list, describe, feed a pasted
# manifest and schedule, ghz for 200 calls; and asks its admin port. Needs both on the PATH (.ci/tools.sh installs them).
#
# Promises: exit 0 only if every answer was right; the server is stopped whatever happens; prints "N passed, 0 failed".
set -euo pipefail

binary=${1:?usage: grpcurl.sh BINARY}
tmp=$(mktemp -d)
"$binary" serve --addr 127.0.0.1:0 >"$tmp/out" 2>"$tmp/log" &
server=$!
trap 'kill "$server" 2>/dev/null || true; wait "$server" 2>/dev/null || true; rm -rf "$tmp"' EXIT

passed=0
die() {
  echo "grpcurl.sh: $*" >&2
  sed 's/^/  server: /' "$tmp/out" "$tmp/log" >&2
  exit 1
}
# expect WHAT PATTERN TEXT: TEXT has a line that matches.
expect() {
  grep -Eq -- "$2" <<<"$3" || die "$1: nothing matches '$2' in: $3"
  passed=$((passed + 1))
}

for _ in $(seq 100); do
  addr=$(grep -Eo '127\.0\.0\.1:[0-9]+' "$tmp/out" | head -1 || true)
  [[ -n $addr ]] && break
  kill -0 "$server" || die "the server ended"
  sleep 0.1
done
[[ -n ${addr:-} ]] || die "the server printed no address"
admin=$(grep -Eo 'http://127\.0\.0\.1:[0-9]+' "$tmp/out" | head -1)
admin=${admin#http://}
# http PATH: an answer of the admin port, head and body, by bash alone.
http() {
  exec 3<>"/dev/tcp/${admin/://}"
  printf 'GET %s HTTP/1.0\r\n\r\n' "$1" >&3
  cat <&3
  exec 3>&-
}
call() { grpcurl -plaintext -d "$2" "$addr" "berth.v1.$1"; }

expect "list" '^berth\.v1\.SchedulerService$' "$(grpcurl -plaintext "$addr" list)"
expect "describe shows the comments" 'Decides one pod' "$(grpcurl -plaintext "$addr" describe berth.v1.SchedulerService)"
expect "not ready without a node" 'Unavailable' "$(call SchedulerService/Schedule '{"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"early"},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}}' 2>&1 || true)"
expect "not ready over HTTP" '^HTTP/1\.[01] 503' "$(http /readyz)"
expect "feed a node" '"applied": "1"' "$(call FeedService/UpdateNodes '{"events":[{"manifest":{"apiVersion":"v1","kind":"Node","metadata":{"name":"n1","labels":{"kubernetes.io/hostname":"n1"}},"status":{"allocatable":{"cpu":"4","memory":"16Gi","pods":"110"}}}}]}')"
expect "feed a pod" '"applied": "1"' "$(call FeedService/UpdatePods '{"events":[{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","uid":"u1"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"3"}}}]}}}]}')"
expect "a bad item is named with its path" 'spec\.containers\[0\]\.resources\.requests\[cpu\]' "$(call FeedService/UpdatePods '{"events":[{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"bad","uid":"u2"},"spec":{"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"1x"}}}]}}}]}')"
expect "schedule" '"node": "n1"' "$(call SchedulerService/Schedule '{"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-2"},"spec":{"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"500m"}}}]}}}}')"
expect "a refusal" '0/1 nodes are available: 1 Insufficient cpu\.' "$(call SchedulerService/Schedule '{"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-3"},"spec":{"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"2"}}}]}}}}')"
expect "what to wait for" 'ACTION_TYPE_DELETE' "$(call SchedulerService/Schedule '{"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-3"},"spec":{"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"2"}}}]}}}}')"
expect "a preemption is proposed" 'PREEMPTION_STATUS_PROPOSED' "$(call SchedulerService/Schedule '{"dry_run":true,"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"vip"},"spec":{"priority":100,"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"2"}}}]}}}}')"
expect "a request overrides its profile" '"node": "n1"' "$(call SchedulerService/Schedule '{"dry_run":true,"override":{"disable":["NodeResourcesFit"]},"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"any"},"spec":{"containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"2"}}}]}}}}')"
expect "delete a pod" '"applied": "1"' "$(call FeedService/UpdatePods '{"events":[{"delete":{"name":"web-1"}}]}')"
expect "the refused pod is named" '"name": "web-3"' "$(grpcurl -plaintext -max-time 2 -d '{}' "$addr" berth.v1.SchedulerService/WatchRetries 2>/dev/null || true)"
expect "feed the pod again" '"applied": "1"' "$(call FeedService/UpdatePods '{"events":[{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-1","uid":"u1"},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"3"}}}]}}}]}')"
expect "a malformed pod" 'InvalidArgument' "$(call SchedulerService/Schedule '{"pod":{"manifest":{"kind":"Pod"}}}' 2>&1 || true)"
expect "the request id comes back" '^x-request-id: mine-1' "$(grpcurl -plaintext -v -H 'x-request-id: mine-1' -d '{"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-4"},"spec":{"containers":[{"name":"c","image":"nginx"}]}}},"dry_run":true}' "$addr" berth.v1.SchedulerService/Schedule)"
expect "ready over HTTP" '^HTTP/1\.[01] 200' "$(http /readyz)"
expect "metrics count the decisions" '^berth_schedule_attempts_total\{result="scheduled",profile="default-scheduler"\} 1' "$(http /metrics)"
expect "the dump has the pod" 'pod default/web-1 uid=u1 bound' "$(http /debug/cache)"
expect "feed a second node" '"applied": "1"' "$(call FeedService/UpdateNodes '{"events":[{"manifest":{"apiVersion":"v1","kind":"Node","metadata":{"name":"n2","labels":{"kubernetes.io/hostname":"n2"}},"status":{"allocatable":{"cpu":"4","memory":"16Gi","pods":"110"}}}}]}')"
expect "feed a pod that can move" '"applied": "1"' "$(call FeedService/UpdatePods '{"events":[{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"web-9","uid":"u9","ownerReferences":[{"apiVersion":"apps/v1","kind":"ReplicaSet","name":"web","uid":"rs","controller":true}]},"spec":{"nodeName":"n1","containers":[{"name":"c","image":"nginx","resources":{"requests":{"cpu":"500m"}}}]},"status":{"phase":"Running"}}}]}')"
policy='{"apiVersion":"descheduler/v1alpha2","kind":"DeschedulerPolicy","profiles":[{"name":"p","pluginConfig":[{"name":"LowNodeUtilization","args":{"thresholds":{"cpu":20},"targetThresholds":{"cpu":50}}}],"plugins":{"balance":{"enabled":["LowNodeUtilization"]}}}]}'
expect "a pasted policy says who should move" '"uid": "u9"' "$(call EvictionService/SuggestEvictions "{\"policy\":$policy}")"
expect "why another stays" '"protection": "BarePods"' "$(call EvictionService/SuggestEvictions "{\"policy\":$policy}")"
expect "the story of a pod" 'STRATEGY_VERDICT_LEFT_ALONE' "$(call EvictionService/SuggestEvictions "{\"policy\":$policy,\"explainPod\":{\"name\":\"web-1\"}}")"
expect "a mistake of a policy has its path" 'policy\.nodeFit' "$(call EvictionService/SuggestEvictions '{"policy":{"apiVersion":"descheduler/v1alpha2","kind":"DeschedulerPolicy","nodeFit":true}}' 2>&1 || true)"
expect "health" 'SERVING' "$(grpcurl -plaintext "$addr" grpc.health.v1.Health/Check)"

report=$(ghz --insecure --call berth.v1.SchedulerService/Schedule -n 200 -c 10 --format json \
  -d '{"dry_run":true,"pod":{"manifest":{"apiVersion":"v1","kind":"Pod","metadata":{"name":"load-{{.RequestNumber}}"},"spec":{"containers":[{"name":"c","image":"nginx"}]}}}}' "$addr")
expect "ghz: 200 calls without an error" '^200 OK$' "$(python3 -c '
import json, sys
r = json.load(sys.stdin)
for code, n in r["statusCodeDistribution"].items(): print(n, code)' <<<"$report")"

echo "$passed passed, 0 failed"
