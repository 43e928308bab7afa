#include "transport/trust/handshake.hpp"

#include <poll.h>
#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <exception>

#include "transport/trust/conversation.hpp"

namespace sinew {

using Turn = Conversation::Turn;

struct Handshake::State {
  int descriptor;
  Conversation conversation;
};

Handshake::Handshake(int descriptor, Role role, const Token& token, const Hello& mine, Judge judge)
    : state_(new State{descriptor, {role, token, mine, std::move(judge)}}) {}
Handshake::~Handshake() = default;

// One read or write; false when the socket has no more to give or take.
static bool move_some(int descriptor, Conversation& conversation) {
  ssize_t bytes = 0;
  if (conversation.turn() == Turn::write) {
    const auto words = conversation.words();
    bytes = ::send(descriptor, words.data(), words.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (bytes > 0) conversation.sent(static_cast<std::size_t>(bytes));
  } else {
    const auto room = conversation.room();
    bytes = ::recv(descriptor, room.data(), room.size(), MSG_DONTWAIT);
    if (bytes > 0) conversation.took(static_cast<std::size_t>(bytes));
    if (bytes == 0) conversation.lost("closed the connection");
  }
  if (bytes >= 0 || errno == EINTR) return true;
  if (errno == EAGAIN || errno == EWOULDBLOCK) return false;
  conversation.lost(errno == ECONNRESET || errno == EPIPE ? "closed the connection"
                                                          : std::strerror(errno));
  return true;
}

Progress Handshake::poll() noexcept {
  auto& conversation = state_->conversation;
  try {
    while (conversation.turn() == Turn::read || conversation.turn() == Turn::write)
      if (!move_some(state_->descriptor, conversation)) return Progress::pending;
  } catch (const std::exception& error) {
    conversation.lost(error.what());
  }
  return conversation.turn() == Turn::done ? Progress::done : Progress::failed;
}

bool Handshake::wants_write() const noexcept { return state_->conversation.turn() == Turn::write; }

Progress Handshake::wait(Deadline deadline) noexcept {
  while (true) {
    if (const auto progress = poll(); progress != Progress::pending) return progress;
    const auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()).count();
    if (left <= 0) {
      state_->conversation.lost("fell silent");
      return Progress::failed;
    }
    pollfd entry{state_->descriptor, static_cast<short>(wants_write() ? POLLOUT : POLLIN), 0};
    ::poll(&entry, 1, static_cast<int>(std::min<decltype(left)>(left, 60'000)));
  }
}

const Hello& Handshake::theirs() const noexcept { return state_->conversation.theirs(); }
Token Handshake::secret() const { return state_->conversation.secret(); }
const std::string& Handshake::why() const noexcept { return state_->conversation.why(); }
bool Handshake::hung_up() const noexcept { return state_->conversation.hung_up(); }

}  // namespace sinew
