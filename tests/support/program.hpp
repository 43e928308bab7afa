// Runs the real program, or any other, and keeps what it said.
#pragma once

#include <sys/types.h>

#include <string>
#include <vector>

namespace sinew::test {

struct Ran {
  int status = -1;  // the exit code, or 128 + the signal
  std::string out, err;
};

/// A started program whose output can be read while it runs. Killed at the end of its life.
class Program {
 public:
  explicit Program(const std::vector<std::string>& words, const std::string& input = "");
  ~Program();
  Program(const Program&) = delete;
  Program& operator=(const Program&) = delete;

  [[nodiscard]] pid_t pid() const noexcept { return pid_; }
  /// Reads standard output until `text` has appeared `times` times; false at its end.
  bool wait_for(const std::string& text, int times = 1);
  Ran finish();

 private:
  bool read_some();
  pid_t pid_ = -1;
  int out_ = -1, err_ = -1;
  Ran ran_;
};

Ran run(const std::vector<std::string>& words, const std::string& input = "");
/// `sinew` with these arguments.
Ran sinew(std::vector<std::string> arguments, const std::string& input = "");

/// One line on stderr that has `part`, nothing on stdout, and the status.
void expect_error(const std::vector<std::string>& arguments, int status, const std::string& part);

bool has(const std::string& text, const std::string& part);
std::vector<std::string> lines_of(const std::string& text);
std::size_t widest_line(const std::string& text);

}  // namespace sinew::test
