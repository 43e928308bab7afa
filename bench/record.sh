#!/usr/bin/env bash
# Measures what docs/performance.md shows and keeps it as JSON: bench/record.sh [FOLDER]
# Takes about a quarter of an hour on two cores. Nothing else should run meanwhile.
set -euo pipefail
cd "$(dirname "$0")/.."
out=${1:-bench/results}
sinew=build/release/bin/sinew
peers=openmpi,openmpi:nocma,openmpi:bound,mpich,gloo
mkdir -p "$out"

record() {  # NAME ARGUMENTS...
  local name=$1
  shift
  echo "$name: sinew bench $*" >&2
  "$sinew" bench "$@" --json >"$out/$name.json"
}

# More rounds than elsewhere, so that some are in either mode of the caches.
record allreduce allreduce -p 2,4,8 --sizes 8,256,4K,64K,1M,16M,110278272 \
  --rounds 9 --budget 0.15 --against $peers
record allreduce-shared allreduce -p 2,4,8 --sizes 110278272 --buffers shared --rewrite \
  --rounds 5 --budget 0.4 --against $peers
record others broadcast allgather allgatherv reduce_scatter alltoall -p 2,8 --sizes 4K,1M,16M \
  --rounds 5 --budget 0.15 --against $peers
for form in "" --accumulated; do
  record sparse-2-percent${form#-} sparse --density 0.02 -p 2,8 --rounds 5 --steps 10 \
    --against openmpi $form
  record sparse-1-percent${form#-} sparse --density 0.01 -p 4 --rounds 5 --steps 10 \
    --against openmpi $form
done
record sparse-schemes sparse --scheme all --density 0.02 -p 2 --rounds 3 --steps 3
taskset -c 0 build/release/sinew_kernels_bench --benchmark_filter=selection \
  --benchmark_out="$out/kernels.json" --benchmark_out_format=json >/dev/null
record hand allreduce -p 2,4,8 --algo flat --sizes 8,64,256,1K,4K --rounds 5 --budget 0.1 --against hand

record tcp allreduce --transport tcp -p 2,8 --sizes 8,4K,64K,1M,16M --rounds 5 --budget 0.1 \
  --against openmpi,gloo

# One option of the transport at a time: what checksums and TLS cost, and what slices and buffers do.
record tcp-sweeps allreduce --transport tcp -p 2,8 --sizes 8,64K,1M,16M --rounds 5 --budget 0.1 \
  --sweep checksum=on,off --sweep tls=off,on --sweep slice=0,256K,1M,4M --sweep sockbuf=512K,1M,4M,8M,16M

# Two busy strangers on the same cores.
for _ in 1 2; do (while :; do :; done) & done
trap 'kill $(jobs -p) 2>/dev/null' EXIT
record hogs allreduce -p 8 --sizes 8,4K --rounds 5 --budget 0.5 --against openmpi
