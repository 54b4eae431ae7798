#!/usr/bin/env bash
# build-initramfs.sh AGENT PROGRAMS MODULES OUT.cpio: the agent as /init, the programs it puts into the root, and the
# modules it loads.
set -euo pipefail
# shellcheck source=guest/debian.sh
. "$(dirname "$0")/debian.sh"
[ $# = 4 ] || fail "usage: build-initramfs.sh AGENT PROGRAMS MODULES OUT.cpio"
need cpio
tree=$(mktemp -d)
trap 'rm -rf "$tree"' EXIT

# /dev, /proc, /sys and what the root is put together from are mount points.
mkdir -p "$tree"/{dev,proc,sys,lower,writes,root,modules,programs}
cp "$1" "$tree/init"
cp "$2"/* "$tree/programs/"
cp "$3"/* "$tree/modules/"
chmod 0755 "$tree" "$tree"/* "$tree"/programs/* "$tree/init"
chmod 0644 "$tree"/modules/*
find "$tree" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
(cd "$tree" && find . -print0 | sort -z | cpio --quiet --null --create --format=newc --owner=0:0 --reproducible) >"$4.new"
mv "$4.new" "$4"
