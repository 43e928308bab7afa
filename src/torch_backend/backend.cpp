#include "torch_backend/backend.hpp"

#include <sinew/communicator.hpp>
#include "runtime/connect.hpp"
#include "runtime/environment.hpp"
#include "torch_backend/arguments.hpp"
#include "torch_backend/job_trace.hpp"
#include "torch_backend/torch_store.hpp"

namespace sinew {
namespace {

std::string describe(const std::string& name, const Tensors& tensors) {
  if (tensors.empty()) return name;
  const auto& first = tensors.front();
  return c10::str(name, " of ", c10::toString(first.scalar_type()), "[",
                  c10::Join(", ", first.sizes()), "]",
                  tensors.size() > 1 ? c10::str(" and ", tensors.size() - 1, " more") : "");
}

/// Which options say that whoever issues it waits at once.
template <class TorchOptions>
bool is_waited_for(const TorchOptions& options) {
  if constexpr (requires { options.asyncOp; }) return !options.asyncOp;
  return false;
}

/// What values are combined in.
Staged to_combine(const Tensors& tensors, Staged::Use use, SideStream* side) {
  return {tensors, use, side, combined_type(tensors.front().scalar_type())};
}

std::chrono::milliseconds or_default(std::chrono::milliseconds timeout) {
  return timeout > std::chrono::milliseconds(0) ? timeout : std::chrono::minutes(30);
}

}  // namespace

Backend::Backend(const c10::intrusive_ptr<c10d::Store>& store, int rank, int size,
                 std::chrono::milliseconds timeout)
    : BackendBase(rank, size), timeout_(or_default(timeout)) {
  sinew::Options options;
  options.timeout = timeout_;
  try {
    options.observer = process_trace(rank, size);
    options = with_environment(std::move(options));
    lane_ = Lane::make(join_by_store(std::make_shared<TorchStore>(store), rank, size, options),
                       options);
  } catch (const Error& error) {
    throw BackendError(
        error, c10::str("rank ", rank, " of ", size, " cannot join its group: ", error.what()));
  }
#if TORCH_VERSION_MAJOR >= 2
  init();
#endif
}

// The lane goes first: what it still runs uses the rest. Whoever hears of the end of an operation
// may need Python, which the caller may hold.
Backend::~Backend() {
  const bool holds = Py_IsInitialized() != 0 && PyGILState_Check() != 0;
  auto* const held = holds ? PyEval_SaveThread() : nullptr;
  lane_.reset();
  if (holds) PyEval_RestoreThread(held);
}

void Backend::abort() { lane_->abort(c10::str("rank ", getRank(), " aborted the group")); }

void Backend::shutdown() {
  Job last = job(c10d::OpType::UNKNOWN, "shutdown", timeout_, {});
  issue(std::move(last), [](Communicator&, std::vector<Staged>&) {
    return Request{};
  })->wait(kNoTimeout);
}

std::uint64_t Backend::sums_on_device() const {
  return shared_device_ == nullptr ? 0 : shared_device_->sums();
}

SideStream* Backend::side_of(const Tensors& tensors) {
  for (const auto& tensor : tensors)
    if (!tensor.device().is_cpu()) {
      const auto index = tensor.device().index();
      auto side = sides_.find(index);
      if (side == sides_.end()) side = sides_.emplace(index, tensor.device()).first;
      side->second.follow_caller();
      return &side->second;
    }
  return nullptr;
}

Backend::Job Backend::job(c10d::OpType type, std::string name, std::chrono::milliseconds timeout,
                          const Tensors& touched) {
  Job job;
  job.type = type;
  job.name = std::move(name);
  job.results = touched;
  job.touched = touched;
  job.timeout = timeout > std::chrono::milliseconds(0) ? timeout : timeout_;
  job.side = side_of(touched);
  return job;
}

WorkPtr Backend::issue(Job job, Body body) {
  ++issued_;
  if (job.timeout <= std::chrono::milliseconds(0)) job.timeout = timeout_;
  std::vector<c10::Device> devices;
  if (job.side != nullptr) devices.push_back(job.side->stream().device());
  auto work = c10::make_intrusive<BackendWork>(getRank(), job.type, lane_, std::move(job.results),
                                               std::move(devices), job.timeout, job.source);
  const auto staged = std::make_shared<std::vector<Staged>>(std::move(job.staged));
  LaneTask task;
  task.timeout = job.timeout;
  task.begin = [staged, body = std::move(body), side = job.side](Communicator& communicator) {
    if (side != nullptr && !staged->empty()) side->synchronize();
    return body(communicator, *staged);
  };
  task.finish = [staged, work, side = job.side, name = std::move(job.name),
                 touched = std::move(job.touched)](std::exception_ptr failure) {
    try {
      if (failure) std::rethrow_exception(failure);
      std::optional<c10::StreamGuard> on;
      if (side != nullptr) on.emplace(side->stream());
      for (auto& one : *staged) one.write_back();
    } catch (const Error& error) {
      failure = std::make_exception_ptr(
          BackendError(error, c10::str(describe(name, touched), ": ", error.what())));
    } catch (...) {
      failure = std::current_exception();
    }
    work->end(failure, side);
  };
  lane_->issue(std::move(task), job.waited_for);
  return work;
}

// The first thing staged is the input, the last the output; one alone is both.
WorkPtr Backend::issue_call(Job job, Call call, std::vector<std::size_t> counts,
                            std::vector<std::size_t> recv_counts) {
  call.options.timeout = job.timeout;
  return issue(std::move(job),
               [call, counts = std::move(counts), recv_counts = std::move(recv_counts)](
                   Communicator& communicator, std::vector<Staged>& staged) {
                 auto now = call;
                 if (!staged.empty()) {
                   now.input = staged.front().data();
                   now.output = staged.back().data();
                 }
                 if (!counts.empty()) now.counts = counts;
                 if (!recv_counts.empty()) now.recv_counts = recv_counts;
                 communicator.run(now);
                 return Request{};
               });
}

// Whether ranks share the device they find out when it is this one's turn: until then nothing is
// copied to the host.
WorkPtr Backend::issue_device_sum(Job job, const Call& call, std::shared_ptr<SharedDevice> device,
                                  const at::Tensor& tensor) {
  tensor.record_stream(job.side->stream());
  auto* const side = job.side;
  const auto timeout = job.timeout;
  return issue(std::move(job), [call, tensor, device = std::move(device), side, timeout](
                                   Communicator& communicator, std::vector<Staged>&) {
    if (device->sum(communicator, tensor, *side, timeout)) return Request{};
    auto staged = to_combine({tensor}, Staged::Use::both, side);
    side->synchronize();
    auto now = call;
    now.options.timeout = timeout;
    now.input = now.output = staged.data();
    communicator.run(now);
    const c10::StreamGuard on(side->stream());
    staged.write_back();
    return Request{};
  });
}

WorkPtr Backend::allreduce(Tensors& tensors, const c10d::AllreduceOptions& options) {
  const auto& tensor = only(tensors, "all_reduce");
  const auto call = call_to_combine(Collective::allreduce, tensor.scalar_type(), tensor.numel(),
                                    options.reduceOp, "all_reduce");
  auto work = job(c10d::OpType::ALLREDUCE, "all_reduce", options.timeout, tensors);
  work.waited_for = is_waited_for(options);
  if (work.side != nullptr && options.reduceOp == c10d::ReduceOp::SUM) {
    if (shared_device_ == nullptr)
      shared_device_ = std::make_shared<SharedDevice>(
          tensor.device(), read_environment(process_environment()).shared_device);
    if (shared_device_->suits(tensor))
      return issue_device_sum(std::move(work), call, shared_device_, tensor);
  }
  work.staged.push_back(to_combine(tensors, Staged::Use::both, work.side));
  return issue_call(std::move(work), call);
}

WorkPtr Backend::allreduce_coalesced(Tensors& tensors,
                                     const c10d::AllreduceCoalescedOptions& options) {
  if (tensors.empty()) refuse("all_reduce_coalesced of no tensors");
  check_list(tensors, static_cast<int>(tensors.size()), tensors.front(), "all_reduce_coalesced");
  auto work =
      job(c10d::OpType::ALLREDUCE_COALESCED, "all_reduce_coalesced", options.timeout, tensors);
  work.staged.push_back(to_combine(tensors, Staged::Use::both, work.side));
  const auto call =
      call_to_combine(Collective::allreduce, tensors.front().scalar_type(),
                      work.staged.front().elements(), options.reduceOp, "all_reduce_coalesced");
  return issue_call(std::move(work), call);
}

WorkPtr Backend::reduce(Tensors& tensors, const c10d::ReduceOptions& options) {
  const auto& tensor = only(tensors, "reduce");
  const auto root = static_cast<int>(options.rootRank);
  const auto call = call_to_combine(Collective::reduce, tensor.scalar_type(), tensor.numel(),
                                    options.reduceOp, "reduce", root);
  auto work = job(c10d::OpType::REDUCE, "reduce", options.timeout, tensors);
  const bool is_root = getRank() == root;
  work.staged.push_back(
      to_combine(tensors, is_root ? Staged::Use::both : Staged::Use::reads, work.side));
  if (is_root) return issue_call(std::move(work), call);
  return issue(std::move(work), [call, timeout = work.timeout](Communicator& communicator,
                                                               std::vector<Staged>& staged) {
    auto now = call;
    now.options.timeout = timeout;
    now.input = staged.front().data();
    communicator.run(now);
    return Request{};
  });
}

WorkPtr Backend::broadcast(Tensors& tensors, const c10d::BroadcastOptions& options) {
  const auto& tensor = only(tensors, "broadcast");
  const auto root = static_cast<int>(options.rootRank);
  auto work = job(c10d::OpType::BROADCAST, "broadcast", options.timeout, tensors);
  work.staged.emplace_back(tensors, getRank() == root ? Staged::Use::reads : Staged::Use::writes,
                           work.side);
  work.waited_for = is_waited_for(options);
  return issue_call(std::move(work), call_to_move(Collective::broadcast, tensor.scalar_type(),
                                                  tensor.numel(), root));
}

WorkPtr Backend::allgather(TensorLists& outputs, Tensors& inputs,
                           const c10d::AllgatherOptions& options) {
  const auto& input = only(inputs, "all_gather");
  if (outputs.size() != 1) refuse("all_gather takes one list of outputs");
  check_list(outputs.front(), getSize(), input, "all_gather");
  check_total(outputs.front()[static_cast<std::size_t>(getRank())].numel(), input.numel(),
              "all_gather", "output of this rank");
  auto work = job(c10d::OpType::ALLGATHER, "all_gather", options.timeout, inputs);
  work.results = outputs.front();
  work.staged.emplace_back(inputs, Staged::Use::reads, work.side);
  work.staged.emplace_back(outputs.front(), Staged::Use::writes, work.side);
  return issue_call(std::move(work),
                    call_to_move(Collective::allgather, input.scalar_type(), input.numel()),
                    uneven_counts(outputs.front(), input.scalar_type()));
}

WorkPtr Backend::_allgather_base(at::Tensor& output, at::Tensor& input,
                                 const c10d::AllgatherOptions& options) {
  check_list({output}, 1, input, "all_gather_into_tensor");
  check_total(output.numel(), input.numel() * getSize(), "all_gather_into_tensor", "output");
  auto work =
      job(c10d::OpType::_ALLGATHER_BASE, "all_gather_into_tensor", options.timeout, {input});
  work.results = {output};
  work.staged.emplace_back(Tensors{input}, Staged::Use::reads, work.side);
  work.staged.emplace_back(Tensors{output}, Staged::Use::writes, work.side);
  return issue_call(std::move(work),
                    call_to_move(Collective::allgather, input.scalar_type(), input.numel()));
}

// A list of outputs for each rank, in each a tensor for each input. One operation an input; the
// last one's end is the end of all.
WorkPtr Backend::allgather_coalesced(TensorLists& outputs, Tensors& inputs,
                                     const c10d::AllgatherOptions& options) {
  if (inputs.empty()) refuse("all_gather_coalesced of no tensors");
  if (static_cast<int>(outputs.size()) != getSize())
    refuse(c10::str("all_gather_coalesced: ", outputs.size(), " lists of outputs for ", getSize(),
                    " ranks"));
  WorkPtr last;
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    TensorLists one(1);
    for (auto& list : outputs) one.front().push_back(list.at(i));
    Tensors input{inputs[i]};
    if (last) last->wait();  // works may end out of order, and the caller sees only the last
    last = allgather(one, input, options);
  }
  return last;
}

WorkPtr Backend::gather(TensorLists& outputs, Tensors& inputs, const c10d::GatherOptions& options) {
  const auto& input = only(inputs, "gather");
  const auto root = static_cast<int>(options.rootRank);
  auto work = job(c10d::OpType::GATHER, "gather", options.timeout, inputs);
  work.staged.emplace_back(inputs, Staged::Use::reads, work.side);
  work.results.clear();
  if (getRank() == root) {
    if (outputs.size() != 1) refuse("gather takes one list of outputs at its root");
    check_list(outputs.front(), getSize(), input, "gather");
    for (const auto& output : outputs.front())
      check_total(output.numel(), input.numel(), "gather", "output");
    work.results = outputs.front();
    work.staged.emplace_back(outputs.front(), Staged::Use::writes, work.side);
  }
  return issue_call(std::move(work),
                    call_to_move(Collective::gather, input.scalar_type(), input.numel(), root));
}

WorkPtr Backend::scatter(Tensors& outputs, TensorLists& inputs,
                         const c10d::ScatterOptions& options) {
  const auto& output = only(outputs, "scatter");
  const auto root = static_cast<int>(options.rootRank);
  auto work = job(c10d::OpType::SCATTER, "scatter", options.timeout, outputs);
  if (getRank() == root) {
    if (inputs.size() != 1) refuse("scatter takes one list of inputs at its root");
    check_list(inputs.front(), getSize(), output, "scatter");
    for (const auto& input : inputs.front())
      check_total(input.numel(), output.numel(), "scatter", "input");
    work.staged.emplace_back(inputs.front(), Staged::Use::reads, work.side);
  }
  work.staged.emplace_back(outputs, Staged::Use::writes, work.side);
  return issue_call(std::move(work),
                    call_to_move(Collective::scatter, output.scalar_type(), output.numel(), root));
}

WorkPtr Backend::reduce_scatter(Tensors& outputs, TensorLists& inputs,
                                const c10d::ReduceScatterOptions& options) {
  const auto& output = only(outputs, "reduce_scatter");
  if (inputs.size() != 1) refuse("reduce_scatter takes one list of inputs");
  check_list(inputs.front(), getSize(), output, "reduce_scatter");
  check_total(inputs.front()[static_cast<std::size_t>(getRank())].numel(), output.numel(),
              "reduce_scatter", "input of this rank");
  auto work = job(c10d::OpType::REDUCE_SCATTER, "reduce_scatter", options.timeout, outputs);
  work.staged.push_back(to_combine(inputs.front(), Staged::Use::reads, work.side));
  work.staged.push_back(to_combine(outputs, Staged::Use::writes, work.side));
  return issue_call(std::move(work),
                    call_to_combine(Collective::reduce_scatter, output.scalar_type(),
                                    output.numel(), options.reduceOp, "reduce_scatter"),
                    uneven_counts(inputs.front(), combined_type(output.scalar_type())));
}

WorkPtr Backend::_reduce_scatter_base(at::Tensor& output, at::Tensor& input,
                                      const c10d::ReduceScatterOptions& options) {
  check_list({input}, 1, output, "reduce_scatter_tensor");
  check_total(input.numel(), output.numel() * getSize(), "reduce_scatter_tensor", "input");
  auto work =
      job(c10d::OpType::_REDUCE_SCATTER_BASE, "reduce_scatter_tensor", options.timeout, {output});
  work.staged.push_back(to_combine(Tensors{input}, Staged::Use::reads, work.side));
  work.staged.push_back(to_combine(Tensors{output}, Staged::Use::writes, work.side));
  return issue_call(std::move(work),
                    call_to_combine(Collective::reduce_scatter, output.scalar_type(),
                                    output.numel(), options.reduceOp, "reduce_scatter_tensor"));
}

#if TORCH_VERSION_MAJOR >= 2
WorkPtr Backend::allgather_into_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                 const c10d::AllgatherOptions& options) {
  if (inputs.empty() || inputs.size() != outputs.size())
    refuse("all_gather_into_tensor_coalesced: as many outputs as inputs are needed, at least one");
  WorkPtr last;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    last = _allgather_base(outputs[i], inputs[i], options);
  return last;
}

WorkPtr Backend::reduce_scatter_tensor_coalesced(Tensors& outputs, Tensors& inputs,
                                                 const c10d::ReduceScatterOptions& options) {
  if (inputs.empty() || inputs.size() != outputs.size())
    refuse("reduce_scatter_tensor_coalesced: as many outputs as inputs are needed, at least one");
  WorkPtr last;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    last = _reduce_scatter_base(outputs[i], inputs[i], options);
  return last;
}
#endif

WorkPtr Backend::alltoall(Tensors& outputs, Tensors& inputs, const c10d::AllToAllOptions& options) {
  if (inputs.empty()) refuse("all_to_all of no tensors");
  check_list(inputs, getSize(), inputs.front(), "all_to_all");
  check_list(outputs, getSize(), inputs.front(), "all_to_all");
  auto work = job(c10d::OpType::ALLTOALL, "all_to_all", options.timeout, inputs);
  work.results = outputs;
  work.staged.emplace_back(inputs, Staged::Use::reads, work.side);
  work.staged.emplace_back(outputs, Staged::Use::writes, work.side);
  // Whether sizes differ must be known to all ranks alike, and no rank sees all: so they may.
  const auto each = elements_of(inputs.front().scalar_type()).each;
  std::vector<std::size_t> counts, recv_counts;
  for (const auto& input : inputs) counts.push_back(static_cast<std::size_t>(input.numel()) * each);
  for (const auto& output : outputs)
    recv_counts.push_back(static_cast<std::size_t>(output.numel()) * each);
  return issue_call(std::move(work),
                    call_to_move(Collective::alltoall, inputs.front().scalar_type(), 0),
                    std::move(counts), std::move(recv_counts));
}

namespace {

/// Elements that go to, or come from, each rank: `splits` rows, or equal parts.
std::vector<std::size_t> split_counts(const at::Tensor& tensor,
                                      const std::vector<std::int64_t>& splits, int size,
                                      const char* which) {
  const auto rows = tensor.dim() == 0 ? 1 : tensor.size(0);
  if (splits.empty()) {
    if (rows % size != 0)
      refuse(c10::str("all_to_all_single: the ", which, "'s ", rows,
                      " rows cannot be divided among ", size, " ranks; give split sizes"));
    const auto each = elements_of(tensor.scalar_type()).each;
    return std::vector<std::size_t>(static_cast<std::size_t>(size),
                                    static_cast<std::size_t>(tensor.numel() / size) * each);
  }
  std::int64_t sum = 0;
  for (const auto split : splits) sum += split;
  if (static_cast<int>(splits.size()) != size || sum != rows)
    refuse(c10::str("all_to_all_single: ", splits.size(), " split sizes that sum to ", sum, " for ",
                    size, " ranks and an ", which, " of ", rows, " rows"));
  const auto row = rows == 0 ? 0 : tensor.numel() / rows;
  const auto each = elements_of(tensor.scalar_type()).each;
  std::vector<std::size_t> counts;
  for (const auto split : splits) counts.push_back(static_cast<std::size_t>(split * row) * each);
  return counts;
}

}  // namespace

WorkPtr Backend::alltoall_base(at::Tensor& output, at::Tensor& input,
                               std::vector<std::int64_t>& output_splits,
                               std::vector<std::int64_t>& input_splits,
                               const c10d::AllToAllOptions& options) {
  check_list({output}, 1, input, "all_to_all_single");
  auto counts = split_counts(input, input_splits, getSize(), "input");
  auto recv_counts = split_counts(output, output_splits, getSize(), "output");
  auto work = job(c10d::OpType::ALLTOALL_BASE, "all_to_all_single", options.timeout, {input});
  work.results = {output};
  work.staged.emplace_back(Tensors{input}, Staged::Use::reads, work.side);
  work.staged.emplace_back(Tensors{output}, Staged::Use::writes, work.side);
  return issue_call(std::move(work), call_to_move(Collective::alltoall, input.scalar_type(), 0),
                    std::move(counts), std::move(recv_counts));
}

WorkPtr Backend::send(Tensors& tensors, int to, int tag) {
  only(tensors, "send");
  auto work = job(c10d::OpType::SEND, c10::str("send to rank ", to), timeout_, tensors);
  work.staged.emplace_back(tensors, Staged::Use::reads, work.side);
  return issue(std::move(work), [to, tag](Communicator& communicator, std::vector<Staged>& staged) {
    const auto& data = staged.front();
    return communicator.isend(std::span(static_cast<const std::byte*>(data.data()), data.bytes()),
                              to, static_cast<std::uint32_t>(tag));
  });
}

WorkPtr Backend::recv(Tensors& tensors, int from, int tag) {
  only(tensors, "recv");
  auto work = job(c10d::OpType::RECV, c10::str("recv from rank ", from), timeout_, tensors);
  work.staged.emplace_back(tensors, Staged::Use::writes, work.side);
  return issue(
      std::move(work), [from, tag](Communicator& communicator, std::vector<Staged>& staged) {
        const auto& data = staged.front();
        return communicator.irecv(std::span(static_cast<std::byte*>(data.data()), data.bytes()),
                                  from, static_cast<std::uint32_t>(tag));
      });
}

WorkPtr Backend::recvAnysource(Tensors& tensors, int tag) {
  only(tensors, "recv");
  auto work = job(c10d::OpType::RECVANYSOURCE, c10::str("recv from any rank with tag ", tag),
                  timeout_, tensors);
  work.staged.emplace_back(tensors, Staged::Use::writes, work.side);
  const auto source = std::make_shared<int>(-1);
  work.source = source;
  return issue(
      std::move(work), [source, tag](Communicator& communicator, std::vector<Staged>& staged) {
        const auto& data = staged.front();
        return communicator.irecv_any(std::span(static_cast<std::byte*>(data.data()), data.bytes()),
                                      *source, static_cast<std::uint32_t>(tag));
      });
}

WorkPtr Backend::barrier(const c10d::BarrierOptions& options) {
  auto work = job(c10d::OpType::BARRIER, "barrier", options.timeout, {});
  return issue_call(std::move(work), {.collective = Collective::barrier});
}

// Every operation of ours names who is late; this one waits for it too.
void Backend::monitoredBarrier(const c10d::BarrierOptions& options, bool /*wait_for_all*/) {
  barrier(options)->wait(kNoTimeout);
}

}  // namespace sinew
