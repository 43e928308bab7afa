// One-sided communication, in every way to open and to close it.
#include "expected.hpp"

void windows() {
  std::vector<int> memory(100);
  const int right = (rank + 1) % size;
  MPI_Win window;
  MPI_Win_create(memory.data(), 400, 4, MPI_INFO_NULL, MPI_COMM_WORLD, &window);
  EXPECT_CALLED(MPI_Win_create);
  auto data = buffer(10), back = buffer(10);
  MPI_Win_fence(0, window);
  MPI_Put(data.data(), 10, MPI_INT, right, 0, 10, MPI_INT, window);
  MPI_Put(data.data(), 10, MPI_INT, MPI_PROC_NULL, 0, 10, MPI_INT, window);
  EXPECT_MOVED(MPI_Put, 40, 0, 2);
  MPI_Win_fence(0, window);
  MPI_Get(back.data(), 5, MPI_INT, right, 0, 5, MPI_INT, window);
  EXPECT_MOVED(MPI_Get, 0, 20);
  MPI_Win_fence(0, window);
  MPI_Accumulate(data.data(), 4, MPI_INT, right, 0, 4, MPI_INT, MPI_SUM, window);
  EXPECT_MOVED(MPI_Accumulate, 16, 0);
  MPI_Win_fence(0, window);
  EXPECT_CALLED(MPI_Win_fence, 4);
  MPI_Win_lock(MPI_LOCK_SHARED, right, 0, window);
  MPI_Get_accumulate(data.data(), 3, MPI_INT, back.data(), 3, MPI_INT, right, 0, 3, MPI_INT,
                     MPI_SUM, window);
  EXPECT_MOVED(MPI_Get_accumulate, 12, 12);
  MPI_Fetch_and_op(data.data(), back.data(), MPI_INT, right, 0, MPI_SUM, window);
  EXPECT_MOVED(MPI_Fetch_and_op, 4, 4);
  MPI_Compare_and_swap(data.data(), data.data(), back.data(), MPI_INT, right, 0, window);
  EXPECT_MOVED(MPI_Compare_and_swap, 4, 4);
  MPI_Request request;
  MPI_Rput(data.data(), 2, MPI_INT, right, 0, 2, MPI_INT, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_MOVED(MPI_Rput, 8, 0);
  MPI_Rget(back.data(), 2, MPI_INT, right, 0, 2, MPI_INT, window, &request);
  MPI_Wait(&request, MPI_STATUS_IGNORE);
  EXPECT_MOVED(MPI_Rget, 0, 8);
  EXPECT_CALLED(MPI_Wait, 2);
  MPI_Win_flush(right, window);
  MPI_Win_unlock(right, window);
  EXPECT_CALLED(MPI_Win_flush);
  EXPECT_CALLED(MPI_Win_lock);
  EXPECT_CALLED(MPI_Win_unlock);
  MPI_Win_free(&window);
  EXPECT_CALLED(MPI_Win_free);
}

// Windows of other kinds, and the epochs that fences and locks do not make.
void more_windows() {
  const int right = (rank + 1) % size, left = (rank + size - 1) % size;
  const MPI_Comm world = MPI_COMM_WORLD;
  auto data = buffer(10), back = buffer(10);
  MPI_Win window;
  void* memory = nullptr;
  MPI_Win_allocate(400, 4, MPI_INFO_NULL, world, static_cast<void*>(&memory), &window);
  EXPECT_CALLED(MPI_Win_allocate);
  MPI_Win_lock_all(0, window);
  MPI_Request requests[2];
  MPI_Raccumulate(data.data(), 3, MPI_INT, right, 0, 3, MPI_INT, MPI_SUM, window, &requests[0]);
  MPI_Rget_accumulate(data.data(), 2, MPI_INT, back.data(), 2, MPI_INT, right, 4, 2, MPI_INT,
                      MPI_SUM, window, &requests[1]);
  EXPECT_MOVED(MPI_Raccumulate, 12, 0);
  EXPECT_MOVED(MPI_Rget_accumulate, 8, 8);
  MPI_Waitall(2, requests, MPI_STATUSES_IGNORE);
  EXPECT_CALLED(MPI_Waitall);
  MPI_Win_flush_local(right, window);
  MPI_Win_flush_local_all(window);
  MPI_Win_flush_all(window);
  MPI_Win_sync(window);
  MPI_Win_unlock_all(window);
  EXPECT_CALLED(MPI_Win_lock_all);
  EXPECT_CALLED(MPI_Win_flush_local);
  EXPECT_CALLED(MPI_Win_flush_local_all);
  EXPECT_CALLED(MPI_Win_flush_all);
  EXPECT_CALLED(MPI_Win_sync);
  EXPECT_CALLED(MPI_Win_unlock_all);
  MPI_Group group, to, from;
  MPI_Comm_group(world, &group);
  EXPECT_CALLED(MPI_Comm_group);
  MPI_Group_incl(group, 1, &right, &to);
  MPI_Group_incl(group, 1, &left, &from);
  for (const bool waits : {true, false}) {
    MPI_Win_post(from, 0, window);
    MPI_Win_start(to, 0, window);
    MPI_Put(data.data(), 5, MPI_INT, right, 0, 5, MPI_INT, window);
    MPI_Win_complete(window);
    EXPECT_CALLED(MPI_Win_post);
    EXPECT_CALLED(MPI_Win_start);
    EXPECT_MOVED(MPI_Put, 20, 0);
    EXPECT_CALLED(MPI_Win_complete);
    if (waits) {
      MPI_Win_wait(window);
      EXPECT_CALLED(MPI_Win_wait);
      continue;
    }
    for (int done = 0; done == 0;) {
      MPI_Win_test(window, &done);
      EXPECT_CALLED(MPI_Win_test);
    }
  }
  for (MPI_Group* const one : {&group, &to, &from}) MPI_Group_free(one);
  MPI_Win_free(&window);
  MPI_Win_allocate_shared(400, 4, MPI_INFO_NULL, world, static_cast<void*>(&memory), &window);
  MPI_Win_free(&window);
  EXPECT_CALLED(MPI_Win_allocate_shared);
  MPI_Win_create_dynamic(MPI_INFO_NULL, world, &window);
  MPI_Win_attach(window, data.data(), 40);
  MPI_Win_detach(window, data.data());
  MPI_Win_free(&window);
  EXPECT_CALLED(MPI_Win_create_dynamic);
  EXPECT_CALLED(MPI_Win_attach);
  EXPECT_CALLED(MPI_Win_detach);
  EXPECT_CALLED(MPI_Win_free, 3);
}
