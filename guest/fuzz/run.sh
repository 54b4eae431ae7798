#!/usr/bin/env bash
# run.sh [SECONDS=20]: fuzzes the agent's parsers, the time shared between them, starting from the kept corpus.
# A crashing input is left in build/guest-fuzz. The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20}
build=build/guest-fuzz
targets=(conn json last-line inbox request)
wire=guest/agent/wire
declare -A sources=([conn]="$wire/conn.c $wire/frame.c" [json]="$wire/json.c $wire/json-writer.c $wire/utf8.c"
  [last-line]="guest/agent/run/last-line.c $wire/utf8.c" [inbox]=guest/agent/tunnel/inbox.c
  [request]="guest/gtwall/request.c $wire/utf8.c")

passed=0 failed=0
for target in "${targets[@]}"; do
  mkdir -p "$build/$target"
  read -ra files <<<"${sources[$target]}"
  clang -std=c11 -D_GNU_SOURCE -Wall -Wextra -Werror -g -O1 -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    -o "$build/$target-fuzz" "guest/fuzz/$target-fuzz.c" "${files[@]}"
  # New inputs go to the first directory; the kept corpus is only read.
  if "$build/$target-fuzz" -max_total_time=$((seconds / ${#targets[@]})) -max_len=8192 -timeout=10 -print_final_stats=1 \
    "-artifact_prefix=$build/$target-" "$build/$target" "guest/fuzz/corpus/$target" >"$build/$target.log" 2>&1; then
    passed=$((passed + 1))
    printf 'ok: %s: %s executions\n' "$target" "$(sed -n 's/^stat::number_of_executed_units: *//p' "$build/$target.log")"
  else
    failed=$((failed + 1))
    printf 'FAILED: %s\n' "$target"
    tail -n 40 "$build/$target.log"
  fi
done
printf '%d passed, %d failed\n' "$passed" "$failed"
[ "$failed" = 0 ]
