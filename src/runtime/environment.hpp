// What the environment says about this process: which rank it is, of how many, and where they meet.
// docs/environment.md lists the variables. Everything but process_environment() is a pure function.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

namespace sinew {

using Variables = std::map<std::string, std::string, std::less<>>;

/// The only place that reads the environment of the process.
Variables process_environment();

struct Environment {
  int rank = 0;
  int size = 1;
  int local_rank = -1;   // among the ranks of this host; -1: not known
  int local_size = 0;    // ranks of this host; 0: not known
  std::string launcher;  // who says so: "Open MPI"; "": nobody, and this is a group of one
  std::string job;       // equal on its ranks, different for others on this host; "": not known

  std::string rendezvous;  // as the user gave it, or ""
  std::string meeting;     // where ranks of several hosts meet by default, or ""
  std::string token;       // hexadecimal, or ""
  std::string token_file;
  std::string transport;
  std::string interfaces;
  std::string trace;           // a folder for traces, or ""
  std::string model;           // a file that algorithms are chosen by, or ""
  int trial_calls = -1;        // as Options::trial_calls
  bool tls = false;            // over sockets
  bool shared_device = true;   // whether sums may stay on a GPU that all ranks share
  std::string runtime_folder;  // for files of this user only, gone after the last log-out
  int pmi_descriptor = -1;     // of a process manager that speaks PMI-1; -1: none
  bool has_pmix = false;       // whether a PMIx server waits for this process

  [[nodiscard]] bool is_one_host() const noexcept { return local_size == size; }
};

/// SINEW_*, then torchrun's names, Open MPI's, PMI's (MPICH), Slurm's, PBS's. Throws
/// Error{invalid_argument} for what is not a number, for half a pair, and when two launchers say
/// different things.
Environment read_environment(const Variables& variables);

/// The names by which launchers tell a process its rank and group: what a launcher inside another
/// must take away.
std::vector<std::string_view> place_variables();

/// The first host of a list as Slurm writes it: "node[07-09,12],gpu1" begins with node07.
std::string first_host(std::string_view list);

}  // namespace sinew
