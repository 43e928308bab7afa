// By what algorithms are chosen: shipped figures, a model that was given, and what ranks do that
// were given different ones.
#include "runtime/surroundings.hpp"

#include <gtest/gtest.h>

#include <mutex>
#include <set>
#include <thread>

#include <sinew/communicator.hpp>
#include "model/defaults.hpp"
#include "model/network_file.hpp"
#include "transport/local/local.hpp"

namespace sinew {
namespace {

Call allreduce_of(std::size_t count) {
  return {.collective = Collective::allreduce, .count = count};
}

// Shared memory in which nobody notices what others publish.
Options slow_board() {
  auto network = default_network(Medium::memory);
  network.board->wait_ps = 1e12;
  network.provenance.transport = "shm";
  network.provenance.ranks = 2;
  return {.timeout = std::chrono::seconds(20), .model = to_toml(network)};
}

std::string chosen(const Options& options, std::size_t count) {
  const auto hub = LocalHub::make(2);
  return std::string(
      Communicator(hub->join(0), options).explain(allreduce_of(count)).front().algorithm);
}

TEST(Surroundings, a_model_changes_the_choice) {
  EXPECT_EQ(chosen({}, 2), "flat");
  EXPECT_EQ(chosen(slow_board(), 2), "recursive_doubling");
}

TEST(Surroundings, a_model_of_another_medium_is_left_alone) {
  auto sockets = default_network(Medium::sockets);
  sockets.provenance.transport = "tcp";
  const auto hub = LocalHub::make(2);
  const auto transport = hub->join(0);
  const auto around = surroundings_of(*transport, {.model = to_toml(sockets)});
  EXPECT_EQ(around.network.name, default_network(Medium::memory).name);
  EXPECT_GT(around.network.board->slot_bytes, 0);
}

TEST(Surroundings, a_model_that_is_wrong_is_refused_with_its_line) {
  const auto hub = LocalHub::make(2);
  const auto transport = hub->join(0);
  const auto refused = [&](const std::string& text) -> std::string {
    try {
      surroundings_of(*transport, {.model = text});
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      return error.what();
    }
    return "accepted";
  };
  EXPECT_NE(refused("format = \"sinew-net\"\nversion = 1\n[link]\none_way = [{ alpha_us = -1, "
                    "gbytes_per_s = 1 }]\n")
                .find("4"),
            std::string::npos);
  EXPECT_NE(refused("hello").find("model"), std::string::npos);
}

TEST(Surroundings, all_ranks_choose_alike_and_explain_alike) {
  for (const int size : {2, 3, 8}) {
    std::mutex mutex;
    std::set<std::string> answers;
    run_local(size, [&](Communicator& c) {
      std::string text;
      for (const auto collective : {Collective::allreduce, Collective::broadcast,
                                    Collective::alltoall, Collective::reduce_scatter})
        for (const std::size_t count : {2U, 1000U, 300000U})
          for (const auto& one : c.explain({.collective = collective, .count = count}))
            text += std::string(one.algorithm) + " " + std::to_string(one.predicted_us) + "\n";
      const std::lock_guard lock(mutex);
      answers.insert(text);
    });
    EXPECT_EQ(answers.size(), 1U) << size;
  }
}

TEST(Surroundings, ranks_with_different_models_get_an_error_that_names_both) {
  const auto hub = LocalHub::make(2);
  std::vector<std::string> errors(2);
  std::vector<std::thread> threads;
  for (int rank = 0; rank < 2; ++rank)
    threads.emplace_back([&, rank] {
      Communicator c(hub->join(rank),
                     rank == 0 ? slow_board() : Options{.timeout = std::chrono::seconds(20)});
      std::vector<float> data(2);
      try {
        c.allreduce(std::span<float>(data));
        c.barrier();
      } catch (const Error& error) {
        errors[static_cast<std::size_t>(rank)] = error.what();
      }
    });
  for (auto& thread : threads) thread.join();
  for (const auto& error : errors) {
    EXPECT_NE(error.find("flat"), std::string::npos) << error;
    EXPECT_NE(error.find("recursive_doubling"), std::string::npos) << error;
  }
}

}  // namespace
}  // namespace sinew
