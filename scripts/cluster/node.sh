#!/usr/bin/env bash
# Trains one config on several machines: the same command on each of them, such as
#
#   FIRST=gpu1:29400 scripts/cluster/node.sh configs/wmt14.en-de.big.yaml --run /shared/big
#
# FIRST      the machine where all meet, one of them, and a free port there
# NODES      how many machines take part; 2 if not given
# PROCESSES  how many processes each starts; one a GPU, or a core where it has none, if not given
#
# What follows the script is what follows `nmt train`. All machines need the same code, and the
# same run folder on a file system that they share. Where the network is not plain, torch listens
# to GLOO_SOCKET_IFNAME and NCCL_SOCKET_IFNAME (the interface to use) and PET_LOCAL_ADDR (the name
# by which the others find this machine).
set -euo pipefail

# Each start of the processes meets at a store of its own. Else torchrun keeps one for all, where
# those that start again find what went before, and wait for processes that are gone.
export TORCH_DISABLE_SHARE_RDZV_TCP_STORE=1

options=(
    --nnodes "${NODES:-2}"
    --nproc-per-node "${PROCESSES:-auto}"
    --rdzv-backend c10d
    --rdzv-endpoint "${FIRST:?name the first machine and a port, such as gpu1:29400}"
    --rdzv-id nmt
    # So many seconds the others wait for a machine that is gone, for this command to run there
    # again. Then all go on from the last checkpoint.
    --rdzv-conf join_timeout=3600
    # So often the processes may fail, and start again from the last checkpoint.
    --max-restarts 3
    # torchrun hands on only these; SIGUSR1 is what a batch system warns with.
    --signals-to-handle 'SIGTERM,SIGINT,SIGHUP,SIGQUIT,SIGUSR1'
    # So many seconds for the end of an update and a checkpoint; torchrun kills after 30.
    --shutdown-timeout 600
)
# exec: a signal to this process is one to torchrun. --: what follows is not for torchrun, which
# has an option that begins with --run.
exec torchrun "${options[@]}" -m -- nmt train "$@"
