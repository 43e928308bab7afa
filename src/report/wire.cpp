#include "report/wire.hpp"

#include <algorithm>
#include <cctype>
#include <string>

namespace sinew::report {
namespace {

/// "allreduce" of "MPI_Iallreduce_c", "ncclAllReduce", "NCCL_ALLREDUCE", "gloo:all_reduce".
std::string bare(std::string_view routine) {
  std::string word;
  for (const char c : routine)
    if (c != '_') word += static_cast<char>(std::tolower(static_cast<unsigned char>(c)));
  for (const std::string_view prefix : {"mpi", "nccl", "gloo:", "horovod", "i"})
    if (word.starts_with(prefix)) word.erase(0, prefix.size());
  if (word.starts_with("nit")) word.insert(0, "i");
  return word;
}

}  // namespace

std::optional<Collective> collective_of(std::string_view routine) {
  const auto word = bare(routine);
  if (word.starts_with("allreduce")) return Collective::allreduce;
  if (word.starts_with("allgather")) return Collective::allgather;
  if (word.starts_with("reducescatter")) return Collective::reduce_scatter;
  if (word.starts_with("alltoall")) return Collective::alltoall;
  if (word.starts_with("bcast") || word.starts_with("broadcast")) return Collective::broadcast;
  if (word.starts_with("barrier")) return Collective::barrier;
  if (word.starts_with("reduce")) return Collective::reduce;
  if (word.starts_with("gather")) return Collective::gather;
  if (word.starts_with("scatter")) return Collective::scatter;
  return {};
}

bool is_receive(std::string_view routine) {
  const auto word = bare(routine);
  return word.starts_with("recv") || word.starts_with("mrecv");
}

bool only_posts(std::string_view routine) {
  return routine.starts_with("MPI_I") && !routine.starts_with("MPI_Init");
}

Modelled wire_bytes(std::string_view routine, std::uint64_t bytes, std::uint64_t sent, int ranks) {
  const auto given = static_cast<double>(bytes), told = static_cast<double>(sent);
  const auto others = static_cast<double>(ranks - 1), all = static_cast<double>(std::max(ranks, 1));
  const auto kind = collective_of(routine);
  if (!kind) return {is_receive(routine) ? 0 : sent > 0 ? told : given};
  // MPI names one rank's part of a gathering, our own runtime the whole.
  const bool part = routine.starts_with("MPI_");
  switch (*kind) {
    case Collective::allreduce:
      return {2 * others / all * given};
    case Collective::allgather:
      return {part ? others * given : others / all * given};
    case Collective::reduce_scatter:
      return {others / all * given};
    case Collective::alltoall:
      return {part ? told : others / all * given};
    case Collective::barrier:
      return {0};
    default:
      return {part ? told : others / all * given};
  }
}

}  // namespace sinew::report
