#!/usr/bin/env bash
# Tries the checkout where nothing is installed: try_bare_debian.sh FOLDER [COMMAND ...]
# Makes FOLDER a minimal Debian 12 (or reuses the one there), copies the checkout in without its
# build, and runs ./sinew COMMAND in it for each COMMAND, e.g. "test -R layers" (default: demo, then
# test). Needs root and debootstrap. Mirror and proxy are those of this machine's apt. FOLDER stays,
# for another try; mounts are in a namespace of their own and end with the script.
set -euo pipefail

if (($# < 1)) || ((EUID != 0)); then
  echo "usage, as root: $0 FOLDER [COMMAND ...]" >&2
  exit 2
fi
checkout=$(cd -- "$(dirname -- "$0")/.." && pwd)
mkdir -p -- "$1"
bare=$(cd -- "$1" && pwd)
commands=("${@:2}")
if ((${#commands[@]} == 0)); then commands=(demo test); fi

# The first bookworm mirror that apt here has lists of, and its proxy.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(RELEASE)' 'Created-By: Packages' |
  awk '$2 == "bookworm" && !found { print $1; found = 1 }')
if [[ -z $mirror ]]; then
  echo "apt on this machine has no lists of a bookworm mirror; run apt-get update" >&2
  exit 3
fi
eval "$(apt-config shell proxy Acquire::http::Proxy)"
if [[ -n ${proxy:-} ]]; then export http_proxy=$proxy; fi

if [[ ! -x $bare/usr/bin/apt-get ]]; then
  debootstrap --variant=minbase bookworm "$bare" "$mirror"
fi
apt-config dump | grep -E '^Acquire::(https?::|Check-Valid)' >"$bare/etc/apt/apt.conf.d/90host" || true
cp -L /etc/resolv.conf "$bare/etc/resolv.conf"
rm -rf "$bare/root/sinew"
mkdir -p "$bare/root/sinew"
tar -C "$checkout" --exclude=./build --exclude=./.git -cf - . | tar -C "$bare/root/sinew" -xf -

# in_bare COMMAND...: run it in the folder, with a clean environment.
in_bare() {
  unshare --mount --propagation private bash -euc '
    mount -t proc proc "$0/proc"
    mount --bind /sys "$0/sys"
    mount --bind /dev "$0/dev"
    mount -t tmpfs tmpfs "$0/dev/shm"
    exec env -i PATH=/usr/sbin:/usr/bin:/sbin:/bin HOME=/root LANG=C.UTF-8 \
      ${http_proxy:+"http_proxy=$http_proxy"} chroot "$0" "$@"' "$bare" "$@"
}

for command in "${commands[@]}"; do
  echo "== ./sinew $command, with $(in_bare dpkg-query -W | wc -l) packages installed"
  begin=$SECONDS
  read -ra words <<<"$command"
  in_bare /root/sinew/sinew "${words[@]}"
  echo "== ./sinew $command: passed in $((SECONDS - begin)) s"
done
