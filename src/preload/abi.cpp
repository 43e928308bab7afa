#include "preload/abi.hpp"

namespace sinew::preload {
namespace {

template <class Function>
bool find(Lookup lookup, const char* name, Function& into) noexcept {
  into = reinterpret_cast<Function>(lookup(name));
  return into != nullptr;
}

}  // namespace

bool find_questions(Lookup lookup, Questions& q, Handles& handles) noexcept {
  bool all = find(lookup, "PMPI_Initialized", q.initialized);
  all &= find(lookup, "PMPI_Finalized", q.finalized);
  all &= find(lookup, "PMPI_Comm_rank", q.comm_rank);
  all &= find(lookup, "PMPI_Comm_size", q.comm_size);
  all &= find(lookup, "PMPI_Comm_remote_size", q.comm_remote_size);
  all &= find(lookup, "PMPI_Comm_test_inter", q.comm_test_inter);
  all &= find(lookup, "PMPI_Comm_group", q.comm_group);
  all &= find(lookup, "PMPI_Comm_remote_group", q.comm_remote_group);
  all &= find(lookup, "PMPI_Comm_get_name", q.comm_get_name);
  all &= find(lookup, "PMPI_Win_get_group", q.win_get_group);
  all &= find(lookup, "PMPI_Group_size", q.group_size);
  all &= find(lookup, "PMPI_Group_rank", q.group_rank);
  all &= find(lookup, "PMPI_Group_translate_ranks", q.group_translate_ranks);
  all &= find(lookup, "PMPI_Group_free", q.group_free);
  all &= find(lookup, "PMPI_Topo_test", q.topo_test);
  all &= find(lookup, "PMPI_Cartdim_get", q.cartdim_get);
  all &= find(lookup, "PMPI_Graph_neighbors_count", q.graph_neighbors_count);
  all &= find(lookup, "PMPI_Dist_graph_neighbors_count", q.dist_graph_neighbors_count);
  all &= find(lookup, "PMPI_Type_size_x", q.type_size_x);
  all &= find(lookup, "PMPI_Get_elements_x", q.get_elements_x);
  all &= find(lookup, "PMPI_Test_cancelled", q.test_cancelled);
  all &= find(lookup, "PMPI_Error_class", q.error_class);
  all &= find(lookup, "PMPI_Get_library_version", q.get_library_version);
#ifdef OPEN_MPI
  all &= find(lookup, "ompi_mpi_comm_world", handles.world);
  all &= find(lookup, "ompi_mpi_comm_null", handles.no_comm);
  all &= find(lookup, "ompi_mpi_byte", handles.byte);
  all &= find(lookup, "ompi_request_null", handles.no_request);
  all &= find(lookup, "ompi_mpi_datatype_null", handles.no_type);
  all &= find(lookup, "ompi_request_empty", handles.empty);
#else
  handles = {MPI_COMM_WORLD, MPI_COMM_NULL, MPI_BYTE, MPI_REQUEST_NULL, MPI_DATATYPE_NULL, {}};
#endif
  return all;
}

}  // namespace sinew::preload
