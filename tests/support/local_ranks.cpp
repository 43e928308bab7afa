#include "support/local_ranks.hpp"

#include <thread>

#include "transport/local/local.hpp"

namespace sinew::test {

std::vector<std::optional<Error>> try_local(int size,
                                            const std::function<void(Communicator&)>& body,
                                            const LocalSetup& setup) {
  const auto hub = LocalHub::make(size, setup.segment, setup.cores, setup.domains);
  std::vector<std::optional<Error>> errors(static_cast<std::size_t>(size));
  std::vector<std::thread> threads;
  for (int rank = 0; rank < size; ++rank)
    threads.emplace_back([&, rank] {
      try {
        auto transport = hub->join(rank);
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
