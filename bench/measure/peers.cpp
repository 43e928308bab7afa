#include "measure/peers.hpp"

#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <sstream>
#include <stdexcept>

namespace sinew::bench {
namespace {

struct Peer {
  std::string_view name;
  std::string_view launcher;  // words before the program; none: one program a rank
  std::string_view program;
};

// --oversubscribe makes Open MPI count its ranks against the cores and yield when they outnumber
// them. Without single copies (CMA) it is faster at some sizes with many ranks.
constexpr std::array<Peer, 6> kPeers{{
    {"openmpi", "mpirun.openmpi --allow-run-as-root --oversubscribe -n {ranks}",
     "sinew-peer-openmpi"},
    {"openmpi:nocma",
     "mpirun.openmpi --allow-run-as-root --oversubscribe"
     " --mca btl_vader_single_copy_mechanism none -n {ranks}",
     "sinew-peer-openmpi"},
    {"openmpi:bound",
     "mpirun.openmpi --allow-run-as-root --oversubscribe --bind-to core:overload-allowed"
     " -n {ranks}",
     "sinew-peer-openmpi"},
    {"openmpi:tcp",
     "mpirun.openmpi --allow-run-as-root --oversubscribe --mca pml ob1 --mca btl tcp,self"
     " -n {ranks}",
     "sinew-peer-openmpi"},
    {"mpich", "mpirun.mpich -n {ranks}", "sinew-peer-mpich"},
    {"gloo", "", "sinew-peer-gloo"},
}};

const Peer& find_peer(std::string_view name) {
  const auto* found = std::ranges::find(kPeers, name, &Peer::name);
  if (found != kPeers.end()) return *found;
  std::string known;
  for (const auto& peer : kPeers) known.append(" ").append(peer.name);
  throw std::invalid_argument("unknown peer '" + std::string(name) + "'; known are" + known);
}

std::vector<std::string> words(std::string_view line) {
  std::istringstream stream{std::string(line)};
  std::vector<std::string> list;
  for (std::string word; stream >> word;) list.push_back(word);
  return list;
}

}  // namespace

bool on_path(const std::string& program) {
  const char* path = std::getenv("PATH");
  std::istringstream folders{path == nullptr ? "/usr/bin:/bin" : path};
  for (std::string folder; std::getline(folders, folder, ':');) {
    if (::access((folder + "/" + program).c_str(), X_OK) == 0) return true;
  }
  return false;
}

std::vector<std::string> peer_names() {
  std::vector<std::string> names;
  for (const auto& peer : kPeers) names.emplace_back(peer.name);
  return names;
}

bool peer_installed(std::string_view name, const std::string& program_dir) {
  const Peer& known = find_peer(name);
  const std::string program = program_dir + "/" + std::string(known.program);
  if (::access(program.c_str(), X_OK) != 0) return false;
  const auto launcher = words(known.launcher);
  return launcher.empty() || on_path(launcher.front());
}

ContenderSpec peer(std::string_view name, const std::string& program_dir) {
  const Peer& known = find_peer(name);
  auto line = words(known.launcher);
  const bool one_a_rank = line.empty();
  line.push_back(program_dir + "/" + std::string(known.program));
  line.emplace_back("{control}");
  if (one_a_rank) line.emplace_back("{rank}");
  return {.name = std::string(name),
          .launch = one_a_rank ? spawn_each(std::move(line)) : spawn_once(std::move(line))};
}

}  // namespace sinew::bench
