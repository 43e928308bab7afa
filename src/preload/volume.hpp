// How many bytes a call moves, by its arguments. `sent` is what it takes from its send buffer,
// `received` what it puts into its receive buffer, a rank's own part included; `bytes` is the
// message as its caller would name it. Arguments that are not significant are never looked at.
#pragma once

#include "preload/session.hpp"

namespace sinew::preload {

struct Volume {
  std::uint64_t bytes = 0, sent = 0, received = 0;
  int peer = -1;
  bool has_tag = false;
  int tag = 0;
};

Session& session() noexcept;

namespace volume {

template <class Count>
std::uint64_t bytes(Count count, MPI_Datatype type) noexcept {
  return count <= 0 ? 0 : static_cast<std::uint64_t>(count) * session().type_bytes(type);
}

template <class Count>
std::uint64_t all_bytes(const Count* counts, int ranks, MPI_Datatype type) noexcept {
  std::uint64_t elements = 0;
  for (int i = 0; i < ranks; ++i) elements += static_cast<std::uint64_t>(counts[i]);
  return elements == 0 ? 0 : elements * session().type_bytes(type);
}

template <class Count>
std::uint64_t all_bytes(const Count* counts, int ranks, const MPI_Datatype* types) noexcept {
  std::uint64_t sum = 0;
  for (int i = 0; i < ranks; ++i) sum += bytes(counts[i], types[i]);
  return sum;
}

inline std::uint64_t times(std::uint64_t bytes, int ranks) noexcept {
  return bytes * static_cast<std::uint64_t>(ranks);
}

/// Which part a rank plays in a rooted collective. In an inter-communicator the root says so
/// itself.
enum class Part { root, member, none };
inline Part part_of(const Place& place, int root) noexcept {
  if (!place.is_inter) return place.rank == root ? Part::root : Part::member;
  return root == MPI_ROOT ? Part::root : root == MPI_PROC_NULL ? Part::none : Part::member;
}

inline Volume nothing(const Place&) noexcept { return {}; }

template <class Count>
Volume to(const Place& place, Count count, MPI_Datatype type, int dest, int tag) noexcept {
  if (dest == MPI_PROC_NULL) return {0, 0, 0, dest, true, tag};
  const auto n = bytes(count, type);
  return {n, n, 0, place.peer(dest), true, tag};
}

template <class Count>
Volume parts_to(const Place& place, int parts, Count count, MPI_Datatype type, int dest,
                int tag) noexcept {
  return to(place, static_cast<std::int64_t>(count) * parts, type, dest, tag);
}

// Bytes and peer of these come from the status.
inline Volume from(const Place&, int, int) noexcept { return {}; }
inline Volume from_any(const Place&) noexcept { return {}; }

template <class Count>
Volume expect(const Place& place, Count count, MPI_Datatype type, int source, int tag) noexcept {
  if (source == MPI_PROC_NULL) return {0, 0, 0, source, true, tag};
  return {bytes(count, type), 0, 0, place.peer(source), true, tag};
}

template <class Count>
Volume expect_any(const Place&, Count count, MPI_Datatype type) noexcept {
  return {bytes(count, type), 0, 0, -1, false, 0};
}

template <class Count>
Volume expect_parts(const Place& place, int parts, Count count, MPI_Datatype type, int source,
                    int tag) noexcept {
  return expect(place, static_cast<std::int64_t>(count) * parts, type, source, tag);
}

template <class Count>
Volume exchange(const Place& place, Count count, MPI_Datatype type, int dest, int tag) noexcept {
  return to(place, count, type, dest, tag);
}

template <class Count>
Volume both(const Place& place, Count scount, MPI_Datatype stype, int dest, int tag, Count rcount,
            MPI_Datatype rtype, int source) noexcept {
  auto volume = to(place, scount, stype, dest, tag);
  volume.received = source == MPI_PROC_NULL ? 0 : bytes(rcount, rtype);
  return volume;
}

template <class Count>
Volume broadcast(const Place& place, Count count, MPI_Datatype type, int root) noexcept {
  const auto part = part_of(place, root);
  if (part == Part::none) return {};
  const auto n = bytes(count, type);
  return part == Part::root ? Volume{n, n, 0} : Volume{n, 0, n};
}

template <class Count>
Volume reduce(const Place& place, Count count, MPI_Datatype type, int root) noexcept {
  const auto part = part_of(place, root);
  if (part == Part::none) return {};
  const auto n = bytes(count, type);
  if (part == Part::member) return {n, n, 0};
  return {n, place.is_inter ? 0 : n, n};
}

template <class Count>
Volume everywhere(const Place&, Count count, MPI_Datatype type) noexcept {
  const auto n = bytes(count, type);
  return {n, n, n};
}

template <class Count>
Volume exclusive(const Place& place, Count count, MPI_Datatype type) noexcept {
  const auto n = bytes(count, type);
  return {n, n, place.rank == 0 ? 0 : n};
}

template <class Count>
Volume gather(const Place& place, const void* send, Count scount, MPI_Datatype stype, Count rcount,
              MPI_Datatype rtype, int root) noexcept {
  const auto part = part_of(place, root);
  if (part == Part::none) return {};
  const auto block = part == Part::root ? bytes(rcount, rtype) : 0;
  std::uint64_t own = 0;
  if (part == Part::member || !place.is_inter)
    own = send == MPI_IN_PLACE ? block : bytes(scount, stype);
  return {part == Part::root && place.is_inter ? block : own, own, times(block, place.others)};
}

template <class Count>
Volume gatherv(const Place& place, const void* send, Count scount, MPI_Datatype stype,
               const Count* rcounts, MPI_Datatype rtype, int root) noexcept {
  const auto part = part_of(place, root);
  if (part == Part::none) return {};
  const bool is_root = part == Part::root;
  const auto came = is_root ? all_bytes(rcounts, place.others, rtype) : 0;
  std::uint64_t own = 0;
  if (!is_root || !place.is_inter)
    own = send == MPI_IN_PLACE ? bytes(rcounts[place.rank], rtype) : bytes(scount, stype);
  return {own, own, came};
}

template <class Count>
Volume scatter(const Place& place, Count scount, MPI_Datatype stype, const void* recv, Count rcount,
               MPI_Datatype rtype, int root) noexcept {
  const auto part = part_of(place, root);
  if (part == Part::none) return {};
  const auto block = part == Part::root ? bytes(scount, stype) : 0;
  std::uint64_t own = 0;
  if (part == Part::member || !place.is_inter)
    own = recv == MPI_IN_PLACE ? block : bytes(rcount, rtype);
  return {part == Part::root && place.is_inter ? block : own, times(block, place.others), own};
}

template <class Count>
Volume scatterv(const Place& place, const Count* scounts, MPI_Datatype stype, const void* recv,
                Count rcount, MPI_Datatype rtype, int root) noexcept {
  const auto part = part_of(place, root);
  if (part == Part::none) return {};
  const bool is_root = part == Part::root;
  const auto gone = is_root ? all_bytes(scounts, place.others, stype) : 0;
  std::uint64_t own = 0;
  if (!is_root || !place.is_inter)
    own = recv == MPI_IN_PLACE ? bytes(scounts[place.rank], stype) : bytes(rcount, rtype);
  return {own, gone, own};
}

template <class Count>
Volume allgather(const Place& place, const void* send, Count scount, MPI_Datatype stype,
                 Count rcount, MPI_Datatype rtype) noexcept {
  const auto block = bytes(rcount, rtype);
  const auto own = send == MPI_IN_PLACE ? block : bytes(scount, stype);
  return {own, own, times(block, place.others)};
}

template <class Count>
Volume allgatherv(const Place& place, const void* send, Count scount, MPI_Datatype stype,
                  const Count* rcounts, MPI_Datatype rtype) noexcept {
  const auto own = send == MPI_IN_PLACE ? bytes(rcounts[place.rank], rtype) : bytes(scount, stype);
  return {own, own, all_bytes(rcounts, place.others, rtype)};
}

template <class Count>
Volume alltoall(const Place& place, const void* send, Count scount, MPI_Datatype stype,
                Count rcount, MPI_Datatype rtype) noexcept {
  const auto came = bytes(rcount, rtype);
  const auto gone = send == MPI_IN_PLACE ? came : bytes(scount, stype);
  return {gone, times(gone, place.others), times(came, place.others)};
}

template <class Count>
Volume alltoallv(const Place& place, const void* send, const Count* scounts, MPI_Datatype stype,
                 const Count* rcounts, MPI_Datatype rtype) noexcept {
  const auto came = all_bytes(rcounts, place.others, rtype);
  const auto gone = send == MPI_IN_PLACE ? came : all_bytes(scounts, place.others, stype);
  return {gone, gone, came};
}

template <class Count>
Volume alltoallw(const Place& place, const void* send, const Count* scounts,
                 const MPI_Datatype* stypes, const Count* rcounts,
                 const MPI_Datatype* rtypes) noexcept {
  const auto came = all_bytes(rcounts, place.others, rtypes);
  const auto gone = send == MPI_IN_PLACE ? came : all_bytes(scounts, place.others, stypes);
  return {gone, gone, came};
}

template <class Count>
Volume reduce_scatter(const Place& place, const Count* counts, MPI_Datatype type) noexcept {
  const auto all = all_bytes(counts, place.size, type);
  return {all, all, bytes(counts[place.rank], type)};
}

template <class Count>
Volume reduce_scatter_block(const Place& place, Count count, MPI_Datatype type) noexcept {
  const auto own = bytes(count, type);
  const auto all = times(own, place.size);
  return {all, all, own};
}

template <class Count>
Volume near_allgather(const Place& place, Count scount, MPI_Datatype stype, Count rcount,
                      MPI_Datatype rtype) noexcept {
  const auto own = place.out_degree == 0 ? 0 : bytes(scount, stype);
  const auto came = place.in_degree == 0 ? 0 : bytes(rcount, rtype);
  return {own, times(own, place.out_degree), times(came, place.in_degree)};
}

template <class Count>
Volume near_allgatherv(const Place& place, Count scount, MPI_Datatype stype, const Count* rcounts,
                       MPI_Datatype rtype) noexcept {
  const auto own = place.out_degree == 0 ? 0 : bytes(scount, stype);
  return {own, times(own, place.out_degree), all_bytes(rcounts, place.in_degree, rtype)};
}

template <class Count>
Volume near_alltoall(const Place& place, Count scount, MPI_Datatype stype, Count rcount,
                     MPI_Datatype rtype) noexcept {
  return near_allgather(place, scount, stype, rcount, rtype);
}

template <class Count>
Volume near_alltoallv(const Place& place, const Count* scounts, MPI_Datatype stype,
                      const Count* rcounts, MPI_Datatype rtype) noexcept {
  const auto gone = all_bytes(scounts, place.out_degree, stype);
  return {gone, gone, all_bytes(rcounts, place.in_degree, rtype)};
}

template <class Count>
Volume near_alltoallw(const Place& place, const Count* scounts, const MPI_Datatype* stypes,
                      const Count* rcounts, const MPI_Datatype* rtypes) noexcept {
  const auto gone = all_bytes(scounts, place.out_degree, stypes);
  return {gone, gone, all_bytes(rcounts, place.in_degree, rtypes)};
}

template <class Count>
Volume put(const Place& place, Count count, MPI_Datatype type, int target) noexcept {
  if (target == MPI_PROC_NULL) return {0, 0, 0, target};
  const auto n = bytes(count, type);
  return {n, n, 0, place.peer(target)};
}

template <class Count>
Volume get(const Place& place, Count count, MPI_Datatype type, int target) noexcept {
  if (target == MPI_PROC_NULL) return {0, 0, 0, target};
  const auto n = bytes(count, type);
  return {n, 0, n, place.peer(target)};
}

template <class Count>
Volume put_get(const Place& place, Count count, MPI_Datatype type, Count result_count,
               MPI_Datatype result_type, int target) noexcept {
  if (target == MPI_PROC_NULL) return {0, 0, 0, target};
  const auto back = bytes(result_count, result_type);
  return {back, bytes(count, type), back, place.peer(target)};
}

inline Volume one_each_way(const Place& place, MPI_Datatype type, int target) noexcept {
  if (target == MPI_PROC_NULL) return {0, 0, 0, target};
  const auto n = bytes(1, type);
  return {n, n, n, place.peer(target)};
}

template <class Count>
Volume read(const Place&, Count count, MPI_Datatype type) noexcept {
  const auto n = bytes(count, type);
  return {n, 0, n};
}

template <class Count>
Volume write(const Place&, Count count, MPI_Datatype type) noexcept {
  const auto n = bytes(count, type);
  return {n, n, 0};
}

}  // namespace volume
}  // namespace sinew::preload
