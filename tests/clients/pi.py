"""pi with our extension, as `epitome install pi` leaves it, against the kit's scripted model.

pi.py EPITOME PI     PI: the folder that `npm install @mariozechner/pi-coding-agent` was run in
  by hand, again with something new, resumed in a new process; by itself when the reported context is nearly full, and when
  the model refuses a request as too long; with a program that fails, and uninstalled
"""

import json, os, queue, re, shutil, subprocess, sys, threading, time

import flows, report, seat
from agents import INSTALL, URL

RULE, TAIL, WANT, OLD = seat.RULE, seat.TAIL, "Earlier conversation compacted", r"1001\s+1002"


class Pi:
    """`pi --mode rpc`: commands and events as lines of JSON."""

    def __init__(self, flow, cli, resume=False):
        arguments = [INSTALL + "/bin/node22", cli, "--mode", "rpc", "--provider", "fake", "--model", "fake-model"]
        self.p = subprocess.Popen(
            arguments + ["--continue"] * resume,
            cwd=flow.a.cwd,
            env={**environment(flow), "PI_OFFLINE": "1", "NODE_COMPILE_CACHE": os.environ.get("NODE_COMPILE_CACHE", "")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=open(flow.W + "/out/pi.stderr", "a"),
            text=True,
        )
        self.lines = queue.Queue()
        threading.Thread(target=self.read, daemon=True).start()

    def read(self):
        for line in self.p.stdout:
            self.lines.put(line)
        self.lines.put(None)

    def ask(self, command, ends, limit=60):
        """Sends a command; the event or response of that type, or nothing."""
        self.p.stdin.write(json.dumps(command) + "\n")
        self.p.stdin.flush()
        return self.until(lambda it: it.get("type") == ends and it.get("command") in (None, command["type"]), limit)

    def until(self, wanted, limit=60):
        """The next event that is wanted, or nothing."""
        end = time.time() + limit
        while time.time() < end:
            try:
                line = self.lines.get(timeout=max(0.01, end - time.time()))
            except queue.Empty:
                return None
            if line is None:
                return None
            found = json.loads(line)
            if wanted(found):
                return found
        return None

    def prompt(self, text):
        return self.ask({"type": "prompt", "message": text}, "agent_end")

    def compact(self):
        return (self.ask({"type": "compact"}, "response") or {}).get("success")

    def close(self):
        self.p.stdin.close()
        try:
            self.p.wait(10)
        except subprocess.TimeoutExpired:
            self.p.kill()
            self.p.wait()


def environment(flow):
    return {"HOME": flow.a.home, "PATH": "/usr/local/bin:/usr/bin:/bin", "TMPDIR": flow.W + "/tmp"}


def main(flow, epitome, folder):
    program = flow.W + "/epitome"
    shutil.copy(epitome, program)
    cli = folder + "/node_modules/@mariozechner/pi-coding-agent/dist/cli.js"
    agent = flow.a.home + "/.pi/agent"
    os.makedirs(agent)
    model = {"id": "fake-model", "contextWindow": 100000, "maxTokens": 4000}
    provider = {"baseUrl": URL + "/v1", "api": "openai-completions", "apiKey": "test-key", "models": [model]}
    settings = {"compaction": {"enabled": True, "reserveTokens": 8000, "keepRecentTokens": 500}}
    for name, value in (("models.json", {"providers": {"fake": provider}}), ("settings.json", settings)):
        with open(f"{agent}/{name}", "w") as f:
            json.dump(value, f)

    def ours(*arguments):
        return subprocess.run([program, *arguments], cwd=flow.a.cwd, env=environment(flow), capture_output=True, text=True)

    def last(prompt):
        found = [r for r in report.load(flow.log) if report.tool_list(r) and prompt in seat.text(r)]
        return found[-1] if found else None

    def judge(who, r, prompt):
        said = seat.text(r) if r else ""
        flow.check(f"{who}: the summary is sent once", said.count(WANT) == 1)
        flow.check(f"{who}: rule, tail and prompt are sent", RULE in said and TAIL in said and prompt in said)
        flow.check(f"{who}: the old output is not", said and not re.search(OLD, said))
        flow.check(f"{who}: calls and results are paired", r and not seat.unpaired(r))

    flow.check("install pi ends with 0", ours("install", "pi").returncode == 0)
    call = lambda command: {"name": "bash", "args": {"command": command}}
    looks = [call("seq 1000 1400"), call("seq 2000 2900")]
    low = {"input": 4000, "output": 10}
    turns = [
        {"text": "Looking.", "calls": looks, "usage": low},
        {"text": "SEAT-A1 the notes are read.", "usage": low},
        {"text": "Again.", "calls": [call("seq 3000 3400")], "usage": low},
        {"text": f"SEAT-A2 the test {TAIL} fails in parser.rs, line 12; that is next.", "usage": low},
    ]
    flow.start("pi", script={"rules": [], "turns": turns, "default": {"text": "SEAT-ANSWER", "usage": low}, "side": {"text": "OWN-SUMMARY", "usage": low}})
    asked = lambda: len([r for r in report.load(flow.log) if r["chosen"] == "side"])
    pi = Pi(flow, cli)
    flow.check("pi answers", pi.prompt(f"SEAT-U1 read the notes. Rules: {RULE}.") and pi.prompt("SEAT-U2 fix the parser"))
    flow.check("control: the old output is sent", re.search(OLD, seat.text(last("SEAT-U2"))))
    flow.check("pi compacts", pi.compact())
    flow.check("the model was asked for no compaction", asked() == 0)
    flow.check("pi answers the next prompt", pi.prompt("SEAT-U3 go on"))
    judge("running", last("SEAT-U3"), "SEAT-U3")
    flow.check("pi answers a longer one", pi.prompt("SEAT-U4 " + "and one more thing, " * 400))
    flow.check("pi compacts again", pi.compact() and asked() == 0)
    flow.check("pi answers", pi.prompt("SEAT-U5 go on"))
    judge("after two", last("SEAT-U5"), "SEAT-U5")
    pi.close()
    pi = Pi(flow, cli, True)
    flow.check("resumed: pi answers", pi.prompt("SEAT-U9 continue"))
    judge("resumed", last("SEAT-U9"), "SEAT-U9")
    pi.close()

    def by_itself(reason, end):
        """A new session, in which the second prompt's turn ends so that pi compacts."""
        turns = [
            {"text": "Looking.", "calls": looks, "usage": low},
            {"text": "SEAT-A1 the notes are read.", "usage": low},
            {"text": f"SEAT-A2 the test {TAIL} fails in parser.rs, line 12; that is next.", "calls": [call("seq 3000 3400")], "usage": low},
            end,
        ]
        flow.start(reason, script={"rules": [], "turns": turns, "default": {"text": "SEAT-ANSWER", "usage": low}, "side": {"text": "OWN-SUMMARY", "usage": low}})
        pi = Pi(flow, cli)
        flow.check(f"{reason}: pi answers", pi.prompt(f"SEAT-U1 read the notes. Rules: {RULE}."))
        flow.check(f"{reason}: the second prompt's turn ends", pi.prompt("SEAT-U2 fix the parser"))
        done = pi.until(lambda it: it.get("type") == "compaction_end") or {}
        flow.check(f"{reason}: pi compacted by itself", done.get("reason") == reason and done.get("result"))
        flow.check(f"{reason}: the model was asked for no compaction", asked() == 0)
        flow.check(f"{reason}: the summary is ours", WANT in ((done.get("result") or {}).get("summary") or ""))
        if done.get("willRetry"):
            flow.check(f"{reason}: pi asks again by itself", pi.until(lambda it: it.get("type") == "agent_end"))
            judge(f"{reason}, again", last("SEAT-U2"), "SEAT-U2")
        flow.check(f"{reason}: pi answers the next prompt", pi.prompt("SEAT-U3 go on"))
        judge(reason, last("SEAT-U3"), "SEAT-U3")
        pi.close()

    by_itself("threshold", {"text": "SEAT-A3 nearly full.", "usage": {"input": 97000, "output": 50}})
    refused = {"message": "This model's maximum context length is 100000 tokens. However, your messages resulted in 108310 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}
    by_itself("overflow", {"status": 400, "error": {"error": refused}})
    pi = Pi(flow, cli, True)
    with open(program + ".new", "w") as f:
        f.write("#!/bin/sh\nexit 1\n")
    os.chmod(program + ".new", 0o755)
    os.replace(program + ".new", program)
    flow.check("pi answers a longer one", pi.prompt("SEAT-U10 " + "and one more thing, " * 400))
    flow.check("the program fails: pi compacts by its own means", pi.compact() and asked() > 0)
    pi.close()
    shutil.copy(epitome, program)
    flow.check("uninstall pi ends with 0", ours("uninstall", "pi").returncode == 0)
    left = [n for d, _, names in os.walk(flow.a.home + "/.pi") for n in names if "epitome" in n]
    flow.check("uninstall: nothing of ours is left", not left)


if __name__ == "__main__":
    flow = flows.Flow(flows.options(["opencode", "seat"]))
    try:
        main(flow, *sys.argv[1:])
    finally:
        flow.stop()
    print(f"== pi seat: {'FAIL' if flow.fails else 'PASS'} ({flow.checks - flow.fails}/{flow.checks} checks)")
    sys.exit(1 if flow.fails else 0)
