// `sinew launch`: N processes of a program on this host, and nothing left of them afterwards.
#include <arpa/inet.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <netinet/in.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "cli/arguments.hpp"
#include "cli/launch_binding.hpp"
#include "cli/launch_group.hpp"
#include "cli/launch_output.hpp"
#include "cli/verbs.hpp"
#include "runtime/environment.hpp"
#include "transport/trust/token.hpp"

namespace sinew {
namespace {

using SteadyClock = std::chrono::steady_clock;

struct LaunchWanted {
  int ranks = 0;
  std::string bind = "none";
  bool no_label = false, json = false, tls = false;
  bool elastic = false;  // ranks that are left go on
  double timeout_s = 0;
  double grace_s = 2;  // between asking ranks to end and ending them
  std::vector<std::string> program;
};

// Unguessable, so that a stranger cannot meet the ranks there first.
std::string fresh_rendezvous() {
  return fmt::format("sinew-{}-{}", ::getpid(), Token::make().hex().substr(0, 32));
}

int free_port() {
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t length = sizeof address;
  const int fd = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  auto* generic = reinterpret_cast<sockaddr*>(&address);
  const bool known =
      fd >= 0 && ::bind(fd, generic, length) == 0 && ::getsockname(fd, generic, &length) == 0;
  if (fd >= 0) ::close(fd);
  return known ? ntohs(address.sin_port) : 29500;
}

class Launch {
 public:
  explicit Launch(LaunchWanted wanted)
      : wanted_(std::move(wanted)),
        binding_(wanted_.bind),
        output_(wanted_.json       ? Label::json
                : wanted_.no_label ? Label::none
                                   : Label::rank),
        rendezvous_(fresh_rendezvous()),
        token_(Token::make().hex()),
        port_(std::to_string(free_port())) {
    ::sigemptyset(&watched_);
    for (const int number : {SIGINT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2, SIGCHLD})
      ::sigaddset(&watched_, number);
    ::sigprocmask(SIG_BLOCK, &watched_, &mask_of_ranks_);
    signals_ = ::signalfd(-1, &watched_, SFD_CLOEXEC | SFD_NONBLOCK);
    if (signals_ < 0) throw Error(Errc::system, fmt::format("signalfd: {}", std::strerror(errno)));
  }
  ~Launch() { ::close(signals_); }
  Launch(const Launch&) = delete;
  Launch& operator=(const Launch&) = delete;

  int run() {
    {
      RankGroup group(mask_of_ranks_);
      start_all(group);
      while (group.running() > 0) turn(group);
    }  // whatever ranks have started is gone now, and with it the last writer to their pipes
    output_.finish();
    if (wanted_.elastic && !stopping_) status_ = one_is_fine_ ? kFine : first_failure_;
    if (wanted_.json)
      fmt::print("{}\n", nlohmann::ordered_json{{"exit", status_}, {"ranks", ends_}}.dump());
    return status_;
  }

 private:
  void start_all(RankGroup& group) {
    std::vector<char*> program;
    for (auto& word : wanted_.program) program.push_back(word.data());
    program.push_back(nullptr);
    if (wanted_.bind == "core" && static_cast<std::size_t>(wanted_.ranks) > binding_.domains())
      fmt::print(stderr, "sinew launch: {} ranks share {} cores\n", wanted_.ranks,
                 binding_.domains());
    for (int rank = 0; rank < wanted_.ranks; ++rank) {
      const auto ends = output_.open(rank);
      const auto failure = group.start(rank, program.data(), [&] { prepare(rank, ends); });
      RankOutput::close_ends(ends);
      if (!failure) continue;
      fmt::print(stderr, "sinew launch: cannot run '{}': {}\n", program[0],
                 std::strerror(failure->error));
      stop(group, failure->error == ENOENT ? 127 : 126);
      return;
    }
    if (wanted_.timeout_s > 0)
      timeout_ = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                          std::chrono::duration<double>(wanted_.timeout_s));
  }

  // In the child, before the program. The token is in the environment and not in the command line,
  // which everybody on the host can read.
  void prepare(int rank, const RankOutput::Ends& ends) const {
    const auto number = std::to_string(rank), size = std::to_string(wanted_.ranks);
    const std::pair<const char*, const std::string&> variables[] = {
        {"SINEW_RANK", number},
        {"SINEW_SIZE", size},
        {"SINEW_LOCAL_RANK", number},
        {"SINEW_LOCAL_SIZE", size},
        {"RANK", number},
        {"WORLD_SIZE", size},
        {"LOCAL_RANK", number},
        {"LOCAL_WORLD_SIZE", size},
        {"MASTER_PORT", port_},
        {"SINEW_RENDEZVOUS", rendezvous_},
        {"SINEW_TOKEN", token_}};
    // Those of a launcher around this one are about another group.
    for (const auto name : place_variables()) ::unsetenv(std::string(name).c_str());
    for (const auto& [key, value] : variables) ::setenv(key, value.c_str(), 1);
    ::setenv("MASTER_ADDR", "127.0.0.1", 1);
    if (wanted_.tls) ::setenv("SINEW_TLS", "1", 1);
    // A file or a pipe is for rank 0. A terminal is for nobody: ranks are not in its foreground.
    if (rank > 0 || ::isatty(STDIN_FILENO) == 1) {
      const int nothing = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
      if (nothing >= 0) ::dup2(nothing, STDIN_FILENO);
    }
    if (ends.out >= 0) ::dup2(ends.out, STDOUT_FILENO);
    if (ends.err >= 0) ::dup2(ends.err, STDERR_FILENO);
    if (!binding_.bind(rank))
      ::dprintf(STDERR_FILENO, "sinew launch: rank %d cannot be bound\n", rank);
  }

  // Waits for something to happen, and handles it.
  void turn(RankGroup& group) {
    std::vector<pollfd> fds{{signals_, POLLIN, 0}};
    output_.watch(fds);
    ::poll(fds.data(), fds.size(), milliseconds_left());
    output_.forward();
    handle_signals(group);
    for (const auto& end : group.reap()) note_end(group, end);
    const auto now = SteadyClock::now();
    if (timeout_ && now >= *timeout_) {
      timeout_.reset();
      fmt::print(stderr, "sinew launch: {} of {} ranks still run after {} s; stopping them\n",
                 group.running(), wanted_.ranks, wanted_.timeout_s);
      stop(group, kTimeout);
    }
    if (kill_at_ && now >= *kill_at_) {
      kill_at_.reset();
      group.signal(SIGKILL);
    }
  }

  [[nodiscard]] int milliseconds_left() const {
    std::optional<SteadyClock::time_point> next = kill_at_;
    if (timeout_ && (!next || *timeout_ < *next)) next = timeout_;
    if (!next) return -1;
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(*next - SteadyClock::now()).count();
    return static_cast<int>(std::clamp<decltype(left)>(left, 0, 1'000'000));
  }

  void handle_signals(RankGroup& group) {
    signalfd_siginfo info{};
    while (::read(signals_, &info, sizeof info) == sizeof info) {
      const int number = static_cast<int>(info.ssi_signo);
      if (number == SIGCHLD) continue;
      if (number == SIGUSR1 || number == SIGUSR2) {
        group.signal(number);
      } else if (stopping_) {
        group.signal(SIGKILL);  // asked twice
      } else {
        fmt::print(stderr, "sinew launch: {}; stopping {} ranks\n", ::strsignal(number),
                   group.running());
        stop(group, 128 + number, number);
      }
    }
  }

  void note_end(RankGroup& group, const Ended& end) {
    const int status = exit_status(end.status);
    ends_.push_back({{"rank", end.rank}, {"pid", end.pid}, {"exit", status}});
    one_is_fine_ |= status == 0;
    if (status == 0 || stopping_) return;
    if (first_failure_ == kFine) first_failure_ = status;
    if (wanted_.elastic) {
      fmt::print(stderr, "sinew launch: rank {} (pid {}) {}{}\n", end.rank, end.pid,
                 describe_end(end.status),
                 group.running() > 0 ? fmt::format("; {} go on", group.running()) : "");
      return;
    }
    fmt::print(stderr, "sinew launch: rank {} (pid {}) {}{}\n", end.rank, end.pid,
               describe_end(end.status), group.running() > 0 ? "; stopping the others" : "");
    stop(group, status);
  }

  void stop(RankGroup& group, int status, int number = SIGTERM) {
    if (stopping_) return;
    stopping_ = true;
    status_ = status;
    group.signal(number);
    kill_at_ = SteadyClock::now() + std::chrono::duration_cast<SteadyClock::duration>(
                                        std::chrono::duration<double>(wanted_.grace_s));
  }

  LaunchWanted wanted_;
  ProcessorBinding binding_;
  RankOutput output_;
  std::string rendezvous_, token_, port_;
  sigset_t watched_{}, mask_of_ranks_{};
  int signals_ = -1;
  bool stopping_ = false;
  int status_ = kFine, first_failure_ = kFine;
  bool one_is_fine_ = false;  // a rank came to its end
  std::optional<SteadyClock::time_point> timeout_, kill_at_;
  nlohmann::ordered_json ends_ = nlohmann::ordered_json::array();
};

}  // namespace

int run_launch(int argc, char** argv) {
  CLI::App app{
      "Starts ranks of a program on this host. Each finds its place in SINEW_RANK, "
      "SINEW_SIZE and SINEW_RENDEZVOUS, or in RANK, WORLD_SIZE, LOCAL_RANK, "
      "MASTER_ADDR, MASTER_PORT. "
      "The first rank that fails ends the others and gives its exit code.",
      "sinew launch"};
  LaunchWanted wanted;
  app.add_option("-n,--ranks", wanted.ranks, "how many ranks")->required();
  app.add_option("--bind", wanted.bind, "ranks in turn to each core, l3, numa domain; or none");
  app.add_flag("--no-label", wanted.no_label, "pass output through as it is");
  app.add_option("--timeout", wanted.timeout_s, "end all ranks after so many seconds (exit 124)");
  app.add_option("--grace", wanted.grace_s,
                 "seconds between asking ranks to end and ending them (2)");
  app.add_flag("--elastic", wanted.elastic,
               "ranks that are left go on when one fails; the exit code is 0 if one ends well");
  app.add_flag("--tls", wanted.tls, "TLS over sockets (SINEW_TLS=1)");
  app.add_flag("--json", wanted.json, "output lines and ends of ranks as JSON lines");
  app.prefix_command();
  app.footer("The program and its arguments come last: sinew launch -n 4 -- ./program -x");
  if (const auto status = parse(app, argc, argv)) return *status;

  wanted.program = app.remaining();
  if (!wanted.program.empty() && wanted.program.front() == "--")
    wanted.program.erase(wanted.program.begin());
  else if (!wanted.program.empty() && wanted.program.front().starts_with("-"))
    throw_unknown_option(app, wanted.program.front());
  if (wanted.ranks < 1)
    throw Error(Errc::invalid_argument, fmt::format("-n must be at least 1, not {}", wanted.ranks));
  if (wanted.program.empty())
    throw Error(Errc::invalid_argument, "launch what? sinew launch -n 4 -- ./program");
  if (!(wanted.timeout_s >= 0))
    throw Error(Errc::invalid_argument, "--timeout takes seconds, 0 for none");
  if (!(wanted.grace_s >= 0)) throw Error(Errc::invalid_argument, "--grace takes seconds");
  return Launch(std::move(wanted)).run();
}

}  // namespace sinew
