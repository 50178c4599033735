#!/usr/bin/env python3
"""Runs `berth demo --json` twice and holds it to what it promises.

usage: demo.py BINARY

Counts and the hashes of placements and plan decide; times are only printed. That no node is over its allocatable is
checked in process by `cargo test --test demo`.
"""
import json, subprocess, sys

PLACEMENTS = "132a55e24524d14072a7c87d889057ac09ec8ce2f591e77b55738b5cc18fa4ce"
# Of a plan, what depends on the machine.
TIMES = {"ms"}

def run(binary):
    p = subprocess.run([binary, "demo", "--json"], capture_output=True, text=True, timeout=300)
    if p.returncode: sys.exit(f"demo.py: exit {p.returncode}: {p.stderr[-2000:]}")
    return json.loads(p.stdout)

def without_times(plan): return {k: v for k, v in plan.items() if k not in TIMES}

def main():
    first, second = run(sys.argv[1]), run(sys.argv[1])
    print(json.dumps(first))
    plan = first["plan"]
    gains = [m["gain"] for m in plan["measures"]]
    checks = [
        (first["nodes"] == 1523, f"{first['nodes']} nodes, not 1523"),
        (first["pods"] == 8152, f"{first['pods']} pods, not 8152"),
        (first["placed"] > 8000, f"only {first['placed']} placed"),
        (first["placed"] + first["unplaced"] == first["pods"], "placed and unplaced don't add up"),
        (first["placements_sha256"] == PLACEMENTS, f"placed otherwise than before: {first['placements_sha256']}"),
        (first["placements_sha256"] == second["placements_sha256"], "two runs placed differently"),
        (plan["nodes_returned"] > 0 and plan["pods_evicted"] > 0, "no node was emptied"),
        (plan["pods_waiting"] == 0, f"{plan['pods_waiting']} evicted pods have no node, though their nodes are back"),
        (plan["suggestions"] > 0, "no move is suggested, though nodes came back empty"),
        (without_times(plan) == without_times(second["plan"]), "two runs planned differently"),
        (all(g["after"] <= g["before"] for g in gains), f"the plan makes it worse: {gains}"),
    ]
    bad = [text for holds, text in checks if not holds]
    for b in bad: print("demo.py:", b)
    print(f"{len(checks) - len(bad)} passed, {len(bad)} failed")
    sys.exit(1 if bad else 0)

if __name__ == "__main__": main()
