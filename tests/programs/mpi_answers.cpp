// What a program gets back from MPI, in a file a rank: data, statuses, error codes. The same with
// and without a profiler: mpi_answers FOLDER, at least two ranks. Ends with status 6.
#include <mpi.h>

#include <array>
#include <chrono>
#include <cstdio>
#include <numeric>
#include <string>
#include <thread>
#include <vector>

namespace {

int rank, size;
std::FILE* answers;
const MPI_Comm world = MPI_COMM_WORLD;

void tell(const char* what, const std::vector<int>& numbers) {
  std::fprintf(answers, "%s", what);
  for (const int number : numbers) std::fprintf(answers, " %d", number);
  std::fputs("\n", answers);
}

void tell_status(const char* what, const MPI_Status& status) {
  int count = 0, cancelled = 0;
  MPI_Get_count(&status, MPI_INT, &count);
  MPI_Test_cancelled(&status, &cancelled);
  tell(what, {status.MPI_SOURCE, status.MPI_TAG, count, cancelled});
}

std::vector<int> numbers_from(int first, std::size_t count = 10) {
  std::vector<int> numbers(count);
  std::iota(numbers.begin(), numbers.end(), first);
  return numbers;
}

void collectives() {
  const auto n = static_cast<std::size_t>(size);
  const auto own = numbers_from(100 * rank);
  std::vector<int> got(10 * n, -1);
  const bool root = rank == 1;
  MPI_Gather(own.data(), 4, MPI_INT, root ? got.data() : nullptr, root ? 4 : -1,
             root ? MPI_INT : MPI_DATATYPE_NULL, 1, world);
  tell("gather", got);
  auto place = numbers_from(rank);
  MPI_Allreduce(MPI_IN_PLACE, place.data(), 10, MPI_INT, MPI_SUM, world);
  tell("in place", place);
  MPI_Allgather(MPI_IN_PLACE, 0, MPI_DATATYPE_NULL, got.data(), 2, MPI_INT, world);
  tell("allgather", got);
  MPI_Datatype strided;
  MPI_Type_vector(3, 1, 2, MPI_INT, &strided);
  MPI_Type_commit(&strided);
  auto spread = numbers_from(1000 * rank);
  MPI_Bcast(spread.data(), 1, strided, 0, world);
  tell("derived", spread);
  MPI_Type_free(&strided);
  tell("freed", {strided == MPI_DATATYPE_NULL});
}

void messages() {
  if (rank > 1) return;
  const int peer = 1 - rank;
  const auto out = numbers_from(10 * rank, 100);
  std::vector<int> in(100, -1);
  MPI_Status status;
  MPI_Sendrecv(out.data(), 3 + rank, MPI_INT, peer, 7, in.data(), 50, MPI_INT, MPI_ANY_SOURCE,
               MPI_ANY_TAG, world, &status);
  tell_status("sendrecv", status);
  MPI_Recv(in.data(), 1, MPI_INT, MPI_PROC_NULL, 3, world, &status);
  tell_status("from nobody", status);
  std::array<MPI_Request, 3> three;
  std::array<MPI_Status, 3> statuses;
  MPI_Irecv(in.data(), 50, MPI_INT, peer, 8, world, &three[0]);
  three[1] = MPI_REQUEST_NULL;
  MPI_Isend(out.data(), 5 + rank, MPI_INT, peer, 8, world, &three[2]);
  MPI_Waitall(3, three.data(), statuses.data());
  tell_status("waitall", statuses[0]);
  tell_status("its null", statuses[1]);
  for (const auto& request : three) tell("over", {request == MPI_REQUEST_NULL});
  MPI_Irecv(in.data(), 50, MPI_INT, peer, 9, world, &three[0]);
  MPI_Cancel(&three[0]);
  MPI_Wait(&three[0], &status);
  int cancelled = 0;
  MPI_Test_cancelled(&status, &cancelled);
  tell("cancelled", {cancelled});
  int index = -7, flag = -7;
  MPI_Waitany(1, three.data(), &index, &status);
  tell("any of none", {index == MPI_UNDEFINED});
  MPI_Testall(1, three.data(), &flag, MPI_STATUSES_IGNORE);
  tell("all of none", {flag});
  tell("data", in);
}

void errors() {
  MPI_Comm_set_errhandler(world, MPI_ERRORS_RETURN);
  std::vector<int> data(20, rank);
  int kind = 0;
  if (rank == 0) MPI_Send(data.data(), 20, MPI_INT, 1, 11, world);
  if (rank == 1) {
    MPI_Error_class(MPI_Recv(data.data(), 10, MPI_INT, 0, 11, world, MPI_STATUS_IGNORE), &kind);
    tell("too long", {kind == MPI_ERR_TRUNCATE});
  }
  MPI_Error_class(MPI_Send(data.data(), 1, MPI_INT, size + 5, 0, world), &kind);
  tell("no such rank", {kind == MPI_ERR_RANK});
  MPI_Error_class(MPI_Bcast(data.data(), -1, MPI_INT, 0, world), &kind);
  tell("no such count", {kind == MPI_ERR_COUNT});
  MPI_Comm_set_errhandler(world, MPI_ERRORS_ARE_FATAL);
}

// MPI calls this inside MPI_Finalize, and it calls MPI.
int leave(MPI_Comm, int, void*, void*) {
  int mine = -1, sum = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &mine);
  MPI_Allreduce(&mine, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_SELF);
  tell("in the end", {mine, sum});
  return MPI_SUCCESS;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  MPI_Comm_rank(world, &rank);
  MPI_Comm_size(world, &size);
  answers = std::fopen((std::string(argv[1]) + "/" + std::to_string(rank)).c_str(), "w");
  if (answers == nullptr) MPI_Abort(world, 1);
  int key = 0;
  MPI_Comm_create_keyval(MPI_COMM_NULL_COPY_FN, &leave, &key, nullptr);
  MPI_Comm_set_attr(MPI_COMM_SELF, key, nullptr);
  collectives();
  messages();
  errors();
  MPI_Finalize();
  int ended = 0;
  MPI_Finalized(&ended);
  tell("after the end", {ended});
  std::fclose(answers);
  if (rank != 0) return 0;
  // Launchers end the others as soon as one fails: they shall have written by then.
  std::this_thread::sleep_for(std::chrono::milliseconds(500));
  return 6;
}
