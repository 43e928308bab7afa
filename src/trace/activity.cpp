#include "trace/activity.hpp"

#include <algorithm>
#include <array>

namespace sinew::trace {
namespace {

// Calls of MPI that never wait for another process. Those that make or free a communicator, window
// or file do, and are communication.
constexpr std::array<std::string_view, 10> kLocalPrefixes{
    "MPI_File_", "MPI_Type_", "MPI_Op_",         "MPI_Info_",   "MPI_Get_",
    "MPI_T_",    "MPI_Attr_", "MPI_Errhandler_", "MPI_Address", "MPI_Error_"};
constexpr std::array<std::string_view, 48> kLocal{"MPI_Init",
                                                  "MPI_Init_thread",
                                                  "MPI_Finalize",
                                                  "MPI_Abort",
                                                  "MPI_Session_init",
                                                  "MPI_Session_finalize",
                                                  "MPI_Pcontrol",
                                                  "MPI_Initialized",
                                                  "MPI_Finalized",
                                                  "MPI_Is_thread_main",
                                                  "MPI_Query_thread",
                                                  "MPI_Wtime",
                                                  "MPI_Wtick",
                                                  "MPI_Comm_rank",
                                                  "MPI_Comm_size",
                                                  "MPI_Comm_group",
                                                  "MPI_Comm_compare",
                                                  "MPI_Comm_get_attr",
                                                  "MPI_Comm_set_attr",
                                                  "MPI_Comm_get_name",
                                                  "MPI_Comm_set_name",
                                                  "MPI_Comm_get_errhandler",
                                                  "MPI_Comm_set_errhandler",
                                                  "MPI_Comm_test_inter",
                                                  "MPI_Comm_remote_size",
                                                  "MPI_Comm_create_keyval",
                                                  "MPI_Comm_free_keyval",
                                                  "MPI_Cart_coords",
                                                  "MPI_Cart_rank",
                                                  "MPI_Cart_shift",
                                                  "MPI_Cart_get",
                                                  "MPI_Alloc_mem",
                                                  "MPI_Free_mem",
                                                  "MPI_Buffer_attach",
                                                  "MPI_Request_free",
                                                  "MPI_Comm_remote_group",
                                                  "MPI_Cancel",
                                                  "MPI_Win_attach",
                                                  "MPI_Win_detach",
                                                  "MPI_Win_sync",
                                                  "MPI_Send_init",
                                                  "MPI_Bsend_init",
                                                  "MPI_Ssend_init",
                                                  "MPI_Rsend_init",
                                                  "MPI_Recv_init",
                                                  "MPI_Psend_init",
                                                  "MPI_Precv_init",
                                                  "step"};

bool is_local(std::string_view routine) {
  if (routine.ends_with("_c")) routine.remove_suffix(2);  // with large counts
  if (routine == "MPI_Get_accumulate") return false;
  return routine.starts_with("MPI_Group_") ||
         std::any_of(kLocalPrefixes.begin(), kLocalPrefixes.end(),
                     [&](auto prefix) { return routine.starts_with(prefix); }) ||
         std::find(kLocal.begin(), kLocal.end(), routine) != kLocal.end();
}

}  // namespace

Activity activity_of(std::string_view routine) {
  const auto word = routine.substr(0, routine.find('.'));
  if (word == "compute") return Activity::compute;
  if (word == "data") return Activity::data;
  if (word == "compress") return Activity::compress;
  if (word == "iteration") return Activity::iteration;
  if (word == "train") return Activity::local;  // parts of a step that hold the others
  return is_local(routine) ? Activity::local : Activity::communication;
}

}  // namespace sinew::trace
