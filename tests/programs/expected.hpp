// What a rank called and moved, counted by hand, for tests to compare with what a profiler saw.
// Built with SINEW_LARGE_COUNTS every routine that has a large-count form is called in that form.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

#ifdef SINEW_LARGE_COUNTS
#include <large_counts.hpp>  // generated: MPI_Send means MPI_Send_c, and so on
using Count = MPI_Count;
using Distance = MPI_Aint;
#else
using Count = int;
using Distance = int;
#endif

inline int rank, size;

struct Expected {
  std::uint64_t calls = 0, sent = 0, received = 0;
};
inline std::map<std::string, Expected> expected;

inline void expect(const char* routine, std::uint64_t sent, std::uint64_t received,
                   std::uint64_t calls = 1) {
  auto& sum = expected[routine];
  sum.calls += calls;
  sum.sent += sent;
  sum.received += received;
}

// Macros, because the name that is expected is the one that was called.
#define SINEW_NAME(routine) #routine
/// (routine, bytes sent, bytes received, calls = 1)
#define EXPECT_MOVED(routine, ...) expect(SINEW_NAME(routine), __VA_ARGS__)
/// (routine, calls = 1): no bytes.
#define EXPECT_CALLED(routine, ...) expect(SINEW_NAME(routine), 0, 0 __VA_OPT__(, ) __VA_ARGS__)

/// Into a file a rank: launchers mix what ranks print at once.
inline void write_expected(const std::string& folder) {
  std::string text;
  for (const auto& [routine, sum] : expected)
    text += "expect " + routine + " " + std::to_string(sum.calls) + " " + std::to_string(sum.sent) +
            " " + std::to_string(sum.received) + "\n";
  std::FILE* const file = std::fopen((folder + "/" + std::to_string(rank)).c_str(), "w");
  if (file == nullptr) MPI_Abort(MPI_COMM_WORLD, 1);
  std::fputs(text.c_str(), file);
  std::fclose(file);
}

inline std::vector<int> buffer(std::size_t elements) { return std::vector<int>(elements, 1); }

// Each calls its class of routines once or more. All ranks; at least two.
void point_to_point();
void requests();
void messages_that_fail();
void collectives();
void many_to_many_at_once();
void persistent_collectives();
void partitioned();
void communicators();
void neighbours();
void windows();
void more_windows();
void files(const char* folder);
void sessions();
