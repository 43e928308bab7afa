// Point to point, and requests.
#include <array>

#include "expected.hpp"

// Rank 0 sends to rank 1, in every way there is.
void point_to_point() {
  auto data = buffer(1000);
  MPI_Status status;
  if (rank == 0) {
    MPI_Send(data.data(), 10, MPI_INT, 1, 1, MPI_COMM_WORLD);
    EXPECT_MOVED(MPI_Send, 40, 0);
    MPI_Ssend(data.data(), 20, MPI_INT, 1, 2, MPI_COMM_WORLD);
    EXPECT_MOVED(MPI_Ssend, 80, 0);
    MPI_Send(data.data(), 30, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD);
    EXPECT_CALLED(MPI_Send);
    std::array<MPI_Request, 2> requests;
    MPI_Isend(data.data(), 40, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data.data(), 50, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT_MOVED(MPI_Isend, 360, 0, 2);
    EXPECT_CALLED(MPI_Waitall);
    MPI_Request repeated;
    MPI_Send_init(data.data(), 60, MPI_INT, 1, 5, MPI_COMM_WORLD, &repeated);
    EXPECT_CALLED(MPI_Send_init);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&repeated);
      MPI_Wait(&repeated, MPI_STATUS_IGNORE);
    }
    EXPECT_MOVED(MPI_Start, 720, 0, 3);
    EXPECT_CALLED(MPI_Wait, 3);
    MPI_Request_free(&repeated);
    EXPECT_CALLED(MPI_Request_free);
    MPI_Send(data.data(), 70, MPI_INT, 1, 6, MPI_COMM_WORLD);
    EXPECT_MOVED(MPI_Send, 280, 0);
    MPI_Datatype strided;
    MPI_Type_vector(5, 2, 4, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Send(data.data(), 3, strided, 1, 7, MPI_COMM_WORLD);
    EXPECT_MOVED(MPI_Send, 120, 0);  // 5 * 2 integers, three times; the gaps do not travel
    MPI_Type_free(&strided);
    EXPECT_CALLED(MPI_Type_free);
  } else if (rank == 1) {
    MPI_Recv(data.data(), 1000, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_MOVED(MPI_Recv, 0, 40);  // what came, not what there was room for
    MPI_Recv(data.data(), 1000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    EXPECT_MOVED(MPI_Recv, 0, 80);
    std::array<MPI_Request, 2> requests;
    MPI_Irecv(data.data(), 500, MPI_INT, 0, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data.data() + 500, 500, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    EXPECT_MOVED(MPI_Irecv, 0, 360, 2);
    EXPECT_CALLED(MPI_Waitall);
    MPI_Request repeated;
    MPI_Recv_init(data.data(), 100, MPI_INT, 0, 5, MPI_COMM_WORLD, &repeated);
    EXPECT_CALLED(MPI_Recv_init);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&repeated);
      MPI_Wait(&repeated, MPI_STATUS_IGNORE);
    }
    EXPECT_MOVED(MPI_Start, 0, 720, 3);
    EXPECT_CALLED(MPI_Wait, 3);
    MPI_Request_free(&repeated);
    EXPECT_CALLED(MPI_Request_free);
    MPI_Message message;
    MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(data.data(), 1000, MPI_INT, &message, MPI_STATUS_IGNORE);
    EXPECT_CALLED(MPI_Mprobe);
    EXPECT_MOVED(MPI_Mrecv, 0, 280);
    MPI_Recv(data.data(), 1000, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    EXPECT_MOVED(MPI_Recv, 0, 120);
    MPI_Request never;
    MPI_Irecv(data.data(), 10, MPI_INT, 0, 99, MPI_COMM_WORLD, &never);
    MPI_Cancel(&never);
    MPI_Wait(&never, MPI_STATUS_IGNORE);
    EXPECT_CALLED(MPI_Irecv);
    EXPECT_CALLED(MPI_Cancel);
    EXPECT_CALLED(MPI_Wait);
  }
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  auto other = buffer(1000);
  MPI_Sendrecv(data.data(), 25, MPI_INT, right, 8, other.data(), 1000, MPI_INT, left, 8,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_MOVED(MPI_Sendrecv, 100, 100);
  MPI_Request request;
  MPI_Irecv(other.data(), 11, MPI_INT, left, 9, MPI_COMM_WORLD, &request);
  MPI_Send(data.data(), 11, MPI_INT, right, 9, MPI_COMM_WORLD);
  int index = -1;
  MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
  EXPECT_MOVED(MPI_Irecv, 0, 44);
  EXPECT_MOVED(MPI_Send, 44, 0);
  EXPECT_CALLED(MPI_Waitany);
}

// Every way to send and every way to complete.
void requests() {
  if (rank > 1) return;
  auto data = buffer(100);
  std::vector<char> attached(10000);
  const int peer = 1 - rank;
  int flag = 0, index = 0, done = 0;
  std::array<int, 2> indices{};
  std::array<MPI_Request, 2> two;
  MPI_Status status;
  MPI_Buffer_attach(attached.data(), static_cast<Count>(attached.size()));
  EXPECT_CALLED(MPI_Buffer_attach);
  MPI_Irecv(data.data(), 100, MPI_INT, peer, 20, MPI_COMM_WORLD, &two[0]);
  MPI_Bsend(data.data(), 1, MPI_INT, peer, 20, MPI_COMM_WORLD);
  EXPECT_MOVED(MPI_Irecv, 0, 4);
  EXPECT_MOVED(MPI_Bsend, 4, 0);
  for (std::uint64_t calls = 1; true; ++calls) {
    MPI_Test(&two[0], &flag, MPI_STATUS_IGNORE);
    if (flag == 0) continue;
    EXPECT_CALLED(MPI_Test, calls);
    break;
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 21, MPI_COMM_WORLD, &two[0]);
  MPI_Issend(data.data() + 50, 2, MPI_INT, peer, 21, MPI_COMM_WORLD, &two[1]);
  EXPECT_MOVED(MPI_Irecv, 0, 8);
  EXPECT_MOVED(MPI_Issend, 8, 0);
  for (std::uint64_t calls = 1; true; ++calls) {
    MPI_Testall(2, two.data(), &flag, MPI_STATUSES_IGNORE);
    if (flag == 0) continue;
    EXPECT_CALLED(MPI_Testall, calls);
    break;
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 22, MPI_COMM_WORLD, &two[0]);
  MPI_Ibsend(data.data() + 50, 3, MPI_INT, peer, 22, MPI_COMM_WORLD, &two[1]);
  EXPECT_MOVED(MPI_Irecv, 0, 12);
  EXPECT_MOVED(MPI_Ibsend, 12, 0);
  for (int left = 2; left > 0;) {
    MPI_Testany(2, two.data(), &index, &flag, MPI_STATUS_IGNORE);
    EXPECT_CALLED(MPI_Testany);
    left -= flag;
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 23, MPI_COMM_WORLD, &two[0]);
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Isend(data.data() + 50, 4, MPI_INT, peer, 23, MPI_COMM_WORLD, &two[1]);
  EXPECT_MOVED(MPI_Irecv, 0, 16);
  EXPECT_CALLED(MPI_Barrier);
  EXPECT_MOVED(MPI_Isend, 16, 0);
  for (int left = 2; left > 0; left -= done) {
    MPI_Waitsome(2, two.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
    EXPECT_CALLED(MPI_Waitsome);
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 24, MPI_COMM_WORLD, &two[0]);
  MPI_Isend(data.data() + 50, 5, MPI_INT, peer, 24, MPI_COMM_WORLD, &two[1]);
  EXPECT_MOVED(MPI_Irecv, 0, 20);
  EXPECT_MOVED(MPI_Isend, 20, 0);
  for (int left = 2; left > 0; left -= done) {
    MPI_Testsome(2, two.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
    EXPECT_CALLED(MPI_Testsome);
  }
  MPI_Sendrecv_replace(data.data(), 6, MPI_INT, peer, 25, peer, 25, MPI_COMM_WORLD, &status);
  EXPECT_MOVED(MPI_Sendrecv_replace, 24, 24);
  MPI_Recv_init(data.data(), 50, MPI_INT, peer, 26, MPI_COMM_WORLD, &two[0]);
  MPI_Ssend_init(data.data() + 50, 7, MPI_INT, peer, 26, MPI_COMM_WORLD, &two[1]);
  EXPECT_CALLED(MPI_Recv_init);
  EXPECT_CALLED(MPI_Ssend_init);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, two.data());
    MPI_Waitall(2, two.data(), MPI_STATUSES_IGNORE);
  }
  EXPECT_MOVED(MPI_Startall, 56, 56, 2);
  EXPECT_CALLED(MPI_Waitall, 2);
  for (auto& request : two) MPI_Request_free(&request);
  EXPECT_CALLED(MPI_Request_free, 2);
  MPI_Message message;
  MPI_Isend(data.data(), 8, MPI_INT, peer, 27, MPI_COMM_WORLD, &two[1]);
  EXPECT_MOVED(MPI_Isend, 32, 0);
  for (flag = 0; flag == 0;) {
    MPI_Improbe(MPI_ANY_SOURCE, 27, MPI_COMM_WORLD, &flag, &message, &status);
    EXPECT_CALLED(MPI_Improbe);
  }
  MPI_Imrecv(data.data() + 50, 50, MPI_INT, &message, &two[0]);
  EXPECT_MOVED(MPI_Imrecv, 0, 32);
  MPI_Waitall(2, two.data(), MPI_STATUSES_IGNORE);
  EXPECT_CALLED(MPI_Waitall);
  MPI_Isend(data.data(), 9, MPI_INT, peer, 28, MPI_COMM_WORLD, &two[1]);
  MPI_Probe(peer, 28, MPI_COMM_WORLD, &status);
  MPI_Recv(data.data() + 50, 50, MPI_INT, status.MPI_SOURCE, 28, MPI_COMM_WORLD, &status);
  MPI_Wait(&two[1], MPI_STATUS_IGNORE);
  EXPECT_MOVED(MPI_Isend, 36, 0);
  EXPECT_CALLED(MPI_Probe);
  EXPECT_MOVED(MPI_Recv, 0, 36);
  EXPECT_CALLED(MPI_Wait);
  // Ready sends and the other persistent ones: the receives are there before.
  std::array<MPI_Request, 4> four;
  MPI_Irecv(data.data(), 10, MPI_INT, peer, 30, MPI_COMM_WORLD, &four[0]);
  MPI_Irecv(data.data() + 10, 10, MPI_INT, peer, 31, MPI_COMM_WORLD, &four[1]);
  MPI_Recv_init(data.data() + 20, 10, MPI_INT, peer, 32, MPI_COMM_WORLD, &two[0]);
  MPI_Start(&two[0]);
  MPI_Sendrecv(data.data(), 0, MPI_INT, peer, 33, data.data(), 0, MPI_INT, peer, 33, MPI_COMM_WORLD,
               MPI_STATUS_IGNORE);
  MPI_Rsend(data.data() + 50, 1, MPI_INT, peer, 30, MPI_COMM_WORLD);
  MPI_Irsend(data.data() + 50, 2, MPI_INT, peer, 31, MPI_COMM_WORLD, &four[2]);
  MPI_Rsend_init(data.data() + 50, 3, MPI_INT, peer, 32, MPI_COMM_WORLD, &two[1]);
  MPI_Start(&two[1]);
  four[3] = MPI_REQUEST_NULL;
  MPI_Waitall(4, four.data(), MPI_STATUSES_IGNORE);
  MPI_Waitall(2, two.data(), MPI_STATUSES_IGNORE);
  for (auto& request : two) MPI_Request_free(&request);
  EXPECT_MOVED(MPI_Irecv, 0, 12, 2);
  EXPECT_CALLED(MPI_Recv_init);
  EXPECT_MOVED(MPI_Start, 12, 12, 2);
  EXPECT_CALLED(MPI_Sendrecv);
  EXPECT_MOVED(MPI_Rsend, 4, 0);
  EXPECT_MOVED(MPI_Irsend, 8, 0);
  EXPECT_CALLED(MPI_Rsend_init);
  EXPECT_CALLED(MPI_Waitall, 2);
  EXPECT_CALLED(MPI_Request_free, 2);
  MPI_Bsend_init(data.data(), 4, MPI_INT, peer, 34, MPI_COMM_WORLD, &two[1]);
  MPI_Start(&two[1]);
  MPI_Wait(&two[1], MPI_STATUS_IGNORE);
  MPI_Request_free(&two[1]);
  for (flag = 0; flag == 0;) {
    MPI_Iprobe(peer, 34, MPI_COMM_WORLD, &flag, MPI_STATUS_IGNORE);
    EXPECT_CALLED(MPI_Iprobe);
  }
  MPI_Recv(data.data(), 10, MPI_INT, peer, 34, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_CALLED(MPI_Bsend_init);
  EXPECT_MOVED(MPI_Start, 16, 0);
  EXPECT_CALLED(MPI_Wait);
  EXPECT_CALLED(MPI_Request_free);
  EXPECT_MOVED(MPI_Recv, 0, 16);
  void* detached = nullptr;
  Count bytes = 0;
  MPI_Buffer_detach(static_cast<void*>(&detached), &bytes);
  EXPECT_CALLED(MPI_Buffer_detach);
#if MPI_VERSION >= 4
  MPI_Isendrecv(data.data(), 5, MPI_INT, peer, 35, data.data() + 50, 5, MPI_INT, peer, 35,
                MPI_COMM_WORLD, &two[0]);
  MPI_Wait(&two[0], MPI_STATUS_IGNORE);
  MPI_Isendrecv_replace(data.data(), 6, MPI_INT, peer, 36, peer, 36, MPI_COMM_WORLD, &two[0]);
  MPI_Wait(&two[0], MPI_STATUS_IGNORE);
  EXPECT_MOVED(MPI_Isendrecv, 20, 20);
  EXPECT_MOVED(MPI_Isendrecv_replace, 24, 24);
  EXPECT_CALLED(MPI_Wait, 2);
#endif
}

// To nobody, cancelled, and too long for its receiver: nothing is counted as received.
void messages_that_fail() {
  if (rank > 1) return;
  auto data = buffer(100);
  const int peer = 1 - rank;
  std::array<MPI_Request, 2> two;
  std::array<MPI_Status, 2> statuses;
  MPI_Recv(data.data(), 10, MPI_INT, MPI_PROC_NULL, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  MPI_Irecv(data.data(), 10, MPI_INT, MPI_PROC_NULL, 40, MPI_COMM_WORLD, &two[0]);
  MPI_Isend(data.data(), 10, MPI_INT, MPI_PROC_NULL, 40, MPI_COMM_WORLD, &two[1]);
  MPI_Waitall(2, two.data(), MPI_STATUSES_IGNORE);
  MPI_Sendrecv(data.data(), 10, MPI_INT, MPI_PROC_NULL, 40, data.data() + 50, 10, MPI_INT,
               MPI_PROC_NULL, 40, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  EXPECT_CALLED(MPI_Recv);
  EXPECT_CALLED(MPI_Irecv);
  EXPECT_CALLED(MPI_Isend);
  EXPECT_CALLED(MPI_Waitall);
  EXPECT_CALLED(MPI_Sendrecv);
  MPI_Irecv(data.data(), 10, MPI_INT, MPI_ANY_SOURCE, 41, MPI_COMM_WORLD, &two[0]);
  MPI_Cancel(&two[0]);
  MPI_Wait(&two[0], &statuses[0]);
  int cancelled = 0;
  MPI_Test_cancelled(&statuses[0], &cancelled);
  if (cancelled == 0) std::puts("broken: a receive that nothing matches was not cancelled");
  EXPECT_CALLED(MPI_Irecv);
  EXPECT_CALLED(MPI_Cancel);
  EXPECT_CALLED(MPI_Wait);
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) {
    for (const int tag : {42, 43, 44})
      MPI_Send(data.data(), 20, MPI_INT, peer, tag, MPI_COMM_WORLD);
    MPI_Send(data.data(), 3, MPI_INT, peer, 45, MPI_COMM_WORLD);
    EXPECT_MOVED(MPI_Send, 252, 0, 4);
  } else {
    int fine = 0;
    fine += MPI_Recv(data.data(), 10, MPI_INT, peer, 42, MPI_COMM_WORLD, MPI_STATUS_IGNORE) == 0;
    EXPECT_CALLED(MPI_Recv);
    MPI_Irecv(data.data(), 10, MPI_INT, peer, 43, MPI_COMM_WORLD, &two[0]);
    fine += MPI_Wait(&two[0], MPI_STATUS_IGNORE) == 0;
    EXPECT_CALLED(MPI_Irecv);
    EXPECT_CALLED(MPI_Wait);
    // One of two fails: the other one's bytes are counted.
    MPI_Irecv(data.data(), 10, MPI_INT, peer, 44, MPI_COMM_WORLD, &two[0]);
    MPI_Irecv(data.data() + 50, 10, MPI_INT, peer, 45, MPI_COMM_WORLD, &two[1]);
    fine += MPI_Waitall(2, two.data(), statuses.data()) == 0;
    EXPECT_MOVED(MPI_Irecv, 0, 12, 2);
    EXPECT_CALLED(MPI_Waitall);
    if (two[1] != MPI_REQUEST_NULL) {  // it need not be done when the other one fails
      MPI_Wait(&two[1], MPI_STATUS_IGNORE);
      EXPECT_CALLED(MPI_Wait);
    }
    if (fine != 0) std::puts("broken: a truncated message is no error");
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
