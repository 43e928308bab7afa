// Where results and talk go: colour and progress for terminals, plain text for everything else.
#pragma once

#include <cstdio>
#include <string>
#include <string_view>

#include "base/wrapped.hpp"

namespace sinew {

/// Colour for `stream`: none unless it is a terminal that has not asked for none (NO_COLOR, TERM).
class Paint {
 public:
  explicit Paint(std::FILE* stream);
  [[nodiscard]] std::string bold(std::string_view text) const { return in("1", text); }
  [[nodiscard]] std::string good(std::string_view text) const { return in("32", text); }
  [[nodiscard]] std::string warn(std::string_view text) const { return in("33", text); }
  [[nodiscard]] std::string bad(std::string_view text) const { return in("31", text); }

 private:
  [[nodiscard]] std::string in(std::string_view code, std::string_view text) const;
  bool colours_;
};

/// Columns of the terminal that shows stdout; 80 when there is none.
int terminal_columns();

/// One line on stderr that is overwritten in place and gone at the end. Silent off a terminal.
class ProgressLine {
 public:
  ProgressLine();
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;
  void show(std::string_view text);
  /// Before anything else is printed.
  void clear();

 private:
  bool terminal_;
  bool shown_ = false;
};

}  // namespace sinew
