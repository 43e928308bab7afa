// The neutral control segment: where the parent posts what to measure, where a contender's ranks
// meet between samples without the help of the library under test, and where their times end up.
// One segment a group, in an anonymous file of the parent: nothing is left however a run ends.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/case.hpp"
#include "measure/contender.hpp"
#include "measure/meeting.hpp"
#include "measure/os.hpp"

namespace sinew::bench {

inline constexpr std::uint32_t kMaxSamples = 4096;
inline constexpr std::uint32_t kMaxBatch = 4096;

/// How long one turn may take and how it is cut into samples.
struct Limits {
  double budget_s = 0.3;  // warm-up and samples; the check of the first round comes on top
  std::uint32_t samples = kMaxSamples;
  std::uint32_t batch = 0;    // calls a sample; 0: as many as samples should last
  std::int32_t warm_up = -1;  // calls before the first sample, on top; -1: a tenth of the budget
};

struct Command {
  Case what;
  Limits limits;
  int round = 0;
};

enum class RankState : std::uint32_t { absent, idle, running, done, unsupported, failed };

/// Thrown in a rank when the parent is gone: leave, nobody reads the results.
struct Abandoned : std::runtime_error {
  Abandoned() : std::runtime_error("the measuring parent is gone") {}
};

namespace detail {
struct Segment;
struct RankLine;

class Mapping {
 public:
  Mapping(const Fd& file, std::size_t bytes);
  Mapping(Mapping&& other) noexcept
      : memory_(std::exchange(other.memory_, nullptr)), bytes_(other.bytes_) {}
  Mapping& operator=(Mapping&&) = delete;
  ~Mapping();

  [[nodiscard]] Segment& segment() const noexcept { return *static_cast<Segment*>(memory_); }
  [[nodiscard]] RankLine& line(int rank) const noexcept;
  [[nodiscard]] std::span<Stamp> stamps(int rank) const noexcept;
  [[nodiscard]] std::span<std::uint64_t> counts() const noexcept;

 private:
  void* memory_;
  std::size_t bytes_;
};
}  // namespace detail

/// The parent's end.
class ControlOwner {
 public:
  explicit ControlOwner(int ranks);

  /// How a rank finds the segment; usable by any process of this user on this host.
  [[nodiscard]] std::string path() const;

  /// Hands the command to the sleeping ranks; all must be idle, done or unsupported.
  void post(const Command& command);
  /// Tells the ranks to leave.
  void dismiss();
  /// Sleeps until a rank joined or came to an end of its turn, at most timeout_ns.
  void wait_for_news(std::uint64_t timeout_ns) noexcept;

  [[nodiscard]] pid_t pid(int rank) const noexcept;  // 0 before it has joined
  [[nodiscard]] RankState state(int rank) const noexcept;
  [[nodiscard]] std::string message(int rank) const;
  [[nodiscard]] std::uint64_t wrong() const noexcept;
  [[nodiscard]] std::uint32_t batch() const noexcept;
  /// Microseconds a call, one value a sample: from the last rank's start to the last rank's end,
  /// or from the first one's start (Report::from_first).
  [[nodiscard]] std::vector<double> samples_us() const;

 private:
  Fd file_;
  detail::Mapping mapping_;
  std::uint32_t news_seen_ = 0;
};

/// A rank's end.
class Control final : public Meeting {
 public:
  /// Opens the segment named by the parent, as this rank. Throws std::runtime_error.
  Control(const std::string& path, int rank);

  [[nodiscard]] Seat seat() const noexcept override { return seat_; }
  [[nodiscard]] bool crowded() const noexcept override;
  /// How many ranks the group has, for launchers that do not say.
  static int ranks(const std::string& path);

  /// Tells the parent that this rank is ready for commands.
  void join();
  /// Sleeps until there is a command; nothing when the ranks are told to leave.
  std::optional<Command> next_command();
  void finish(RankState state, std::string_view message = {});

  void barrier() override;
  std::uint32_t agree(std::uint32_t value_of_rank_0) override;
  void stamp(std::uint32_t sample, Stamp times) noexcept override;
  [[nodiscard]] Stamp last_of_all(std::uint32_t sample) override;
  void report(const Report& report) override;

  /// A small key-value store, for libraries whose ranks must learn each other's address.
  void publish(std::string_view key, std::string_view value);
  [[nodiscard]] std::optional<std::string> published(std::string_view key) const;

 private:
  Control(const std::string& path, int rank, Fd file);
  void leave_if_abandoned() const;

  detail::Mapping mapping_;
  Seat seat_;
  Fd parent_;
  std::uint32_t command_seen_ = 0;
  std::uint32_t agreements_ = 0;
};

}  // namespace sinew::bench
