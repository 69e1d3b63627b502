"""The kit's own Codex flows through the gateway: what reaches the model and what comes back is, byte by byte, what Codex
sent and what the model answered, in every flow; with EPITOME_CLIENTS_WHOLE over two hundred requests and more (as many
pass in the scene `passes` of seated.py).

through.py EPITOME      (in the kit's network namespace, with its lib on PYTHONPATH)

A recorder stands on either side of the gateway. Compared are method, path, headers with their spelling but those of one
connection, body, status, the answer's headers and body. Flows `own` and `hooks`, which check the client's own compaction,
go through a gateway that may archive nothing (persistence = "none") and so passes compactions on as well.
"""

import collections, http.client, os, re, subprocess, sys, threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import agents, flows, seat

LEAST = 200 if "EPITOME_CLIENTS_WHOLE" in os.environ else 25
FLOWS = ["cli", "mcp", "compacts", "resume", "own", "hooks"]
FRONT, ANSWERS, PASSES, BACK = agents.PORT + 5, agents.PORT + 6, agents.PORT + 7, agents.PORT + 8
# Of one connection, or naming its other side (RFC 9110, 7.6.1).
HOP = {"host", "connection", "content-length", "transfer-encoding", "keep-alive", "date"}

Exchange = collections.namedtuple("Exchange", "method path headers body status answer_headers answer")


class Recorder(BaseHTTPRequestHandler):
    """Passes everything on to self.server.to, and keeps each exchange in self.server.seen."""

    protocol_version = "HTTP/1.1"

    def log_message(self, *_):
        pass

    def do(self):
        body = self.rfile.read(int(self.headers.get("content-length") or 0))
        status, headers, answer = None, [], b""
        self.close_connection = True
        try:
            c = http.client.HTTPConnection("127.0.0.1", self.server.to, timeout=200)
            c.putrequest(self.command, self.path, skip_accept_encoding=True, skip_host=True)
            for name, value in self.headers.items():
                c.putheader(name, value)
            c.endheaders(body)
            r = c.getresponse()
            status, headers = r.status, r.getheaders()
            self.send_response_only(status)
            for name, value in headers:
                if name.lower() not in ("transfer-encoding", "connection", "keep-alive"):
                    self.send_header(name, value)
            self.send_header("connection", "close")
            self.end_headers()
            while chunk := r.read1(65536):
                answer += chunk
                self.wfile.write(chunk)
                self.wfile.flush()
        except (OSError, http.client.HTTPException):
            pass  # the other side sees a closed connection
        kept = lambda all: tuple(sorted((n, v) for n, v in all if n.lower() not in HOP))
        exchange = Exchange(self.command, self.path, kept(self.headers.items()), body, status, kept(headers), answer)
        self.server.seen.append(exchange)

    do_GET = do_POST = do_HEAD = do_DELETE = do_PUT = do_PATCH = do


def recorder(port, to):
    ThreadingHTTPServer.daemon_threads = True
    server = ThreadingHTTPServer(("127.0.0.1", port), Recorder)
    server.to, server.seen = to, []
    threading.Thread(target=server.serve_forever, daemon=True).start()
    return server


def gateway(epitome, home, port, config):
    os.makedirs(home + "/.config/epitome")
    with open(home + "/.config/epitome/config.toml", "w") as f:
        f.write(config)
    command = [epitome, "serve", "--http", f"127.0.0.1:{port}", "--upstream", f"http://127.0.0.1:{BACK}"]
    process = subprocess.Popen(command, env={"HOME": home}, stdin=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    assert seat.listening(port, 30, process), "the gateway does not listen"
    return process


def plain(side):
    """Exchanges without those that ask for a websocket, which Codex does first: the gateway refuses it, and the provider
    sees it without the header that would switch the connection (docs/gateway.md)."""
    return [e for e in side if not any(name.lower() == "upgrade" for name, _ in e.headers)]


def differences(front, back):
    """What differs between both sides, and how many exchanges are the same."""
    sent, arrived = plain(front), plain(back)
    left, wrong = list(arrived), []
    for e in sent:
        if e in left:
            left.remove(e)
            continue
        near = next((b for b in left if (b.method, b.path, b.body) == (e.method, e.path, e.body)), None)
        what = [f for f in e._fields if near and getattr(near, f) != getattr(e, f)] or ["body changed, or not sent"]
        detail = [set(getattr(e, f)) ^ set(getattr(near, f)) for f in what if near and "headers" in f]
        wrong.append(f"{e.method} {e.path}: {', '.join(what)} {detail}")
        if near:
            left.remove(near)
    wrong += [f"{e.method} {e.path}: sent twice, or by the gateway itself" for e in left]
    return wrong, len(sent) - sum("sent twice" not in it for it in wrong)


def main(epitome):
    work = os.environ["AGENT_CLIENTS_WORK"]
    back, front = recorder(BACK, agents.PORT), recorder(FRONT, ANSWERS)
    running = [
        gateway(epitome, work + "/answers", ANSWERS, ""),
        gateway(epitome, work + "/passes", PASSES, '[store]\npersistence = "none"\n'),
    ]
    fails = checks = rounds = 0
    by_flow = collections.Counter()
    try:
        while len(plain(front.seen)) < LEAST and rounds < 20:
            for name in FLOWS:
                for remote in [[], ["--remote"]] if name == "own" else [[]]:
                    os.environ["RUN_SUFFIX"] = f"-{rounds}{''.join(remote)}"
                    flow = flows.Flow(flows.options(["codex", name, *remote]))
                    flow.a.base_url = f"http://127.0.0.1:{FRONT}"
                    front.to = PASSES if name in ("own", "hooks") else ANSWERS
                    before = len(plain(front.seen))
                    flow.go()
                    by_flow[name + " ".join(["", *remote])] += len(plain(front.seen)) - before
                    fails, checks = fails + flow.fails, checks + flow.checks
            rounds += 1
    finally:
        for process in running:
            process.kill()
            process.wait()
    wrong, same = differences(front.seen, back.seen)
    compactions = sum(bool(re.search(rb'"compaction_trigger"|CONTEXT CHECKPOINT COMPACTION', e.body)) for e in back.seen)
    for what, ok in [
        (f"{same} of {len(plain(front.seen))} requests and their answers are the same on both sides {wrong[:3] or ''}", not wrong),
        (f"there are {LEAST} or more, of these flows: {dict(by_flow)}", same >= LEAST),
        (f"requests for the provider's own compaction are among them ({compactions})", compactions),
    ]:
        print(("PASS  " if ok else "FAIL  ") + what)
        fails, checks = fails + (not ok), checks + 1
    print(f"== codex through the gateway: {'FAIL' if fails else 'PASS'} ({checks - fails}/{checks} checks)")
    return 1 if fails else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
