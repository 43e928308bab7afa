// The torch.distributed backend `sinew`: what torch asks of a group, as operations of a lane. One
// source for torch 1.13, where a backend is a ProcessGroup, and 2.x, where it is a Backend.
#pragma once

#include "torch_backend/shared_device.hpp"
#include "torch_backend/work.hpp"

#if __has_include(<torch/csrc/api/include/torch/version.h>)
#include <torch/csrc/api/include/torch/version.h>
#else
#include <torch/version.h>
#endif

#include <torch/csrc/distributed/c10d/Store.hpp>
#include <torch/csrc/distributed/c10d/Types.hpp>
#if TORCH_VERSION_MAJOR >= 2
#include <torch/csrc/distributed/c10d/Backend.hpp>
#else
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>
#endif

#include <map>

namespace sinew {

#if TORCH_VERSION_MAJOR >= 2
using BackendBase = c10d::Backend;
#else
using BackendBase = c10d::ProcessGroup;
#endif
using WorkPtr = c10::intrusive_ptr<c10d::Work>;
using Tensors = std::vector<at::Tensor>;
using TensorLists = std::vector<Tensors>;

class Backend final : public BackendBase {
 public:
  /// Meets the other ranks of the group in `store`.
  Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
          std::chrono::milliseconds timeout);
  ~Backend() override;

  const std::string getBackendName() const override { return "sinew"; }

  WorkPtr allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) override;
  WorkPtr allreduce_coalesced(Tensors& tensors,
                              const c10d::AllreduceCoalescedOptions& options) override;
  WorkPtr reduce(Tensors& tensors, const c10d::ReduceOptions& options) override;
  WorkPtr broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) override;
  WorkPtr allgather(TensorLists& outputs, Tensors& inputs,
                    const c10d::AllgatherOptions& options) override;
  WorkPtr _allgather_base(at::Tensor& output, at::Tensor& input,
                          const c10d::AllgatherOptions& options) override;
  WorkPtr allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                              const c10d::AllgatherOptions& options) override;
  WorkPtr gather(TensorLists& outputs, Tensors& inputs,
                 const c10d::GatherOptions& options) override;
  WorkPtr scatter(Tensors& outputs, TensorLists& inputs,
                  const c10d::ScatterOptions& options) override;
  WorkPtr reduce_scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ReduceScatterOptions& options) override;
  WorkPtr _reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                               const c10d::ReduceScatterOptions& options) override;
  WorkPtr alltoall(Tensors& outputs, Tensors& inputs,
                   const c10d::AllToAllOptions& options) override;
  WorkPtr alltoall_base(at::Tensor& output, at::Tensor& input,
                        std::vector<std::int64_t>& output_splits,
                        std::vector<std::int64_t>& input_splits,
                        const c10d::AllToAllOptions& options) override;
  WorkPtr send(Tensors& tensors, int to, int tag) override;
  WorkPtr recv(Tensors& tensors, int from, int tag) override;
  WorkPtr recvAnysource(Tensors& tensors, int tag) override;
  WorkPtr barrier(const c10d::BarrierOptions& options) override;
  void monitoredBarrier(const c10d::BarrierOptions& options, bool wait_for_all) override;
#if TORCH_VERSION_MAJOR >= 2
  WorkPtr allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::AllgatherOptions& options) override;
  WorkPtr reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                          const c10d::ReduceScatterOptions& options) override;
#endif

  // Ranks issue in the same order, so that counting is agreeing.
  void setSequenceNumberForGroup() override {}
  std::uint64_t getSequenceNumberForGroup() override { return issued_.load(); }

  /// What is under way fails, on all ranks, and so does all that comes.
  void abort();
  /// After what was issued.
  void shutdown();

  /// How many sums of CUDA tensors stayed on a device that all ranks share.
  [[nodiscard]] std::uint64_t sums_on_device() const;

  /// What one operation touches, and what of it is waited for.
  struct Job {
    c10d::OpType type{};
    std::string name{};                     // torch's, for error texts
    Tensors touched{};                      // likewise
    Tensors results{};                      // value of the future
    std::vector<Staged> staged{};           // in the order in which `body` takes them
    std::chrono::milliseconds timeout{-1};  // negative: the group's
    SideStream* side = nullptr;             // where something is on a device
    bool waited_for = false;                // see Lane::issue()
    std::shared_ptr<int> source{};          // of a recv from any rank: who sent it
  };
  using Body = std::function<Request(Communicator&, std::vector<Staged>&)>;
  /// Gives an operation to the lane.
  WorkPtr issue(Job job, Body body);
  /// The stream for copies of these tensors; null where they are on the host. They are on one
  /// device.
  SideStream* side_of(const Tensors& tensors);

 private:
  WorkPtr issue_device_sum(Job job, const Call& call, std::shared_ptr<SharedDevice> device,
                           const at::Tensor& tensor);
  WorkPtr issue_call(Job job, Call call, std::vector<std::size_t> counts = {},
                     std::vector<std::size_t> recv_counts = {});
  [[nodiscard]] Job job(c10d::OpType type, std::string name, std::chrono::milliseconds timeout,
                        const Tensors& touched);

  std::chrono::milliseconds timeout_;
  std::shared_ptr<Lane> lane_;
  std::map<c10::DeviceIndex, SideStream> sides_;
  std::shared_ptr<SharedDevice> shared_device_;  // once there was a tensor for it
  std::atomic<std::uint64_t> issued_{0};
};

}  // namespace sinew
