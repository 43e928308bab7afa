// Wrappers of the calls that begin and end MPI, communicators, windows and types.
#pragma once

#include "preload/call.hpp"

namespace sinew::preload {

// NOLINTBEGIN(readability-identifier-naming): named after the routines
int wrap_Init(int* argc, char*** argv);
int wrap_Init_thread(int* argc, char*** argv, int required, int* provided);
int wrap_Finalize();
#if MPI_VERSION >= 4
int wrap_Session_init(MPI_Info info, MPI_Errhandler handler, MPI_Session* made);
int wrap_Session_finalize(MPI_Session* ended);
#endif
int wrap_Abort(MPI_Comm comm, int status);
int wrap_Pcontrol(const int level, ...);
int wrap_Comm_free(MPI_Comm* comm);
int wrap_Comm_disconnect(MPI_Comm* comm);
int wrap_Win_free(MPI_Win* window);
int wrap_Type_free(MPI_Datatype* type);
// NOLINTEND(readability-identifier-naming)

}  // namespace sinew::preload
