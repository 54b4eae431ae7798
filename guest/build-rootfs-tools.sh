#!/usr/bin/env bash
# build-rootfs-tools.sh TOOLS OUT.ext4: the read-only root: Debian with what coding agents use first.
# TOOLS is the tree of build-kernel.sh, whose mke2fs reads a tar file: no root, no extraction, fixed order.
set -euo pipefail
# shellcheck source=guest/debian.sh
. "$(dirname "$0")/debian.sh"
[ $# = 2 ] || fail "usage: build-rootfs-tools.sh TOOLS OUT.ext4"
need mmdebstrap
tools=$1 out=$2

packages=(python3 python3-pip python3-venv python-is-python3 git gcc make libc6-dev curl ca-certificates
  jq ripgrep procps less unzip socat)
uuid=9d5c1f0e-6a53-4c57-9c6f-1a0b6f2f6f01
hash_seed=3b1f6c1c-7a0c-4b3e-8f0a-5a3f4d1e2c02

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT

# Run by mmdebstrap with the root's directory as $1.
cat >"$work/customize" <<'HOOK'
#!/bin/sh
set -eu
root=$1
echo ignition >"$root/etc/hostname"
printf '127.0.0.1\tlocalhost\n127.0.1.1\tignition\n::1\tlocalhost ip6-localhost ip6-loopback\n' >"$root/etc/hosts"
echo 'nameserver 10.0.2.3' >"$root/etc/resolv.conf"
: >"$root/etc/machine-id"
# Debian's own list of sources, not the mirror this image was made from.
rm -f "$root/etc/apt/sources.list" "$root"/etc/apt/sources.list.d/*
cp "$root/usr/share/doc/apt/examples/debian.sources" "$root/etc/apt/sources.list.d/debian.sources"
rm -f "$root"/usr/lib/python3*/EXTERNALLY-MANAGED
printf '[global]\nroot-user-action = ignore\ndisable-pip-version-check = true\n' >"$root/etc/pip.conf"
rm -rf "$root/usr/share/doc" "$root/var/cache/ldconfig/aux-cache" "$root"/var/log/* "$root"/var/cache/debconf/*-old
HOOK
# In a user namespace the hook runs as another user than the one who wrote it.
chmod 755 "$work" "$work/customize"

exclude() { printf -- '--dpkgopt=path-exclude=%s\n' "$@"; }
mapfile -t excludes < <(exclude '/usr/share/man/*' '/usr/share/info/*' '/usr/share/locale/*' '/usr/share/lintian/*')
say "fetching the root's packages (half a minute or more)"
debian_tar "$work/root.tar" --variant=minbase \
  --aptopt='APT::Install-Recommends "false"' "${excludes[@]}" \
  --include="$(IFS=,; echo "${packages[*]}")" --customize-hook="$work/customize"

say "writing the file system"
library_path=$(dirname "$(find "$tools/usr/lib" -name 'libext2fs.so.2' -print -quit)")
loader=$(find "$tools/usr/lib" "$tools/usr/lib64" -name 'ld-linux-*.so.*' -print -quit 2>/dev/null)
e2fs() {
  local program=$1
  shift
  E2FSPROGS_FAKE_TIME=$SOURCE_DATE_EPOCH MKE2FS_CONFIG=$tools/etc/mke2fs.conf \
    "$loader" --library-path "$library_path" "$tools/usr/sbin/$program" "$@" >"$work/log" 2>&1 ||
    { cat "$work/log" >&2; fail "$program failed"; }
}
# Blocks round each file up by 2 KiB on average; what is left over is cut off again.
size_kib=$(($(stat -c %s "$work/root.tar") * 5 / 4096 + 65536))
e2fs mke2fs -q -t ext4 -b 4096 -m 0 -L ignition-root -U "$uuid" -O '^has_journal,^resize_inode,^metadata_csum' \
  -E "hash_seed=$hash_seed,lazy_itable_init=0,root_owner=0:0" -d "$work/root.tar" "$out.new" "${size_kib}k"
e2fs resize2fs -M "$out.new"
mv "$out.new" "$out"
