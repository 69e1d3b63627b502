// Made by `epitome install pi`; `epitome uninstall pi` removes it. It needs nothing installed.
// When pi compacts (/compact, or the context is full), Epitome writes the summary, without a model; the messages that pi
// keeps stay as they are. Whatever goes wrong is left to pi's own compaction.
import { spawn } from "node:child_process"

const EPITOME = "@EPITOME@"

const run = (input: string, signal?: AbortSignal) =>
  new Promise<string>((resolve) => {
    try {
      const child = spawn(EPITOME, ["seat", "pi"], { stdio: ["pipe", "pipe", "ignore"] })
      const chunks: Buffer[] = []
      const end = (text: string) => {
        clearTimeout(timer)
        resolve(text)
      }
      const stop = () => {
        child.kill("SIGKILL")
        child.stdout.destroy()
        end("")
      }
      const timer = setTimeout(stop, 9000)
      signal?.addEventListener("abort", stop)
      child.on("error", () => end(""))
      child.stdout.on("data", (chunk) => chunks.push(chunk))
      child.on("close", (code) => end(code === 0 ? Buffer.concat(chunks).toString("utf8") : ""))
      child.stdin.on("error", () => {})
      child.stdin.end(input)
    } catch {
      resolve("")
    }
  })

export default function (pi: any) {
  pi.on("session_before_compact", async (asked: any, ctx: any) => {
    try {
      const { preparation, branchEntries, customInstructions, signal } = asked
      const { firstKeptEntryId, tokensBefore, previousSummary } = preparation
      const kept = branchEntries.findIndex((it: any) => it.id === firstKeptEntryId)
      const entries = kept < 0 ? branchEntries : branchEntries.slice(0, kept)
      // An earlier summary must be among what is summarised, or it would be lost.
      if (previousSummary && !entries.some((it: any) => it.type === "compaction")) return
      const file = ctx.sessionManager?.getSessionFile?.()
      const id = ctx.sessionManager?.getSessionId?.() ?? "pi"
      const header = { type: "session", version: 3, id, timestamp: new Date().toISOString(), cwd: ctx.cwd }
      const session = [header, ...entries].map((it) => JSON.stringify(it)).join("\n") + "\n"
      const event = { session, file, window: ctx.model?.contextWindow, instructions: customInstructions }
      const said = await run(JSON.stringify(event), signal)
      const summary = said && JSON.parse(said).summary
      if (summary) return { compaction: { summary, firstKeptEntryId, tokensBefore } }
    } catch {}
  })
}
