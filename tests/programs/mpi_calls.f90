! Fifty allreduces, a message and a request from Fortran; -DF08 takes the newer binding.
program calls
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: rank, ranks, i, ierror
  real(8) :: values(2)
  integer :: data(10)
#ifdef F08
  type(MPI_Request) :: request
#else
  integer :: request
#endif
  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  values = 1
  data = rank
  do i = 1, 50
    call MPI_Allreduce(MPI_IN_PLACE, values, 2, MPI_DOUBLE_PRECISION, MPI_SUM, MPI_COMM_WORLD, ierror)
  end do
  if (rank == 0) then
    call MPI_Send(data, 7, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, ierror)
  else if (rank == 1) then
    call MPI_Irecv(data, 10, MPI_INTEGER, 0, 5, MPI_COMM_WORLD, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
  end if
  call MPI_Finalize(ierror)
end program
