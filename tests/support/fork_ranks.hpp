// Ranks as real processes, for tests: forked, joined over shm or tcp, watched by the parent.
#pragma once

#include <sys/types.h>

#include <chrono>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sinew/communicator.hpp>
#include "transport/segment.hpp"
#include "transport/tcp/tcp.hpp"

namespace sinew::test {

/// By what the ranks of a test are connected.
enum class Medium : std::uint8_t {
  shm,
  tcp,
  routed,  // as "auto" does it for two hosts: each half of the ranks over shm, the rest over tcp
};
inline constexpr Medium kMedia[] = {Medium::shm, Medium::tcp};
inline constexpr Medium kAllMedia[] = {Medium::shm, Medium::tcp, Medium::routed};
std::string_view name(Medium medium);

/// What a child knows of its place in the group.
struct Seat {
  int rank = 0;
  int size = 1;
  std::string rendezvous;
  int report = -1;  // where tell() writes
  Medium medium = Medium::shm;
  std::shared_ptr<Store> store{};  // of all children
  TcpOptions tcp{};

  /// Joins a group of its own for every `trial`, so that one process serves many trials.
  [[nodiscard]] Communicator join(std::string_view trial = "all", const Options& options = {},
                                  const SegmentOptions& segment = {}, int domain = -1) const;
  /// The host that the rank plays to be on, over Medium::routed.
  [[nodiscard]] static int node_of(int rank, int size);
  /// One line to the parent.
  void tell(std::string_view line) const;

 private:
  [[nodiscard]] std::unique_ptr<Transport> join_sockets(std::string_view trial) const;
  [[nodiscard]] std::unique_ptr<Transport> join_routed(std::string_view trial) const;
};

/// What became of one rank.
struct Told {
  std::vector<std::string> lines;
  int status = -1;  // exit status, or 128 + signal; 137 when it had to be killed
};

/// A process for each rank. Whatever happens, all are gone and reaped when this is.
class ForkedRanks {
 public:
  /// An exception out of `body` becomes a line "threw: ..." and exit status 1.
  ForkedRanks(int size, const std::function<void(const Seat&)>& body, Medium medium = Medium::shm,
              const TcpOptions& tcp = {});
  ForkedRanks(const ForkedRanks&) = delete;
  ForkedRanks& operator=(const ForkedRanks&) = delete;
  ~ForkedRanks();

  void signal(int rank, int number) const;
  /// Until every rank has told `lines` lines; false when the limit passes first.
  bool wait_for_lines(std::size_t lines, std::chrono::milliseconds limit);
  /// The same for some ranks only.
  bool wait_for_lines_of(const std::vector<int>& ranks, std::size_t lines,
                         std::chrono::milliseconds limit);
  /// Until every rank has ended; those still there at the limit are killed.
  std::vector<Told> finish(std::chrono::milliseconds limit);

 private:
  struct Child {
    pid_t pid = -1;
    int report = -1;
    std::string text;
    Told told;
  };
  bool read_some(std::chrono::steady_clock::time_point until);
  void reap(Child& child);

  std::vector<Child> children_;
};

/// Runs `body` once in each rank and gives back all they told, with a story for each rank that did
/// not end well (so an empty list means: all went well and nobody had anything to say).
std::vector<std::string> fork_ranks(int size, const std::function<void(const Seat&)>& body,
                                    Medium medium = Medium::shm, const TcpOptions& tcp = {},
                                    std::chrono::milliseconds limit = std::chrono::seconds(120));

/// Open descriptors of this process.
int open_descriptors();
/// Whether any mapping of this process is of a Sinew segment.
bool maps_a_segment();

}  // namespace sinew::test
