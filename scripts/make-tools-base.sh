#!/usr/bin/env bash
# Builds the warm base that sessions are cloned from, unless a fitting one is there.
# Usage: scripts/make-tools-base.sh [--force] [name]   (default: IGN_MCP_BASE, else tools-base)
set -euo pipefail
executable=$(dirname "$0")/../dist/ignition-mcp
if [ ! -x "$executable" ]; then
  echo "make-tools-base: $executable is missing; build it with: scripts/build" >&2
  exit 1
fi
exec "$executable" base build "$@"
