#include "report/activities.hpp"

#include <algorithm>

#include "trace/activity.hpp"
#include "trace/arrivals.hpp"

namespace sinew::report {
namespace {

using trace::Activity;

struct Raw {
  std::vector<Interval> compute, data, compress, communication, waiting;
  std::vector<Interval>* of(Activity activity) {
    switch (activity) {
      case Activity::compute:
        return &compute;
      case Activity::data:
        return &data;
      case Activity::compress:
        return &compress;
      case Activity::communication:
        return &communication;
      default:
        return nullptr;
    }
  }
};

RankTime time_of(const trace::Trace& trace) {
  RankTime rank;
  std::vector<Activity> activities;
  for (const auto& counter : trace.counters)
    activities.push_back(trace::activity_of(trace::routine_name(trace, counter.key)));
  Raw raw;
  rank.whole = {trace.opened_ns, std::max(trace.latest_ns, trace.opened_ns)};
  rank.every_record = !trace.lost_records && trace.greatest_stride == 1;
  for (const auto& call : trace.records) {
    const auto end = call.begin_ns + call.duration_ns;
    rank.whole.end_ns = std::max(rank.whole.end_ns, end);
    if (auto* const list = raw.of(activities[call.counter])) list->push_back({call.begin_ns, end});
    if (call.waited_ns < 0) continue;
    rank.compared = true;
    const auto waited = std::min(static_cast<std::uint64_t>(call.waited_ns), call.duration_ns);
    raw.waiting.push_back({call.begin_ns, call.begin_ns + waited});
  }
  rank.names_compute = !raw.compute.empty();
  rank.names_data = !raw.data.empty();
  rank.names_compress = !raw.compress.empty();
  const auto compute = joined(std::move(raw.compute));
  const auto data = minus(joined(std::move(raw.data)), compute);
  const auto compress = minus(joined(std::move(raw.compress)), joined(compute, data));
  const auto busy = joined(joined(compute, data), compress);
  const auto communication = joined(std::move(raw.communication));
  const auto exposed = minus(communication, busy);
  const auto waiting = common(joined(std::move(raw.waiting)), exposed);
  rank.parts = {
      compute, data, compress, minus(exposed, waiting), waiting, common(communication, busy)};
  return rank;
}

}  // namespace

void Split::add(const Split& other, double weight) {
  elapsed_s += weight * other.elapsed_s;
  compute_s += weight * other.compute_s;
  data_s += weight * other.data_s;
  compress_s += weight * other.compress_s;
  moving_s += weight * other.moving_s;
  waiting_s += weight * other.waiting_s;
  hidden_s += weight * other.hidden_s;
}

std::vector<RankTime> rank_times(std::span<const trace::Trace> traces) {
  std::vector<RankTime> ranks;
  for (const auto& trace : traces) ranks.push_back(time_of(trace));
  return ranks;
}

std::vector<Split> splits_of(const RankTime& rank, std::span<const Interval> windows) {
  std::vector<Split> splits(windows.size());
  const auto put = [&](Part part, double Split::*field) {
    const auto covered = covered_ns(rank.of(part), windows);
    for (std::size_t i = 0; i < windows.size(); ++i) splits[i].*field = covered[i] * 1e-9;
  };
  put(Part::compute, &Split::compute_s);
  put(Part::data, &Split::data_s);
  put(Part::compress, &Split::compress_s);
  put(Part::moving, &Split::moving_s);
  put(Part::waiting, &Split::waiting_s);
  put(Part::hidden, &Split::hidden_s);
  for (std::size_t i = 0; i < windows.size(); ++i) splits[i].elapsed_s = windows[i].length() * 1e-9;
  return splits;
}

}  // namespace sinew::report
