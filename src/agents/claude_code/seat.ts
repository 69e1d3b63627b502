// Made by `epitome install claude-code`; `epitome uninstall claude-code` removes it. It needs nothing installed.
// Claude Code asks here when it compacts (/compact, or the context is full): Epitome answers with a summary and the end of
// the conversation, without a model. Anything else, and anything that goes wrong, is left to Claude Code's own compaction.
import type { Register } from 'claude-code'

const EPITOME = "@EPITOME@"

// Percent of the model's window from which the end of a turn compacts; 0: only Claude Code decides when.
const COMPACT_AT = 0

// Claude Code hands over no image, and takes none back: what stood there is named.
const image = (r: any) =>
  r.result?.type === 'image' ? `[${r.result.file?.type ?? 'image'}: not carried through the compaction; read it again if needed]` : ''

export const register: Register = (on) => {
  on('session.compact', async ($, event, next) => {
    // 'plugin': a plugin asked for it, as below. 'precompute' asks for a summary that may never be used.
    if (!['manual', 'auto', 'plugin'].includes(event.trigger)) return next(event)
    let answer: any
    try {
      const all: any[] = event.messages
      // Each result stands in the event three times; only the one that the model saw is sent on.
      const messages = all.map((m) => ({
        role: m.role,
        text: m.text,
        toolUses: (m.toolUses ?? []).map((u: any) => ({ tool_use_id: u.tool_use_id, tool: u.tool, input: u.input })),
        toolResults: (m.toolResults ?? []).map((r: any) => ({ tool_use_id: r.tool_use_id, text: r.text || image(r), isError: r.isError })),
      }))
      const { trigger, instructions, agentId } = event as any
      const stdin = JSON.stringify({ trigger, instructions, agentId, lastRow: all[all.length - 1]?.handle, messages })
      const run = await $.process.run([EPITOME, 'seat', 'claude-code'], { stdin, timeoutMs: 20000 })
      if (run.exitCode === 0 && !run.isStdoutTruncated) answer = JSON.parse(run.stdout)
    } catch {
      answer = undefined
    }
    if (!Array.isArray(answer?.messages) || answer.messages.length === 0) return next(event)
    return { messages: answer.messages }
  })

  if (COMPACT_AT === 0) return
  let least = COMPACT_AT
  let measure = false
  on('turn.complete', async ($, event, next) => {
    const done = await next(event)
    try {
      // A sub-agent's turn ends, too.
      const percent = event.agentId === undefined ? (await $.session.usage()).context.percent : 0
      if (measure) {
        // A compaction that leaves more than the threshold is not repeated at once.
        least = Math.max(COMPACT_AT, percent + 5)
        measure = false
      } else if (percent >= least) {
        measure = true
        await $.session.compact({})
      }
    } catch {
      // Without a terminal Claude Code refuses (2.1.328: "not available in a headless session yet").
    }
    return done
  })
}
