#include "transport/trust/tls.hpp"

#include <fmt/format.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <sys/socket.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>

#include <sinew/error.hpp>
#include "transport/trust/proof.hpp"

namespace sinew {
namespace {

constexpr std::size_t kReadAhead = std::size_t{128} << 10;  // bytes a read may take from the socket
constexpr std::string_view kIdentity = "sinew";             // keys belong to connections, not names
constexpr std::array<unsigned char, 2> kCipher{0x13, 0x01};  // TLS_AES_128_GCM_SHA256

template <class T>
T* required(T* made) {
  if (made == nullptr) throw Error(Errc::system, "OpenSSL offers no TLS 1.3 with shared keys");
  return made;
}
void require(bool fine) { required(fine ? &kIdentity : nullptr); }

// OpenSSL's own sockets raise SIGPIPE, which is not for a library to catch.
int write_socket(BIO* bio, const char* data, int bytes) {
  BIO_clear_retry_flags(bio);
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const auto sent =
      ::send(descriptor, data, static_cast<std::size_t>(bytes), MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent < 0 && (errno == EAGAIN || errno == EINTR || errno == ENOBUFS)) BIO_set_retry_write(bio);
  return static_cast<int>(sent);
}

int read_socket(BIO* bio, char* room, int bytes) {
  BIO_clear_retry_flags(bio);
  const auto descriptor = static_cast<int>(reinterpret_cast<std::intptr_t>(BIO_get_data(bio)));
  const auto got = ::recv(descriptor, room, static_cast<std::size_t>(bytes), MSG_DONTWAIT);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) BIO_set_retry_read(bio);
  return static_cast<int>(got);
}

long control_socket(BIO*, int command, long, void*) { return command == BIO_CTRL_FLUSH ? 1 : 0; }

/// The key, as OpenSSL takes it. It takes over what this returns.
SSL_SESSION* session_of(SSL* ssl) {
  const auto& key = *static_cast<const Token*>(SSL_get_app_data(ssl));
  SSL_SESSION* session = SSL_SESSION_new();
  const auto* cipher = SSL_CIPHER_find(ssl, kCipher.data());
  const auto* bytes = reinterpret_cast<const unsigned char*>(key.bytes.data());
  if (session != nullptr && cipher != nullptr &&
      SSL_SESSION_set1_master_key(session, bytes, key.bytes.size()) == 1 &&
      SSL_SESSION_set_cipher(session, cipher) == 1 &&
      SSL_SESSION_set_protocol_version(session, TLS1_3_VERSION) == 1)
    return session;
  SSL_SESSION_free(session);
  return nullptr;
}

int offer_key(SSL* ssl, const EVP_MD*, const unsigned char** identity, std::size_t* length,
              SSL_SESSION** session) {
  *identity = reinterpret_cast<const unsigned char*>(kIdentity.data());
  *length = kIdentity.size();
  *session = session_of(ssl);
  return *session != nullptr ? 1 : 0;
}

int find_key(SSL* ssl, const unsigned char* identity, std::size_t length, SSL_SESSION** session) {
  const std::string_view theirs(reinterpret_cast<const char*>(identity), length);
  *session = theirs == kIdentity ? session_of(ssl) : nullptr;
  return 1;
}

}  // namespace

struct TlsContext::State {
  SSL_CTX* context = nullptr;
  BIO_METHOD* socket = nullptr;
  ~State() {
    SSL_CTX_free(context);
    BIO_meth_free(socket);
  }
};

TlsContext::TlsContext() {
  const auto state = std::make_shared<State>();
  state_ = state;
  auto* context = state->context = required(SSL_CTX_new(TLS_method()));
  require(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1 &&
          SSL_CTX_set_ciphersuites(context, "TLS_AES_128_GCM_SHA256") == 1);
  SSL_CTX_set_psk_use_session_callback(context, offer_key);
  SSL_CTX_set_psk_find_session_callback(context, find_key);
  SSL_CTX_set_num_tickets(context, 0);  // nobody comes back
  SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
  SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER);
  SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
  // Whether a connection may end is said in frames: goodbye.
  SSL_CTX_set_options(context, SSL_OP_IGNORE_UNEXPECTED_EOF);
  auto* socket = state->socket = required(BIO_meth_new(BIO_TYPE_SOURCE_SINK, "sinew socket"));
  require(BIO_meth_set_write(socket, write_socket) == 1 &&
          BIO_meth_set_read(socket, read_socket) == 1 &&
          BIO_meth_set_ctrl(socket, control_socket) == 1);
}

struct Tls::State {
  std::shared_ptr<const TlsContext::State> context;  // outlives what was made from it
  SSL* ssl = nullptr;
  Token key;
  std::uint64_t records_per_key;
  std::uint64_t records = 0;  // sent under this key
  bool in_record = false;     // half a record is out: its rest comes first
  unsigned long fault = 0;    // of OpenSSL
  int error = 0;              // of the socket
  bool over = false, closed = false;

  State(std::shared_ptr<const TlsContext::State> of, const Token& with, std::uint64_t most)
      : context(std::move(of)), key(with), records_per_key(most) {}
  ~State() {
    SSL_free(ssl);
    forget(key.bytes);
  }
  State(const State&) = delete;
  State& operator=(const State&) = delete;

  /// Whether the last call could not go on only for now.
  bool waits(int result) noexcept {
    const int socket_error = errno;
    const int reason = SSL_get_error(ssl, result);
    if (reason == SSL_ERROR_WANT_READ || reason == SSL_ERROR_WANT_WRITE) return true;
    over = true;
    fault = ERR_peek_error();
    closed = reason == SSL_ERROR_ZERO_RETURN || (fault == 0 && socket_error == 0);
    if (reason == SSL_ERROR_SYSCALL && fault == 0) error = socket_error;
    ERR_clear_error();
    return false;
  }
};

Tls::Tls(const TlsContext& context, int descriptor, HandshakeRole role, const Token& key,
         std::uint64_t records_per_key)
    : state_(new State(context.state_, key, records_per_key)) {
  SSL* ssl = state_->ssl = required(SSL_new(context.state_->context));
  SSL_set_app_data(ssl, &state_->key);
  BIO* bio = required(BIO_new(context.state_->socket));
  BIO_set_data(bio, reinterpret_cast<void*>(static_cast<std::intptr_t>(descriptor)));
  BIO_set_init(bio, 1);
  SSL_set_bio(ssl, bio, bio);
  role == HandshakeRole::connects ? SSL_set_connect_state(ssl) : SSL_set_accept_state(ssl);
}
Tls::~Tls() = default;

Progress Tls::poll() noexcept {
  if (state_->over) return Progress::failed;
  ERR_clear_error();
  errno = 0;
  const int result = SSL_do_handshake(state_->ssl);
  if (result != 1) return state_->waits(result) ? Progress::pending : Progress::failed;
  forget(state_->key.bytes);
  // From here on, fewer and larger reads; before, the rest would be out of poll()'s sight.
  SSL_set_read_ahead(state_->ssl, 1);
  SSL_set_default_read_buffer_len(state_->ssl, kReadAhead);
  return Progress::done;
}

bool Tls::wants_write() const noexcept { return SSL_want_write(state_->ssl) != 0; }

std::ptrdiff_t Tls::write(std::span<const std::byte> data) noexcept {
  auto& state = *state_;
  std::size_t done = 0;
  ERR_clear_error();
  while (done < data.size() && !state.over) {
    if (!state.in_record && state.records >= state.records_per_key) {
      SSL_key_update(state.ssl, SSL_KEY_UPDATE_NOT_REQUESTED);
      state.records = 0;
    }
    std::size_t sent = 0;
    errno = 0;
    const int result = SSL_write_ex(state.ssl, data.data() + done, data.size() - done, &sent);
    state.in_record = result != 1;
    if (result != 1) {
      if (state.waits(result)) break;
      continue;
    }
    ++state.records;
    done += sent;
  }
  return done == 0 && state.over ? kOver : static_cast<std::ptrdiff_t>(done);
}

std::ptrdiff_t Tls::read(std::span<std::byte> room) noexcept {
  auto& state = *state_;
  std::size_t done = 0;
  ERR_clear_error();
  while (done < room.size() && !state.over) {
    std::size_t got = 0;
    errno = 0;
    const int result = SSL_read_ex(state.ssl, room.data() + done, room.size() - done, &got);
    if (result != 1 && state.waits(result)) break;
    done += got;
  }
  return done == 0 && state.over ? kOver : static_cast<std::ptrdiff_t>(done);
}

bool Tls::is_damaged() const noexcept {
  // A reason above this is what the other end told us in an alert.
  return state_->fault != 0 && ERR_GET_REASON(state_->fault) < SSL_AD_REASON_OFFSET;
}

std::string Tls::why() const {
  if (state_->closed) return "closed the connection";
  if (state_->error != 0) return fmt::format("is lost: {}", std::strerror(state_->error));
  const char* reason = ERR_reason_error_string(state_->fault);
  const auto* text = reason != nullptr ? reason : "unknown error";
  return is_damaged() ? fmt::format("sent what TLS refuses ({})", text)
                      : fmt::format("gave up TLS ({})", text);
}

}  // namespace sinew
