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

std::string wrapped(std::string_view text, std::size_t columns, std::size_t indent,
                    std::size_t before) {
  std::string result;
  std::size_t at = before;  // columns of this line that are taken
  bool fresh = true;        // no word in it yet
  const auto next_line = [&] {
    result += '\n' + std::string(indent, ' ');
    at = indent;
    fresh = true;
  };
  for (const auto line : split(text, '\n')) {
    if (!result.empty()) next_line();
    for (const auto word : split(line, ' ')) {
      if (!fresh && at + 1 + word.size() > columns) next_line();
      if (!fresh) result += ' ';
      result += word;
      at += word.size() + (fresh ? 0 : 1);
      fresh = false;
    }
  }
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
