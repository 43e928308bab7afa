// Ranks connected by sockets alone: processes of one machine or of many.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <sinew/transport.hpp>
#include "transport/hotline.hpp"
#include "transport/rendezvous/store.hpp"
#include "transport/trust/token.hpp"

namespace sinew {

/// Knobs, equal on all ranks but for `bind`; docs/transport-tcp.md has what they do to speed.
struct TcpOptions {
  /// On one host a message is as fast as the caches it is copied through; between hosts it is as
  /// fast as the link, and every slice would wait for the link's latency.
  static constexpr std::size_t kSliceOnOneHost = std::size_t{1} << 20;
  std::string bind = "127.0.0.1";  // address or interface by which others reach this rank
  std::size_t sockbuf = 0;         // bytes of kernel buffer a connection; 0: the kernel's choice
  std::size_t chunk = std::size_t{256} << 10;  // most bytes of payload in a frame
  std::optional<std::size_t> slice;  // Transport::slice_bytes(); unset: by where ranks are
  int streams = 1;                   // connections that share a long transfer
  bool checksum = true;              // of every payload, before it is used
  bool tls = false;                  // everything sealed, with keys from the token
  std::string congestion;            // control, by name; "": the system's choice
};

struct TcpJoin {
  std::shared_ptr<Store> store;  // where addresses are exchanged; kept for subsets
  int rank = 0;
  int size = 1;
  Token token;              // what only the ranks of this job know
  std::uint32_t epoch = 0;  // membership: ranks of another epoch are strangers
  std::string group = "all";
  TcpOptions options;
  int cores = 0;  // processors all ranks together may use; 0: find out
  Check check{};  // called while others are waited for, when joining; empty: nobody knows more
  /// Connections of earlier epochs, which ranks that were given up will look at: of the last, and
  /// of those in which somebody was.
  std::shared_ptr<void> previous{};
  std::vector<std::shared_ptr<void>> kept{};
};

/// Returns when this rank is connected to all others. Throws Error{timeout} that names who is
/// missing, and Error{invalid_argument} when ranks were given different options.
std::unique_ptr<Transport> join_tcp(const TcpJoin& join, Deadline deadline);

}  // namespace sinew
