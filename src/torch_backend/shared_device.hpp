// Sums of tensors that lie on one GPU which all ranks of a group share: they are added up there,
// and nothing goes through the host but two barriers.
//
// Every rank copies its tensor to where all can read it; then rank 0 adds them up in rank order,
// and everybody takes the sum from there. One adds up all because processes take turns on a GPU,
// and a turn costs more than the sum. The place of the next sum is another one, so that nobody
// waits for those who still read.
#pragma once

#include <ATen/core/Tensor.h>

#include <atomic>
#include <vector>

#include <sinew/communicator.hpp>
#include "torch_backend/device_memory.hpp"
#include "torch_backend/staged.hpp"

namespace sinew {

class SharedDevice {
 public:
  /// Of a group. `offers`: false where this process is told not to; then all ranks go without.
  SharedDevice(c10::Device device, bool offers) : device_(device), offers_(offers) {}
  SharedDevice(const SharedDevice&) = delete;
  SharedDevice& operator=(const SharedDevice&) = delete;
  ~SharedDevice();

  /// Whether sums of this tensor are worth trying here. Alike on all ranks that have it on a GPU,
  /// but for those who know already that the device is not shared.
  [[nodiscard]] bool suits(const at::Tensor& tensor) const;

  /// The sum over all ranks takes the tensor's place when the stream of `side` has come so far. All
  /// ranks of the group call it. False on all of them, and the tensor as it was: they do not share
  /// this device, or it has no room left. Throws Error{mismatch} where ranks differ in type or
  /// size.
  bool sum(Communicator& communicator, const at::Tensor& tensor, const SideStream& side,
           std::chrono::nanoseconds timeout);
  /// How many tensors were added up here.
  [[nodiscard]] std::uint64_t sums() const noexcept { return sums_.load(); }

 private:
  /// Calls of all ranks for one sum: with the time that they may take, and a tag of what is summed,
  /// so that ranks which sum different things notice it.
  struct Together {
    Communicator& communicator;
    CallOptions options;
    void barrier() const;
    void allgather(const void* mine, void* all, std::size_t bytes) const;
    /// Whether all ranks say so.
    [[nodiscard]] bool all(bool mine) const;
  };
  bool is_shared(const Together& together, const SideStream& side);
  bool reserve(const Together& together, std::size_t bytes, const SideStream& side);
  void unmap();
  bool sum_piece(const Together& together, at::Tensor piece, const SideStream& side);

  enum class Known : std::uint8_t { nothing, shared, not_shared };
  c10::Device device_;
  bool offers_;
  std::atomic<std::uint64_t> sums_{0};
  std::atomic<Known> known_{Known::nothing};
  std::vector<std::int64_t> processes_;  // of each rank
  DeviceDriver::Piece own_;
  std::size_t room_ = 0;            // bytes of one of the two places
  std::vector<std::byte*> places_;  // of each rank
  std::size_t turn_ = 0;            // which of the two
};

}  // namespace sinew
