// A store in memory, for ranks that are threads of this process or its forked children.
#pragma once

#include "transport/rendezvous/store.hpp"

namespace sinew::test {

class SharedStore final : public Store {
 public:
  SharedStore();
  ~SharedStore() override;
  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;

 private:
  struct Table;
  Table* table_;
};

}  // namespace sinew::test
