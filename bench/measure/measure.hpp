// The one measuring loop: what every rank of every contender runs.
#pragma once

#include <vector>

#include "measure/contender.hpp"
#include "measure/control.hpp"

namespace sinew::bench {

/// Runs commands until the parent dismisses the group. Throws Abandoned when the parent is gone.
/// A contender's exception is reported to the parent and thrown on.
void serve(Control& control, Contender& contender);

/// The buffers of one case, kept from round to round.
class Session {
 public:
  Session(Meeting& meeting, Contender& contender, const Case& what);
  Session(const Session&) = delete;
  Session& operator=(const Session&) = delete;
  ~Session();

  [[nodiscard]] const Case& what() const noexcept { return what_; }
  /// Goes on with a case that differs in its options alone, in the same buffers.
  void turn_to(const Case& what);
  /// Whether turn_to() can.
  [[nodiscard]] bool fits(const Case& what) const;
  /// The first time in this session with these options: one call on known data: the number of wrong
  /// elements this rank ended up with.
  std::uint64_t verify();
  /// Warm-up and samples within the limits; the times are in the segment.
  void measure(const Limits& limits);

 private:
  std::uint64_t check();
  std::uint64_t verify_barrier();
  Stamp timed(std::uint32_t calls);
  void rehearse(std::uint32_t calls);
  [[nodiscard]] std::uint64_t sample_ns() const noexcept;
  [[nodiscard]] std::uint32_t calls_a_sample() const noexcept;
  std::uint32_t warm_up(const Limits& limits);

  Meeting& meeting_;
  Contender& contender_;
  Case what_;
  std::span<std::byte> input_memory_;
  std::span<std::byte> output_memory_;
  Buffers buffers_;
  struct Verified {
    std::string options;
    std::uint64_t wrong;
  };
  std::vector<Verified> verified_;
  std::uint64_t wrong_ = 0;
  std::uint64_t quickest_ns_;  // call of any warm-up so far
};

}  // namespace sinew::bench
