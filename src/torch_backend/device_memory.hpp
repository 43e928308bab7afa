// Memory of a GPU that other processes on the same GPU can map. CUDA's driver is found at run time,
// so that one build serves machines with and without it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace sinew {

/// What a process tells others so that they can map a piece of its memory.
using DeviceHandle = std::array<char, 64>;

/// The calls of the driver that are needed here. They count for the device that is current in the
/// calling thread, which must have used it before through torch.
class DeviceDriver {
 public:
  /// Null where there is no such driver.
  static const DeviceDriver* find() noexcept;

  using Identity = std::array<char, 16>;
  /// The same for whoever uses the same GPU, whatever number it has there.
  [[nodiscard]] std::optional<Identity> identity() const noexcept;
  /// Everything that this process has asked of the device is done.
  void synchronize() const noexcept { call_synchronize(); }

  /// At least `bytes`, and how others map it; null where there is no more memory. `readers`: who
  /// will; processes.
  struct Piece {
    std::byte* data = nullptr;
    std::size_t bytes = 0;
    DeviceHandle handle{};
    std::vector<std::int64_t> readers{};
  };
  [[nodiscard]] Piece allocate(std::size_t bytes, std::vector<std::int64_t> readers) const;
  /// Of what nobody has mapped any more.
  void free(Piece piece) const noexcept;
  /// Of what somebody may still read: goes to the next who asks for memory for these readers and
  /// perhaps others, and has made sure that all of them are done with what they did before.
  void leave(Piece piece) const;
  /// Another process's; null where that cannot be.
  [[nodiscard]] std::byte* map(const DeviceHandle& handle) const noexcept;
  void unmap(std::byte* memory) const noexcept;

 private:
  void call_synchronize() const noexcept;
  struct Functions;
  explicit DeviceDriver(const Functions& call) noexcept : call_(call) {}
  const Functions& call_;
};

}  // namespace sinew
