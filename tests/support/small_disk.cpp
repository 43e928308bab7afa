#include "support/small_disk.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sched.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "support/network.hpp"

namespace sinew::test {
namespace {

/// Once a process: from then on nobody else sees what it mounts.
bool has_own_mounts() {
  static const bool own =
      leave(CLONE_NEWNS) && ::mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0;
  return own;
}

}  // namespace

SmallDisk::SmallDisk(const std::string& folder, std::size_t bytes) : folder_(folder) {
  const auto size = fmt::format("mode=0755,size={}", bytes);
  if (!has_own_mounts() || ::mount("none", folder.c_str(), "tmpfs", 0, size.c_str()) != 0)
    problem_ = fmt::format("no file system of its own here ({})", std::strerror(errno));
}

SmallDisk::~SmallDisk() {
  if (problem_.empty()) ::umount2(folder_.c_str(), MNT_DETACH);
}

void SmallDisk::fill_but(std::size_t bytes, bool files) const {
  const int file = ::open((folder_ + "/ballast").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  const std::vector<char> page(4096);
  off_t end = 0;
  for (ssize_t wrote = 1; wrote > 0; end += wrote > 0 ? wrote : 0)
    wrote = ::write(file, page.data(), page.size());
  const bool full = errno == ENOSPC && end >= static_cast<off_t>(bytes);
  const int cut = ::ftruncate(file, end - static_cast<off_t>(bytes));
  ::close(file);
  if (!full || cut != 0) throw std::runtime_error("cannot fill " + folder_);
  if (files) return;
  if (::mount("none", folder_.c_str(), nullptr, MS_REMOUNT, "nr_inodes=2") != 0)
    throw std::runtime_error("cannot limit the files of " + folder_);
}

}  // namespace sinew::test
