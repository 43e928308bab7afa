// An MPI that nobody knows, and a program that uses it.
#include <cstdio>
#include <cstring>

#ifdef SINEW_ODD_LIBRARY
extern "C" {
int PMPI_Get_library_version(char* text, int* length) {
  std::strcpy(text, "Odd MPI 1.0");
  *length = static_cast<int>(std::strlen(text));
  return 0;
}
int PMPI_Init(int*, char***) { return 0; }
int MPI_Init(int* argc, char*** argv) { return PMPI_Init(argc, argv); }
int PMPI_Comm_rank(void*, int* rank) {
  *rank = 5;
  return 0;
}
int MPI_Comm_rank(void* comm, int* rank) { return PMPI_Comm_rank(comm, rank); }
}
#else
extern "C" int MPI_Init(int*, char***);
extern "C" int MPI_Comm_rank(void*, int*);

int main() {
  int rank = -1;
  MPI_Init(nullptr, nullptr);
  MPI_Comm_rank(nullptr, &rank);
  std::printf("rank %d\n", rank);
  return 4;
}
#endif
