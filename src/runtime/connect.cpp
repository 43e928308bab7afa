// The edge: reads the environment, once, and joins the group that it describes.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <exception>
#include <fstream>
#include <iterator>
#include <mutex>
#include <thread>

#include <sinew/communicator.hpp>
#include "base/text.hpp"
#include "model/network_file.hpp"
#include "runtime/connect.hpp"
#include "runtime/environment.hpp"
#include "runtime/meeting.hpp"
#include "runtime/mpi_plugin.hpp"
#include "runtime/tracing.hpp"
#include "transport/local/local.hpp"
#include "transport/routed/routed.hpp"
#include "transport/shm/shm.hpp"
#include "transport/tcp/tcp.hpp"

namespace sinew {
namespace {

// What the options say, else the environment; "auto" is what fits the ranks' places.
std::string wanted_transport(const Options& options, const Environment& environment) {
  auto wanted = options.transport.empty() ? environment.transport : options.transport;
  constexpr std::array<std::string_view, 4> kKnown{"auto", "shm", "tcp", "mpi"};
  if (wanted.empty()) return "auto";
  if (std::find(kKnown.begin(), kKnown.end(), wanted) == kKnown.end())
    throw Error(Errc::invalid_argument, unknown("transport", wanted, kKnown));
  return wanted;
}

/// The ranks of this rank's host, over the memory they share.
std::unique_ptr<Transport> join_near(Meeting& meeting, std::span<const int> node_of, int rank,
                                     Deadline deadline) {
  const auto node = node_of[static_cast<std::size_t>(rank)];
  ShmJoin join;
  join.rendezvous = meeting.shm_name();
  join.rank = static_cast<int>(std::count(node_of.begin(), node_of.begin() + rank, node));
  join.size = static_cast<int>(std::count(node_of.begin(), node_of.end(), node));
  return join_shm(join, deadline);
}

std::unique_ptr<Transport> join_far(Meeting& meeting, const Environment& environment, bool tls,
                                    Deadline deadline) {
  TcpJoin join;
  join.store = meeting.store();
  join.rank = environment.rank;
  join.size = environment.size;
  join.token = meeting.token();
  join.options.bind = meeting.own_address();
  join.options.tls = tls;
  return join_tcp(join, deadline);
}

/// The one place that knows which transport serves which ranks.
std::unique_ptr<Transport> join_at(Meeting& meeting, const std::string& wanted,
                                   const Environment& environment, const Options& options,
                                   Deadline deadline) {
  const bool tls = options.tls || environment.tls;
  if (wanted == "tcp") return join_far(meeting, environment, tls, deadline);
  auto node_of = meeting.node_of();
  const bool one_host = std::count(node_of.begin(), node_of.end(), 0) == environment.size;
  if (wanted == "shm" && !one_host)
    throw Error(Errc::invalid_argument,
                fmt::format("the {} ranks are on several hosts, which share no memory: leave the "
                            "transport to sinew (auto), or ask for tcp",
                            environment.size));
  auto near = join_near(meeting, node_of, environment.rank, deadline);
  if (one_host) return near;
  return route(
      {join_far(meeting, environment, tls, deadline), std::move(near), std::move(node_of)});
}

std::unique_ptr<Transport> join(const std::string& wanted, const Environment& environment,
                                const Options& options, Deadline deadline) {
  const bool alone = environment.size == 1 && environment.rendezvous.empty();
  if (alone && wanted == "auto") return LocalHub::make(1)->join(0);
  Meeting meeting(environment, deadline, options.warn);
  return join_at(meeting, wanted, environment, options, deadline);
}

std::string read_model(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  std::string text((std::istreambuf_iterator<char>(file)), std::istreambuf_iterator<char>());
  if (!file)
    throw Error(Errc::invalid_argument,
                fmt::format("SINEW_MODEL={}: cannot be read; it names a network model that all "
                            "ranks can open, as `sinew calibrate -o net.toml` writes it",
                            path));
  parse_network(text, path);  // says which line of which file is wrong, while that is known
  return text;
}

}  // namespace

Options with_environment(Options options) {
  const auto environment = read_environment(process_environment());
  if (options.model.empty() && !environment.model.empty())
    options.model = read_model(environment.model);
  if (options.trial_calls == -1) options.trial_calls = environment.trial_calls;
  return options;
}

std::unique_ptr<Transport> join_by_store(std::shared_ptr<Store> store, int rank, int size,
                                         const Options& options) {
  auto environment = read_environment(process_environment());
  // Where all ranks of the job are on this host, those of a part of it are too.
  environment.local_size = environment.is_one_host() && environment.size >= size ? size : 0;
  environment.local_rank = -1;
  environment.rank = rank;
  environment.size = size;
  environment.rendezvous.clear();
  const auto wanted = wanted_transport(options, environment);
  if (size == 1 && wanted == "auto") return LocalHub::make(1)->join(0);
  if (wanted == "mpi")
    throw Error(Errc::unsupported,
                "the transport mpi joins all ranks of an MPI job, and not a group that meets "
                "elsewhere: leave the transport to sinew (auto), or ask for tcp");
  const auto deadline = Clock::now() + options.timeout;
  Meeting meeting(environment, std::move(store), deadline);
  return join_at(meeting, wanted, environment, options, deadline);
}

Communicator connect(const Options& options) {
  const auto variables = process_environment();
  const auto environment = read_environment(variables);
  const auto wanted = wanted_transport(options, environment);
  const auto deadline = Clock::now() + options.timeout;
  auto traced = with_environment(options);
  if (!environment.trace.empty() && traced.observer == nullptr)
    traced.observer = trace_to(environment.trace, environment.rank, environment.size);
  if (wanted == "mpi") {
    if (options.tls || environment.tls)
      throw Error(Errc::unsupported,
                  "TLS is for sockets, and what an MPI sends is not sealed: leave TLS out, or use "
                  "the transport tcp");
    return Communicator(join_mpi("", variables, deadline), traced);
  }
  return Communicator(join(wanted, environment, options, deadline), traced);
}

void run_local(int size, const std::function<void(Communicator&)>& body, const Options& options) {
  const auto hub = LocalHub::make(size);
  std::mutex mutex;
  std::exception_ptr first;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        Communicator communicator(hub->join(rank), options);
        body(communicator);
      } catch (...) {
        const std::scoped_lock lock(mutex);
        if (!first) first = std::current_exception();
      }
    });
  for (auto& thread : threads) thread.join();
  if (first) std::rethrow_exception(first);
}

}  // namespace sinew
