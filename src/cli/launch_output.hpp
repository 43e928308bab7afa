// Output of launched ranks: whole lines, labelled, never mixed within a line.
#pragma once

#include <poll.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace sinew {

enum class Label : std::uint8_t { none, rank, json };

class RankOutput {
 public:
  explicit RankOutput(Label label) : label_(label) {}
  ~RankOutput();
  RankOutput(const RankOutput&) = delete;
  RankOutput& operator=(const RankOutput&) = delete;

  /// The ends a child writes to: {stdout, stderr}, or -1 for "inherit". Throws Error{system}.
  struct Ends {
    int out = -1;
    int err = -1;
  };
  Ends open(int rank);
  /// In the parent, once the child has its copies.
  static void close_ends(const Ends& ends) noexcept;

  /// What poll() should watch.
  void watch(std::vector<pollfd>& fds) const;
  /// Forwards all that can be read now.
  void forward();
  /// The same, and then lines that never got their end.
  void finish();

 private:
  struct Stream {
    int fd;
    int rank;
    bool is_error;
    std::string partial;
  };
  Stream open_stream(int rank, bool is_error, int& write_end);
  /// Whether the stream is still open.
  bool drain(Stream& stream);
  void emit_lines(Stream& stream);
  void emit(const Stream& stream, std::string_view line) const;

  Label label_;
  std::vector<Stream> streams_;
};

}  // namespace sinew
