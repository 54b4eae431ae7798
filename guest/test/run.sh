#!/usr/bin/env bash
# Tests the agent on this host, under sanitizers: its pure parts in C, then the whole agent over a socket.
# The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/../.."
build=build/guest-test
mkdir -p "$build"
flags=(-std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -Wconversion -g -O1 '-fsanitize=address,undefined'
  -fno-sanitize-recover=all -fno-omit-frame-pointer)
agent=guest/agent
pure=("$agent"/wire/{frame,conn,json,json-writer,utf8}.c "$agent"/run/{capture,free-memory,last-line,limits,spool}.c "$agent"/file/{path,space}.c "$agent"/tunnel/inbox.c "$agent"/console.c
  guest/gtwall/request.c)

gcc "${flags[@]}" -o "$build/unit" guest/test/*.c "${pure[@]}"
gcc "${flags[@]}" -o "$build/gtwall" guest/gtwall/*.c "$agent/wire/utf8.c"
gcc "${flags[@]}" '-DAGENT_BUILD="0123456789abcdef"' -o "$build/agent" "$agent"/*.c "$agent"/*/*.c

status=0
"$build/unit" | tee "$build/unit.log" || status=1
AGENT=$PWD/$build/agent GTWALL=$PWD/$build/gtwall .cache/bin/bun test ./guest/test --timeout 120000 2>&1 | tee "$build/agent.log" || status=1

# Each program's own totals, added up; one that died before it counted is a failure.
count() { sed -n "$1" "$2" | tail -n 1; }
unit_passed=$(count 's/^\([0-9]*\) passed, .*/\1/p' "$build/unit.log")
unit_failed=$(count 's/^[0-9]* passed, \([0-9]*\) failed$/\1/p' "$build/unit.log")
agent_passed=$(count 's/^ *\([0-9]*\) pass$/\1/p' "$build/agent.log")
agent_failed=$(count 's/^ *\([0-9]*\) fail$/\1/p' "$build/agent.log")
passed=$((${unit_passed:-0} + ${agent_passed:-0}))
failed=$((${unit_failed:-1} + ${agent_failed:-1}))
[ "$status" = 0 ] || [ "$failed" != 0 ] || failed=1
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
