// Reading GOAL.
#include <fmt/format.h>

#include <charconv>
#include <map>
#include <string>

#include <sinew/error.hpp>
#include "model/goal_program.hpp"

namespace sinew {
namespace {

/// Words of the text with their lines; comments and semicolons are gone.
class Words {
 public:
  Words(std::string_view text, std::string_view path) : text_(text), path_(path) { skip(); }

  [[nodiscard]] bool at_end() const { return at_ >= text_.size(); }
  [[nodiscard]] std::string_view peek() const {
    auto end = at_;
    if (end < text_.size() && (text_[end] == '{' || text_[end] == '}')) return text_.substr(at_, 1);
    while (end < text_.size() && !is_space(text_[end]) && text_[end] != '{' && text_[end] != '}')
      ++end;
    return text_.substr(at_, end - at_);
  }
  std::string_view next(std::string_view what) {
    if (at_end()) refuse(fmt::format("the text ends where {} should be", what));
    const auto word = peek();
    at_ += word.size();
    skip();
    return word;
  }
  void expect(std::string_view wanted) {
    if (const auto word = next(fmt::format("'{}'", wanted)); word != wanted)
      refuse(fmt::format("'{}' where '{}' should be", word, wanted));
  }
  double number(std::string_view what, double most, std::string_view suffix = "") {
    auto word = next(what);
    if (!suffix.empty() && word.ends_with(suffix)) word.remove_suffix(suffix.size());
    double value = -1;
    const auto [end, error] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (error != std::errc{} || end != word.data() + word.size() || !(value >= 0) || value > most)
      refuse(fmt::format("'{}' is not {}", word, what));
    return value;
  }
  [[noreturn]] void refuse(const std::string& why) const {
    throw Error(Errc::invalid_argument, fmt::format("{}:{}: {}", path_, line_, why));
  }

 private:
  static bool is_space(char c) {
    return c == ' ' || c == '\t' || c == '\n' || c == '\r' || c == ';';
  }
  void skip() {
    while (at_ < text_.size()) {
      if (text_.substr(at_, 2) == "/*") {
        const auto end = text_.find("*/", at_ + 2);
        pass(end == std::string_view::npos ? text_.size() : end + 2);
      } else if (text_.substr(at_, 2) == "//" || text_[at_] == '#') {
        pass(std::min(text_.find('\n', at_), text_.size()));
      } else if (is_space(text_[at_])) {
        pass(at_ + 1);
      } else {
        return;
      }
    }
  }
  void pass(std::size_t to) {
    for (; at_ < to; ++at_) line_ += text_[at_] == '\n' ? 1 : 0;
  }
  std::string_view text_, path_;
  std::size_t at_ = 0, line_ = 1;
};

class Parser {
 public:
  Parser(std::string_view text, std::string_view path) : words_(text, path) {}

  GoalProgram read() {
    words_.expect("num_ranks");
    const double count = words_.number("a number of ranks", 1 << 24);
    if (count < 1) words_.refuse("there are no ranks");
    program_.ranks.resize(static_cast<std::size_t>(count));
    while (!words_.at_end()) {
      words_.expect("rank");
      const double rank = words_.number("a rank", count - 1);
      words_.expect("{");
      read_rank(program_.ranks[static_cast<std::size_t>(rank)]);
    }
    return std::move(program_);
  }

 private:
  void read_rank(std::vector<GoalOp>& ops) {
    std::map<std::string, std::uint32_t, std::less<>> labels;
    while (words_.peek() != "}") {
      auto word = words_.next("an operation");
      std::string label;
      if (word.ends_with(":")) {
        label = word.substr(0, word.size() - 1);
        word = words_.next("an operation");
      }
      if (word == "send" || word == "recv" || word == "calc") {
        if (!label.empty() && !labels.emplace(label, ops.size()).second)
          words_.refuse(fmt::format("'{}' is there twice", label));
        ops.push_back(read_op(word));
      } else {
        depend(ops, labels, word);
      }
    }
    words_.expect("}");
  }

  GoalOp read_op(std::string_view word) {
    GoalOp op;
    if (word == "calc") {
      op.kind = GoalOp::Kind::calc;
      op.calc_ns = words_.number("nanoseconds", 1e18);
    } else {
      op.kind = word == "send" ? GoalOp::Kind::send : GoalOp::Kind::recv;
      op.bytes = words_.number("bytes such as 16b", 1e18, "b");
      words_.expect(word == "send" ? "to" : "from");
      op.peer =
          static_cast<int>(words_.number("a rank", static_cast<double>(program_.ranks.size() - 1)));
    }
    while (words_.peek() == "tag" || words_.peek() == "cpu" || words_.peek() == "nic") {
      const bool tag = words_.next("a word") == "tag";
      const double value = words_.number("a number", 2147483647);
      if (tag) op.tag = static_cast<int>(value);
    }
    return op;
  }

  template <class Labels>
  void depend(std::vector<GoalOp>& ops, const Labels& labels, std::string_view who) {
    const auto how = words_.next("requires or irequires");
    if (how != "requires" && how != "irequires")
      words_.refuse(fmt::format("'{} {}' is no operation and no dependence", who, how));
    const auto whom = words_.next("a label");
    const auto mine = labels.find(who), other = labels.find(whom);
    if (mine == labels.end() || other == labels.end())
      words_.refuse(fmt::format("there is no '{}' above", mine == labels.end() ? who : whom));
    auto& op = ops[mine->second];
    (how == "requires" ? op.after_end : op.after_start).push_back(other->second);
  }

  Words words_;
  GoalProgram program_;
};

}  // namespace

GoalProgram parse_goal(std::string_view text, std::string_view path) {
  return Parser(text, path).read();
}

}  // namespace sinew
