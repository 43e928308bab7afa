// The JSON that browsers' trace viewers read, event by event: files of many gigabytes, cut off at
// any point, with events in them that are no JSON.
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "imports/lines.hpp"

namespace sinew::imports {

class ChromeTrace {
 public:
  explicit ChromeTrace(const Source& source) : source_(source) {}

  /// Goes to the next event. False: there is none.
  bool next();
  /// Its text.
  [[nodiscard]] std::string_view text() const noexcept { return event_; }
  [[nodiscard]] bool mentions(std::string_view part) const noexcept {
    return event_.find(part) != std::string_view::npos;
  }
  /// Its text read. Discarded when it is no JSON: then it counts as damaged, and next() looks for
  /// an event inside it.
  nlohmann::json read();

  /// What stands beside the events in the file, as far as it was read: name and text.
  [[nodiscard]] const std::map<std::string, std::string_view>& members() const noexcept {
    return members_;
  }
  [[nodiscard]] bool is_cut_off() const noexcept { return state_ != State::end; }
  [[nodiscard]] std::size_t events() const noexcept { return events_; }
  /// One line for each kind of loss.
  [[nodiscard]] std::vector<std::string> losses() const;
  /// "FILE:LINE", of the present event.
  [[nodiscard]] std::string place() const { return place_of(begin_); }

 private:
  enum class State { start, members, events, end };
  bool open();
  bool next_member();
  bool next_event();
  bool skip_damage();
  void skip_blanks();
  /// The end of the value at `at`, or npos when the file ends first.
  [[nodiscard]] std::size_t end_of_value(std::size_t at) const noexcept;
  [[nodiscard]] std::size_t end_of_string(std::size_t at) const noexcept;
  [[nodiscard]] std::string place_of(std::size_t at) const;

  Source source_;
  State state_ = State::start;
  bool in_object_ = false;  // the events are a member, others may follow
  std::size_t at_ = 0, begin_ = 0;
  std::string_view event_;
  std::map<std::string, std::string_view> members_;
  int endless_ = 0;
  std::size_t events_ = 0, damaged_ = 0, first_damaged_ = 0;
};

/// Fields of an event; nothing when they are missing or of another type.
std::string string_in(const nlohmann::json& object, const char* key);
std::optional<double> number_in(const nlohmann::json& object, const char* key);

/// Bytes of an element by the names that Horovod, PyTorch and NCCL use; 0: unknown.
std::uint64_t element_bytes(std::string_view type);
/// Elements of "[784, 512]"; nothing when it is no shape.
std::optional<std::uint64_t> elements_of(std::string_view shape);

}  // namespace sinew::imports
