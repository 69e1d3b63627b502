// An agent's loop that keeps its messages small over MCP, without dependencies: JSON-RPC lines over stdio.
//
//     node examples/agent_loop.mjs [PATH-TO-EPITOME]

import { spawn } from "node:child_process";
import { createInterface } from "node:readline";

const server = spawn(process.argv[2] ?? "epitome", ["serve", "--stdio"], { stdio: ["pipe", "pipe", "inherit"] });
const waiting = new Map();
createInterface({ input: server.stdout }).on("line", (line) => {
  const message = JSON.parse(line);
  waiting.get(message.id)?.(message);
  waiting.delete(message.id);
});
let last = 0;
const send = (message) => server.stdin.write(JSON.stringify({ jsonrpc: "2.0", ...message }) + "\n");
const request = (method, params) =>
  new Promise((resolve, reject) => {
    const id = ++last;
    waiting.set(id, ({ result, error }) => (error ? reject(new Error(error.message)) : resolve(result)));
    send({ id, method, params });
  });
const call = async (name, args) => {
  const result = await request("tools/call", { name, arguments: args });
  if (result.isError) throw new Error(result.content[0].text);
  return result.structuredContent;
};

await request("initialize", { protocolVersion: "2025-11-25", capabilities: {}, clientInfo: { name: "loop", version: "1" } });
send({ method: "notifications/initialized" });

let messages = [];
for (let turn = 0; turn < 12; turn++) {
  messages.push(
    { role: "user", content: `Step ${turn}: run the checks. Never push to main.` },
    { role: "assistant", content: [{ type: "tool_use", id: `call_${turn}`, name: "Bash", input: { command: "just check" } }] },
    { role: "user", content: [{ type: "tool_result", tool_use_id: `call_${turn}`, content: `check ${turn}: ok\n`.repeat(150) }] },
    { role: "assistant", content: `Step ${turn} is done.` },
  );
  const { tokens } = await call("estimate_tokens", { messages });
  if (tokens > 6000) {
    const { replace, tokens_after } = await call("summarize_history", { messages, budget: "2000" });
    // history' = history[..from] + with + history[to..]
    messages = [...messages.slice(0, replace.from), ...replace.with, ...messages.slice(replace.to)];
    console.log(`turn ${turn}: ${tokens} -> ${tokens_after} tokens, ${messages.length} messages`);
  }
}
if (!JSON.stringify(messages).includes("Never push to main")) throw new Error("the rule was lost");
server.stdin.end();
