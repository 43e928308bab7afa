// Point to point, and requests.
#include <array>

#include "expected.hpp"

// Rank 0 sends to rank 1, in every way there is.
void point_to_point() {
  auto data = buffer(1000);
  MPI_Status status;
  if (rank == 0) {
    MPI_Send(data.data(), 10, MPI_INT, 1, 1, MPI_COMM_WORLD);
    expect("MPI_Send", 40, 0);
    MPI_Ssend(data.data(), 20, MPI_INT, 1, 2, MPI_COMM_WORLD);
    expect("MPI_Ssend", 80, 0);
    MPI_Send(data.data(), 30, MPI_INT, MPI_PROC_NULL, 2, MPI_COMM_WORLD);
    expect("MPI_Send", 0, 0);
    std::array<MPI_Request, 2> requests;
    MPI_Isend(data.data(), 40, MPI_INT, 1, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Isend(data.data(), 50, MPI_INT, 1, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    expect("MPI_Isend", 360, 0, 2);
    expect("MPI_Waitall", 0, 0);
    MPI_Request repeated;
    MPI_Send_init(data.data(), 60, MPI_INT, 1, 5, MPI_COMM_WORLD, &repeated);
    expect("MPI_Send_init", 0, 0);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&repeated);
      MPI_Wait(&repeated, MPI_STATUS_IGNORE);
    }
    expect("MPI_Start", 720, 0, 3);
    expect("MPI_Wait", 0, 0, 3);
    MPI_Request_free(&repeated);
    expect("MPI_Request_free", 0, 0);
    MPI_Send(data.data(), 70, MPI_INT, 1, 6, MPI_COMM_WORLD);
    expect("MPI_Send", 280, 0);
    MPI_Datatype strided;
    MPI_Type_vector(5, 2, 4, MPI_INT, &strided);
    MPI_Type_commit(&strided);
    MPI_Send(data.data(), 3, strided, 1, 7, MPI_COMM_WORLD);
    expect("MPI_Send", 120, 0);  // 5 * 2 integers, three times; the gaps do not travel
    MPI_Type_free(&strided);
    expect("MPI_Type_free", 0, 0);
  } else if (rank == 1) {
    MPI_Recv(data.data(), 1000, MPI_INT, 0, 1, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Recv", 0, 40);  // what came, not what there was room for
    MPI_Recv(data.data(), 1000, MPI_INT, MPI_ANY_SOURCE, MPI_ANY_TAG, MPI_COMM_WORLD, &status);
    expect("MPI_Recv", 0, 80);
    std::array<MPI_Request, 2> requests;
    MPI_Irecv(data.data(), 500, MPI_INT, 0, 3, MPI_COMM_WORLD, &requests[0]);
    MPI_Irecv(data.data() + 500, 500, MPI_INT, MPI_ANY_SOURCE, 4, MPI_COMM_WORLD, &requests[1]);
    MPI_Waitall(2, requests.data(), MPI_STATUSES_IGNORE);
    expect("MPI_Irecv", 0, 360, 2);
    expect("MPI_Waitall", 0, 0);
    MPI_Request repeated;
    MPI_Recv_init(data.data(), 100, MPI_INT, 0, 5, MPI_COMM_WORLD, &repeated);
    expect("MPI_Recv_init", 0, 0);
    for (int i = 0; i < 3; ++i) {
      MPI_Start(&repeated);
      MPI_Wait(&repeated, MPI_STATUS_IGNORE);
    }
    expect("MPI_Start", 0, 720, 3);
    expect("MPI_Wait", 0, 0, 3);
    MPI_Request_free(&repeated);
    expect("MPI_Request_free", 0, 0);
    MPI_Message message;
    MPI_Mprobe(0, 6, MPI_COMM_WORLD, &message, &status);
    MPI_Mrecv(data.data(), 1000, MPI_INT, &message, MPI_STATUS_IGNORE);
    expect("MPI_Mprobe", 0, 0);
    expect("MPI_Mrecv", 0, 280);
    MPI_Recv(data.data(), 1000, MPI_INT, 0, 7, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    expect("MPI_Recv", 0, 120);
    MPI_Request never;
    MPI_Irecv(data.data(), 10, MPI_INT, 0, 99, MPI_COMM_WORLD, &never);
    MPI_Cancel(&never);
    MPI_Wait(&never, MPI_STATUS_IGNORE);
    expect("MPI_Irecv", 0, 0);
    expect("MPI_Cancel", 0, 0);
    expect("MPI_Wait", 0, 0);
  }
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  auto other = buffer(1000);
  MPI_Sendrecv(data.data(), 25, MPI_INT, right, 8, other.data(), 1000, MPI_INT, left, 8,
               MPI_COMM_WORLD, MPI_STATUS_IGNORE);
  expect("MPI_Sendrecv", 100, 100);
  MPI_Request request;
  MPI_Irecv(other.data(), 11, MPI_INT, left, 9, MPI_COMM_WORLD, &request);
  MPI_Send(data.data(), 11, MPI_INT, right, 9, MPI_COMM_WORLD);
  int index = -1;
  MPI_Waitany(1, &request, &index, MPI_STATUS_IGNORE);
  expect("MPI_Irecv", 0, 44);
  expect("MPI_Send", 44, 0);
  expect("MPI_Waitany", 0, 0);
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
  MPI_Buffer_attach(attached.data(), static_cast<int>(attached.size()));
  expect("MPI_Buffer_attach", 0, 0);
  MPI_Irecv(data.data(), 100, MPI_INT, peer, 20, MPI_COMM_WORLD, &two[0]);
  MPI_Bsend(data.data(), 1, MPI_INT, peer, 20, MPI_COMM_WORLD);
  expect("MPI_Irecv", 0, 4);
  expect("MPI_Bsend", 4, 0);
  for (std::uint64_t calls = 1; true; ++calls) {
    MPI_Test(&two[0], &flag, MPI_STATUS_IGNORE);
    if (flag == 0) continue;
    expect_calls("MPI_Test", calls);
    break;
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 21, MPI_COMM_WORLD, &two[0]);
  MPI_Issend(data.data() + 50, 2, MPI_INT, peer, 21, MPI_COMM_WORLD, &two[1]);
  expect("MPI_Irecv", 0, 8);
  expect("MPI_Issend", 8, 0);
  for (std::uint64_t calls = 1; true; ++calls) {
    MPI_Testall(2, two.data(), &flag, MPI_STATUSES_IGNORE);
    if (flag == 0) continue;
    expect_calls("MPI_Testall", calls);
    break;
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 22, MPI_COMM_WORLD, &two[0]);
  MPI_Ibsend(data.data() + 50, 3, MPI_INT, peer, 22, MPI_COMM_WORLD, &two[1]);
  expect("MPI_Irecv", 0, 12);
  expect("MPI_Ibsend", 12, 0);
  for (int left = 2; left > 0;) {
    MPI_Testany(2, two.data(), &index, &flag, MPI_STATUS_IGNORE);
    expect("MPI_Testany", 0, 0);
    left -= flag;
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 23, MPI_COMM_WORLD, &two[0]);
  MPI_Barrier(MPI_COMM_SELF);
  MPI_Isend(data.data() + 50, 4, MPI_INT, peer, 23, MPI_COMM_WORLD, &two[1]);
  expect("MPI_Irecv", 0, 16);
  expect("MPI_Barrier", 0, 0);
  expect("MPI_Isend", 16, 0);
  for (int left = 2; left > 0; left -= done) {
    MPI_Waitsome(2, two.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
    expect("MPI_Waitsome", 0, 0);
  }
  MPI_Irecv(data.data(), 50, MPI_INT, peer, 24, MPI_COMM_WORLD, &two[0]);
  MPI_Isend(data.data() + 50, 5, MPI_INT, peer, 24, MPI_COMM_WORLD, &two[1]);
  expect("MPI_Irecv", 0, 20);
  expect("MPI_Isend", 20, 0);
  for (int left = 2; left > 0; left -= done) {
    MPI_Testsome(2, two.data(), &done, indices.data(), MPI_STATUSES_IGNORE);
    expect("MPI_Testsome", 0, 0);
  }
  MPI_Sendrecv_replace(data.data(), 6, MPI_INT, peer, 25, peer, 25, MPI_COMM_WORLD, &status);
  expect("MPI_Sendrecv_replace", 24, 24);
  MPI_Recv_init(data.data(), 50, MPI_INT, peer, 26, MPI_COMM_WORLD, &two[0]);
  MPI_Ssend_init(data.data() + 50, 7, MPI_INT, peer, 26, MPI_COMM_WORLD, &two[1]);
  expect("MPI_Recv_init", 0, 0);
  expect("MPI_Ssend_init", 0, 0);
  for (int i = 0; i < 2; ++i) {
    MPI_Startall(2, two.data());
    MPI_Waitall(2, two.data(), MPI_STATUSES_IGNORE);
  }
  expect("MPI_Startall", 56, 56, 2);
  expect("MPI_Waitall", 0, 0, 2);
  for (auto& request : two) MPI_Request_free(&request);
  expect("MPI_Request_free", 0, 0, 2);
  MPI_Message message;
  MPI_Isend(data.data(), 8, MPI_INT, peer, 27, MPI_COMM_WORLD, &two[1]);
  expect("MPI_Isend", 32, 0);
  for (flag = 0; flag == 0;) {
    MPI_Improbe(MPI_ANY_SOURCE, 27, MPI_COMM_WORLD, &flag, &message, &status);
    expect("MPI_Improbe", 0, 0);
  }
  MPI_Imrecv(data.data() + 50, 50, MPI_INT, &message, &two[0]);
  expect("MPI_Imrecv", 0, 32);
  MPI_Waitall(2, two.data(), MPI_STATUSES_IGNORE);
  expect("MPI_Waitall", 0, 0);
  MPI_Isend(data.data(), 9, MPI_INT, peer, 28, MPI_COMM_WORLD, &two[1]);
  MPI_Probe(peer, 28, MPI_COMM_WORLD, &status);
  MPI_Recv(data.data() + 50, 50, MPI_INT, status.MPI_SOURCE, 28, MPI_COMM_WORLD, &status);
  MPI_Wait(&two[1], MPI_STATUS_IGNORE);
  expect("MPI_Isend", 36, 0);
  expect("MPI_Probe", 0, 0);
  expect("MPI_Recv", 0, 36);
  expect("MPI_Wait", 0, 0);
  void* detached = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(static_cast<void*>(&detached), &bytes);
  expect("MPI_Buffer_detach", 0, 0);
  // A message that does not fit is an error, and nothing is counted as received.
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  if (rank == 0) {
    MPI_Send(data.data(), 20, MPI_INT, peer, 29, MPI_COMM_WORLD);
    expect("MPI_Send", 80, 0);
  } else {
    const int outcome =
        MPI_Recv(data.data(), 10, MPI_INT, peer, 29, MPI_COMM_WORLD, MPI_STATUS_IGNORE);
    if (outcome == MPI_SUCCESS) std::puts("broken: a truncated message is no error");
    expect("MPI_Recv", 0, 0);
  }
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
}
