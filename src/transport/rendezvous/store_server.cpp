#include "transport/rendezvous/store_server.hpp"

#include <fmt/format.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <map>
#include <optional>
#include <set>
#include <system_error>
#include <thread>
#include <vector>

#include <sinew/error.hpp>
#include "transport/rendezvous/socket.hpp"
#include "transport/rendezvous/store.hpp"
#include "transport/rendezvous/store_frame.hpp"
#include "transport/trust/handshake.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;
using What = StoreFrame::What;

/// Somebody at the other end: a stranger while there is a handshake, a client afterwards.
struct Visitor {
  Socket socket;
  std::string where;
  std::unique_ptr<Handshake> handshake;
  Deadline handshake_until;
  bool proven = false;   // knows the token
  bool welcome = false;  // and has its place
  int rank = -1;
  StoreFrameReader reader;
  std::string out;                     // the rest of a reply
  std::optional<std::string> awaited;  // key of a get that waits
  Deadline await_until;
  bool left = false;  // said that it needs the store no longer
  bool gone = false;

  [[nodiscard]] short events() const {
    if (handshake) return handshake->wants_write() ? POLLOUT : POLLIN;
    if (!out.empty()) return POLLOUT;
    return awaited ? POLLRDHUP : POLLIN;  // its next request can wait, its end is news
  }
};

}  // namespace

class StoreServer::Service {
 public:
  Service(const Address& address, const Token& token, const Options& options)
      : options_(options),
        token_(token),
        listener_(listen_at(address)),
        address_(bound_address(listener_, address)),
        stop_(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)) {
    if (stop_.get() < 0)
      throw Error(Errc::system, fmt::format("eventfd: {}", std::strerror(errno)));
    // Signals are for the threads of the program.
    sigset_t all, before;
    ::sigfillset(&all);
    ::pthread_sigmask(SIG_SETMASK, &all, &before);
    try {
      thread_ = std::thread([this] { serve(); });
    } catch (const std::system_error& error) {
      ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
      throw Error(Errc::system, fmt::format("no thread for the store: {}", error.what()));
    }
    ::pthread_sigmask(SIG_SETMASK, &before, nullptr);
  }
  ~Service() {
    const std::uint64_t one = 1;
    // The counter starts at zero and is written once: this cannot fail.
    (void)!::write(stop_.get(), &one, sizeof one);
    thread_.join();
  }
  Service(const Service&) = delete;
  Service& operator=(const Service&) = delete;

  [[nodiscard]] const Address& address() const noexcept { return address_; }

 private:
  void serve() noexcept {
    std::vector<pollfd> entries;
    for (bool goes_on = true; goes_on;) {
      try {
        goes_on = turn(entries);
      } catch (const std::exception&) {  // no memory: those who wait will have to wait longer
        accept_again_ = Clock::now() + 100ms;
      }
    }
  }

  /// Waits for something to happen, and handles it; false when the server should end.
  bool turn(std::vector<pollfd>& entries) {
    entries.assign({{stop_.get(), POLLIN, 0}, {accepts() ? listener_.get() : -1, POLLIN, 0}});
    for (const auto& visitor : visitors_)
      entries.push_back({visitor->socket.get(), visitor->events(), 0});
    ::poll(entries.data(), entries.size(), milliseconds_left());
    if (entries[0].revents != 0) return false;
    for (std::size_t i = 0; i < visitors_.size(); ++i)
      if (entries[i + 2].revents != 0) attend(*visitors_[i], entries[i + 2].revents);
    forget_gone();  // before others come, so that no more are open than may be
    // No more at a time than are kept: those who are in are served in between.
    for (std::size_t i = 0; entries[1].revents != 0 && i < options_.most_strangers; ++i)
      if (!accept_one()) break;
    check_times();
    forget_gone();
    warn();
    return true;
  }

  void forget_gone() {
    const auto is_turned_away = [](const auto& visitor) {
      return visitor->gone && !visitor->welcome;
    };
    strangers_ += static_cast<std::uint64_t>(
        std::count_if(visitors_.begin(), visitors_.end(), is_turned_away));
    std::erase_if(visitors_, [](const auto& visitor) { return visitor->gone; });
  }

  // Out of descriptors, an accept that fails would leave the listener readable for ever.
  [[nodiscard]] bool accepts() const { return Clock::now() >= accept_again_; }

  [[nodiscard]] int milliseconds_left() const {
    auto next = Clock::now() + 1h;
    if (!accepts()) next = accept_again_;
    if (strangers_ > 0 && options_.warn) next = std::min(next, warn_again_);
    for (const auto& visitor : visitors_) {
      if (visitor->handshake) next = std::min(next, visitor->handshake_until);
      if (visitor->awaited) next = std::min(next, visitor->await_until);
    }
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(next - Clock::now()).count();
    return static_cast<int>(std::max<decltype(left)>(0, left));
  }

  bool accept_one() {
    Socket socket(::accept4(listener_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (socket.get() < 0) {
      if (errno == EINTR || errno == ECONNABORTED) return true;
      if (errno != EAGAIN) accept_again_ = Clock::now() + 100ms;
      return false;
    }
    make_room_for_stranger();
    auto visitor = std::make_unique<Visitor>();
    visitor->where = peer_of(socket);
    visitor->handshake =
        std::make_unique<Handshake>(socket.get(), Handshake::Role::accepts, token_, hello(),
                                    [this, &proven = visitor->proven](const Hello& theirs) {
                                      proven = true;
                                      return judge(theirs);
                                    });
    visitor->handshake_until = Clock::now() + options_.handshake_time;
    visitor->socket = std::move(socket);
    visitors_.push_back(std::move(visitor));
    return true;
  }

  // Ranks are through with a handshake in milliseconds, so the oldest stranger is the least likely
  // to be one; if it is, it comes again.
  void make_room_for_stranger() {
    const auto is_stranger = [](const auto& visitor) {
      return visitor->handshake && !visitor->gone;
    };
    const auto strangers = std::count_if(visitors_.begin(), visitors_.end(), is_stranger);
    if (static_cast<std::size_t>(strangers) < options_.most_strangers) return;
    auto& oldest = **std::find_if(visitors_.begin(), visitors_.end(), is_stranger);
    oldest.gone = true;
    oldest.socket = Socket();
  }

  [[nodiscard]] Hello hello() const {
    return {.purpose = Hello::Purpose::store, .epoch = options_.epoch, .size = options_.size};
  }

  [[nodiscard]] const Visitor* find_rank(int rank) const {
    for (const auto& visitor : visitors_)
      if (rank >= 0 && visitor->rank == rank && !visitor->gone) return visitor.get();
    return nullptr;
  }

  [[nodiscard]] std::string judge(const Hello& theirs) const {
    if (auto why = misfit(hello(), theirs); !why.empty()) return why;
    if (const auto* first = find_rank(theirs.rank))
      return fmt::format("claims to be rank {}, which has joined from {}", theirs.rank,
                         first->where);
    if (visitors_.size() >= options_.most_clients) return "is one too many";
    return "";
  }

  void attend(Visitor& visitor, short events) {
    try {
      if (visitor.handshake)
        greet(visitor);
      else if (!visitor.out.empty())
        reply_more(visitor);
      else if (visitor.awaited && (events & (POLLRDHUP | POLLHUP | POLLERR)) != 0)
        lose(visitor);
      else
        listen(visitor);
    } catch (const std::exception&) {  // not a frame, or no memory for it
      lose(visitor);
    }
  }

  void greet(Visitor& visitor) {
    const auto progress = visitor.handshake->poll();
    if (progress == Progress::pending) return;
    const auto handshake = std::move(visitor.handshake);
    const int rank = handshake->theirs().rank;
    visitor.gone = progress == Progress::failed || find_rank(rank) != nullptr;
    if (!visitor.gone) {
      visitor.welcome = true;
      visitor.rank = rank;
      if (rank >= 0) ranks_.insert(rank);
    } else if (visitor.proven && !is_complete()) {
      // It knows the token, so the job was started wrongly: nobody needs to wait any longer.
      end_waiting(
          {.what = What::refused, .value = fmt::format("{} {}", visitor.where, handshake->why())});
    } else if (!handshake->hung_up()) {
      turned_away_ = fmt::format("{} {}", visitor.where, handshake->why());
    }
  }

  [[nodiscard]] bool is_complete() const {
    return static_cast<int>(ranks_.size()) == options_.size;
  }

  void listen(Visitor& visitor) {
    const auto room = visitor.reader.room();
    const auto got = ::recv(visitor.socket.get(), room.data(), room.size(), 0);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (got <= 0) return lose(visitor);
    visitor.reader.took(static_cast<std::size_t>(got));
    if (visitor.reader.is_complete()) answer(visitor, visitor.reader.take());
  }

  void answer(Visitor& visitor, const StoreFrame& request) {
    switch (request.what) {
      case What::leave:
        visitor.left = visitor.gone = true;
        return;
      case What::set:
        return reply(visitor, set(request));
      case What::get:
        break;
      default:
        return lose(visitor);
    }
    if (const auto found = values_.find(request.key); found != values_.end())
      return reply(visitor, {.what = What::done, .value = found->second});
    if (ended_) return reply(visitor, *ended_);
    visitor.awaited = request.key;
    visitor.await_until = Clock::now() + std::chrono::milliseconds(request.wait_ms);
  }

  StoreFrame set(const StoreFrame& request) {
    if (const auto found = values_.find(request.key); found != values_.end()) {
      if (found->second == request.value) return {.what = What::done};
      return {.what = What::taken, .value = found->second};
    }
    constexpr std::size_t kOverhead = 128;  // what an entry costs beside its text, about
    const auto bytes = request.key.size() + request.value.size() + kOverhead;
    if (request.key.empty()) return {.what = What::refused, .value = "the key is empty"};
    if (bytes_ + bytes > options_.most_bytes)
      return {
          .what = What::refused,
          .value = fmt::format("it holds {} bytes, and may hold {}", bytes_, options_.most_bytes)};
    bytes_ += bytes;
    values_.emplace(request.key, request.value);
    for (const auto& visitor : visitors_)
      if (visitor->awaited == request.key && !visitor->gone)
        reply(*visitor, {.what = What::done, .value = request.value});
    return {.what = What::done};
  }

  void reply(Visitor& visitor, const StoreFrame& frame) {
    visitor.awaited.reset();
    visitor.out = encode(frame);
    reply_more(visitor);
  }

  void reply_more(Visitor& visitor) {
    const auto sent =
        ::send(visitor.socket.get(), visitor.out.data(), visitor.out.size(), MSG_NOSIGNAL);
    if (sent >= 0)
      visitor.out.erase(0, static_cast<std::size_t>(sent));
    else if (errno != EAGAIN && errno != EINTR)
      lose(visitor);
  }

  void lose(Visitor& visitor) {
    if (std::exchange(visitor.gone, true) || visitor.rank < 0 || visitor.left) return;
    end_waiting({.what = What::lost,
                 .value = fmt::format("rank {} ({}) has ended", visitor.rank, visitor.where)});
  }

  // Whoever waits for what will not come is told now, not at its deadline.
  void end_waiting(const StoreFrame& why) {
    if (ended_) return;
    ended_ = why;
    for (const auto& visitor : visitors_)
      if (visitor->awaited && !visitor->gone) reply(*visitor, why);
  }

  void check_times() {
    const auto now = Clock::now();
    for (const auto& visitor : visitors_) {
      if (visitor->handshake && now >= visitor->handshake_until) visitor->gone = true;
      if (visitor->awaited && now >= visitor->await_until && !visitor->gone)
        reply(*visitor, {.what = What::absent, .value = turned_away_});
    }
  }

  // One line however many knock: a port scan must not fill a disk.
  void warn() {
    const auto now = Clock::now();
    if (strangers_ == 0 || !options_.warn || now < warn_again_) return;
    warn_again_ = now + options_.between_warnings;
    options_.warn(fmt::format("{} connection(s) to {} turned away, the job goes on{}{}",
                              std::exchange(strangers_, 0), to_string(address_),
                              turned_away_.empty() ? "" : "; the last: ", turned_away_));
  }

  Options options_;
  Token token_;
  Socket listener_;
  Address address_;
  Socket stop_;
  // Below: of the thread alone, once it runs.
  Clock::time_point accept_again_{};
  std::uint64_t strangers_ = 0;  // turned away since the last warning
  Clock::time_point warn_again_{};
  std::vector<std::unique_ptr<Visitor>> visitors_;
  std::map<std::string, std::string, std::less<>> values_;
  std::size_t bytes_ = 0;
  std::set<int> ranks_;              // that have been here
  std::optional<StoreFrame> ended_;  // why waiting is of no use any more
  std::string turned_away_;          // the last who did not know the token, and why
  std::thread thread_;
};

StoreServer::StoreServer(const Address& address, const Token& token, const Options& options)
    : service_(std::make_unique<Service>(address, token, options)) {}
StoreServer::~StoreServer() = default;
const Address& StoreServer::address() const noexcept { return service_->address(); }

}  // namespace sinew
