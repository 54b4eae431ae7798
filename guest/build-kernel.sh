#!/usr/bin/env bash
# build-kernel.sh OUT: Debian's cloud kernel and its file system tools, as files.
# OUT/vmlinuz, OUT/release, OUT/modules/{order,*.ko} and OUT/tools (mke2fs of the same Debian).
set -euo pipefail
# shellcheck source=guest/debian.sh
. "$(dirname "$0")/debian.sh"
[ $# = 1 ] || fail "usage: build-kernel.sh OUT"
need mmdebstrap tar xz
out=$1

# In the order they are loaded: what others need comes first. ext4 and virtio_console are built in.
modules=(virtio_mmio virtio_blk overlay virtio-rng failover net_failover virtio_net
  vsock vmw_vsock_virtio_transport_common vmw_vsock_virtio_transport)

case $(uname -m) in
  x86_64) kernel=linux-image-cloud-amd64 ;;
  aarch64) kernel=linux-image-cloud-arm64 ;;
  *) fail "no guest kernel is known for $(uname -m)" ;;
esac

work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
say "fetching $kernel"
debian_tar "$work/tools.tar" --variant=extract --include="$kernel,e2fsprogs,libarchive13t64"
mkdir -p "$out/tools" "$out/modules"
tar -xf "$work/tools.tar" -C "$out/tools" --no-same-owner --exclude='./dev/*'

release=$(basename "$out"/tools/usr/lib/modules/*)
cp "$out"/tools/boot/vmlinu[xz]-"$release" "$out/vmlinuz"
echo "$release" >"$out/release"
for module in "${modules[@]}"; do
  found=$(find "$out/tools/usr/lib/modules/$release/kernel" -name "$module.ko.xz")
  [ -n "$found" ] || fail "the kernel $release has no module $module; update the list in guest/build-kernel.sh"
  xz -dc "$found" >"$out/modules/$module.ko"
  echo "$module.ko" >>"$out/modules/order"
done
rm -rf "$out/tools/usr/lib/modules" "$out/tools/boot"
