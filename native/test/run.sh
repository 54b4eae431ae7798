#!/usr/bin/env bash
# Builds the core's unit tests twice, for memory errors and for data races, and runs both.
# The last line is `N passed, N failed`.
set -euo pipefail
cd "$(dirname "$0")/../.."
out=build/native-test
mkdir -p "$out"
sources=()
for file in native/core/*.c native/test/*.c; do
  [ "$file" = native/core/poller_kqueue.c ] || sources+=("$file")
done
flags=(-std=c11 -D_GNU_SOURCE -g -O1 -Wall -Wextra -Werror -Wconversion -fno-omit-frame-pointer
  -fno-sanitize-recover=all -Inative/core -Inative/test -pthread)

passed=0 failed=0
for sanitizers in address,undefined thread; do
  program=$out/test-${sanitizers%%,*}
  clang "${flags[@]}" -fsanitize="$sanitizers" "${sources[@]}" -o "$program"
  log=$program.log
  # A sanitizer that ends the program leaves no last line: that counts as one failure.
  timeout 600 "$program" >"$log" || true
  if [[ $(tail -n 1 "$log") =~ ^([0-9]+)\ passed,\ ([0-9]+)\ failed$ ]]; then
    passed=$((passed + BASH_REMATCH[1])) failed=$((failed + BASH_REMATCH[2]))
  else
    echo "native tests: the program built for $sanitizers did not finish" >&2
    failed=$((failed + 1))
  fi
done
echo "$passed passed, $failed failed"
[ "$failed" = 0 ]
