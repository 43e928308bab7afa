#include "runtime/meeting.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <fstream>
#include <map>

#include <sinew/error.hpp>
#include "transport/rendezvous/file_store.hpp"
#include "transport/rendezvous/pmi.hpp"
#include "transport/rendezvous/pmix.hpp"
#include "transport/rendezvous/store_client.hpp"
#include "transport/tcp/interface.hpp"
#include "transport/trust/user_secret.hpp"

namespace sinew {
namespace {

constexpr auto kMakeToken = "SINEW_TOKEN=$(openssl rand -hex 32)";

Token read_token_file(const std::string& path) {
  const Socket file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("SINEW_TOKEN_FILE={} cannot be read: {}", path, std::strerror(errno)));
  if ((info.st_mode & 077) != 0)
    throw Error(Errc::invalid_argument,
                fmt::format("SINEW_TOKEN_FILE={} can be read by others: chmod 600 it", path));
  std::array<char, 128> text{};
  const auto bytes = ::read(file.get(), text.data(), text.size());
  std::string_view word(text.data(), static_cast<std::size_t>(std::max<ssize_t>(0, bytes)));
  while (!word.empty() && (word.back() == '\n' || word.back() == ' ')) word.remove_suffix(1);
  return Token::parse(word);
}

bool is_loopback(const Address& address) {
  return address.place.starts_with("127.") || address.place == "::1" ||
         address.place == "localhost";
}

// Processes can share memory and watch each other when all of these are equal.
std::string host_identity() {
  std::string boot;
  std::getline(std::ifstream("/proc/sys/kernel/random/boot_id"), boot);
  std::string identity = boot;
  for (const auto* space : {"net", "pid"}) {
    struct stat info {};
    ::stat(fmt::format("/proc/self/ns/{}", space).c_str(), &info);
    identity += fmt::format(" {}", info.st_ino);
  }
  return identity;
}

/// Rank 0's store together with the server that it speaks to, which goes last.
struct HostedStore {
  std::shared_ptr<StoreServer> server;
  StoreClient client;
};

}  // namespace

Meeting::Meeting(const Environment& environment, Deadline deadline, Warn warn)
    : environment_(environment), deadline_(deadline), warn_(std::move(warn)) {
  if (environment_.job.empty() && environment_.pmi_descriptor >= 0)
    environment_.job = pmi_manager(environment_.pmi_descriptor);
  decide();
}

Meeting::Meeting(const Environment& environment, std::shared_ptr<Store> store, Deadline deadline)
    : environment_(environment),
      deadline_(deadline),
      address_{Address::Kind::tcp, "", 0},
      store_(std::move(store)) {
  if (environment_.rank == 0) store_->set("token", Token::make().hex());
  const auto group = store_->get("token", deadline_);
  // Several groups of one job share its secret, but must not take each other's places.
  token_ = read_token() ? derive(*token_, "group " + group) : Token::parse(group);
}

void Meeting::decide() {
  if (!environment_.rendezvous.empty()) return take_rendezvous();
  if (environment_.is_one_host() && !environment_.job.empty())
    return meet_on_one_host(environment_.job);
  if (!environment_.meeting.empty() && read_token()) {
    address_ = Address::parse(environment_.meeting);
    return;
  }
  if (environment_.has_pmix || environment_.pmi_descriptor >= 0) return share_by_launcher();
  if (environment_.size == 1) return meet_on_one_host(Token::make().hex());  // whom nobody seeks
  if (!environment_.meeting.empty()) lacks_token();
  lacks_meeting();
}

void Meeting::take_rendezvous() {
  address_ = Address::parse(environment_.rendezvous);
  if (read_token() || address_.kind == Address::Kind::name || is_loopback(address_)) return;
  if (address_.kind != Address::Kind::file) lacks_token();
  const auto folder =
      std::make_shared<FileStore>(address_.place, environment_.rank, environment_.size);
  if (!folder->is_private())
    throw Error(
        Errc::invalid_argument,
        fmt::format("others can look into {}: chmod 700 it, or give ranks a secret of their "
                    "own ({})",
                    address_.place, kMakeToken));
  if (environment_.rank == 0) folder->set("token", Token::make().hex());
  token_ = Token::parse(folder->get("token", deadline_));
  store_ = folder;
}

void Meeting::meet_on_one_host(const std::string& job) {
  const auto secret = user_secret(environment_.runtime_folder);
  address_.kind = Address::Kind::name;
  address_.place = "sinew-" + derive(secret, "meeting " + job).hex().substr(0, 32);
  (void)read_token();
}

// Rank 0 opens the store wherever there is a port, and the launcher tells the others where.
void Meeting::share_by_launcher() {
  std::string text;
  if (environment_.rank == 0) {
    if (!read_token()) token_ = Token::make();
    server_ = serve({Address::Kind::tcp, own_address(), 0});
    text = fmt::format("{},{}", to_string(server_->address()), token().hex());
  }
  text = environment_.has_pmix
             ? share_by_pmix(environment_.rank, text, deadline_)
             : share_by_pmi(environment_.pmi_descriptor, environment_.rank, text, deadline_);
  const auto comma = text.find(',');
  address_ = Address::parse(text.substr(0, comma));
  token_ = Token::parse(comma == std::string::npos ? "" : text.substr(comma + 1));
}

bool Meeting::read_token() {
  if (environment_.token.empty() && environment_.token_file.empty()) return false;
  token_ = environment_.token.empty() ? read_token_file(environment_.token_file)
                                      : Token::parse(environment_.token);
  return true;
}

void Meeting::lacks_token() const {
  throw Error(
      Errc::invalid_argument,
      fmt::format("{} ranks meet at {}, but have no secret to know each other by: export {} "
                  "where the job is started, so that all ranks get it (or SINEW_TOKEN_FILE)",
                  environment_.size,
                  environment_.rendezvous.empty() ? environment_.meeting : environment_.rendezvous,
                  kMakeToken));
}

void Meeting::lacks_meeting() const {
  throw Error(Errc::invalid_argument,
              fmt::format("{} says that this is rank {} of {}, but not where ranks meet: set "
                          "SINEW_RENDEZVOUS=tcp://HOST_OF_RANK_0:PORT and {}, or "
                          "SINEW_RENDEZVOUS=file:///FOLDER on a file system that all hosts see; "
                          "`sinew launch -n N program` needs none of it on one host",
                          environment_.launcher, environment_.rank, environment_.size, kMakeToken));
}

const Token& Meeting::token() {
  // Whoever can reach the place is on this host, and shares this user's secret if it belongs.
  if (!token_)
    token_ = derive(user_secret(environment_.runtime_folder), "token " + to_string(address_));
  return *token_;
}

std::string Meeting::shm_name() {
  if (address_.kind == Address::Kind::name) return address_.place;
  return "sinew-" + derive(token(), "shm").hex().substr(0, 32);
}

std::string Meeting::own_address() {
  const bool others =
      !environment_.is_one_host() && address_.kind != Address::Kind::name && !is_loopback(address_);
  if (environment_.interfaces.empty() && others && address_.kind == Address::Kind::tcp &&
      !address_.place.empty()) {
    // The way to the store is the way to the others, unless it is this host itself.
    auto toward = address_toward(address_);
    if (!toward.empty() && !is_loopback({Address::Kind::tcp, toward, 0})) return toward;
  }
  return choose_address(list_interfaces(), environment_.interfaces, others);
}

std::shared_ptr<StoreServer> Meeting::serve(const Address& address) {
  StoreServer::Options options;
  options.size = environment_.size;
  options.warn = warn_;
  return std::make_shared<StoreServer>(address, token(), options);
}

std::shared_ptr<Store> Meeting::store() {
  if (!store_) store_ = open_store();
  return store_;
}

std::shared_ptr<Store> Meeting::open_store() {
  const int rank = environment_.rank, size = environment_.size;
  if (address_.kind == Address::Kind::file)
    return std::make_shared<FileStore>(address_.place, rank, size);
  auto address = address_;
  if (address.kind == Address::Kind::name) address.place += "/store";
  const Hello me{.rank = rank, .size = size};
  if (rank != 0) return std::make_shared<StoreClient>(address, token(), me, deadline_);
  if (!server_) server_ = serve(address);
  auto hosted = std::shared_ptr<HostedStore>(
      new HostedStore{server_, StoreClient(server_->address(), token(), me, deadline_)});
  return {hosted, &hosted->client};
}

std::vector<int> Meeting::node_of() {
  std::vector<int> nodes(static_cast<std::size_t>(environment_.size), 0);
  if (address_.kind == Address::Kind::name || environment_.is_one_host()) return nodes;
  const auto all = store();
  all->set(fmt::format("host/{}", environment_.rank), host_identity());
  std::map<std::string, int> numbers;  // in the order of each host's first rank
  for (int rank = 0; rank < environment_.size; ++rank) {
    const auto host = all->get(fmt::format("host/{}", rank), deadline_);
    nodes[static_cast<std::size_t>(rank)] =
        numbers.emplace(host, static_cast<int>(numbers.size())).first->second;
  }
  return nodes;
}

}  // namespace sinew
