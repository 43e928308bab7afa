#include "cli/output.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cstdlib>

#include "base/text.hpp"

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

std::string wrapped(std::string_view text, std::size_t columns) {
  std::string result;
  for (const auto line : split(text, '\n')) {
    std::size_t width = 0;
    for (const auto word : split(line, ' ')) {
      const bool fits = width == 0 || width + 1 + word.size() <= columns;
      if (width > 0) result += fits ? ' ' : '\n';
      width = fits && width > 0 ? width + 1 + word.size() : word.size();
      result += word;
    }
    result += '\n';
  }
  result.pop_back();
  return result;
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
