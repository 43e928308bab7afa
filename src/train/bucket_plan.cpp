#include "train/bucket_plan.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <xxhash.h>

#include <algorithm>

#include <sinew/error.hpp>

namespace sinew {
namespace {

constexpr std::size_t kAlign = 64 / sizeof(float);  // buckets begin on a cache line

std::string line_of(const TensorSpec& tensor) {
  return fmt::format("{} ({})\n", tensor.name, fmt::join(tensor.shape, " x "));
}

std::string text_of(const BucketPlan& plan) {
  std::string text;
  for (const auto& parameter : plan.parameters) text += line_of(parameter);
  for (const auto& bucket : plan.buckets) text += fmt::format("bucket at {}\n", bucket.first);
  return text;
}

// The n-th line, or "" past the end.
std::string_view line_at(std::string_view text, std::size_t n) {
  for (; n > 0; --n) {
    const auto end = text.find('\n');
    if (end == std::string_view::npos) return {};
    text.remove_prefix(end + 1);
  }
  return text.substr(0, text.find('\n'));
}

// All ranks take part, because they know already that some differ.
std::string first_difference(const BucketPlan& plan, Communicator& communicator) {
  auto mine = text_of(plan);
  std::uint64_t length = mine.size();
  communicator.broadcast(std::span(&length, 1), 0);
  std::vector<std::uint8_t> of_zero(length);
  if (communicator.rank() == 0) std::copy(mine.begin(), mine.end(), of_zero.begin());
  communicator.broadcast(std::span(of_zero), 0);
  const std::string theirs(of_zero.begin(), of_zero.end());
  for (std::size_t n = 0;; ++n) {
    const auto a = line_at(theirs, n), b = line_at(mine, n);
    if (a.empty() && b.empty()) return "";
    if (a != b)
      return fmt::format("rank 0 has {}, rank {} has {}", a.empty() ? "nothing more" : a,
                         communicator.rank(), b.empty() ? "nothing more" : b);
  }
}

}  // namespace

BucketPlan plan_buckets(std::vector<TensorSpec> parameters, std::uint64_t bucket_bytes) {
  if (bucket_bytes == 0) throw Error(Errc::invalid_argument, "buckets of 0 bytes");
  BucketPlan plan;
  plan.parameters = std::move(parameters);
  plan.first_of.resize(plan.parameters.size());
  plan.bucket_of.resize(plan.parameters.size());
  bool closed = true;
  for (auto i = plan.parameters.size(); i-- > 0;) {
    if (closed) plan.buckets.push_back({{}, plan.elements, 0});
    auto& bucket = plan.buckets.back();
    plan.bucket_of[i] = plan.buckets.size() - 1;
    plan.first_of[i] = bucket.first + bucket.elements;
    bucket.tensors.push_back(i);
    bucket.elements += plan.parameters[i].elements();
    plan.elements = (bucket.first + bucket.elements + kAlign - 1) / kAlign * kAlign;
    const auto enough = plan.buckets.size() == 1 ? bucket_bytes / 4 : bucket_bytes;
    closed = bucket.elements * sizeof(float) >= enough;
  }
  const auto text = text_of(plan);
  plan.hash = XXH3_64bits(text.data(), text.size());
  return plan;
}

void agree_on(const BucketPlan& plan, Communicator& communicator) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(communicator.size()));
  communicator.allgather(std::span<const std::uint64_t>(&plan.hash, 1), std::span(all));
  const auto other =
      std::find_if(all.begin(), all.end(), [&](std::uint64_t hash) { return hash != all.front(); });
  if (other == all.end()) return;
  const auto rank = static_cast<int>(other - all.begin());
  const auto difference = first_difference(plan, communicator);
  throw Error(Errc::mismatch,
              fmt::format("ranks 0 and {} do not train the same model with the same buckets{}{}",
                          rank, difference.empty() ? "" : ": ", difference),
              {.rank = communicator.rank(), .peer = rank});
}

}  // namespace sinew
