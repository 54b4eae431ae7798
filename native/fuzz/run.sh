#!/usr/bin/env bash
# usage: native/fuzz/run.sh [seconds=20]
# Fuzzes each parser of peer bytes for its share of the time, starting from the kept corpus.
# The last line is `N passed, N failed`, one per target; a failing input stays in build/native-fuzz.
set -euo pipefail
cd "$(dirname "$0")/../.."
seconds=${1:-20}
out=build/native-fuzz
targets=(handshake frame_codec)
share=$(((seconds + ${#targets[@]} - 1) / ${#targets[@]}))

passed=0 failed=0
for target in "${targets[@]}"; do
  program=$out/$target
  mkdir -p "$program.found"
  clang -std=c11 -g -O1 -Wall -Wextra -Werror -Wconversion -Inative/core \
    -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=all \
    native/core/handshake.c native/core/frame_codec.c native/core/frame_batch.c native/core/chunk.c \
    "native/fuzz/${target}_fuzz.c" -o "$program"
  if timeout $((share + 60)) "$program" -max_total_time="$share" -max_len=8192 -rss_limit_mb=1024 -timeout=10 \
    -artifact_prefix="$program-" "$program.found" "native/fuzz/corpus/$target" >"$program.log" 2>&1; then
    passed=$((passed + 1))
  else
    tail -n 40 "$program.log" >&2
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
