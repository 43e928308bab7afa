#include "imports/chrome_trace.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

namespace sinew::imports {
namespace {

constexpr auto kNone = std::string_view::npos;
constexpr std::string_view kBlank = " \t\r\n";

}  // namespace

void ChromeTrace::skip_blanks() {
  at_ = std::min(source_.text.find_first_not_of(kBlank, at_), source_.text.size());
}

std::size_t ChromeTrace::end_of_string(std::size_t at) const noexcept {
  const auto text = source_.text;
  for (++at; at < text.size(); ++at) {
    if (text[at] == '\\')
      ++at;
    else if (text[at] == '"')
      return at + 1;
  }
  return kNone;
}

std::size_t ChromeTrace::end_of_value(std::size_t at) const noexcept {
  const auto text = source_.text;
  std::size_t depth = 0;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '"') {
      at = end_of_string(at);
      if (at == kNone) return kNone;
      --at;
    } else if (c == '{' || c == '[') {
      ++depth;
      continue;
    } else if (c == '}' || c == ']') {
      if (depth == 0) return at;  // of what is around a number
      --depth;
    } else if (c != ',' || depth > 0) {
      continue;
    } else {
      return at;
    }
    if (depth == 0) return at + 1;
  }
  return kNone;
}

bool ChromeTrace::open() {
  if (source_.text.starts_with("\xEF\xBB\xBF")) at_ = 3;
  skip_blanks();
  if (at_ == source_.text.size()) return false;
  in_object_ = source_.text[at_] == '{';
  state_ = in_object_ ? State::members : State::events;
  ++at_;
  return true;
}

// Reads members up to the one that holds the events.
bool ChromeTrace::next_member() {
  const auto text = source_.text;
  skip_blanks();
  while (at_ < text.size() && text[at_] == ',') {
    ++at_;
    skip_blanks();
  }
  if (at_ < text.size() && text[at_] == '}') {
    state_ = State::end;
    return false;
  }
  if (at_ == text.size() || text[at_] != '"') return false;
  const auto key_end = end_of_string(at_);
  if (key_end == kNone) return false;
  const std::string key(text.substr(at_ + 1, key_end - at_ - 2));
  at_ = key_end;
  skip_blanks();
  if (at_ == text.size() || text[at_] != ':') return false;
  ++at_;
  skip_blanks();
  if (key == "traceEvents" && at_ < text.size() && text[at_] == '[') {
    ++at_;
    state_ = State::events;
    return true;
  }
  const auto end = end_of_value(at_);
  if (end == kNone) return false;
  members_[key] = text.substr(at_, end - at_);
  at_ = end;
  return true;
}

bool ChromeTrace::next_event() {
  const auto text = source_.text;
  at_ = std::min(text.find_first_of("{]", at_), text.size());
  if (at_ == text.size()) return false;
  if (text[at_] == ']') {
    ++at_;
    state_ = in_object_ ? State::members : State::end;
    return false;
  }
  begin_ = at_;
  const auto end = end_of_value(at_);
  if (end == kNone) {
    // Cut off here, or damaged and more follows. Few such events have no end, so that looking for
    // it to the end of the file, again and again, would be for nothing.
    constexpr int kMostEndless = 16;
    if (++endless_ <= kMostEndless && skip_damage()) return next_event();
    at_ = text.size();
    return false;
  }
  event_ = text.substr(at_, end - at_);
  at_ = end;
  ++events_;
  return true;
}

// A quotation mark too many swallows what follows: go on where the next event seems to begin.
bool ChromeTrace::skip_damage() {
  const auto text = source_.text;
  for (auto at = text.find('}', begin_); at != kNone; at = text.find('}', at + 1)) {
    const auto comma = text.find_first_not_of(kBlank, at + 1);
    if (comma == kNone || text[comma] != ',') continue;
    const auto brace = text.find_first_not_of(kBlank, comma + 1);
    if (brace == kNone || text[brace] != '{') continue;
    if (damaged_++ == 0) first_damaged_ = begin_;
    at_ = brace;
    return true;
  }
  return false;
}

bool ChromeTrace::next() {
  if (state_ == State::start && !open()) return false;
  while (state_ != State::end) {
    if (state_ == State::events) {
      if (next_event()) return true;
      if (state_ == State::events) return false;
    } else if (!next_member()) {
      return false;
    }
  }
  return false;
}

nlohmann::json ChromeTrace::read() {
  auto json = nlohmann::json::parse(event_, nullptr, false);
  if (json.is_object()) return json;
  --events_;
  if (!skip_damage() && damaged_++ == 0) first_damaged_ = begin_;
  return nlohmann::json::value_t::discarded;
}

std::string ChromeTrace::place_of(std::size_t at) const {
  const auto before = source_.text.substr(0, at);
  return fmt::format("{}:{}", source_.name, std::count(before.begin(), before.end(), '\n') + 1);
}

std::vector<std::string> ChromeTrace::losses() const {
  std::vector<std::string> losses;
  if (damaged_ > 0)
    losses.push_back(fmt::format("{}: an event that is no JSON; {} such, left out",
                                 place_of(first_damaged_), damaged_));
  if (is_cut_off())
    losses.push_back(fmt::format("{}: the file ends before its events do; {} read",
                                 place_of(source_.text.size()), events_));
  return losses;
}

std::string string_in(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return "";
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<double> number_in(const nlohmann::json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  if (found == object.end()) return {};
  if (found->is_string()) return number_of(found->get_ref<const std::string&>());
  if (!found->is_number()) return {};
  const auto value = found->get<double>();
  return std::isfinite(value) ? std::optional(value) : std::nullopt;
}

std::uint64_t element_bytes(std::string_view type) {
  struct Type {
    std::string_view name;
    std::uint64_t bytes;
  };
  constexpr auto kTypes = std::to_array<Type>({
      {"float", 4},        {"float32", 4},        {"half", 2},          {"float16", 2},
      {"double", 8},       {"float64", 8},        {"bfloat16", 2},      {"c10::bfloat16", 2},
      {"c10::half", 2},    {"long", 8},           {"long int", 8},      {"int64", 8},
      {"int", 4},          {"int32", 4},          {"short", 2},         {"int16", 2},
      {"uint16", 2},       {"byte", 1},           {"unsigned char", 1}, {"uint8", 1},
      {"char", 1},         {"signed char", 1},    {"int8", 1},          {"bool", 1},
      {"uint32", 4},       {"uint64", 8},         {"float8_e4m3fn", 1}, {"float8_e5m2", 1},
      {"complexfloat", 8}, {"complexdouble", 16},
  });
  std::string lower(type);
  std::transform(lower.begin(), lower.end(), lower.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  for (const auto& [name, bytes] : kTypes)
    if (lower == name) return bytes;
  return 0;
}

std::optional<std::uint64_t> elements_of(std::string_view shape) {
  if (shape.size() < 2 || shape.front() != '[' || shape.back() != ']') return {};
  std::string inside(shape.substr(1, shape.size() - 2));
  std::replace(inside.begin(), inside.end(), ',', ' ');
  std::uint64_t elements = 1;
  for (const auto word : words_of(inside)) {
    const auto length = count_of(word);
    if (!length || __builtin_mul_overflow(elements, *length, &elements)) return {};
  }
  return elements <= std::uint64_t{1} << 48U ? std::optional(elements) : std::nullopt;
}

}  // namespace sinew::imports
