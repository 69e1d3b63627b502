#!/usr/bin/env python3
"""An agent's loop that keeps its messages small with `epitome` as a subprocess. Standard library only.

    python3 examples/agent_loop.py [PATH-TO-EPITOME]
"""

import json
import subprocess
import sys

EPITOME = sys.argv[1] if len(sys.argv) > 1 else "epitome"


def epitome(*arguments, messages):
    run = subprocess.run([EPITOME, *arguments, "-", "--json"], input=json.dumps(messages), capture_output=True, text=True)
    if run.returncode:
        sys.exit(run.stderr)
    return json.loads(run.stdout)


messages = []
for turn in range(12):
    messages += [
        {"role": "user", "content": f"Step {turn}: run the checks. Never push to main."},
        {"role": "assistant", "content": [{"type": "tool_use", "id": f"call_{turn}", "name": "Bash", "input": {"command": "just check"}}]},
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": f"call_{turn}", "content": f"check {turn}: ok\n" * 150}]},
        {"role": "assistant", "content": f"Step {turn} is done."},
    ]
    before = epitome("estimate", messages=messages)["tokens"]
    if before > 6_000:
        answer = epitome("compact", "--budget", "2000", "--as", "anthropic", messages=messages)
        # Keep what comes back: the next compaction merges this summary into its own.
        messages = answer["messages"]
        print(f"turn {turn}: {before} -> {answer['tokens_after']} tokens, {len(messages)} messages, undo: {answer['handle']}")

assert any("Never push to main" in json.dumps(m) for m in messages)
