// A store among ranks that are connected already: words go over their control connections, so that
// a part of a group can connect without whoever served the store in the beginning.
#pragma once

#include <memory>
#include <vector>

#include "transport/hotline.hpp"
#include "transport/rendezvous/store.hpp"
#include "transport/tcp/peers.hpp"

namespace sinew::tcp {

class Relay final : public Store {
 public:
  /// `members` of the group that the control connections are of. `check` is called while waiting.
  Relay(std::shared_ptr<Peers> peers, int rank, std::vector<int> members, Check check);
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;

 private:
  std::shared_ptr<Peers> peers_;
  int rank_;
  std::vector<int> members_;
  Check check_;
};

}  // namespace sinew::tcp
