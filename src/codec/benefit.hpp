// Whether compressing pays on a link: time saved on the wire against time spent at both ends, both
// measured. Where it does not, a small sample is tried now and then, ever more rarely.
#pragma once

#include <algorithm>
#include <cstdint>

namespace sinew {

class Benefit {
 public:
  /// 0: time does not count, everything is worth compressing.
  explicit Benefit(double link_bytes_per_second)
      : ns_a_byte_(link_bytes_per_second > 0 ? 1e9 / link_bytes_per_second : 0),
        pays_(link_bytes_per_second <= 0) {}

  enum class Advice : std::uint8_t { leave, sample, compress };
  /// For the next block.
  Advice next() noexcept {
    if (pays_) return Advice::compress;
    if (wait_ == 0) return Advice::sample;
    --wait_;
    return Advice::leave;
  }

  struct Trial {
    std::uint64_t raw_bytes = 0, packed_bytes = 0;
    std::uint64_t encode_ns = 0;
    std::uint64_t decode_ns = 0;  // of a sample; blocks are decoded elsewhere
  };
  /// True: compress the block it came from.
  bool sampled(const Trial& trial) noexcept {
    decode_share_ = static_cast<double>(trial.decode_ns) /
                    static_cast<double>(std::max<std::uint64_t>(1, trial.encode_ns));
    decode_share_ = std::min(decode_share_, 1.0);  // nothing here decodes more slowly
    if (gains(trial))
      go_on();
    else
      stop();
    return pays_;
  }
  void compressed(const Trial& trial) noexcept {
    if (gains(trial)) return go_on();
    // Once may be a stranger on the core.
    if (++losses_ == kPatience) stop();
  }

 private:
  static constexpr std::uint32_t kLongestWait = 256, kPatience = 2;  // blocks

  [[nodiscard]] bool gains(const Trial& trial) const noexcept {
    if (ns_a_byte_ == 0) return true;
    const double saved = ns_a_byte_ * (static_cast<double>(trial.raw_bytes) -
                                       static_cast<double>(trial.packed_bytes));
    return saved > static_cast<double>(trial.encode_ns) * (1 + decode_share_);
  }
  void go_on() noexcept {
    pays_ = true;
    losses_ = 0;
    gap_ = 1;
  }
  void stop() noexcept {
    pays_ = false;
    losses_ = 0;
    gap_ = std::min(kLongestWait, 2 * gap_);
    wait_ = gap_;
  }

  double ns_a_byte_;
  bool pays_;
  double decode_share_ = 0.3;  // of the time to encode, until a sample tells
  std::uint32_t gap_ = 1, wait_ = 0, losses_ = 0;
};

}  // namespace sinew
