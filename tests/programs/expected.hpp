// What a rank called and moved, counted by hand, for tests to compare with what a profiler saw.
#pragma once

#include <mpi.h>

#include <cstdint>
#include <cstdio>
#include <map>
#include <string>
#include <vector>

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

/// For what is called as often as it takes.
inline void expect_calls(const char* routine, std::uint64_t calls) { expect(routine, 0, 0, calls); }

inline std::vector<int> buffer(std::size_t elements) { return std::vector<int>(elements, 1); }

// Each calls its class of routines once or more. All ranks; at least two.
void point_to_point();
void requests();
void collectives();
void many_to_many_at_once();
void communicators();
void windows();
void files(const char* folder);
void newer_routines();
