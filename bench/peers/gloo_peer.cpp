// Gloo as a contender, over TCP on loopback, its only transport between processes of one host.
#include <gloo/allgather.h>
#include <gloo/allgatherv.h>
#include <gloo/allreduce.h>
#include <gloo/allreduce_halving_doubling.h>
#include <gloo/alltoall.h>
#include <gloo/alltoallv.h>
#include <gloo/barrier.h>
#include <gloo/broadcast.h>
#include <gloo/gather.h>
#include <gloo/math.h>
#include <gloo/reduce.h>
#include <gloo/reduce_scatter.h>
#include <gloo/rendezvous/context.h>
#include <gloo/rendezvous/store.h>
#include <gloo/scatter.h>
#include <gloo/transport/tcp/device.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <exception>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <string>
#include <thread>
#include <vector>

#include "measure/measure.hpp"

namespace sinew::bench {
namespace {

using ReduceFunction = std::function<void(void*, const void*, const void*, std::size_t)>;

ReduceFunction float_sum() {
  return static_cast<void (*)(void*, const void*, const void*, std::size_t)>(&gloo::sum<float>);
}

/// Addresses go through the control segment, so that no rendezvous file is left anywhere.
class SegmentStore final : public gloo::rendezvous::Store {
 public:
  explicit SegmentStore(Control& control) : control_(control) {}

  void set(const std::string& key, const std::vector<char>& data) override {
    control_.publish(key, {data.data(), data.size()});
  }
  std::vector<char> get(const std::string& key) override {
    while (true) {
      if (const auto data = control_.published(key)) return {data->begin(), data->end()};
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  }
  void wait(const std::vector<std::string>& keys) override {
    for (const auto& key : keys) get(key);
  }

 private:
  Control& control_;
};

class GlooContender final : public Contender {
 public:
  explicit GlooContender(Control& control) : control_(control), seat_(control.seat()) {
    gloo::transport::tcp::attr where;
    where.hostname = "127.0.0.1";
    SegmentStore store(control);
    context_ = std::make_shared<gloo::rendezvous::Context>(seat_.rank, seat_.ranks);
    context_->connectFullMesh(store, device_ = gloo::transport::tcp::CreateDevice(where));
  }

  bool supports(const Case& what) override {
    const bool empty = what.counts.empty() && elements_per_rank(what, seat_.ranks) == 0;
    const bool whole = what.collective == Collective::allreduce ||
                       what.collective == Collective::reduce ||
                       what.collective == Collective::broadcast;
    // Several of its collectives divide by the elements of a part.
    if (empty && !whole && what.collective != Collective::barrier) return false;
    return what.element_bytes == sizeof(float) && what.options.empty();
  }

  void prepare(const Case& what, const Buffers& buffers) override {
    what_ = what;
    in_ = reinterpret_cast<float*>(buffers.input.data());
    out_ = reinterpret_cast<float*>(buffers.output.data());
    vector_ = what.bytes / sizeof(float);
    part_ = elements_per_rank(what, seat_.ranks);
    call_ = what.collective == Collective::allreduce ? fastest_allreduce() : chosen();
  }

  void run() override { call_(); }

  void finish() override { call_ = nullptr; }

 private:
  using Call = std::function<void()>;

  template <class Options>
  Options options() {
    Options made(context_);
    made.setTag(tag_++ & 0xFF);
    return made;
  }

  /// The ring, the bcube and halving-doubling each win somewhere: all ranks try all three and take
  /// the one whose slowest rank was the quickest.
  Call fastest_allreduce() {
    const std::vector<std::function<Call()>> ways{
        [this] { return allreduce(gloo::AllreduceOptions::Algorithm::RING); },
        [this] { return allreduce(gloo::AllreduceOptions::Algorithm::BCUBE); },
        [this] { return halving_doubling(); }};
    if (const auto known = fastest_.find(vector_); known != fastest_.end()) {
      return ways[known->second]();
    }
    std::size_t best = 0;
    std::uint64_t best_ns = std::numeric_limits<std::uint64_t>::max();
    for (std::size_t way = 0; way < ways.size(); ++way) {
      const auto call = ways[way]();
      call();  // connections and buffers warm up
      for (int attempt = 0; attempt < 3; ++attempt) {
        control_.barrier();
        const std::uint64_t begin_ns = now_ns();
        call();
        control_.stamp(0, {.begin_ns = begin_ns, .end_ns = now_ns()});
        control_.barrier();
        const Stamp last = control_.last_of_all(0);
        control_.barrier();
        if (last.end_ns - last.begin_ns < best_ns) {
          best_ns = last.end_ns - last.begin_ns;
          best = way;
        }
      }
    }
    fastest_[vector_] = best;
    return ways[best]();
  }

  Call allreduce(gloo::AllreduceOptions::Algorithm algorithm) {
    return [this, algorithm] {
      auto made = options<gloo::AllreduceOptions>();
      if (!what_.in_place) made.setInput(in_, vector_);
      made.setOutput(out_, vector_);
      made.setAlgorithm(algorithm);
      made.setReduceFunction(float_sum());
      gloo::allreduce(made);
    };
  }

  Call halving_doubling() {
    const auto made = std::make_shared<gloo::AllreduceHalvingDoubling<float>>(
        context_, std::vector<float*>{out_}, static_cast<int>(vector_));
    return [this, made] {
      if (!what_.in_place) std::memcpy(out_, in_, vector_ * sizeof(float));
      made->run();
    };
  }

  /// Reduces in place, so the input is copied first; that is part of the call, as for any user.
  Call reduce_scatter() {
    const auto count = static_cast<int>(part_) * seat_.ranks;
    const auto work = std::make_shared<std::vector<float>>(static_cast<std::size_t>(count));
    const auto made = std::make_shared<gloo::ReduceScatterHalvingDoubling<float>>(
        context_, std::vector<float*>{work->data()}, count,
        std::vector<int>(static_cast<std::size_t>(seat_.ranks), static_cast<int>(part_)));
    return [this, work, made] {
      std::ranges::copy_n(in_, static_cast<std::ptrdiff_t>(work->size()), work->data());
      made->run();
      std::ranges::copy_n(work->data(), static_cast<std::ptrdiff_t>(part_), out_);
    };
  }

  Call chosen() {
    switch (what_.collective) {
      case Collective::reduce_scatter:
        return reduce_scatter();
      case Collective::reduce:
        return [this] { reduce(); };
      case Collective::broadcast:
        return [this] {
          auto made = options<gloo::BroadcastOptions>();
          made.setOutput(out_, vector_);
          made.setRoot(what_.root);
          gloo::broadcast(made);
        };
      case Collective::allgather:
        return [this] {
          auto made = options<gloo::AllgatherOptions>();
          made.setInput(in_, part_);
          made.setOutput(out_, part_ * static_cast<std::size_t>(seat_.ranks));
          gloo::allgather(made);
        };
      case Collective::allgatherv:
        return [this] {
          auto made = options<gloo::AllgathervOptions>();
          made.setInput(in_, what_.counts[static_cast<std::size_t>(seat_.rank)]);
          made.setOutput(out_, std::vector<std::size_t>(what_.counts.begin(), what_.counts.end()));
          gloo::allgatherv(made);
        };
      case Collective::alltoall:
        return [this] {
          auto made = options<gloo::AlltoallOptions>();
          made.setInput(in_, part_ * static_cast<std::size_t>(seat_.ranks));
          made.setOutput(out_, part_ * static_cast<std::size_t>(seat_.ranks));
          gloo::alltoall(made);
        };
      case Collective::alltoallv:
        return [this] { alltoallv(); };
      case Collective::scatter:
        return [this] { scatter(); };
      case Collective::gather:
        return [this] {
          auto made = options<gloo::GatherOptions>();
          made.setInput(in_, part_);
          if (seat_.rank == what_.root) {
            made.setOutput(out_, part_ * static_cast<std::size_t>(seat_.ranks));
          }
          made.setRoot(what_.root);
          gloo::gather(made);
        };
      case Collective::allreduce:
      case Collective::barrier:
        break;
    }
    return [this] {
      auto made = options<gloo::BarrierOptions>();
      gloo::barrier(made);
    };
  }

  void reduce() {
    // Gloo wants an output on every rank, the root's alone being the result.
    scratch_.resize(seat_.rank == what_.root ? 0 : vector_);
    auto made = options<gloo::ReduceOptions>();
    made.setInput(in_, vector_);
    made.setOutput(seat_.rank == what_.root ? out_ : scratch_.data(), vector_);
    made.setRoot(what_.root);
    made.setReduceFunction(float_sum());
    gloo::reduce(made);
  }

  void alltoallv() {
    std::vector<std::int64_t> sent;
    std::vector<std::int64_t> received;
    for (int peer = 0; peer < seat_.ranks; ++peer) {
      sent.push_back(
          static_cast<std::int64_t>(pair_elements(what_, seat_.rank, peer, seat_.ranks)));
      received.push_back(
          static_cast<std::int64_t>(pair_elements(what_, peer, seat_.rank, seat_.ranks)));
    }
    auto made = options<gloo::AlltoallvOptions>();
    made.setInput(in_, std::move(sent));
    made.setOutput(out_, std::move(received));
    gloo::alltoallv(made);
  }

  void scatter() {
    auto made = options<gloo::ScatterOptions>();
    if (seat_.rank == what_.root) {
      std::vector<float*> parts;
      for (int peer = 0; peer < seat_.ranks; ++peer) {
        parts.push_back(in_ + static_cast<std::size_t>(peer) * part_);
      }
      made.setInputs(parts, part_);
    }
    made.setOutput(out_, part_);
    made.setRoot(what_.root);
    gloo::scatter(made);
  }

  Control& control_;
  Seat seat_;
  std::shared_ptr<gloo::transport::Device> device_;
  std::shared_ptr<gloo::rendezvous::Context> context_;
  Case what_;
  float* in_ = nullptr;
  float* out_ = nullptr;
  std::size_t vector_ = 0;  // elements
  std::size_t part_ = 0;    // elements
  std::vector<float> scratch_;
  std::uint32_t tag_ = 0;
  std::map<std::size_t, std::size_t> fastest_;  // allreduce way by elements
  Call call_;
};

}  // namespace
}  // namespace sinew::bench

int main(int argc, char** argv) {
  if (argc != 3) {
    std::fprintf(stderr, "usage: %s CONTROL RANK (started by sinew bench)\n", argv[0]);
    return 2;
  }
  try {
    sinew::bench::Control control(argv[1], std::stoi(argv[2]));
    sinew::bench::GlooContender contender(control);
    sinew::bench::serve(control, contender);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "rank %s: %s\n", argv[2], error.what());
    ::_exit(1);  // Gloo's destructors would wait for ranks that may be gone
  }
  ::_exit(0);
}
