// A table for people: columns as wide as their widest cell, two spaces between, nothing trailing.
#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace sinew {

enum class Align : bool { left, right };

/// Columns a terminal gives to `text`: code points, less colour sequences.
inline std::size_t display_width(std::string_view text) {
  std::size_t width = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\x1b') {
      i = std::min(text.find('m', i), text.size());
    } else if ((static_cast<unsigned char>(text[i]) & 0xC0) != 0x80) {
      ++width;
    }
  }
  return width;
}

class Table {
 public:
  struct Column {
    std::string title;
    Align align = Align::left;
  };

  explicit Table(std::vector<Column> columns) : columns_(std::move(columns)) {}

  /// Cells that are left out at the end stay empty.
  void add(std::vector<std::string> cells) {
    cells.resize(columns_.size());
    rows_.push_back(std::move(cells));
  }

  [[nodiscard]] std::string text(std::size_t indent = 2) const {
    std::vector<std::size_t> widths;
    std::vector<std::string> titles;
    for (const auto& column : columns_) {
      titles.push_back(column.title);
      widths.push_back(display_width(column.title));
    }
    for (const auto& row : rows_)
      for (std::size_t i = 0; i < row.size(); ++i)
        widths[i] = std::max(widths[i], display_width(row[i]));
    const bool titled = std::any_of(titles.begin(), titles.end(),
                                    [](const std::string& title) { return !title.empty(); });
    std::string result = titled ? line(titles, widths, indent) : "";
    for (const auto& row : rows_) result += line(row, widths, indent);
    return result;
  }

 private:
  [[nodiscard]] std::string line(const std::vector<std::string>& cells,
                                 const std::vector<std::size_t>& widths, std::size_t indent) const {
    std::string result(indent, ' ');
    for (std::size_t i = 0; i < cells.size(); ++i) {
      const std::string pad(widths[i] - display_width(cells[i]), ' ');
      if (i > 0) result += "  ";
      result += columns_[i].align == Align::right ? pad + cells[i] : cells[i] + pad;
    }
    result.erase(result.find_last_not_of(' ') + 1);
    return result + "\n";
  }

  std::vector<Column> columns_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace sinew
