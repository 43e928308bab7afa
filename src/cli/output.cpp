#include "cli/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

namespace sinew {

Paint::Paint(std::FILE* stream) {
  const char* none = std::getenv("NO_COLOR");
  const char* terminal = std::getenv("TERM");
  const bool refused = (none != nullptr && *none != '\0') ||
                       (terminal != nullptr && std::string_view(terminal) == "dumb");
  colours_ = ::isatty(::fileno(stream)) == 1 && !refused;
}

std::string Paint::in(std::string_view code, std::string_view text) const {
  return colours_ ? fmt::format("\x1b[{}m{}\x1b[0m", code, text) : std::string(text);
}

int terminal_columns() {
  winsize size{};
  const bool known = ::ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 0;
  return known ? size.ws_col : 80;
}

ProgressLine::ProgressLine() : terminal_(::isatty(STDERR_FILENO) == 1) {}
ProgressLine::~ProgressLine() { clear(); }

void ProgressLine::show(std::string_view text) {
  if (!terminal_) return;
  fmt::print(stderr, "\r{}\x1b[K", text.substr(0, 79));
  std::fflush(stderr);
  shown_ = true;
}

void ProgressLine::clear() {
  if (!shown_) return;
  fmt::print(stderr, "\r\x1b[K");
  std::fflush(stderr);
  shown_ = false;
}

}  // namespace sinew
