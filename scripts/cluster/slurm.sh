#!/usr/bin/env bash
# Trains one config under Slurm, from the folder that holds scripts/ and the environment's Python:
#
#   nmt prepare configs/wmt14.en-de.big.yaml --run /shared/big    # once, where no GPU waits for it
#   sbatch scripts/cluster/slurm.sh configs/wmt14.en-de.big.yaml --run /shared/big --offline
#
# Ten minutes before its time is over the job saves and queues again, and then goes on; so it does
# where Slurm takes a machine away. Any option of sbatch may precede the script, such as --nodes 4.
#SBATCH --job-name=nmt
#SBATCH --nodes=2
#SBATCH --gpus-per-node=8
#SBATCH --ntasks-per-node=1
#SBATCH --cpus-per-task=32
#SBATCH --time=24:00:00
#SBATCH --signal=B:USR1@600
#SBATCH --requeue
#SBATCH --open-mode=append
#SBATCH --output=%x-%j.log
set -euo pipefail

first=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | head -n 1)
export FIRST=$first:$((20000 + SLURM_JOB_ID % 20000)) NODES=$SLURM_JOB_NUM_NODES

# srun does not take the number of cores from sbatch, and lets the others wait where a task ends
# badly, unless told.
srun --cpus-per-task="$SLURM_CPUS_PER_TASK" --kill-on-bad-exit=1 scripts/cluster/node.sh "$@" &
srun=$!
is_told=
trap 'is_told=1; kill -USR1 "$srun" || true' USR1 # srun hands it on to each torchrun

status=0
wait "$srun" || status=$?
while kill -0 "$srun" 2>/dev/null; do # it was the signal that ended `wait`, not srun
    status=0
    wait "$srun" || status=$?
done
if [[ $is_told && $status != 0 ]]; then
    scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
