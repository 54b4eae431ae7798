#!/usr/bin/env bash
# build-initramfs.sh AGENT MODULES OUT.cpio: the agent as /init, and the modules it loads.
set -euo pipefail
# shellcheck source=guest/debian.sh
. "$(dirname "$0")/debian.sh"
[ $# = 3 ] || fail "usage: build-initramfs.sh AGENT MODULES OUT.cpio"
need cpio
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# /dev, /proc, /sys and what the root is put together from are mount points.
mkdir -p "$tree"/{dev,proc,sys,lower,writes,root,modules}
cp "$1" "$tree/init"
cp "$2"/* "$tree/modules/"
chmod 0755 "$tree" "$tree"/* "$tree/init"
chmod 0644 "$tree"/modules/*
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
(cd "$tree" && find . -print0 | sort -z | cpio --quiet --null --create --format=newc --owner=0:0 --reproducible) >"$3.new"
mv "$3.new" "$3"
