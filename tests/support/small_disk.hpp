// A real file system that is small or full: a tmpfs that only this process and its children see.
#pragma once

#include <cstddef>
#include <string>

namespace sinew::test {

/// Mounted over a folder, which must be there, for as long as this lives.
class SmallDisk {
 public:
  SmallDisk(const std::string& folder, std::size_t bytes);
  ~SmallDisk();
  SmallDisk(const SmallDisk&) = delete;
  SmallDisk& operator=(const SmallDisk&) = delete;

  /// Why it is not there: the system allows no such thing. "": it is.
  [[nodiscard]] const std::string& problem() const noexcept { return problem_; }
  /// Takes all room but so much. Not even a folder can be made where `files` is false.
  void fill_but(std::size_t bytes, bool files = true) const;

 private:
  std::string folder_;
  std::string problem_;
};

}  // namespace sinew::test
