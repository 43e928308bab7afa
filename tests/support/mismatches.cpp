#include "support/mismatches.hpp"

#include <fmt/format.h>

namespace sinew::test {
namespace {

// `odd` is what one rank does otherwise than all the others.
const Mismatch kMismatches[] = {
    {"other operation",
     [](Communicator& c, std::vector<float>& data, bool odd) {
       odd ? c.broadcast(std::span(data), 0) : c.allreduce(std::span(data));
     },
     "allreduce of", "broadcast of"},
    {"other count",
     [](Communicator& c, std::vector<float>& data, bool odd) {
       c.allreduce(std::span(data).first(odd ? data.size() / 2 : data.size()));
     },
     "allreduce of", "allreduce of"},
    {"other type",
     [](Communicator& c, std::vector<float>& data, bool odd) {
       if (odd)
         c.allreduce(std::span(reinterpret_cast<std::int32_t*>(data.data()), data.size()));
       else
         c.allreduce(std::span(data));
     },
     " f32 sum", " i32 sum"},
    {"other reduction",
     [](Communicator& c, std::vector<float>& data, bool odd) {
       c.allreduce(std::span(data), odd ? ReduceOp::max : ReduceOp::sum);
     },
     " f32 sum", " f32 max"},
    {"other root",
     [](Communicator& c, std::vector<float>& data, bool odd) {
       c.broadcast(std::span(data), odd ? 1 : 0);
     },
     "root 0", "root 1"},
    {"other order, other sizes",
     [](Communicator& c, std::vector<float>& data, bool odd) {
       const auto small = std::span(data).first(data.size() / 4);
       if (odd) c.allreduce(small);
       c.allreduce(std::span(data));
       if (!odd) c.allreduce(small);
     },
     "allreduce of", "allreduce of"},
    {"other order, equal sizes, told apart by tags",
     [](Communicator& c, std::vector<float>& data, bool odd) {
       c.allreduce(std::span(data), ReduceOp::sum, {.tag = odd ? 2U : 1U});
       c.allreduce(std::span(data), ReduceOp::sum, {.tag = odd ? 1U : 2U});
     },
     "tag 1", "tag 2"},
};

}  // namespace

std::span<const Mismatch> mismatches() { return kMismatches; }

std::string provoke(Communicator& communicator, const Mismatch& mismatch, std::size_t count,
                    bool odd) {
  std::vector<float> data(count, 1);
  return provoke(communicator, mismatch, data, odd);
}

std::string provoke(Communicator& communicator, const Mismatch& mismatch, std::vector<float>& data,
                    bool odd) {
  const auto begun = Clock::now();
  std::string story = "fine";
  try {
    mismatch.call(communicator, data, odd);
    communicator.barrier();
  } catch (const Error& error) {
    story = fmt::format("{}|{}", name(error.code()), error.what());
  }
  const auto took = std::chrono::duration_cast<std::chrono::milliseconds>(Clock::now() - begun);
  return fmt::format("{}|{}", took.count(), story);
}

std::string complaint(const Mismatch& mismatch, const std::string& ending, int odd_rank) {
  const auto lacks = [&](std::string_view text) { return ending.find(text) == std::string::npos; };
  const auto bar = ending.find('|');
  if (bar == std::string::npos) return ending;  // it never came so far
  if (std::stoi(ending.substr(0, bar)) >= 2000) return "too late";
  if (ending.substr(bar + 1, 9) != "mismatch|") return "not noticed as a mismatch";
  if (lacks("differs: rank ")) return "does not say where it differs";
  if (lacks(fmt::format("rank {} called", odd_rank))) return "does not name the odd rank";
  if (lacks(mismatch.ours) || lacks(mismatch.theirs)) return "does not name both calls";
  return "";
}

}  // namespace sinew::test
