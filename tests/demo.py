#!/usr/bin/env python3
"""Runs `berth demo --json` twice and holds it to what it promises.

usage: demo.py BINARY

Counts and the placements' hash decide; times are only printed. That no node is over its allocatable is checked in
process by `cargo test --test demo`.
"""
import json, subprocess, sys

def run(binary):
    p = subprocess.run([binary, "demo", "--json"], capture_output=True, text=True, timeout=300)
    if p.returncode: sys.exit(f"demo.py: exit {p.returncode}: {p.stderr[-2000:]}")
    return json.loads(p.stdout)

def main():
    first, second = run(sys.argv[1]), run(sys.argv[1])
    print(json.dumps(first))
    bad = [f"{k} is {first.get(k)}, not {v}" for k, v in {"nodes": 1523, "pods": 8152}.items() if first.get(k) != v]
    if first["placed"] <= 8000: bad.append(f"only {first['placed']} placed")
    if first["placed"] + first["unplaced"] != first["pods"]: bad.append("placed and unplaced don't add up")
    if first["placements_sha256"] != second["placements_sha256"]: bad.append("two runs placed differently")
    for b in bad: print("demo.py:", b)
    print(f"{5 - len(bad)} passed, {len(bad)} failed")
    sys.exit(1 if bad else 0)

if __name__ == "__main__": main()
