// Every generator. Each lives in the file named after its algorithm; registry.cpp lists them.
#pragma once

#include <sinew/algorithms.hpp>

namespace sinew {

Schedule allgather_bruck(const Place& at);
Schedule allgather_direct(const Place& at);
Schedule allgather_pull(const Place& at);
Schedule allgather_linear(const Place& at);
Schedule allgather_recursive_doubling(const Place& at);
Schedule allgather_ring(const Place& at);
Schedule allreduce_binomial(const Place& at);
Schedule allreduce_chain(const Place& at);
Schedule allreduce_direct(const Place& at);
Schedule allreduce_pull(const Place& at);
Schedule allreduce_double_tree(const Place& at);
Schedule allreduce_flat(const Place& at);
Schedule allreduce_halving_doubling(const Place& at);
Schedule allreduce_linear(const Place& at);
Schedule allreduce_recursive_doubling(const Place& at);
Schedule allreduce_ring(const Place& at);
Schedule allreduce_shared(const Place& at);
Schedule allreduce_two_level(const Place& at);
Schedule allreduce_grid(const Place& at);
Schedule alltoall_bruck(const Place& at);
Schedule alltoall_direct(const Place& at);
Schedule alltoall_pull(const Place& at);
Schedule alltoall_linear(const Place& at);
Schedule alltoall_pairwise(const Place& at);
Schedule barrier_dissemination(const Place& at);
Schedule barrier_flat(const Place& at);
Schedule broadcast_binomial(const Place& at);
Schedule broadcast_chain(const Place& at);
Schedule broadcast_direct(const Place& at);
Schedule broadcast_pull(const Place& at);
Schedule broadcast_linear(const Place& at);
Schedule broadcast_two_level(const Place& at);
Schedule gather_binomial(const Place& at);
Schedule gather_direct(const Place& at);
Schedule gather_linear(const Place& at);
Schedule reduce_binomial(const Place& at);
Schedule reduce_chain(const Place& at);
Schedule reduce_direct(const Place& at);
Schedule reduce_flat(const Place& at);
Schedule reduce_linear(const Place& at);
Schedule reduce_scatter_direct(const Place& at);
Schedule reduce_scatter_pull(const Place& at);
Schedule reduce_scatter_linear(const Place& at);
Schedule reduce_scatter_pairwise(const Place& at);
Schedule reduce_scatter_recursive_halving(const Place& at);
Schedule reduce_scatter_ring(const Place& at);
Schedule reduce_two_level(const Place& at);
Schedule scatter_binomial(const Place& at);
Schedule scatter_direct(const Place& at);
Schedule scatter_linear(const Place& at);

}  // namespace sinew
