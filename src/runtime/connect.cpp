// The edge where the environment is read, once.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <exception>
#include <mutex>
#include <thread>

#include <sinew/communicator.hpp>
#include "base/text.hpp"
#include "runtime/mpi_plugin.hpp"
#include "transport/local/local.hpp"
#include "transport/shm/shm.hpp"

namespace sinew {
namespace {

/// Everything Sinew takes from the environment; docs/environment.md lists it.
struct Environment {
  int rank = 0;
  int size = 1;
  std::string rendezvous;
};

int number(const char* variable, const char* text) {
  int value = 0;
  const std::string_view word(text);
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size())
    throw Error(Errc::invalid_argument, fmt::format("{}='{}' is not a number", variable, text));
  return value;
}

Environment read_environment() {
  Environment environment;
  const char* rank = std::getenv("SINEW_RANK");
  const char* size = std::getenv("SINEW_SIZE");
  const char* rendezvous = std::getenv("SINEW_RENDEZVOUS");
  if (rank == nullptr && size == nullptr) return environment;
  if (rank == nullptr || size == nullptr || rendezvous == nullptr)
    throw Error(Errc::invalid_argument,
                "SINEW_RANK, SINEW_SIZE and SINEW_RENDEZVOUS belong together; start ranks with "
                "`sinew launch -n N program`");
  environment.rank = number("SINEW_RANK", rank);
  environment.size = number("SINEW_SIZE", size);
  environment.rendezvous = rendezvous;
  return environment;
}

// What the options say, else the environment; "" is what fits the ranks' places.
std::string wanted_transport(const Options& options) {
  const char* variable = std::getenv("SINEW_TRANSPORT");
  std::string wanted = options.transport;
  if (wanted.empty() && variable != nullptr) wanted = variable;
  constexpr std::array<std::string_view, 2> kKnown{"shm", "mpi"};
  if (!wanted.empty() && std::find(kKnown.begin(), kKnown.end(), wanted) == kKnown.end())
    throw Error(Errc::invalid_argument, unknown("transport", wanted, kKnown));
  return wanted;
}

}  // namespace

Communicator connect(const Options& options) {
  if (wanted_transport(options) == "mpi")
    return Communicator(join_mpi("", std::getenv, Clock::now() + options.timeout), options);
  const auto environment = read_environment();
  if (environment.size == 1 && environment.rendezvous.empty())
    return Communicator(LocalHub::make(1)->join(0), options);
  ShmJoin join;
  join.rendezvous = environment.rendezvous;
  join.rank = environment.rank;
  join.size = environment.size;
  return Communicator(join_shm(join, Clock::now() + options.timeout), options);
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
