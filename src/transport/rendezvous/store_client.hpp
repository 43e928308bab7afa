// A store that another process serves (store_server.hpp).
#pragma once

#include "transport/rendezvous/address.hpp"
#include "transport/rendezvous/socket.hpp"
#include "transport/rendezvous/store.hpp"
#include "transport/rendezvous/store_frame.hpp"
#include "transport/trust/hello.hpp"
#include "transport/trust/token.hpp"

namespace sinew {

class StoreClient final : public Store {
 public:
  /// Who `me` is: rank, size, epoch. Waits for the server to be there. Throws Error that names the
  /// address and what is wrong.
  StoreClient(Address address, const Token& token, Hello me, Deadline deadline);
  ~StoreClient() override;

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;

 private:
  StoreFrame ask(const StoreFrame& request, Deadline deadline);
  void send(std::string_view text, Deadline deadline);
  [[noreturn]] void lose(std::string_view how);

  Address address_;
  int rank_;
  Socket socket_;
};

}  // namespace sinew
