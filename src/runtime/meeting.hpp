// Where the ranks of this process's group meet, and the secret they share: from what the user said,
// else from what the launcher gives. Decides; joining is the transports' work.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/transport.hpp>
#include "runtime/environment.hpp"
#include "transport/rendezvous/address.hpp"
#include "transport/rendezvous/store.hpp"
#include "transport/rendezvous/store_server.hpp"
#include "transport/trust/token.hpp"

namespace sinew {

class Meeting {
 public:
  using Warn = std::function<void(std::string_view)>;
  /// Throws Error{invalid_argument} that says what to set when the environment is not enough.
  Meeting(const Environment& environment, Deadline deadline, Warn warn = {});
  /// Where somebody else has brought the ranks together already: they meet in `store`, where
  /// rank 0 leaves a secret, which counts beside the environment's.
  Meeting(const Environment& environment, std::shared_ptr<Store> store, Deadline deadline);

  /// The host of each rank, where those of one host can share memory: as the launcher says, else as
  /// ranks find out by the store. Equal on all ranks.
  std::vector<int> node_of();
  /// Where processes of one host meet.
  std::string shm_name();
  /// Opened when it is first asked for; rank 0's serves the others as long as it is kept.
  std::shared_ptr<Store> store();
  const Token& token();
  /// The address of this host where other ranks should connect to this one.
  std::string own_address();

 private:
  void decide();
  void take_rendezvous();
  void meet_on_one_host(const std::string& job);
  void share_by_launcher();
  [[nodiscard]] bool read_token();
  [[noreturn]] void lacks_token() const;
  [[noreturn]] void lacks_meeting() const;
  std::shared_ptr<Store> open_store();
  [[nodiscard]] std::shared_ptr<StoreServer> serve(const Address& address);

  Environment environment_;
  Deadline deadline_;
  Warn warn_;
  Address address_;
  std::optional<Token> token_;           // made when it is first needed, where nobody gave one
  std::shared_ptr<StoreServer> server_;  // rank 0's, where it had to be there early
  std::shared_ptr<Store> store_;
};

}  // namespace sinew
