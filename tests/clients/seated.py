"""Scenes of compaction in the running client that the kit's flow `seat` does not have, on the kit's own library.

seated.py CLIENT EPITOME [SCENE...]     CLIENT: codex codex-remote claude gemini opencode
  undo      compacted by hand in the running client, one more turn, `epitome restore last --apply`: a new process sends the
            whole old history and what was said since
  subagent  (Claude Code, OpenCode) a sub-agent's context passes the limit in mid-turn: it goes on with a summary of its own, and
            the conversation that called it is whole
  silent    (OpenCode) the model answers the one short question with nothing
  passes    (Codex) two hundred requests through the gateway, compared byte by byte
  missing   (Claude Code, OpenCode, Gemini CLI) our program is gone: the client compacts by itself or goes on whole
  threshold (Claude Code in a terminal) installed with --compact-at: the end of a turn compacts, by us
  overflow  (Claude Code, OpenCode, Codex) the model refuses a request as too long: the client goes on
"""

import fcntl, json, os, pty, re, select, signal, struct, subprocess, sys, termios, time

import agents, flows, live, more, report, seat
from seat import RULE, TAIL, blocks, size, talk, text, unpaired

AGENT = {"codex": "codex", "claude": "claude-code", "gemini": "gemini-cli", "opencode": "opencode"}


class Seated(seat.Seat):
    def epitome(self, what, *arguments):
        a = self.a
        env = {"HOME": a.home, "PATH": more.PATH}
        p = subprocess.run([self.program, *arguments], cwd=a.cwd, env=env, capture_output=True, text=True)
        if not self.check(f"{what}: epitome {arguments[0]} ends with 0", p.returncode == 0):
            print(report.cut(p.stdout + p.stderr, 2000))
            return
        self.a.id = json.loads(p.stdout).get("session_id") or self.a.id

    def next(self, live, prompt):
        """The request that the running process sends for this prompt."""
        self.check("the client answers the next prompt", live.prompt(prompt))
        return next((r for r in self.asked()[1] if prompt in text(r)), None)

    def undo(self):
        running, before, n = self.two_prompts("undo")
        if not running:
            return
        old = self.asked()[1][-1]
        self.check("the client compacts", running.compact(self.o.wait))
        r = self.next(running, "SEAT-U3 go on")
        self.check("compacted: the summary is sent, the old output is not", r and blocks(r, self.want) and not re.search(self.o.absent, text(r)))
        running.close()
        self.epitome("undo", "restore", "last", "--apply", "--json")
        self.a.run("SEAT-U9 continue", True)
        r = next((r for r in self.asked()[1] if "SEAT-U9" in text(r)), None)
        if not self.check("undone: the model was asked", r):
            return
        said = text(r)
        lost = more.holds(more.texts(r), more.texts(old))
        if not self.check("undone: the request holds all of the old one, in its order", not lost):
            print("     ", report.cut(lost, 1500))
        self.check("undone: the old output is sent", re.search(self.o.absent, said))
        self.check("undone: the summary is not", not blocks(r, self.want))
        self.check("undone: what was said since is sent once", said.count("SEAT-U3") == 1)
        self.check("undone: nothing is sent twice", said.count("SEAT-U1") == 1 and said.count(f"SEAT-A2 the test {TAIL}") == 1)
        if self.a.name == "codex":
            own = [t for t in report.leaves(report.items(r)) if t.startswith(("<environment_context>", "<permissions", "<skills"))]
            self.check(f"undone: what Codex says by itself is sent once ({len(own)})", own and len(own) == len(set(own)))
        self.check("undone: calls and results are paired", set(unpaired(r)) <= self.odd)

    def silent(self):
        """The model answers OpenCode's one short question with nothing."""
        running, before, n = self.two_prompts("silent")
        if not running:
            return
        rules = [{**rule, "reply": {"think": "hm"}} for rule in self.a.own_rules]
        self.f.start("silent-2", script={"rules": rules, "turns": [], "default": {"text": "SEAT-ANSWER"}})
        self.check("the client compacts", running.compact(self.o.wait))
        b = self.judge("running", self.next(running, "SEAT-U3 go on"), before, "SEAT-U3")
        running.close()
        self.resumed(before, b)

    def subagent(self):
        a = self.a
        tool, kind = {"claude": ("Agent", "general-purpose"), "opencode": ("task", "general")}[a.name]
        task = {"description": "read the notes", "prompt": f"SUB-U1 read the notes. Rules: {RULE}.", "subagent_type": kind}
        if a.name == "claude":
            task["run_in_background"] = False
        turns = [
            {"text": "One for a sub-agent.", "calls": [{"name": tool, "args": task}]},
            self.looks(),
            {"text": f"SUB-A1 one more, for {TAIL}.", "calls": [a.shell(f"echo {TAIL}")], "usage": {"input": self.full, "output": 50}},
            {"text": "SUB-A2 the parser fails in line 12."},
            {"text": "SEAT-A1 the sub-agent is done."},
        ]
        running = self.begin("subagent", turns)
        self.check("the client answers the prompt", running.prompt("SEAT-U1 let a sub-agent read the notes"))
        reqs, m, own = self.asked()
        subs = [r for r in m if "SUB-U1" in text(r) and "SEAT-U1" not in text(r)]
        if self.check("the sub-agent goes on after its compaction", len(subs) == 3):
            self.no_model(len(own), self.allowed())
            self.judge("sub-agent", subs[2], size(subs[1]))
        r = self.next(running, "SEAT-U2 go on")
        running.close()
        said = text(r) if r else ""
        whole = all(it in said for it in ("SEAT-U1", "SUB-A2 the parser fails in line 12", "SEAT-A1 the sub-agent is done."))
        self.check("the calling conversation is whole, with the sub-agent's answer", whole)
        self.check("the calling conversation was not compacted", r and not blocks(r, self.want) and not unpaired(r))

    def overflow(self):
        a = self.a
        error = {
            "claude": {"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}},
            "opencode": {"error": {"message": "This model's maximum context length is 100000 tokens. However, your messages resulted in 108310 tokens.", "type": "invalid_request_error", "code": "context_length_exceeded"}},
            "codex": {"error": {"message": "Your input exceeds the context window of this model.", "type": "invalid_request_error", "code": "context_length_exceeded"}},
        }[a.name]
        turns = [self.looks(), {"calls": [a.shell(f"echo {TAIL}")]}, {"status": 400, "error": error}, {"text": "SEAT-A1 the notes are read."}]
        running = self.begin("overflow", turns)
        # Codex fails the turn that was refused, and compacts before the next.
        goes_on = running.prompt(self.first) or running.prompt("SEAT-U2 go on")
        self.check("the client goes on", goes_on)
        reqs, m, own = self.asked()
        if self.check("the request after the refused one is sent", len(m) > 3):
            self.no_model(len(own), self.allowed())
            b = self.judge("running", m[3], size(m[2]))
            running.close()
            self.resumed(size(m[2]), b)
        running.close()

    def missing(self):
        running, before, n = self.two_prompts("missing")
        if not running:
            return
        kept = self.program + ".kept"
        os.rename(self.program, kept)
        try:
            running.compact(self.o.wait)
            self.check("the client answers the next prompt", running.prompt("SEAT-U3 go on", self.o.wait))
            running.close()
            r = next((r for r in reversed(self.asked()[1]) if "SEAT-U3" in text(r)), None)
            t = text(r) if r else ""
            self.check("it holds the rule and the tail", re.search(self.rule, t) and TAIL in t)
            own = "the client's own summary" if "OWN-SUMMARY" in t else "the whole history" if re.search(self.o.absent, t) else ""
            self.check(f"it goes on with {own or 'neither its own summary nor the history'}", own and not blocks(r, self.want))
            self.check("calls and results are paired", r and set(unpaired(r)) <= self.odd)
        finally:
            os.rename(kept, self.program)
            running.close()

    def threshold(self):
        a = self.a
        p = subprocess.run([self.program, "install", "claude-code", "--compact-at", "3"], cwd=a.cwd, env={"HOME": a.home, "PATH": more.PATH}, capture_output=True)
        self.scene = "threshold"
        self.check("install --compact-at ends with 0", p.returncode == 0)
        # The model's window is 1,000,000 tokens: 4 % of it.
        full = {"usage": {"input": 40000, "output": 50}}
        self.begin("threshold", [self.looks(), {"text": "SEAT-A1 the notes are read.", **full}, {"text": "SEAT-A2 more."}]).close()
        settings = a.home + "/.claude.json"
        known = json.load(open(settings)) if os.path.exists(settings) else {}
        known |= {"hasCompletedOnboarding": True, "theme": "dark", "customApiKeyResponses": {"approved": ["test-key"], "rejected": []}}
        known.setdefault("projects", {})[os.path.realpath(a.cwd)] = {"hasTrustDialogAccepted": True, "hasCompletedProjectOnboarding": True}
        with open(settings, "w") as f:
            json.dump(known, f)
        terminal = Terminal(a)
        try:
            self.check("the terminal shows its prompt", terminal.shows("auto mode on|for agents"))
            terminal.types(f"SEAT-U1 read the notes. Rules: {RULE}. The test {TAIL} is next.")
            self.check("the end of the turn compacts by itself", terminal.shows("Conversation compacted|Compacted"))
            terminal.types("SEAT-U2 go on")
            self.check("the client answers the next prompt", terminal.shows("SEAT-A2"))
        finally:
            terminal.close()
        reqs, m, own = self.asked()
        self.no_model(len(own))
        r = next((r for r in m if "SEAT-U2" in text(r)), None)
        self.check("the next request holds the summary, the rule and the tail", r and blocks(r, self.want) and RULE in text(r) and TAIL in text(r))

    def passes(self):
        """Two hundred requests and more, with compactions between them: what is no compaction passes byte by byte."""
        rounds = 110
        call = lambda k: {"text": f"SEAT-A{k} \u00e9\u2028 \"looking\".", "calls": [self.a.shell(f"echo {k}; seq {k}")]}
        running = self.begin("passes", [it for k in range(rounds) for it in (call(k), {"text": f"SEAT-A{k} done."})])
        # The first compaction comes when there is something to compact.
        done = lambda k: running.prompt(f"SEAT-R{k} go on") and (k % 25 != 24 or running.compact(self.o.wait))
        self.check(f"{rounds} prompts and {rounds // 25} compactions are answered", all(done(k) for k in range(rounds)))
        running.close()
        self.check(f"the gateway saw {len(self.front.seen)} requests", len(self.front.seen) >= 2 * rounds)


class Terminal:
    """Claude Code in a terminal of its own."""

    def __init__(self, a):
        self.said = b""
        self.pid, self.fd = pty.fork()
        if self.pid == 0:
            os.chdir(a.cwd)
            arguments = ["claude", "--settings", a.W + "/settings.json", "--allowedTools", "Read,Bash"]
            os.execve(agents.INSTALL + "/bin/claude", arguments, {**a.environment({}), "TERM": "xterm-256color"})
        fcntl.ioctl(self.fd, termios.TIOCSWINSZ, struct.pack("HHHH", 50, 140, 0, 0))

    def shows(self, wanted, seconds=60):
        """Whether that appears in what was written since it was asked last."""
        end = time.time() + seconds
        while time.time() < end:
            if select.select([self.fd], [], [], 0.2)[0]:
                try:
                    self.said += os.read(self.fd, 65536)
                except OSError:
                    return False
            plain = re.sub(rb"\x1b(\[[0-9;?>]*[A-Za-z]|\][^\x07]*\x07|[()][A-Z0-9]|[=>])", b"", self.said).decode(errors="replace")
            if re.search(wanted, plain):
                self.said = b""
                return True
        return False

    def types(self, text):
        os.write(self.fd, text.encode())
        # What is typed and sent at once is taken for a paste.
        self.shows(re.escape(text[:7]), 5)
        os.write(self.fd, b"\r")

    def close(self):
        os.kill(self.pid, signal.SIGKILL)
        os.waitpid(self.pid, 0)
        os.close(self.fd)


def main(client, program, *scenes):
    remote = client == "codex-remote"
    client = "codex" if remote else client
    arguments = [client, "seat", "--program", program, "--want", more.SUMMARY, "--manual", "/epitome:compact", "--wait", "150"]
    if client == "codex":
        arguments += ["--gateway", f"{program} serve --http 127.0.0.1:@PORT@ --upstream @UPSTREAM@"] + ["--remote"] * remote
    else:
        arguments += ["--setup", f"{program} install {AGENT[client]}"]
    flow = flows.Flow(flows.options(arguments + more.quick(client) + ["--scenes", ",".join(scenes)]))
    flow.flow_seat = lambda: Seated(flow).go()
    return flow.go()


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
