// What the wrappers know of the MPI they were built for. Everything is found at run time: the
// library has no undefined symbol of any MPI.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <type_traits>

namespace sinew::preload {

/// Routines that only we call. Never null once the library is started.
struct Questions {
  decltype(&PMPI_Initialized) initialized;
  decltype(&PMPI_Finalized) finalized;
  decltype(&PMPI_Comm_rank) comm_rank;
  decltype(&PMPI_Comm_size) comm_size;
  decltype(&PMPI_Comm_remote_size) comm_remote_size;
  decltype(&PMPI_Comm_test_inter) comm_test_inter;
  decltype(&PMPI_Comm_group) comm_group;
  decltype(&PMPI_Comm_remote_group) comm_remote_group;
  decltype(&PMPI_Comm_get_name) comm_get_name;
  decltype(&PMPI_Win_get_group) win_get_group;
  decltype(&PMPI_Group_size) group_size;
  decltype(&PMPI_Group_rank) group_rank;
  decltype(&PMPI_Group_translate_ranks) group_translate_ranks;
  decltype(&PMPI_Group_free) group_free;
  decltype(&PMPI_Topo_test) topo_test;
  decltype(&PMPI_Cartdim_get) cartdim_get;
  decltype(&PMPI_Graph_neighbors_count) graph_neighbors_count;
  decltype(&PMPI_Dist_graph_neighbors_count) dist_graph_neighbors_count;
  decltype(&PMPI_Type_size_x) type_size_x;
  decltype(&PMPI_Get_elements_x) get_elements_x;
  decltype(&PMPI_Test_cancelled) test_cancelled;
  decltype(&PMPI_Error_class) error_class;
  decltype(&PMPI_Get_library_version) get_library_version;
};

/// Handles that are addresses of the library's data in one MPI and numbers in the other.
struct Handles {
  MPI_Comm world;
  MPI_Comm no_comm;
  MPI_Datatype byte;
  MPI_Request no_request;
  MPI_Datatype no_type;
  MPI_Request empty;  // Open MPI's for all that was done when it was posted
};

/// A handle that several requests share, because nothing was left to do when they were posted.
inline bool is_shared([[maybe_unused]] const Handles& handles, MPI_Request request) noexcept {
#ifdef OPEN_MPI
  return request == handles.empty;
#else
  return static_cast<std::uint32_t>(request) >> 30U == 1;  // built in, as MPICH writes handles
#endif
}

using Lookup = void* (*)(const char* name);

/// False: the library lacks something, and nothing can be profiled.
bool find_questions(Lookup lookup, Questions& questions, Handles& handles) noexcept;

/// A handle or an argument as bits, of its own width.
template <class Handle>
auto number_of(Handle handle) noexcept {
  if constexpr (std::is_pointer_v<Handle>)
    return static_cast<std::uint64_t>(reinterpret_cast<std::uintptr_t>(handle));
  else
    return static_cast<std::make_unsigned_t<Handle>>(handle);
}

}  // namespace sinew::preload
