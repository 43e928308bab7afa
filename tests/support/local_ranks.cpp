#include "support/local_ranks.hpp"

#include <thread>

#include "support/shared_store.hpp"
#include "transport/local/local.hpp"
#include "transport/tcp/tcp.hpp"

namespace sinew::test {
namespace {

using Joiner = std::function<std::unique_ptr<Transport>(int rank)>;

Joiner joiner_for(int size, const LocalSetup& setup) {
  if (!setup.tcp)
    return [hub = LocalHub::make(size, setup.segment, setup.cores, setup.domains)](int rank) {
      return hub->join(rank);
    };
  return [store = std::make_shared<SharedStore>(), size, cores = setup.cores,
          tls = setup.tls](int rank) {
    TcpJoin join;
    join.options.tls = tls;
    join.store = store;
    join.rank = rank;
    join.size = size;
    join.cores = cores;
    return join_tcp(join, Clock::now() + std::chrono::seconds(20));
  };
}

}  // namespace

std::vector<std::optional<Error>> try_local(int size,
                                            const std::function<void(Communicator&)>& body,
                                            const LocalSetup& setup) {
  const auto join = joiner_for(size, setup);
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        auto transport = join(rank);
        if (setup.decorate) transport = setup.decorate(std::move(transport));
        Communicator communicator(std::move(transport), setup.options);
        body(communicator);
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error;
      } catch (const std::exception& error) {
        errors[static_cast<std::size_t>(rank)] = Error(Errc::system, error.what());
      }
    });
  for (auto& thread : threads) thread.join();
  return errors;
}

void on_local(int size, const std::function<void(Communicator&)>& body, const LocalSetup& setup) {
  for (const auto& error : try_local(size, body, setup))
    if (error) throw *error;
}

std::string Complaints::text() const {
  std::string text;
  for (const auto& rank : by_rank_)
    for (std::size_t i = 0; i < rank.size() && i < 3; ++i) text += rank[i] + "\n";
  return text;
}

}  // namespace sinew::test
