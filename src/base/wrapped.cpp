#include "base/wrapped.hpp"

#include "base/text.hpp"

namespace sinew {

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

}  // namespace sinew
