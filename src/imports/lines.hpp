// A text read line by line: every complaint names the file and the line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace sinew::imports {

/// A file to import: how people call it, and what is in it.
struct Source {
  std::string name;
  std::string_view text;
};

class Lines {
 public:
  explicit Lines(const Source& source) : name_(source.name), rest_(source.text) {}

  /// Goes to the next line, without its end. False: there is none.
  bool next();
  [[nodiscard]] std::string_view line() const noexcept { return line_; }
  [[nodiscard]] std::size_t number() const noexcept { return number_; }

  /// "FILE:LINE: why".
  [[nodiscard]] std::string complaint(std::string_view why) const;
  /// Throws Error{invalid_argument} with it.
  [[noreturn]] void fail(std::string_view why) const;

 private:
  std::string name_;
  std::string_view rest_, line_;
  std::size_t number_ = 0;
};

/// What stands between blanks.
std::vector<std::string_view> words_of(std::string_view line);

/// One of them, or "" where there are fewer.
inline std::string_view word(const std::vector<std::string_view>& words, std::size_t at) {
  return at < words.size() ? words[at] : std::string_view();
}

/// A finite number that takes the whole word; decimals and exponents are allowed.
std::optional<double> number_of(std::string_view word);
/// A count: digits only.
std::optional<std::uint64_t> count_of(std::string_view word);
/// A rank or a number of ranks, 0 to 2^24.
std::optional<int> rank_of(std::string_view word);

/// The sum of `calls` messages of `mean` bytes. Nothing when no program can have sent so much.
std::optional<std::uint64_t> total_bytes(std::uint64_t calls, double mean);

/// Shortest text that reads back as the same number.
std::string text_of(double number);

}  // namespace sinew::imports
