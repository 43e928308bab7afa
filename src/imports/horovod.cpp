// Horovod's timeline: a process of the trace is a tensor; its operations nest.
//   B NEGOTIATE_ALLREDUCE, X 0, X 1 (ranks that are ready), E
//   B ALLREDUCE, B NCCL_ALLREDUCE, E, E {dtype, shape}
#include <fmt/format.h>

#include <map>

#include "imports/chrome_trace.hpp"
#include "imports/intervals.hpp"
#include "imports/readers.hpp"

namespace sinew::imports {
namespace {

using Json = nlohmann::json;
using trace::Profile;
using trace::ProfileKey;
using trace::RankProfile;
using trace::Totals;

struct Operation {
  std::string name;
  double begin_us = 0;
  double end_us = 0;
};

struct Tensor {
  std::string name;
  std::vector<Operation> open;      // outermost first
  std::vector<Operation> finished;  // inside the outermost
  std::map<int, double> ready_us;   // by rank, of the negotiation that is open
};

class Reader {
 public:
  explicit Reader(const Source& source) : trace_(source) {}
  void read(RankProfile& rank, std::map<int, std::uint64_t>& last_ready,
            std::vector<std::string>& warnings);

 private:
  void event(const Json& event);
  void begin(Tensor& tensor, const Json& event, double us);
  void end(Tensor& tensor, const Json& event, double us);
  void count_negotiation(const Tensor& tensor, const Operation& operation);
  void add(const Tensor& tensor, const Operation& operation, std::uint64_t bytes,
           const Totals& more = {});

  ChromeTrace trace_;
  std::map<std::int64_t, Tensor> tensors_;
  std::map<ProfileKey, Totals> rows_;
  std::map<int, std::uint64_t> last_ready_;
  std::vector<Interval> busy_;  // outermost operations that are no negotiation
  std::uint64_t cycles_ = 0, unmatched_ = 0;
  bool timed_ = false;
  double first_us_ = 0, last_us_ = 0;
};

bool negotiates(const Operation& operation) { return operation.name.starts_with("NEGOTIATE_"); }

void Reader::add(const Tensor& tensor, const Operation& operation, std::uint64_t bytes,
                 const Totals& more) {
  ProfileKey key;
  key.routine = operation.name;
  key.bytes = bytes;
  key.label = tensor.name;
  Totals one = more;
  one.calls = 1;
  one.bytes = bytes;
  one.total_ns = one.shortest_ns = one.longest_ns =
      std::max(0.0, operation.end_us - operation.begin_us) * 1e3;
  rows_[key].add(one);
}

// The time until the last rank was ready is waiting, from the first one on.
void Reader::count_negotiation(const Tensor& tensor, const Operation& operation) {
  Totals more;
  if (tensor.ready_us.size() > 1) {
    const auto earlier = [](const auto& a, const auto& b) { return a.second < b.second; };
    const auto [first, last] =
        std::minmax_element(tensor.ready_us.begin(), tensor.ready_us.end(), earlier);
    ++last_ready_[last->first];
    more.resolved = 1;
    more.resolved_ns = std::max(0.0, operation.end_us - operation.begin_us) * 1e3;
    more.waited_ns = std::min((last->second - first->second) * 1e3, more.resolved_ns);
  }
  add(tensor, operation, 0, more);
}

void Reader::begin(Tensor& tensor, const Json& event, double us) {
  if (tensor.open.empty()) {
    tensor.finished.clear();
    tensor.ready_us.clear();
  }
  tensor.open.push_back({string_in(event, "name"), us, us});
}

void Reader::end(Tensor& tensor, const Json& event, double us) {
  if (tensor.open.empty()) {
    ++unmatched_;
    return;
  }
  auto operation = std::move(tensor.open.back());
  tensor.open.pop_back();
  operation.end_us = us;
  if (!tensor.open.empty()) {
    tensor.finished.push_back(std::move(operation));
    return;
  }
  if (negotiates(operation)) return count_negotiation(tensor, operation);
  std::uint64_t bytes = 0;
  if (const auto args = event.find("args"); args != event.end()) {
    const auto elements = elements_of(string_in(*args, "shape"));
    bytes = elements.value_or(0) * element_bytes(string_in(*args, "dtype"));
  }
  busy_.push_back({operation.begin_us, operation.end_us});
  add(tensor, operation, bytes);
  for (const auto& inner : tensor.finished) add(tensor, inner, bytes);
}

void Reader::event(const Json& event) {
  const auto phase = string_in(event, "ph");
  const auto name = string_in(event, "name");
  const auto pid = number_in(event, "pid");
  if (phase == "M" && name == "process_name" && pid && event.contains("args"))
    tensors_[static_cast<std::int64_t>(*pid)].name = string_in(event["args"], "name");
  const auto us = number_in(event, "ts");
  if (!us || phase == "M") return;
  first_us_ = timed_ ? std::min(first_us_, *us) : *us;
  last_us_ = timed_ ? std::max(last_us_, *us) : *us;
  timed_ = true;
  if (phase == "i" && name == "CYCLE_START") ++cycles_;
  if (!pid || std::abs(*pid) > 0x1p53) return;
  auto& tensor = tensors_[static_cast<std::int64_t>(*pid)];
  if (phase == "B") begin(tensor, event, *us);
  if (phase == "E") end(tensor, event, *us);
  if (phase == "X" && !tensor.open.empty() && negotiates(tensor.open.back()))
    if (const auto rank = rank_of(name)) tensor.ready_us[*rank] = *us;
}

void Reader::read(RankProfile& rank, std::map<int, std::uint64_t>& last_ready,
                  std::vector<std::string>& warnings) {
  while (trace_.next())
    if (const auto json = trace_.read(); !json.is_discarded()) event(json);
  for (const auto& loss : trace_.losses()) warnings.push_back(loss);
  std::uint64_t open = 0;
  for (const auto& [pid, tensor] : tensors_) open += tensor.open.size();
  if (open > 0)
    warnings.push_back(
        fmt::format("{}: {} operations had not ended; left out", trace_.place(), open));
  if (unmatched_ > 0)
    warnings.push_back(
        fmt::format("{}: {} ends without a beginning; left out", trace_.place(), unmatched_));
  for (const auto& [which, times] : last_ready_) last_ready[which] += times;
  rank.rows = std::move(rows_);
  rank.elapsed_ns = (last_us_ - first_us_) * 1e3;
  rank.communication_ns = length_of(united(std::move(busy_))) * 1e3;
  rank.closed = !trace_.is_cut_off();
  rank.info["producer"] = "horovod";
  if (cycles_ > 0) rank.info["cycles"] = std::to_string(cycles_);
  for (const auto& [key, totals] : rank.rows) {
    rank.routines[key.routine].add(totals);
    rank.all.add(totals);
  }
}

}  // namespace

Profile read_horovod(std::span<const Source> sources) {
  Profile profile;
  std::map<int, std::uint64_t> last_ready;
  for (const auto& source : sources) {
    RankProfile rank;
    rank.rank = static_cast<int>(profile.ranks.size());
    rank.size = static_cast<int>(sources.size());
    Reader(source).read(rank, last_ready, profile.warnings);
    if (rank.rows.empty()) Lines(source).fail("no operation in this timeline has begun and ended");
    profile.ranks.push_back(std::move(rank));
  }
  // Ticks name ranks that have no timeline of their own.
  if (!last_ready.empty()) {
    const int size = std::max(last_ready.rbegin()->first + 1, profile.ranks.front().size);
    for (auto& rank : profile.ranks) rank.size = size;
  }
  for (const auto& [rank, times] : last_ready)
    profile.ranks.front().info[fmt::format("last_ready_{}", rank)] = std::to_string(times);
  profile.warnings.emplace_back(
      "a timeline does not say whose it is: files count as ranks 0, 1, ... in their order");
  profile.warnings.emplace_back(
      "times are sums over tensors, whose operations overlap; 'in MPI' is when any was going on");
  return profile;
}

}  // namespace sinew::imports
