#include "transport/tcp/mesh.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <poll.h>
#include <sched.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <optional>

#include <sinew/error.hpp>
#include "transport/cores.hpp"
#include "transport/tcp/introduction.hpp"

namespace sinew::tcp {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMostPending = 256;  // accepted, and not yet known
constexpr auto kPatience = 5s;             // with each of them
constexpr int kAttempts = 5;
constexpr auto kBetweenAttempts = 50ms;

std::string machine() {
  std::string id;
  std::ifstream("/proc/sys/kernel/random/boot_id") >> id;
  return id.empty() ? "unknown" : id;
}

std::string own_cpus() {
  cpu_set_t set;
  CPU_ZERO(&set);
  sched_getaffinity(0, sizeof set, &set);
  std::string hex;
  for (int first = CPU_SETSIZE - 4; first >= 0; first -= 4) {
    int digit = 0;
    for (int bit = 0; bit < 4; ++bit) digit |= CPU_ISSET(first + bit, &set) ? 1 << bit : 0;
    if (digit != 0 || !hex.empty()) hex += fmt::format("{:x}", digit);
  }
  return hex.empty() ? "1" : hex;
}

/// A connection that is not one yet.
struct Pending {
  Socket socket;                               // until it is connected
  std::unique_ptr<Introduction> introduction;  // afterwards
  Deadline until = Deadline::max();
  int peer = -1;  // whom we connect to; -1: we were connected to
  int slot = 0;
  int attempts = 0;
  bool is_over = false;  // it is one now, or never will be

  [[nodiscard]] bool rests() const { return !socket.valid() && introduction == nullptr; }
  [[nodiscard]] pollfd entry() const {
    if (introduction)
      return {introduction->socket().get(),
              static_cast<short>(introduction->wants_write() ? POLLOUT : POLLIN), 0};
    return {socket.get(), POLLOUT, 0};
  }
};

class Joining {
 public:
  Joining(const TcpJoin& join, Deadline deadline)
      : join_(join),
        deadline_(deadline),
        slots_{join.options.streams},
        hello_{Hello::Purpose::control,
               0,
               join.options.tls,
               join.epoch,
               join.rank,
               join.size,
               XXH3_64bits(join.group.data(), join.group.size())} {
    if (join.options.tls) tls_.emplace();
    mesh_.streams.resize(static_cast<std::size_t>(join.size));
    for (int peer = 0; peer < join.size; ++peer)
      if (peer != join.rank)
        mesh_.streams[at(peer)].resize(static_cast<std::size_t>(slots_.count()));
    missing_ = (join.size - 1) * slots_.count();
  }

  Mesh run() {
    socket_options_.buffer_bytes = static_cast<int>(join_.options.sockbuf);
    socket_options_.congestion = join_.options.congestion;
    const auto here = find_address(join_.options.bind);
    listener_ = listen_at(here, socket_options_);
    exchange_cards();
    for (int peer = 0; peer < join_.rank; ++peer)
      for (int slot = 0; slot < slots_.count(); ++slot) {
        pending_.emplace_back();
        pending_.back().peer = peer;
        pending_.back().slot = slot;
        pending_.back().until = Clock::now();
      }
    while (missing_ > 0) step();
    return std::move(mesh_);
  }

 private:
  static std::size_t at(int rank) { return static_cast<std::size_t>(rank); }
  [[nodiscard]] std::string key_of(int rank) const {
    return fmt::format("tcp/{}/{}/{}", join_.epoch, join_.group, rank);
  }

  void exchange_cards() {
    const auto& options = join_.options;
    Card mine{local_address(listener_), machine(), own_cpus(), within_quota(CPU_SETSIZE),
              fmt::format("chunk={},slice={},streams={},checksum={},tls={}", options.chunk,
                          options.slice ? std::to_string(*options.slice) : "auto", options.streams,
                          options.checksum ? "on" : "off", options.tls ? "on" : "off")};
    join_.store->set(key_of(join_.rank), write_card(mine));
    for (int rank = 0; rank < join_.size; ++rank) {
      cards_.push_back(rank == join_.rank ? mine : card_of(rank));
      if (cards_.back().agreed != mine.agreed)
        throw Error(Errc::invalid_argument,
                    fmt::format("rank {} was started with {}, but rank {} with {}: they must agree",
                                join_.rank, mine.agreed, rank, cards_.back().agreed),
                    {.rank = join_.rank, .peer = rank});
    }
    mesh_.on_one_host = are_on_one_host(cards_);
    mesh_.cores = join_.cores > 0 ? join_.cores : shared_cores(cards_);
  }

  Card card_of(int rank) const {
    try {
      return read_card(join_.store->get(key_of(rank), deadline_));
    } catch (const Error& error) {
      if (error.code() != Errc::timeout) throw;
      // Whoever has come has left a card; look without waiting who else has not.
      std::vector<int> missing;
      for (int other = 0; other < join_.size; ++other) try {
          if (other != join_.rank) (void)join_.store->get(key_of(other), Clock::now());
        } catch (const Error&) {
          missing.push_back(other);
        }
      throw Error(Errc::timeout,
                  fmt::format("rank(s) {} of {} did not join in time", fmt::join(missing, ", "),
                              join_.size),
                  {.rank = join_.rank, .peer = rank});
    }
  }

  // Waits until something can move, and moves it.
  void step() {
    if (join_.check) join_.check();
    auto wake = deadline_;
    std::vector<pollfd> entries;
    entries.push_back({listener_.get(), POLLIN, 0});
    for (auto& one : pending_) {
      if (one.rests() && Clock::now() >= one.until) begin(one);
      entries.push_back(one.entry());
      wake = std::min(wake, one.until);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(wake - Clock::now()).count();
    const int ready =
        poll(entries.data(), entries.size(),
             static_cast<int>(std::clamp<std::int64_t>(left, 0, join_.check ? 20 : 1000)));
    if (ready < 0 && errno != EINTR)
      throw Error(Errc::system, fmt::format("poll: {}", std::strerror(errno)));
    const auto now = Clock::now();
    for (std::size_t i = 0; i < pending_.size(); ++i)
      if (entries[i + 1].revents != 0)
        advance(pending_[i]);
      else if (pending_[i].peer < 0 && now >= pending_[i].until)
        turn_away(pending_[i], "fell silent");
    std::erase_if(pending_, [](const Pending& one) { return one.is_over; });
    if (entries[0].revents != 0) accept_one();
    if (now >= deadline_ && missing_ > 0) time_out();
  }

  void begin(Pending& one) {
    one.socket = connect_to(cards_[at(one.peer)].address, socket_options_);
    one.until = Deadline::max();
    ++one.attempts;
  }

  void accept_one() {
    Socket socket(accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!socket.valid()) {
      if (errno == EMFILE || errno == ENFILE)
        throw Error(Errc::system,
                    "no descriptors left for connections; raise the limit (ulimit -n)");
      return;  // it has gone again
    }
    make_room();
    Pending one;
    one.until = Clock::now() + kPatience;
    one.introduction = std::make_unique<Introduction>(
        std::move(socket), Handshake::Role::accepts, join_.token, hello_, tls_ ? &*tls_ : nullptr,
        [this](const Hello& theirs) { return objection(theirs); });
    pending_.push_back(std::move(one));
  }

  // Strangers who say nothing must not keep the door shut: the one who came first has to go. Should
  // it be one of ours, it comes again.
  void make_room() {
    const auto is_unknown = [](const Pending& one) { return one.peer < 0; };
    if (static_cast<std::size_t>(std::count_if(pending_.begin(), pending_.end(), is_unknown)) <
        kMostPending)
      return;
    const auto first = std::find_if(pending_.begin(), pending_.end(), is_unknown);
    turn_away(*first, "fell silent");
    pending_.erase(first);
  }

  void advance(Pending& one) {
    if (!one.introduction) {
      if (const int error = connect_error(one.socket); error != 0)
        return try_again(one, fmt::format("does not answer ({})", std::strerror(error)));
      auto mine = hello_;
      mine.purpose = purpose_of(one.slot);
      mine.stream = static_cast<std::uint8_t>(one.slot);
      one.introduction =
          std::make_unique<Introduction>(std::move(one.socket), Handshake::Role::connects,
                                         join_.token, mine, tls_ ? &*tls_ : nullptr);
    }
    const auto progress = one.introduction->poll();
    if (progress == Progress::pending) return;
    if (progress == Progress::failed) {
      const auto why = one.introduction->why();
      return one.peer < 0 ? turn_away(one, why) : try_again(one, why);
    }
    const auto& theirs = one.introduction->theirs();
    one.peer < 0 ? place(one, theirs.rank, theirs.stream) : place(one, one.peer, one.slot);
  }

  [[nodiscard]] static Hello::Purpose purpose_of(int slot) {
    return slot == 0 ? Hello::Purpose::control : Hello::Purpose::data;
  }

  // It knows the token. Is it one of those we wait for?
  [[nodiscard]] std::string objection(const Hello& theirs) const {
    auto expected = hello_;
    expected.purpose = purpose_of(theirs.stream);
    expected.stream = theirs.stream;
    if (auto why = misfit(expected, theirs); !why.empty()) return why;
    if (theirs.rank < join_.rank || theirs.stream >= slots_.count())
      return fmt::format("rank {} does not wait for it", join_.rank);
    if (mesh_.streams[at(theirs.rank)][theirs.stream].socket().valid())
      return fmt::format("rank {} has that connection already", join_.rank);
    return {};
  }

  void place(Pending& one, int peer, int slot) {
    auto options = socket_options_;
    // Within a machine nothing gets lost and nobody else is on the line: pacing, as some controls
    // do it by timers, only costs.
    if (options.congestion.empty() && cards_[at(peer)].host == cards_[at(join_.rank)].host)
      options.congestion = "reno";
    tune(one.introduction->socket(), options);
    mesh_.streams[at(peer)][static_cast<std::size_t>(slot)] = one.introduction->take();
    one.is_over = true;
    --missing_;
  }

  void turn_away(Pending& one, const std::string& why) {
    // Those who only hang up tell less than one who said what was wrong.
    if (last_stranger_.empty() || !one.introduction->hung_up()) last_stranger_ = why;
    one.is_over = true;
    ++mesh_.strangers;
  }

  // It may have been turned away only because too many strangers were at the door.
  void try_again(Pending& one, const std::string& why) {
    if (one.attempts >= kAttempts)
      throw Error(Errc::peer_lost,
                  fmt::format("rank {} cannot connect to rank {}: {} {}", join_.rank, one.peer,
                              cards_[at(one.peer)].address.text(), why),
                  {.rank = join_.rank, .peer = one.peer});
    one.introduction.reset();
    one.socket = Socket();
    one.until = Clock::now() + kBetweenAttempts * one.attempts;
  }

  [[noreturn]] void time_out() const {
    std::vector<int> missing;
    for (int peer = 0; peer < join_.size; ++peer) {
      const auto& streams = mesh_.streams[at(peer)];
      if (!std::all_of(streams.begin(), streams.end(),
                       [](const Stream& stream) { return stream.socket().valid(); }))
        missing.push_back(peer);
    }
    const auto turned_away = fmt::format("; {} connection(s) were turned away, one of which {}",
                                         mesh_.strangers, last_stranger_);
    throw Error(
        Errc::timeout,
        fmt::format("rank {} and rank(s) {} of {} did not get connected in time{}", join_.rank,
                    fmt::join(missing, ", "), join_.size, mesh_.strangers > 0 ? turned_away : ""),
        {.rank = join_.rank, .peer = missing.front()});
  }

  const TcpJoin& join_;
  Deadline deadline_;
  Slots slots_;
  Hello hello_;
  SocketOptions socket_options_;
  std::optional<TlsContext> tls_;
  Socket listener_;
  std::vector<Card> cards_;
  std::vector<Pending> pending_;
  Mesh mesh_;
  std::string last_stranger_;  // why it had to go, of the last that said anything
  int missing_ = 0;            // connections
};

}  // namespace

Mesh connect_mesh(const TcpJoin& join, Deadline deadline) { return Joining(join, deadline).run(); }

}  // namespace sinew::tcp
