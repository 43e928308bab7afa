// Runs MPI programs under the profiler, for every MPI that is installed.
#pragma once

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <sstream>

#include "support/program.hpp"

namespace sinew::test {

using Json = nlohmann::json;

struct Mpi {
  std::string name;
  std::string calls;    // tests/programs/mpi_calls.cpp
  std::string classes;  // tests/programs/mpi_classes.cpp
  std::string large;    // the same with large counts; empty: this MPI has none
  std::string wrapped;  // what was generated for it
  std::string answers;  // tests/programs/mpi_answers.cpp
};

inline std::vector<Mpi> installed() {
  std::vector<Mpi> all;
#ifdef SINEW_MPI_CALLS_OPENMPI
  all.push_back({"openmpi", SINEW_MPI_CALLS_OPENMPI, SINEW_MPI_CLASSES_OPENMPI,
                 SINEW_MPI_LARGE_OPENMPI, SINEW_WRAPPERS_OPENMPI, SINEW_MPI_ANSWERS_OPENMPI});
#endif
#ifdef SINEW_MPI_CALLS_MPICH
  all.push_back({"mpich", SINEW_MPI_CALLS_MPICH, SINEW_MPI_CLASSES_MPICH, SINEW_MPI_LARGE_MPICH,
                 SINEW_WRAPPERS_MPICH, SINEW_MPI_ANSWERS_MPICH});
#endif
  return all;
}

/// The command under this MPI's launcher. One rank needs none, and Open MPI's takes seconds to see
/// that a rank has failed.
inline std::vector<std::string> launch(const Mpi& mpi, int ranks,
                                       const std::vector<std::string>& command) {
  if (ranks == 1) return command;
  std::vector<std::string> words{"mpirun." + mpi.name};
  if (mpi.name == "openmpi")
    words.insert(words.end(),
                 {"--allow-run-as-root", "--oversubscribe", "--mca", "mpi_yield_when_idle", "1"});
  words.insert(words.end(), {"-n", std::to_string(ranks)});
  words.insert(words.end(), command.begin(), command.end());
  return words;
}

class Profiler : public testing::TestWithParam<Mpi> {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "sinew-prof-XXXXXX").string();
    ASSERT_NE(::mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  Ran profile_command(int ranks, const std::vector<std::string>& command,
                      const std::vector<std::string>& options = {}) {
    std::vector<std::string> words{"profile", "-o", folder_};
    words.insert(words.end(), options.begin(), options.end());
    words.emplace_back("--");
    const auto launched = launch(GetParam(), ranks, command);
    words.insert(words.end(), launched.begin(), launched.end());
    return sinew(words);
  }
  /// mpi_calls with these arguments.
  Ran profile(int ranks, std::vector<std::string> arguments,
              const std::vector<std::string>& options = {}) {
    arguments.insert(arguments.begin(), GetParam().calls);
    return profile_command(ranks, arguments, options);
  }
  Json shown() {
    const auto ran = sinew({"profile", "show", folder_, "--json"});
    EXPECT_EQ(ran.status, 0) << ran.err;
    return Json::parse(ran.out);
  }
  std::string folder_;
};

inline Json routine(const Json& profile, const std::string& name) {
  for (const auto& row : profile["routines"])
    if (row["routine"] == name) return row;
  return {};
}

inline std::string text_of(const std::string& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

struct CountedByHand {
  std::uint64_t calls = 0, sent = 0, received = 0;
};

/// What the ranks of a program wrote that they expect.
inline std::map<std::string, CountedByHand> counted_by_hand(const std::string& output) {
  std::map<std::string, CountedByHand> sums;
  for (const auto& line : lines_of(output)) {
    std::istringstream words(line);
    std::string word, name;
    CountedByHand one;
    if (!(words >> word >> name >> one.calls >> one.sent >> one.received) || word != "expect")
      continue;
    sums[name].calls += one.calls;
    sums[name].sent += one.sent;
    sums[name].received += one.received;
  }
  return sums;
}

/// The profile has these routines with these figures, and no others.
inline void expect_counted(const Json& profile,
                           const std::map<std::string, CountedByHand>& by_hand) {
  for (const auto& [name, sum] : by_hand) {
    const auto row = routine(profile, name);
    ASSERT_FALSE(row.is_null()) << name;
    EXPECT_EQ(row["calls"], sum.calls) << name;
    EXPECT_EQ(row["sent_bytes"], sum.sent) << name;
    EXPECT_EQ(row["received_bytes"], sum.received) << name;
  }
  for (const auto& row : profile["routines"])
    EXPECT_EQ(by_hand.count(row["routine"]), 1U) << row["routine"] << " was not called";
}

}  // namespace sinew::test
