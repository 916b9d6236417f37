#!/bin/sh
# Boots systemd as PID 1 of new namespaces, over a copy of this machine's root that is thrown away. Needs root, unshare(1)
# and overlay mounts. Nothing outside of the namespaces changes.
#
#   boot.sh PROJECT AGENT_DIST RESULTS STORY
#
# STORY, a file of this folder, writes what it finds to RESULTS. AGENT_DIST: output of npm run agent:build.
set -eu

if [ "${1:-}" != inside ]; then
  project=$1 dist=$2 results=$3 story=$4
  top=$(awk '$3 == "cgroup2" { print $2; exit }' /proc/mounts)
  [ -n "$top" ] || { echo 'boot.sh: cgroup v2 is not mounted' >&2; exit 77; }
  group=$top/nodekeeper-boot-$$
  mkdir "$group"
  trap 'rmdir "$group" 2>/dev/null || true' EXIT
  mkdir -p "$results"
  # The group is the root of the new cgroup namespace.
  sh -c 'echo $$ > "$1/cgroup.procs"; shift; exec "$@"' sh "$group" \
    unshare --mount --pid --fork --ipc --uts --net --cgroup --kill-child \
    sh "$0" inside "$project" "$dist" "$results" "$story" || true
  # systemd leaves groups behind, deepest first.
  find "$group" -mindepth 1 -depth -type d -exec rmdir {} + 2>/dev/null || true
  exit 0
fi

project=$2 dist=$3 results=$4 story=$5
mount --make-rprivate /
base=$(mktemp -d)
mount -t tmpfs -o size=2g tmpfs "$base"
mkdir "$base/upper" "$base/work" "$base/root"
mount -t overlay overlay -o "lowerdir=/,upperdir=$base/upper,workdir=$base/work" "$base/root"
root=$base/root
node=$(command -v node)

mkdir -p "$root/opt/agent" "$root/opt/project" "$root/opt/results" "$root/old"
mount --bind "$project" "$root/opt/project"
mount -o remount,bind,ro "$root/opt/project"
mount --bind "$results" "$root/opt/results"
cp "$dist"/* "$root/opt/agent/"
cp "$node" "$root/usr/local/bin/node"

for directory in run tmp var/tmp var/lib/nodekeeper; do
  mkdir -p "$root/$directory"
  mount -t tmpfs tmpfs "$root/$directory"
done
mount -t proc proc "$root/proc"
mount --bind "$root/proc/sys" "$root/proc/sys"
mount -o remount,bind,ro "$root/proc/sys"
mount -t sysfs -o ro sysfs "$root/sys"
mount -t cgroup2 cgroup2 "$root/sys/fs/cgroup"
mount -t tmpfs -o mode=755 tmpfs "$root/dev"
for device in null zero full random urandom tty; do
  touch "$root/dev/$device"
  mount --bind "/dev/$device" "$root/dev/$device"
done
mkdir "$root/dev/shm" "$root/dev/pts"
ln -s /proc/self/fd "$root/dev/fd"
rm -f "$root/etc/machine-id" "$root/etc/fstab"
touch "$root/etc/machine-id" "$root/etc/fstab"

units=$root/etc/systemd/system
rm -rf "$units"
mkdir -p "$units"
cat > "$units/story.target" <<'UNIT'
[Unit]
Wants=dbus.socket systemd-logind.service story.service systemd-journald.service
UNIT
cat > "$units/story.service" <<UNIT
[Unit]
After=dbus.socket systemd-logind.service
[Service]
Type=exec
ExecStart=/usr/local/bin/node /opt/project/test/systemd/$story /opt/agent /opt/results
StandardOutput=file:/opt/results/story.log
StandardError=inherit
UNIT
# Units of the machine that have nothing to do with the agent.
for unit in systemd-udevd.service systemd-udev-trigger.service systemd-modules-load.service systemd-sysctl.service \
  systemd-timesyncd.service systemd-networkd.service networking.service getty.target cron.service; do
  ln -s /dev/null "$units/$unit"
done
# The node's address is that of the default route. It leads nowhere.
ip link set lo up
ip link add story0 type veth peer name story1
ip address add 10.1.0.1/24 dev story0
ip link set story0 up
ip link set story1 up
ip route add default via 10.1.0.2

cd "$root"
pivot_root . old
exec chroot . /bin/sh -c 'umount -l /old; exec env -i container=story PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin \
  /lib/systemd/systemd --system --unit=story.target --show-status=0 --log-target=null'
