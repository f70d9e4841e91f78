# Sourced by kind's entrypoint after it has set up cgroups. A node shares the kernel of the machine that hosts it: what
# its systemd and kubelet would change for the whole kernel is shown to them as already done.

if [ ! -f /sys/fs/cgroup/cgroup.controllers ]; then
  # cgroup v1: systemd mounts every controller that is bound to no hierarchy yet. Show it only the bound ones.
  awk 'NR == 1 || $2 != 0' /proc/cgroups >/kind/cgroups && mount --bind /kind/cgroups /proc/cgroups
fi

# The kubelet writes these when they differ from what it wants.
mkdir -p /kind/sysctl
for setting in vm/overcommit_memory=1 vm/panic_on_oom=0 kernel/panic=10 kernel/panic_on_oops=1 \
  kernel/keys/root_maxkeys=1000000 kernel/keys/root_maxbytes=25000000; do
  name=${setting%%=*} shown=/kind/sysctl/${setting%%=*}
  mkdir -p "$(dirname "$shown")"
  echo "${setting#*=}" >"$shown" && mount --bind "$shown" "/proc/sys/$name"
done
