// The hotline over a shared segment: a lane of its own between every two ranks, and one word in
// which a conclusion stays, whoever comes to read it.
#pragma once

#include <vector>

#include "transport/hotline.hpp"
#include "transport/segment.hpp"

namespace sinew {

class SharedTransport;

class SharedHotline final : public Hotline {
 public:
  /// How the transport makes one between some of its ranks.
  using Subset = std::function<std::unique_ptr<Transport>(
      std::span<const int> members, std::string_view label, Deadline, const Check& check)>;
  SharedHotline(SharedTransport& transport, Segment& segment, const Subset& subset);

  [[nodiscard]] std::size_t longest() const noexcept override;
  bool tell(int peer, std::span<const std::byte> message) noexcept override;
  std::size_t hear(int peer, std::span<std::byte> message) noexcept override;
  bool is_gone(int peer) noexcept override;
  [[nodiscard]] std::string last_seen(int peer) const override;
  void conclude(std::uint64_t ballot) noexcept override;
  std::uint64_t concluded() noexcept override;
  void rest() noexcept override;
  std::unique_ptr<Transport> regroup(const Regroup& whom, Deadline deadline,
                                     const Check& check) override;

 private:
  SharedTransport& transport_;
  Segment& segment_;
  const Subset& subset_;
  std::vector<std::uint64_t> sent_, heard_;  // messages, by peer
};

}  // namespace sinew
