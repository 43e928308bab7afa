#include "transport/rendezvous/file_store.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <optional>
#include <thread>
#include <vector>

#include <sinew/error.hpp>
#include "transport/rendezvous/socket.hpp"
#include "transport/trust/token.hpp"

namespace sinew {
namespace {

using namespace std::chrono_literals;

// Before the value stands how long it is: a reader never takes a part for the whole.
constexpr std::string_view kHeader = "sinew 1 ";

[[noreturn]] void refuse(const std::string& folder, std::string_view what, int error) {
  throw Error(Errc::system,
              fmt::format("store file://{}: {}: {}", folder, what, std::strerror(error)));
}

std::string file_name(std::string_view key) {
  std::string name = "key-";
  for (const char c : key) {
    const bool plain = (c >= '0' && c <= '9') || (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') ||
                       c == '-' || c == '_';
    name += plain ? std::string(1, c) : fmt::format("%{:02x}", static_cast<unsigned char>(c));
  }
  if (name.size() > 255)
    throw Error(Errc::invalid_argument, fmt::format("key '{}' is too long for a file name", key));
  return name;
}

// Opened anew for each look: NFS asks the server then whether the folder has changed, and forgets
// that a file was absent.
Socket open_folder(const std::string& folder) {
  return Socket(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
}

/// The value, if the file is there and whole.
std::optional<std::string> read_entry(const std::string& folder, const std::string& name) {
  const auto at = open_folder(folder);
  if (at.get() < 0 && errno != ENOENT && errno != ESTALE) refuse(folder, "cannot be read", errno);
  const Socket file(::openat(at.get(), name.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW));
  if (file.get() < 0) {
    if (errno == ENOENT || errno == ESTALE || errno == EBADF) return {};
    refuse(folder, fmt::format("{} cannot be read", name), errno);
  }
  std::string text(kHeader.size() + 20 + kLongestValue, '\0');
  std::size_t bytes = 0;
  while (bytes < text.size()) {
    const auto got = ::read(file.get(), text.data() + bytes, text.size() - bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return {};  // stale: it will be there again, or the deadline will say so
    if (got == 0) break;
    bytes += static_cast<std::size_t>(got);
  }
  text.resize(bytes);
  const auto line = text.find('\n');
  std::size_t length = 0;
  if (!text.starts_with(kHeader) || line == std::string::npos) return {};
  std::from_chars(text.data() + kHeader.size(), text.data() + line, length);
  if (text.size() - line - 1 != length) return {};
  return text.substr(line + 1);
}

void write_all(int file, std::string_view text, const std::string& folder) {
  while (!text.empty()) {
    const auto wrote = ::write(file, text.data(), text.size());
    if (wrote < 0 && errno != EINTR) refuse(folder, "cannot be written", errno);
    if (wrote > 0) text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  if (::fsync(file) != 0) refuse(folder, "cannot be written", errno);
}

/// A file that is gone when this is, unless it got another name.
struct Temporary {
  std::string path;
  ~Temporary() { ::unlink(path.c_str()); }
};

// The file appears under its name whole, and only if nobody had it before. NFS may lose the answer
// of a link that was made, so the number of names decides; file systems without links rename.
bool publish(const std::string& temporary, const std::string& path) {
  if (::link(temporary.c_str(), path.c_str()) == 0) return true;
  const int error = errno;
  struct stat info {};
  if (::stat(temporary.c_str(), &info) == 0 && info.st_nlink == 2) return true;
  if (error == EEXIST) return false;
  if (::access(path.c_str(), F_OK) == 0) return false;
  return ::rename(temporary.c_str(), path.c_str()) == 0;
}

}  // namespace

FileStore::FileStore(std::string folder, int rank, int size)
    : folder_(std::move(folder)), rank_(rank), size_(size) {
  if (::mkdir(folder_.c_str(), 0700) != 0 && errno != EEXIST)
    refuse(folder_, "cannot make the folder (the one above must be there)", errno);
  struct stat info {};
  if (::stat(folder_.c_str(), &info) != 0) refuse(folder_, "cannot be looked at", errno);
  if (!S_ISDIR(info.st_mode)) refuse(folder_, "is not a folder", ENOTDIR);
  if (::access(folder_.c_str(), W_OK | X_OK) != 0) refuse(folder_, "cannot be written", errno);
}

FileStore::~FileStore() {
  // Everyone leaves a mark, then counts: of two who leave at once, one at least sees all marks.
  const Socket mark(::open(fmt::format("{}/left-{}", folder_, rank_).c_str(),
                           O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  std::error_code ignored;
  std::vector<std::filesystem::path> ours;
  int left = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const auto name = entry.path().filename().string();
    left += name.starts_with("left-") ? 1 : 0;
    if (name.starts_with("left-") || name.starts_with("key-")) ours.push_back(entry.path());
  }
  if (left < size_) return;
  for (const auto& path : ours) ::unlink(path.c_str());
  ::rmdir(folder_.c_str());
}

bool FileStore::is_private() const {
  struct stat info {};
  return ::lstat(folder_.c_str(), &info) == 0 && S_ISDIR(info.st_mode) &&
         info.st_uid == ::geteuid() && (info.st_mode & 077) == 0;
}

void FileStore::set(std::string_view key, std::string_view value) {
  check_entry(key, value);
  const auto name = file_name(key);
  const auto path = fmt::format("{}/{}", folder_, name);
  const Temporary temporary{fmt::format("{}/new-{}", folder_, Token::make().hex())};
  {
    const Socket file(
        ::open(temporary.path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.get() < 0) refuse(folder_, "cannot be written", errno);
    write_all(file.get(), fmt::format("{}{}\n{}", kHeader, value.size(), value), folder_);
  }
  const bool published = publish(temporary.path, path);
  const int error = errno;
  if (published) return;
  const auto has = read_entry(folder_, name);
  if (!has) refuse(folder_, fmt::format("{} cannot be made", name), error);
  if (*has != value) throw_taken(key, "file://" + folder_, *has, value);
}

std::string FileStore::get(std::string_view key, Deadline deadline) {
  check_entry(key, "");
  const auto name = file_name(key);
  const auto begin = Clock::now();
  auto pause = 1ms;
  while (true) {
    if (auto value = read_entry(folder_, name)) return *std::move(value);
    if (Clock::now() >= deadline) throw_absent(key, "file://" + folder_, begin);
    std::this_thread::sleep_for(
        std::min(std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now()), pause));
    pause = std::min(2 * pause, 50ms);
  }
}

}  // namespace sinew
