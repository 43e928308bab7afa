// A store in a folder on a file system that all ranks see, NFS included: a key is a file that
// appears whole, so there are no locks and no server.
#pragma once

#include <string>

#include "transport/rendezvous/store.hpp"

namespace sinew {

class FileStore final : public Store {
 public:
  /// Makes the folder (for this user only) if it is not there. Each job needs one of its own.
  FileStore(std::string folder, int rank, int size);
  /// The last of `size` ranks to leave removes the folder: until then others may want to read.
  ~FileStore() override;

  void set(std::string_view key, std::string_view value) override;
  std::string get(std::string_view key, Deadline deadline) override;

  /// Whether nobody but this user can look into the folder: what is left there is a secret then.
  [[nodiscard]] bool is_private() const;

 private:
  std::string folder_;
  int rank_, size_;
};

}  // namespace sinew
