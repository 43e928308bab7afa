// Runs of `sinew train` for tests: their folders, their workers, and what is left of them.
#pragma once

#include <dirent.h>
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <thread>
#include <vector>

#include "train/checkpoint.hpp"

namespace sinew::test {

inline bool is_full() {
  const char* full = std::getenv("SINEW_FULL");
  return full != nullptr && std::string(full) == "1";
}

/// The folder of a run, gone with it.
class RunFolder {
 public:
  RunFolder() {
    static int count = 0;
    path_ = std::filesystem::temp_directory_path() /
            fmt::format("sinew-run-{}-{}", ::getpid(), ++count);
  }
  ~RunFolder() { std::filesystem::remove_all(path_); }
  RunFolder(const RunFolder&) = delete;
  RunFolder& operator=(const RunFolder&) = delete;
  [[nodiscard]] std::string name() const { return path_.string(); }
  [[nodiscard]] std::filesystem::path operator/(std::string_view file) const {
    return path_ / file;
  }
  [[nodiscard]] std::string text(std::string_view file) const {
    std::ifstream in(path_ / file);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  [[nodiscard]] CheckpointFolder checkpoints() const {
    return CheckpointFolder(path_ / "checkpoints");
  }

 private:
  std::filesystem::path path_;
};

/// Until a file is there; false after 60 s.
inline bool wait_for_file(const std::filesystem::path& path) {
  for (int i = 0; i < 6000; ++i) {
    if (std::filesystem::exists(path)) return true;
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
  }
  return false;
}

inline std::string process_file(pid_t pid, const char* name) {
  std::ifstream in(fmt::format("/proc/{}/{}", pid, name), std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

/// Processes whose command line has `word`.
inline std::vector<pid_t> processes_with(const std::string& word) {
  std::vector<pid_t> found;
  for (const auto& entry : std::filesystem::directory_iterator("/proc")) {
    const auto name = entry.path().filename().string();
    if (name.find_first_not_of("0123456789") != std::string::npos) continue;
    const auto pid = static_cast<pid_t>(std::stol(name));
    if (pid != ::getpid() && process_file(pid, "cmdline").find(word) != std::string::npos)
      found.push_back(pid);
  }
  return found;
}

/// The worker of that rank among them; -1: not there.
inline pid_t worker_of(const std::string& word, int rank) {
  const std::string variable = "SINEW_RANK=" + std::to_string(rank);
  for (const auto pid : processes_with(word)) {
    const auto environment = '\0' + process_file(pid, "environ");
    if (environment.find('\0' + variable + '\0') != std::string::npos) return pid;
  }
  return -1;
}

}  // namespace sinew::test
