#include "transport/trust/user_secret.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <optional>

#include <sinew/error.hpp>
#include "transport/rendezvous/socket.hpp"
#include "transport/trust/proof.hpp"

namespace sinew {
namespace {

constexpr auto kFile = "secret";

[[noreturn]] void refuse(std::string_view path, std::string_view why) {
  throw Error(
      Errc::system,
      fmt::format("{} {}; remove it, or set XDG_RUNTIME_DIR to a folder of your own", path, why));
}

void check_owner(std::string_view path, const struct stat& info, mode_t kind) {
  if (info.st_uid != ::geteuid())
    refuse(path, fmt::format("belongs to user {}, not to you", info.st_uid));
  if ((info.st_mode & S_IFMT) != kind) refuse(path, "is not what it should be");
  if ((info.st_mode & 077) != 0) refuse(path, "can be read by others");
}

std::string secret_folder(const std::string& runtime_folder) {
  struct stat info {};
  if (!runtime_folder.empty() && ::stat(runtime_folder.c_str(), &info) == 0 &&
      info.st_uid == ::geteuid() && ::access(runtime_folder.c_str(), W_OK | X_OK) == 0)
    return runtime_folder + "/sinew";
  return fmt::format("/tmp/sinew-{}", ::geteuid());
}

Socket open_folder(const std::string& path) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST)
    refuse(path, fmt::format("cannot be made: {}", std::strerror(errno)));
  Socket folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  struct stat info {};
  if (folder.get() < 0 || ::fstat(folder.get(), &info) != 0)
    refuse(path, fmt::format("cannot be opened: {}", std::strerror(errno)));
  check_owner(path, info, S_IFDIR);
  return folder;
}

std::optional<Token> read_secret(const Socket& folder, const std::string& path) {
  const Socket file(::openat(folder.get(), kFile, O_RDONLY | O_NOFOLLOW | O_CLOEXEC));
  if (file.get() < 0 && errno == ENOENT) return {};
  struct stat info {};
  if (file.get() < 0 || ::fstat(file.get(), &info) != 0)
    refuse(path, fmt::format("has a secret that cannot be opened: {}", std::strerror(errno)));
  check_owner(path + "/" + kFile, info, S_IFREG);
  Token token;
  if (::read(file.get(), token.bytes.data(), token.bytes.size()) != std::ssize(token.bytes))
    refuse(path, "has a secret that is too short");
  return token;
}

// The file appears whole or not at all, and the first of several that are made at once stays.
void make_secret(const Socket& folder, const std::string& path) {
  const auto secret = Token::make();
  const auto name = "new-" + Token::make().hex();
  bool written = false;
  {
    const Socket file(::openat(folder.get(), name.c_str(),
                               O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
    written = file.get() >= 0 && ::write(file.get(), secret.bytes.data(), secret.bytes.size()) ==
                                     std::ssize(secret.bytes);
  }
  const bool linked =
      written &&
      (::linkat(folder.get(), name.c_str(), folder.get(), kFile, 0) == 0 || errno == EEXIST);
  const int error = errno;
  ::unlinkat(folder.get(), name.c_str(), 0);
  if (!linked) refuse(path, fmt::format("cannot be written: {}", std::strerror(error)));
}

}  // namespace

Token user_secret(const std::string& runtime_folder) {
  const auto path = secret_folder(runtime_folder);
  const auto folder = open_folder(path);
  if (const auto secret = read_secret(folder, path)) return *secret;
  make_secret(folder, path);
  if (const auto secret = read_secret(folder, path)) return *secret;
  refuse(path, "has lost its secret");
}

Token derive(const Token& secret, std::string_view purpose) {
  return {prove(secret, std::as_bytes(std::span(purpose)))};
}

}  // namespace sinew
