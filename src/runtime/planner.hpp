// From a call to a plan: checks, choice of algorithm, binding, and the cache of all that.
#pragma once

#include <algorithm>
#include <map>
#include <memory>
#include <unordered_map>

#include <sinew/communicator.hpp>
#include "model/select.hpp"
#include "runtime/plan.hpp"
#include "runtime/trial.hpp"

namespace sinew {

/// A plan and what ranks compare about it.
struct Planned {
  Plan plan;
  OpDescriptor descriptor;  // its tag is that of the call that runs
  std::uint64_t hash = 0;   // of the descriptor
  int users = 0;            // calls started and not finished: not to be forgotten meanwhile
};

class Planner {
 public:
  Planner(Transport& transport, const Options& options);

  /// The plan for a call, from the cache where it was made before. Throws Error on bad calls.
  Planned& plan(const Call& call) { return is_last(call) ? *last_ : find(call); }
  /// Training repeats itself: the same call as last time needs no key. Calls with counts take the
  /// longer way.
  [[nodiscard]] bool is_last(const Call& call) const noexcept {
    return last_ != nullptr && call.input == last_call_.input && call.output == last_call_.output &&
           call.count == last_call_.count && call.collective == last_call_.collective &&
           call.dtype == last_call_.dtype && call.op == last_call_.op &&
           call.root == last_call_.root && call.counts.data() == nullptr &&
           same_name(call.options.algorithm, last_algorithm_);
  }
  void install(const World& world);
  [[nodiscard]] std::vector<Candidate> explain(const Call& call) const;

  /// The trial that a call is part of until that is over; null: the call runs as plan() says.
  /// Throws Error on bad calls.
  const std::shared_ptr<Trial>* trial(const Call& call) {
    return trial_calls_ > 0 && !is_last(call) ? trial_under_way(call) : nullptr;
  }
  /// Machines change, and what else runs on them: once in a while trials begin again, at the same
  /// call on all ranks. To be asked before every call, with how many were before it.
  void review_trials(std::uint32_t calls_before) {
    // May be asked twice for one call, and kinds may have been added in between: as that only makes
    // reviews rarer, the second time does nothing.
    if (calls_before - reviewed_ >= kTrialsAgainEvery * std::max(1U, kinds_tried_)) [[unlikely]]
      begin_trials_again(calls_before);
  }
  /// The plan for a call in a trial, by one of its algorithms.
  Planned& plan_tried(const Call& call, const Algorithm& algorithm);
  /// The plan for the exchange of what was measured in it.
  Planned& plan_exchange(Trial& trial);

 private:
  // A few characters or none: shorter than the way to the library's comparison.
  static bool same_name(std::string_view a, std::string_view b) noexcept {
    std::size_t same = 0;
    while (same < std::min(a.size(), b.size()) && a[same] == b[same]) ++same;
    return a.size() == b.size() && same == a.size();
  }
  struct Key {
    Collective collective;
    DType dtype;
    ReduceOp op;
    bool in_place, shared;
    int root;
    std::size_t count;
    std::uint64_t counts;     // hash of the parts, 0 without
    std::uint64_t algorithm;  // hash of the name asked for, 0 for none
    const Algorithm* tried;   // what a trial is about or has found; null: none
    friend bool operator==(const Key&, const Key&) = default;
  };
  struct KeyHash {
    std::size_t operator()(const Key& key) const noexcept;
  };
  /// What calls of one kind have in common on all ranks, and so nothing else than what ranks
  /// compare about calls.
  using Kind = OpDescriptor;
  struct KindHash {
    std::size_t operator()(const Kind& kind) const noexcept;
  };
  struct Tried {
    std::shared_ptr<Trial> trial;
    bool shared_is_faster = false;  // where buffers lie in memory that all share, there is no trial
  };

  struct Predicted {
    const Algorithm* algorithm;
    double us;
  };

  Planned& find(const Call& call);
  [[nodiscard]] Key key_of(const Call& call) const noexcept;
  void check(const Call& call) const;
  [[nodiscard]] std::string_view wanted_algorithm(const Call& call) const noexcept;
  /// Of the large buffer.
  [[nodiscard]] std::size_t large_bytes(const Call& call) const noexcept;
  [[nodiscard]] Place place_for(const Algorithm& algorithm, const Call& call) const;
  [[nodiscard]] std::string_view refusal(const Algorithm& algorithm, const Call& call,
                                         bool shared) const;
  [[nodiscard]] bool lacks_levels(const Algorithm& algorithm, const Call& call) const;
  [[nodiscard]] double predicted_us(const Algorithm& algorithm, const Call& call) const;
  [[nodiscard]] std::vector<Candidate> predicted_best(const Call& call, bool shared) const;
  [[nodiscard]] const Algorithm& choose(const Call& call) const;
  [[nodiscard]] static Kind kind_of(const Call& call) noexcept;
  [[nodiscard]] static bool counts_are_private(const Call& call) noexcept;
  [[nodiscard]] bool takes_part(const Call& call) const noexcept;
  [[nodiscard]] std::vector<const Algorithm*> neutral(const Call& call,
                                                      std::span<const Predicted> fitting) const;
  [[nodiscard]] Tried make_trial(const Call& call) const;
  [[nodiscard]] const Trial* known_trial(const Call& call) const;
  const std::shared_ptr<Trial>* trial_for(const Call& call);
  const std::shared_ptr<Trial>* trial_under_way(const Call& call);
  void begin_trials_again(std::uint32_t calls_before);
  [[nodiscard]] Binding bind(const Schedule& schedule, const Call& call) const;
  Planned& planned_for(const Key& key, const Call& call);
  Planned& make(const Key& key, const Call& call);
  const World& world_of(const Algorithm& algorithm, int root);
  void forget_plans();

  Transport& transport_;
  const Options& options_;
  Surroundings surroundings_;   // what algorithms are chosen by
  int trial_calls_;             // 0: there are no trials here
  bool tries_any_;              // those were asked for; otherwise only where no bit depends on them
  std::uint32_t reviewed_ = 0;  // when trials last began again: after how many calls
  std::uint32_t kinds_tried_ = 0;  // that have a trial
  std::uint64_t last_ragged_ = 0;  // counts of the last call with counts
  std::unordered_map<Kind, Tried, KindHash> trials_;
  std::unordered_map<Key, std::unique_ptr<Planned>, KeyHash> plans_;
  std::map<std::pair<Collective, std::string>, World> installed_;
  std::map<std::pair<const Algorithm*, int>, World> worlds_;  // and root: of those by reference
  Call last_call_{};
  std::string last_algorithm_;  // the name in it, which is the caller's
  Planned* last_ = nullptr;     // the plan of last_call_
};

}  // namespace sinew
