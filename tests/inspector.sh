#!/bin/sh
# Lists and calls what the server offers with the MCP Inspector: everything over stdio, some of it over streamable HTTP and
# SSE and in the older protocol era (SSE knows no other), and lints the schemas. Prints a line a transport and era, and every
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
# A process a request: what Node compiles, it compiles once.
export NODE_COMPILE_CACHE="$work/node"
export EPITOME_STORE="$work/store" XDG_CONFIG_HOME="$work/config"
mkdir -p "$work/root" "$XDG_CONFIG_HOME"
cp "$here/examples/sessions/codex.jsonl" "$work/root/codex.jsonl"

"$epitome" serve --http 127.0.0.1:0 --allow-root "$work/root" 2>"$work/log" &
server=$!
until grep -q serving "$work/log"; do
    kill -0 $server || { cat "$work/log"; exit 1; }
    sleep 0.1
done
messages=$(cat "$here/examples/sessions/openai-chat.json")
url=$(sed -n 's/.*\(http:.*\)\/mcp.*/\1/p' "$work/log" | head -n 1)

run() { # transport era arguments...
    transport=$1 era=$2
    shift 2
    case $transport in
    # It hands its own environment on only where it is told to.
    stdio) "$inspector" --cli -e "EPITOME_STORE=$EPITOME_STORE" -e "XDG_CONFIG_HOME=$XDG_CONFIG_HOME" \
        "$epitome" serve --stdio --protocol-era "$era" "$@" ;;
    http) "$inspector" --cli "$url/mcp" --transport http --protocol-era "$era" "$@" ;;
    sse) "$inspector" --cli "$url/sse" --transport sse "$@" ;;
    esac >"$out/out" 2>"$out/err"
    code=$?
    count=$((count + 1))
    if [ $code -ne 0 ]; then
        failed=$((failed + 1))
        echo "FAILED ($code) $transport $era: $*"
        head -c 2000 "$out/err" "$out/out"
    fi
}

all() { # the values of a key in what was said last, without those of arguments
    sed 's/"arguments":\[[^]]*\]//g' "$out/out" | grep -o "\"$1\":\"[^\"]*\"" | cut -d '"' -f 4
}

everything() { # transport era session
    out=$work/$1-$2
    mkdir -p "$out"
    count=0
    failed=0
    # What is said depends on the era at most, and then by its kind: all is asked once, elsewhere one of each kind.
    # Every tool over stdio in both eras is what tests/all/cli_mcp_parity.rs asks.
    some=cat
    [ "$1 $2" = "stdio modern" ] || some="head -n 1"
    run "$1" "$2" --method tools/list --strict -q
    for tool in $(printf '%s\n' summarize_history estimate_tokens find_split_point prune_tool_outputs | $some); do
        run "$1" "$2" --method tools/call --tool-name $tool --tool-args-json "{\"session\":\"$3\"}" --format json
    done
    run "$1" "$2" --method tools/call --tool-name summarize_history \
        --tool-args-json "{\"budget\":\"30%\",\"messages\":$messages}" --format json
    run "$1" "$2" --method tools/call --tool-name recall --tool-args-json '{"query":"timeout"}' --format json
    run "$1" "$2" --method prompts/list --format json
    prompts=$(all name)
    [ "$(echo "$prompts" | wc -l)" -ge 3 ] || { failed=$((failed + 1)); echo "FAILED: few prompts: $prompts"; }
    for prompt in $(echo "$prompts" | $some); do
        given=
        [ "$prompt" = handoff ] && given="--prompt-args goal=release"
        # shellcheck disable=SC2086
        run "$1" "$2" --method prompts/get --prompt-name "$prompt" $given --format json
    done
    run "$1" "$2" --method resources/templates/list --format json
    run "$1" "$2" --method resources/list --format json
    resources=$(all uri)
    # A snapshot was made above: of it there is an original, too.
    handle=$(echo "$resources" | sed -n 's,epitome://snapshot/,,p' | head -n 1)
    for uri in $(echo "$resources" | $some) "epitome://archive/$handle"; do
        run "$1" "$2" --method resources/read --uri "$uri" --format json
    done
    [ "$1" = stdio ] && run "$1" "$2" --method resources/read --uri "epitome://session/$3" --format json
    echo "$1 $2: $count requests, $failed failed"
    [ $failed -eq 0 ]
}

jobs=
for at in "stdio legacy" "stdio modern" "http legacy" "http modern" "sse legacy"; do
    # shellcheck disable=SC2086
    set -- $at
    session=codex.jsonl
    [ "$1" = stdio ] && session=$work/root/codex.jsonl
    everything "$1" "$2" "$session" >"$work/said-$1-$2" || echo "$at" >>"$work/wrong" &
    jobs="$jobs $!"
done
# shellcheck disable=SC2086
wait $jobs
cat "$work"/said-*
[ ! -e "$work/wrong" ]
