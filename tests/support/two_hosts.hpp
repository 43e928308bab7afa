// Two hosts on one machine: network namespaces joined by a cable that can be cut.
#pragma once

#include <sys/types.h>

#include <string>

namespace sinew::test {

/// Only inside in_own_place(), whose network is host 0. Needs `ip`, for cutting also `nft`.
class TwoHosts {
 public:
  TwoHosts();
  TwoHosts(const TwoHosts&) = delete;
  TwoHosts& operator=(const TwoHosts&) = delete;
  ~TwoHosts();

  /// Why there are no two hosts here; "": there are.
  [[nodiscard]] const std::string& missing() const noexcept { return missing_; }
  /// From now on the calling process is on that host.
  void enter(int host) const;
  [[nodiscard]] static std::string address(int host);
  /// Every packet between them is dropped, without a word to either. Returns what is missing, or
  /// "".
  static std::string cut();

 private:
  pid_t holder_ = -1;  // a process on host 1, which is there as long as somebody is
  std::string missing_;
};

}  // namespace sinew::test
