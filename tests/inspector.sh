#!/bin/sh
# Lists and calls everything the server offers with the MCP Inspector: over stdio, streamable HTTP and SSE, in both
# protocol eras (SSE knows only the older one), and lints the schemas. Prints a line a transport and era, and every
# failure; ends with 1 if there was one.
#
#     tests/inspector.sh PATH-TO-EPITOME PATH-TO-MCP-INSPECTOR
set -u
epitome=$1
inspector=$2
here=$(cd "$(dirname "$0")/.." && pwd)
work=$(mktemp -d)
server=
trap 'kill $server 2>/dev/null; rm -rf "$work"' EXIT
export MCP_INSPECTOR_SECRET_STORE=memory
export EPITOME_STORE="$work/store" XDG_CONFIG_HOME="$work/config"
mkdir -p "$work/root" "$XDG_CONFIG_HOME"
cp "$here/examples/sessions/codex.jsonl" "$work/root/codex.jsonl"

"$epitome" serve --http 127.0.0.1:0 --allow-root "$work/root" 2>"$work/log" &
server=$!
until grep -q serving "$work/log"; do
    kill -0 $server || { cat "$work/log"; exit 1; }
    sleep 0.1
done
url=$(sed -n 's/.*\(http:.*\)\/mcp.*/\1/p' "$work/log" | head -n 1)

failed=0
run() { # transport era arguments...
    transport=$1 era=$2
    shift 2
    case $transport in
    stdio) "$inspector" --cli "$epitome" serve --stdio --protocol-era "$era" "$@" ;;
    http) "$inspector" --cli "$url/mcp" --transport http --protocol-era "$era" "$@" ;;
    sse) "$inspector" --cli "$url/sse" --transport sse "$@" ;;
    esac >"$work/out" 2>"$work/err"
    code=$?
    count=$((count + 1))
    if [ $code -ne 0 ]; then
        failed=$((failed + 1))
        echo "FAILED ($code) $transport $era: $*"
        head -c 2000 "$work/err" "$work/out"
    fi
}

everything() { # transport era session
    count=0
    before=$failed
    run "$1" "$2" --method tools/list --strict -q
    for tool in estimate_tokens find_split_point prune_tool_outputs summarize_history; do
        run "$1" "$2" --method tools/call --tool-name $tool --tool-args-json "{\"session\":\"$3\"}" --format json
    done
    run "$1" "$2" --method tools/call --tool-name recall --tool-args-json '{"query":"timeout"}' --format json
    run "$1" "$2" --method prompts/list --format json
    run "$1" "$2" --method prompts/get --prompt-name compact --prompt-args focus=errors --format json
    run "$1" "$2" --method prompts/get --prompt-name handoff --prompt-args goal=release --format json
    run "$1" "$2" --method prompts/get --prompt-name context --format json
    run "$1" "$2" --method resources/list --format json
    run "$1" "$2" --method resources/templates/list --format json
    run "$1" "$2" --method resources/read --uri epitome://profiles --format json
    echo "$1 $2: $count requests, $((failed - before)) failed"
}

everything stdio legacy "$work/root/codex.jsonl"
everything stdio modern "$work/root/codex.jsonl"
everything http legacy codex.jsonl
everything http modern codex.jsonl
everything sse legacy codex.jsonl
[ $failed -eq 0 ]
