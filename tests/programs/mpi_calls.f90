! Calls from Fortran whose bytes are known, and what a profiler is expected to see, in a file a rank:
! mpi_calls FOLDER, two ranks. -DF08 takes the newer binding.
#ifdef F08
#define HANDLE(kind) type(kind)
#else
#define HANDLE(kind) integer
#endif
program calls
#ifdef F08
  use mpi_f08
#else
  use mpi
#endif
  implicit none
  integer :: rank, ranks, peer, i, ierror, before
  integer :: values(4), data(100), other(100), counts(2), places(2)
  logical :: flag
  character(len=200) :: folder
  HANDLE(MPI_Request) :: request, both(2)
  HANDLE(MPI_Comm) :: half
  HANDLE(MPI_Datatype) :: strided, here
  HANDLE(MPI_Win) :: window
  HANDLE(MPI_Message) :: message
#ifdef F08
  type(MPI_Status) :: status
#else
  integer :: status(MPI_STATUS_SIZE)
#endif

  call MPI_Init(ierror)
  call MPI_Comm_rank(MPI_COMM_WORLD, rank, ierror)
  call MPI_Comm_size(MPI_COMM_WORLD, ranks, ierror)
  call get_command_argument(1, folder)
  open(unit=10, file=trim(folder) // '/' // char(iachar('0') + rank))
  call expect('MPI_Init', 1, 0, 0)
  call expect('MPI_Comm_rank', 1, 0, 0)
  call expect('MPI_Comm_size', 1, 0, 0)
  peer = 1 - rank
  values = 1
  data = rank
  call collectives()
  call messages()
  call requests()
  call places_to_be()
  call expect('MPI_Finalize', 1, 0, 0)
  close(10)
  call MPI_Finalize(ierror)

contains

  subroutine expect(routine, calls, sent, received)
    character(len=*), intent(in) :: routine
    integer, intent(in) :: calls, sent, received
    write (10, '(a, a, 3(1x, i0))') 'expect ', routine, calls, sent, received
  end subroutine

  ! Bytes at the root, or none.
  integer function at_root(bytes)
    integer, intent(in) :: bytes
    at_root = merge(bytes, 0, rank == 0)
  end function

  subroutine collectives()
    do i = 1, 50
      call MPI_Allreduce(MPI_IN_PLACE, values, 4, MPI_INTEGER, MPI_MAX, MPI_COMM_WORLD, ierror)
    end do
    call expect('MPI_Allreduce', 50, 800, 800)
    call MPI_Barrier(MPI_COMM_WORLD, ierror)
    call expect('MPI_Barrier', 1, 0, 0)
    call MPI_Bcast(data, 10, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call expect('MPI_Bcast', 1, at_root(40), 40 - at_root(40))
    call MPI_Reduce(data, other, 5, MPI_INTEGER, MPI_SUM, 0, MPI_COMM_WORLD, ierror)
    call expect('MPI_Reduce', 1, 20, at_root(20))
    ! What the others name as the type that is received is never looked at.
    here = MPI_DATATYPE_NULL
    if (rank == 0) here = MPI_INTEGER
    call MPI_Gather(data, 3, MPI_INTEGER, other, 3, here, 0, MPI_COMM_WORLD, ierror)
    call expect('MPI_Gather', 1, 12, at_root(24))
    call MPI_Scatter(data, 3, here, other, 3, MPI_INTEGER, 0, MPI_COMM_WORLD, ierror)
    call expect('MPI_Scatter', 1, at_root(24), 12)
    call MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, other, 2, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect('MPI_Allgather', 1, 8, 16)
    counts = (/ 1, 2 /)
    places = (/ 0, 1 /)
    call MPI_Allgatherv(data, rank + 1, MPI_INTEGER, other, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect('MPI_Allgatherv', 1, 4 * (rank + 1), 12)
    call MPI_Alltoall(data, 2, MPI_INTEGER, other, 2, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect('MPI_Alltoall', 1, 16, 16)
    counts = 3
    places = (/ 0, 3 /)
    call MPI_Alltoallv(data, counts, places, MPI_INTEGER, other, counts, places, MPI_INTEGER, MPI_COMM_WORLD, ierror)
    call expect('MPI_Alltoallv', 1, 24, 24)
    call MPI_Reduce_scatter(data, other, counts, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect('MPI_Reduce_scatter', 1, 24, 12)
    call MPI_Scan(data, other, 2, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, ierror)
    call expect('MPI_Scan', 1, 8, 8)
    call MPI_Iallreduce(data, other, 6, MPI_INTEGER, MPI_SUM, MPI_COMM_WORLD, request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call expect('MPI_Iallreduce', 1, 24, 24)
    call expect('MPI_Wait', 1, 0, 0)
  end subroutine

  subroutine messages()
    if (rank == 0) then
      call MPI_Send(data, 7, MPI_INTEGER, 1, 5, MPI_COMM_WORLD, ierror)
      call MPI_Send(data, 7, MPI_INTEGER, MPI_PROC_NULL, 5, MPI_COMM_WORLD, ierror)
      call MPI_Ssend(data, 8, MPI_INTEGER, 1, 6, MPI_COMM_WORLD, ierror)
      call MPI_Type_vector(3, 1, 2, MPI_INTEGER, strided, ierror)
      call MPI_Type_commit(strided, ierror)
      call MPI_Send(data, 2, strided, 1, 7, MPI_COMM_WORLD, ierror)
      call MPI_Type_free(strided, ierror)
      call MPI_Send(data, 9, MPI_INTEGER, 1, 8, MPI_COMM_WORLD, ierror)
      call expect('MPI_Send', 4, 28 + 24 + 36, 0)
      call expect('MPI_Ssend', 1, 32, 0)
      call expect('MPI_Type_free', 1, 0, 0)
    else
      call MPI_Recv(other, 100, MPI_INTEGER, MPI_ANY_SOURCE, 5, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call MPI_Recv(other, 100, MPI_INTEGER, 0, MPI_ANY_TAG, MPI_COMM_WORLD, status, ierror)
      call MPI_Recv(other, 100, MPI_INTEGER, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call MPI_Recv(other, 100, MPI_INTEGER, MPI_PROC_NULL, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE, ierror)
      call expect('MPI_Recv', 4, 0, 28 + 32 + 24)
      call MPI_Mprobe(0, 8, MPI_COMM_WORLD, message, status, ierror)
      call MPI_Mrecv(other, 100, MPI_INTEGER, message, MPI_STATUS_IGNORE, ierror)
      call expect('MPI_Mprobe', 1, 0, 0)
      call expect('MPI_Mrecv', 1, 0, 36)
    end if
    call MPI_Sendrecv(data, 4, MPI_INTEGER, peer, 9, other, 100, MPI_INTEGER, peer, 9, MPI_COMM_WORLD, &
                      MPI_STATUS_IGNORE, ierror)
    call expect('MPI_Sendrecv', 1, 16, 16)
  end subroutine

  subroutine requests()
    call MPI_Irecv(other, 100, MPI_INTEGER, peer, 10, MPI_COMM_WORLD, both(1), ierror)
    call MPI_Isend(data, 11, MPI_INTEGER, peer, 10, MPI_COMM_WORLD, both(2), ierror)
    call MPI_Waitall(2, both, MPI_STATUSES_IGNORE, ierror)
    call expect('MPI_Irecv', 1, 0, 44)
    call expect('MPI_Isend', 1, 44, 0)
    call expect('MPI_Waitall', 1, 0, 0)
    call MPI_Recv_init(other, 100, MPI_INTEGER, peer, 11, MPI_COMM_WORLD, both(1), ierror)
    call MPI_Send_init(data, 12, MPI_INTEGER, peer, 11, MPI_COMM_WORLD, both(2), ierror)
    do i = 1, 2
      call MPI_Startall(2, both, ierror)
      call MPI_Wait(both(2), MPI_STATUS_IGNORE, ierror)
      before = 0
      flag = .false.
      do while (.not. flag)
        before = before + 1
        call MPI_Test(both(1), flag, status, ierror)
      end do
      call expect('MPI_Test', before, 0, 0)
    end do
    call MPI_Request_free(both(1), ierror)
    call MPI_Request_free(both(2), ierror)
    call expect('MPI_Recv_init', 1, 0, 0)
    call expect('MPI_Send_init', 1, 0, 0)
    call expect('MPI_Startall', 2, 96, 96)
    call expect('MPI_Wait', 2, 0, 0)
    call expect('MPI_Request_free', 2, 0, 0)
    call MPI_Irecv(other, 100, MPI_INTEGER, peer, 99, MPI_COMM_WORLD, request, ierror)
    call MPI_Cancel(request, ierror)
    call MPI_Wait(request, MPI_STATUS_IGNORE, ierror)
    call expect('MPI_Irecv', 1, 0, 0)
    call expect('MPI_Cancel', 1, 0, 0)
    call expect('MPI_Wait', 1, 0, 0)
  end subroutine

  subroutine places_to_be()
    integer(kind=MPI_ADDRESS_KIND) :: bytes
    call MPI_Comm_split(MPI_COMM_WORLD, rank, 0, half, ierror)
    call MPI_Allreduce(data, other, 1, MPI_INTEGER, MPI_SUM, half, ierror)
    call MPI_Comm_free(half, ierror)
    call expect('MPI_Comm_split', 1, 0, 0)
    call expect('MPI_Allreduce', 1, 4, 4)
    call expect('MPI_Comm_free', 1, 0, 0)
    bytes = 400
    call MPI_Win_create(other, bytes, 4, MPI_INFO_NULL, MPI_COMM_WORLD, window, ierror)
    call MPI_Win_fence(0, window, ierror)
    bytes = 0
    call MPI_Put(data, 5, MPI_INTEGER, peer, bytes, 5, MPI_INTEGER, window, ierror)
    call MPI_Win_fence(0, window, ierror)
    call MPI_Win_free(window, ierror)
    call expect('MPI_Win_create', 1, 0, 0)
    call expect('MPI_Win_fence', 2, 0, 0)
    call expect('MPI_Put', 1, 20, 0)
    call expect('MPI_Win_free', 1, 0, 0)
  end subroutine
end program
