#!/bin/bash
# One Ray process a node, and `cooper train` on the first: sbatch examples/cluster/slurm.sh run.yaml
# Has never run on a real cluster (docs/gpu.md): its tests have stubs of Slurm.
#SBATCH --job-name=cooper
#SBATCH --nodes=2
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=8
#SBATCH --cpus-per-task=64
#SBATCH --time=24:00:00
#SBATCH --signal=B:TERM@300
#SBATCH --requeue

set -euo pipefail
config=${1:?usage: sbatch slurm.sh CONFIG [key=value ...]}
shift

# Whoever reaches a Ray cluster runs code on it: this one takes calls from the job alone.
export RAY_AUTH_MODE=token RAY_AUTH_TOKEN_PATH="$HOME/.cooper-ray-$SLURM_JOB_ID"
(umask 077 && python -c "import secrets; print(secrets.token_hex(32))" > "$RAY_AUTH_TOKEN_PATH")

nodes=($(scontrol show hostnames "$SLURM_JOB_NODELIST"))
head_address=$(srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" hostname --ip-address | awk '{print $1}'):6379

srun --nodes=1 --ntasks=1 --nodelist="${nodes[0]}" --overlap \
    ray start --head --node-ip-address="${head_address%:*}" --port=6379 --include-dashboard=false --block &
sleep 20
if ((${#nodes[@]} > 1)); then
    srun --nodes=$((${#nodes[@]} - 1)) --ntasks=$((${#nodes[@]} - 1)) --exclude="${nodes[0]}" --overlap \
        ray start --address="$head_address" --block &
    sleep 20
fi

# A job that Slurm has started again goes on where it was.
resume=()
if ((${SLURM_RESTART_COUNT:-0} > 0)); then resume=(--resume); fi

# Five minutes before the time is up the step under way is finished and a checkpoint written (exit code 130), and the
# job is queued again.
driver="" early=""
trap 'if [[ -n $driver ]]; then kill -TERM "$driver"; else early=1; fi' TERM
cooper train "$config" engine.address="$head_address" "$@" "${resume[@]}" &
driver=$!
if [[ -n $early ]]; then kill -TERM "$driver"; fi # the signal came before the driver had a number
code=143 # what `wait` says when a signal has ended it, and not the driver
while ((code == 143)); do
    code=0
    wait "$driver" || code=$?
done
rm -f "$RAY_AUTH_TOKEN_PATH"
if ((code == 130)); then scontrol requeue "$SLURM_JOB_ID"; fi
exit "$code"
