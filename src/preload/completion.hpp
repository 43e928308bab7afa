// Wrappers of the calls that end requests or start persistent ones.
#pragma once

#include "preload/call.hpp"

namespace sinew::preload {

// NOLINTBEGIN(readability-identifier-naming): named after the routines
int wrap_Wait(MPI_Request* request, MPI_Status* status);
int wrap_Waitall(int count, MPI_Request requests[], MPI_Status* statuses);
int wrap_Waitany(int count, MPI_Request requests[], int* index, MPI_Status* status);
int wrap_Waitsome(int count, MPI_Request requests[], int* done, int indices[],
                  MPI_Status statuses[]);
int wrap_Test(MPI_Request* request, int* flag, MPI_Status* status);
int wrap_Testall(int count, MPI_Request requests[], int* flag, MPI_Status statuses[]);
int wrap_Testany(int count, MPI_Request requests[], int* index, int* flag, MPI_Status* status);
int wrap_Testsome(int count, MPI_Request requests[], int* done, int indices[],
                  MPI_Status statuses[]);
int wrap_Request_free(MPI_Request* request);
int wrap_Cancel(MPI_Request* request);
int wrap_Start(MPI_Request* request);
int wrap_Startall(int count, MPI_Request requests[]);
// NOLINTEND(readability-identifier-naming)

}  // namespace sinew::preload
