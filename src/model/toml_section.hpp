// A table of a TOML file being read: values with their bounds, and complaints that name the line.
// Remembers which keys were asked for, so that others can be refused.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/curve.hpp"

namespace sinew {

constexpr double kUs = 1e6;                                       // picoseconds
constexpr double byte_ps(double gbytes) { return 1e3 / gbytes; }  // and back

[[noreturn]] void refuse(std::string_view path, const toml::source_region& where,
                         const std::string& what);

class Section {
 public:
  /// `table` may be null: then every value is the default.
  Section(const toml::table* table, std::string_view path, std::string name)
      : table_(table), path_(path), name_(std::move(name)) {}

  explicit operator bool() const { return table_ != nullptr; }
  [[nodiscard]] bool has(std::string_view key) { return find(key) != nullptr; }
  [[nodiscard]] std::string where() const;  // "net.toml:12"
  [[noreturn]] void complain(std::string_view key, const std::string& what);

  double number(std::string_view key, double least, double otherwise);
  double above_zero(std::string_view key);
  int whole(std::string_view key, int least, int otherwise);
  bool flag(std::string_view key, bool otherwise);
  std::string text(std::string_view key);
  /// The index of one of `words`.
  std::size_t choice(std::string_view key, std::span<const std::string_view> words);
  std::vector<std::string> texts(std::string_view key);
  Section table(std::string_view key);
  /// The entries of [[key]].
  std::vector<Section> tables(std::string_view key);
  /// The tables in this one, which may have any name.
  std::vector<std::pair<std::string, Section>> named_tables();
  Curve curve(std::string_view key);
  /// Call last: keys that nobody asked for are mistakes.
  void check() const;

 private:
  const toml::node* find(std::string_view key);
  CurvePart segment(bool last, double before);

  const toml::table* table_;
  std::string_view path_;
  std::string name_;
  std::set<std::string, std::less<>> known_;
};

}  // namespace sinew
