// torch's store as the place where ranks of a group meet.
#pragma once

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "transport/rendezvous/store.hpp"

namespace sinew {

class TorchStore final : public Store {
 public:
  explicit TorchStore(c10::intrusive_ptr<c10d::Store> store) : store_(std::move(store)) {}
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;

 private:
  c10::intrusive_ptr<c10d::Store> store_;
};

}  // namespace sinew
