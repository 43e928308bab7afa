// Runs a whole world of schedules in one thread: the production executor of every rank, polled in a
// seeded random order, over lanes whose sends complete at once or only when they are received.
#pragma once

#include <memory>
#include <string_view>
#include <vector>

#include <sinew/schedule.hpp>
#include <sinew/transport.hpp>
#include <sinew/verify.hpp>

namespace sinew {
class LocalHub;
}

namespace sinew::test {

enum class Ending : std::uint8_t { right, wrong, stuck, failed };
std::string_view name(Ending ending);

/// Every chunk holds `chunk_elements` distinct numbers. The world must be well-formed (verify()
/// does not call it malformed); whether it is right is what run() finds out. `posts_all`: as
/// schedules are run that others wrote; those of the registry post only where somebody waits.
class SeededWorld {
 public:
  SeededWorld(const World& world, std::size_t chunk_elements, bool posts_all);
  ~SeededWorld();
  /// One run from the beginning, in an order that depends on the seed alone.
  Ending run(Sends sends, unsigned seed);

 private:
  [[nodiscard]] std::vector<std::uint64_t> expected(int rank) const;
  [[nodiscard]] bool has_output(int rank) const;

  const World& world_;
  std::size_t chunk_elements_;
  bool posts_all_;
  std::vector<std::vector<std::uint64_t>> inputs_;
  std::shared_ptr<LocalHub> hub_;  // kept from run to run while they end well
  std::vector<std::unique_ptr<Transport>> seats_;
  std::uint32_t sequence_ = 0;
};

}  // namespace sinew::test
