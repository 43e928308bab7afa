#include "transport/tcp/tcp_hotline.hpp"

#include <poll.h>

#include <algorithm>

namespace sinew::tcp {

std::size_t TcpHotline::hear(int peer, std::span<std::byte> message) noexcept {
  const auto notice = peers_.take_notice(peer);
  const auto bytes = std::min(notice.size(), message.size());
  std::copy_n(notice.begin(), bytes, message.begin());
  return bytes;
}

bool TcpHotline::is_gone(int peer) noexcept {
  peers_.listen();
  return peers_.is_gone(peer);
}

void TcpHotline::rest() noexcept {
  pollfd entry{peers_.descriptor(), POLLIN, 0};
  ::poll(&entry, 1, 1);
}

}  // namespace sinew::tcp
