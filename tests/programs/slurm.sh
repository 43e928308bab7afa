#!/bin/sh
# COMMAND...: runs it beside a Slurm of one node, which lives as long as it does. Everything is in
# namespaces of its own (network, processes, host name, /tmp), so nothing is left and nobody else is
# met. Exit: that of the command, 77 when there is no Slurm here, or no namespaces.
set -eu
if [ "${1-}" != inside ]; then
  for program in slurmctld slurmd srun unshare ip; do
    command -v "$program" >/dev/null || { echo "slurm.sh: no $program here" >&2; exit 77; }
  done
  unshare -mnpu --fork true 2>/dev/null || { echo "slurm.sh: no namespaces here" >&2; exit 77; }
  exec unshare -mnpu --fork --kill-child --propagation private "$0" inside "$@"
fi
shift
mount -t proc none /proc
mount -t tmpfs none /run
folder=/run/sinew-slurm
mkdir -p $folder/state $folder/spool
hostname slurm-node
# Slurm looks names up only where there is an address beside the loopback's: one end of a cable will do.
ip link set lo up
ip link add slurm0 type veth peer name slurm1
ip address add 10.78.0.1/24 dev slurm0
ip link set slurm1 up
ip link set slurm0 up
printf '127.0.0.1 localhost\n10.78.0.1 slurm-node\n' >$folder/hosts
mount --bind $folder/hosts /etc/hosts
cat >$folder/slurm.conf <<END
ClusterName=sinew
SlurmctldHost=slurm-node(10.78.0.1)
SlurmUser=root
SlurmdUser=root
AuthType=auth/none
CredType=cred/none
ProctrackType=proctrack/linuxproc
TaskPlugin=task/none
SelectType=select/cons_tres
SelectTypeParameters=CR_CPU
SchedulerType=sched/builtin
MpiDefault=none
ReturnToService=2
StateSaveLocation=$folder/state
SlurmdSpoolDir=$folder/spool
SlurmctldPidFile=$folder/slurmctld.pid
SlurmdPidFile=$folder/slurmd.pid
SlurmctldLogFile=$folder/slurmctld.log
SlurmdLogFile=$folder/slurmd.log
SlurmdParameters=config_overrides
NodeName=slurm-node NodeAddr=10.78.0.1 CPUs=8 State=UNKNOWN
PartitionName=all Nodes=ALL Default=YES State=UP OverSubscribe=YES
END
export SLURM_CONF=$folder/slurm.conf
slurmctld -D >$folder/slurmctld.out 2>&1 &
slurmd -D -N slurm-node >$folder/slurmd.out 2>&1 &
tries=0
until timeout 2 sinfo -h -t idle 2>/dev/null | grep -q slurm-node; do
  tries=$((tries + 1))
  if [ $tries -gt 60 ]; then
    echo "slurm.sh: the node did not come up" >&2
    tail -n 20 $folder/*.log $folder/*.out >&2
    exit 1
  fi
  sleep 0.1
done
"$@"
