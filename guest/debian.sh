# Fetching from Debian, for the build scripts that source this. Sets SUITE and the clock of all files.
# shellcheck shell=bash
SUITE=trixie
# Every file's time, so that the same packages give the same bytes.
export SOURCE_DATE_EPOCH=1735689600
export TZ=UTC LC_ALL=C.UTF-8

say() { printf '%s: %s\n' "$(basename "$0")" "$*" >&2; }
fail() { say "$*"; exit 1; }

need() {
  local tool
  for tool in "$@"; do
    command -v "$tool" >/dev/null || fail "$tool is missing; run scripts/setup"
  done
}

# The mirror this system already uses, when it is a Debian; nothing otherwise.
debian_mirror() {
  # shellcheck source=/dev/null
  [ "$(. /etc/os-release && echo "$ID")" = debian ] || return 0
  # shellcheck disable=SC2016 # apt-get fills these in
  apt-get indextargets --format '$(SITE) $(LABEL) $(COMPONENT)' 2>/dev/null |
    awk '$2 == "Debian" && $3 == "main" { print $1; exit }'
}

# debian_tar OUT.tar mmdebstrap-options...: a Debian tree as a tar file, made without privileges where possible.
debian_tar() {
  local out=$1 mirror log
  shift
  mirror=$(debian_mirror)
  log=$(mktemp)
  if ! mmdebstrap --mode=unshare --format=tar "$@" "$SUITE" "$out" ${mirror:+"$mirror"} >"$log" 2>&1; then
    tail -n 20 "$log" >&2
    rm -f "$log"
    fail "mmdebstrap failed (its last lines are above); check the network, and that user namespaces are allowed (package uidmap, sysctl kernel.unprivileged_userns_clone=1)"
  fi
  rm -f "$log"
}
