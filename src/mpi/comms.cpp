#include "mpi/comms.hpp"

#include <fmt/format.h>
#include <sched.h>

#include <memory>

#include "mpi/waiting.hpp"

namespace sinew::mpi {
namespace {

using namespace std::chrono_literals;

void check(int status, std::string_view what) {
  if (status != MPI_SUCCESS)
    throw Error(Errc::system, fmt::format("{}: {}", what, error_text(status)));
}

// MPI has no wait that ends at a deadline. On a timeout the request and its buffers stay MPI's.
bool wait_until(MPI_Request& request, Deadline deadline) {
  int done = 0;
  for (int idle = 0; done == 0; ++idle) {
    check(MPI_Test(&request, &done, MPI_STATUS_IGNORE), "MPI_Test");
    if (done != 0) return true;
    if (Clock::now() > deadline) return false;
    constexpr int kYields = 1000;
    idle < kYields ? void(sched_yield()) : sleep_for(500us);
  }
  return true;
}

Error too_late(std::string_view what) {
  return {Errc::timeout, fmt::format("over MPI, not all ranks came in time to {}", what)};
}

}  // namespace

std::string error_text(int code) {
  char text[MPI_MAX_ERROR_STRING] = {};
  int length = 0;
  MPI_Error_string(code, text, &length);
  return text;
}

MPI_Comm duplicate(MPI_Comm comm, Deadline deadline) {
  auto copy = std::make_unique<MPI_Comm>(MPI_COMM_NULL);
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Comm_idup(comm, copy.get(), &request), "MPI_Comm_idup");
  if (wait_until(request, deadline)) return *copy;
  copy.release();  // NOLINT(bugprone-unused-return-value): MPI may still write there
  throw too_late("make a communicator");
}

MPI_Comm create_group(MPI_Comm comm, std::span<const int> members, int tag) {
  MPI_Group all = MPI_GROUP_NULL, some = MPI_GROUP_NULL;
  MPI_Comm made = MPI_COMM_NULL;
  check(MPI_Comm_group(comm, &all), "MPI_Comm_group");
  check(MPI_Group_incl(all, static_cast<int>(members.size()), members.data(), &some),
        "MPI_Group_incl");
  const auto status = MPI_Comm_create_group(comm, some, tag, &made);
  MPI_Group_free(&all);
  MPI_Group_free(&some);
  check(status, "MPI_Comm_create_group");
  return made;
}

std::vector<Resident> exchange_residents(MPI_Comm comm, Deadline deadline) {
  struct Both {
    Resident mine = this_resident();
    std::vector<Resident> all;
  };
  auto both = std::make_unique<Both>();
  int size = 1;
  MPI_Comm_size(comm, &size);
  both->all.resize(static_cast<std::size_t>(size));
  MPI_Request request = MPI_REQUEST_NULL;
  check(MPI_Iallgather(&both->mine, sizeof(Resident), MPI_BYTE, both->all.data(), sizeof(Resident),
                       MPI_BYTE, comm, &request),
        "MPI_Iallgather");
  if (wait_until(request, deadline)) return std::move(both->all);
  both.release();  // NOLINT(bugprone-unused-return-value): MPI may still write there
  throw too_late("tell what they are");
}

}  // namespace sinew::mpi
