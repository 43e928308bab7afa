#include <array>

#include <sinew/schedule.hpp>

namespace sinew {

std::string_view name(Op op) noexcept {
  constexpr std::array<std::string_view, 9> kNames{
      "send",        "recv",          "recv_reduce",      "copy", "reduce", "publish",
      "gather_copy", "gather_reduce", "gather_reduce_all"};
  return kNames[static_cast<std::size_t>(op)];
}

std::string_view name(Buf buf) noexcept {
  constexpr std::array<std::string_view, 4> kNames{"input", "output", "scratch", "board"};
  return kNames[static_cast<std::size_t>(buf)];
}

}  // namespace sinew
