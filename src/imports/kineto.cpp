// Traces of the PyTorch profiler. Where the trace has kernels of NCCL these are the communication,
// with GPU times; else the ranges that process groups put around their work ("gloo:all_reduce").
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <set>

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
  ProfileKey key;
  Interval us;
};

/// "AllReduce" of ncclDevKernel_AllReduce_Sum_f32_RING_LL and of ncclKernel_AllReduce_...
std::string operation_of_kernel(std::string_view name) {
  const auto from = name.find('_');
  if (from == std::string_view::npos) return std::string(name);
  const auto rest = name.substr(from + 1);
  return std::string(rest.substr(0, rest.find_first_of("_(")));
}

/// "all_reduce", "AllReduce" and "allreduce" are one operation.
std::string plain(std::string_view name) {
  std::string result;
  for (const char c : name) {
    if (c == '_') continue;
    result += c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  }
  return result;
}

/// By the operator's metadata, or by the shapes that were recorded.
std::uint64_t message_bytes(const Json& args) {
  const auto guard = [](double bytes) {
    return bytes >= 0 && bytes < 0x1p62 ? static_cast<std::uint64_t>(bytes) : 0;
  };
  if (const auto elements = number_in(args, "In msg nelems"))
    return guard(*elements * static_cast<double>(element_bytes(string_in(args, "dtype"))));
  const auto dims = args.find("Input Dims"), types = args.find("Input type");
  if (dims == args.end() || types == args.end() || !dims->is_array() || !types->is_array())
    return 0;
  double bytes = 0;
  for (std::size_t i = 0; i < std::min(dims->size(), types->size()); ++i) {
    const auto& shape = (*dims)[i];
    if (!shape.is_array() || !(*types)[i].is_string() || shape.empty()) continue;
    auto part = static_cast<double>(element_bytes((*types)[i].get_ref<const std::string&>()));
    for (const auto& length : shape) part *= length.is_number() ? length.get<double>() : 0;
    bytes += part;
  }
  return guard(bytes);
}

/// "gloo" of "gloo:all_reduce"; nothing for other ranges.
std::optional<std::string_view> backend_of(std::string_view name) {
  const auto colon = name.find(':');
  if (colon == std::string_view::npos || name.substr(colon).starts_with("::")) return {};
  for (const std::string_view backend : {"nccl", "gloo", "mpi", "ucc", "xccl", "hccl", "sinew"})
    if (name.substr(0, colon) == backend) return backend;
  return {};
}

class Reader {
 public:
  explicit Reader(const Source& source) : trace_(source) {}
  RankProfile read(std::vector<std::string>& warnings);

 private:
  void event(const Json& event);
  void see_time();
  void describe(RankProfile& rank) const;
  void sum_up(RankProfile& rank);
  [[nodiscard]] std::vector<Operation>& operations() {
    return kernels_.empty() ? ranges_ : kernels_;
  }

  ChromeTrace trace_;
  std::vector<Operation> kernels_, ranges_;
  std::vector<Interval> compute_us_;
  std::set<std::string> steps_;
  bool timed_ = false;
  Interval us_;
};

/// Where the present event begins and ends, without reading all of it.
void Reader::see_time() {
  const auto field = [&](std::string_view key) -> std::optional<double> {
    auto text = trace_.text();
    const auto at = text.find(key);
    if (at == std::string_view::npos) return {};
    text.remove_prefix(at + key.size());
    text.remove_prefix(std::min(text.find_first_not_of(" :"), text.size()));
    return number_of(text.substr(0, text.find_first_of(",} \r\n")));
  };
  const auto begin = field("\"ts\"");
  if (!begin) return;
  const double end = *begin + std::max(0.0, field("\"dur\"").value_or(0));
  us_ = timed_ ? Interval{std::min(us_.begin, *begin), std::max(us_.end, end)}
               : Interval{*begin, end};
  timed_ = true;
}

void Reader::event(const Json& event) {
  const auto begin = number_in(event, "ts"), length = number_in(event, "dur");
  if (string_in(event, "ph") != "X" || !begin || !length || *length < 0) return;
  const auto name = string_in(event, "name"), category = plain(string_in(event, "cat"));
  const Interval us{*begin, *begin + *length};
  static const Json nothing = Json::object();
  const auto found = event.find("args");
  const Json& args = found != event.end() && found->is_object() ? *found : nothing;
  Operation operation{{}, us};
  operation.key.bytes = message_bytes(args);
  operation.key.label = string_in(args, "Process Group Description");
  if (category == "kernel") {
    const auto collective = string_in(args, "Collective name");
    if (!name.starts_with("nccl") && collective.empty()) {
      compute_us_.push_back(us);
      return;
    }
    operation.key.routine =
        "nccl:" + plain(collective.empty() ? operation_of_kernel(name) : collective);
    kernels_.push_back(std::move(operation));
  } else if (category.starts_with("gpu")) {
    return;  // the same ranges again, as the GPU saw them
  } else if (name.starts_with("ProfilerStep#")) {
    steps_.insert(name);
  } else if (const auto backend = backend_of(name)) {
    operation.key.routine = fmt::format("{}:{}", *backend, plain(name.substr(backend->size() + 1)));
    ranges_.push_back(std::move(operation));
  }
}

void Reader::describe(RankProfile& rank) const {
  rank.info["producer"] = "kineto";
  if (!steps_.empty()) rank.info["steps"] = std::to_string(steps_.size());
  const auto member = trace_.members().find("distributedInfo");
  if (member == trace_.members().end()) return;
  const auto info = Json::parse(member->second, nullptr, false);
  const auto number = [&](const char* key) {
    const auto value = number_in(info, key).value_or(-1);
    return value >= 0 && value <= 1 << 24 ? static_cast<int>(value) : -1;
  };
  rank.rank = number("rank");
  rank.size = std::max(0, number("world_size"));
  if (const auto backend = string_in(info, "backend"); !backend.empty())
    rank.info["backend"] = backend;
}

void Reader::sum_up(RankProfile& rank) {
  const auto compute = united(std::move(compute_us_));
  std::vector<Interval> busy;
  for (const auto& [key, us] : operations()) {
    Totals one;
    one.calls = 1;
    one.bytes = key.bytes;
    one.total_ns = one.shortest_ns = one.longest_ns = (us.end - us.begin) * 1e3;
    if (!kernels_.empty()) {
      // What computing does not cover is what the step waits for.
      one.in_flight_ns = one.total_ns;
      one.blocked_ns = one.total_ns - covered(us, compute) * 1e3;
    }
    busy.push_back(us);
    rank.rows[key].add(one);
  }
  for (const auto& [key, totals] : rank.rows) {
    rank.routines[key.routine].add(totals);
    rank.all.add(totals);
  }
  rank.communication_ns = length_of(united(std::move(busy))) * 1e3;
  rank.elapsed_ns = (us_.end - us_.begin) * 1e3;
}

RankProfile Reader::read(std::vector<std::string>& warnings) {
  while (trace_.next()) {
    see_time();
    // Most events are operators of the CPU; reading them all would take the most time.
    if (!trace_.mentions("ernel\"") && !trace_.mentions("ProfilerStep#") &&
        !trace_.mentions("ccl:") && !trace_.mentions("gloo:") && !trace_.mentions("mpi:") &&
        !trace_.mentions("ucc:") && !trace_.mentions("sinew:"))
      continue;
    if (const auto json = trace_.read(); !json.is_discarded()) event(json);
  }
  RankProfile rank;
  describe(rank);
  sum_up(rank);
  rank.closed = !trace_.is_cut_off();
  for (const auto& loss : trace_.losses()) warnings.push_back(loss);
  const bool sized = std::any_of(rank.rows.begin(), rank.rows.end(),
                                 [](const auto& row) { return row.first.bytes > 0; });
  if (!rank.rows.empty() && !sized)
    warnings.push_back(fmt::format(
        "{}: no sizes in this trace; profile with record_shapes=True, or with PyTorch 2.3 or later",
        trace_.place()));
  return rank;
}

}  // namespace

Profile read_kineto(std::span<const Source> sources) {
  Profile profile;
  std::map<int, std::string> seen;
  for (const auto& source : sources) {
    auto rank = Reader(source).read(profile.warnings);
    if (rank.rows.empty())
      Lines(source).fail(
          "no communication in this trace: neither kernels of NCCL nor ranges like "
          "'gloo:all_reduce'");
    if (rank.rank < 0) {
      rank.rank = static_cast<int>(profile.ranks.size());
      profile.warnings.push_back(
          fmt::format("{} does not say its rank; counted as rank {}", source.name, rank.rank));
    }
    if (const auto [before, is_new] = seen.try_emplace(rank.rank, source.name); !is_new)
      Lines(source).fail(fmt::format("rank {} a second time, after {}; import traces of one run",
                                     rank.rank, before->second));
    if (!profile.ranks.empty() && rank.size != profile.ranks.front().size)
      Lines(source).fail(fmt::format("of a run of {} ranks, but {} is of one of {}", rank.size,
                                     sources.front().name, profile.ranks.front().size));
    profile.ranks.push_back(std::move(rank));
  }
  profile.warnings.emplace_back(
      "'in MPI' is when any operation was going on; hid: the share that computing kernels covered");
  return profile;
}

}  // namespace sinew::imports
