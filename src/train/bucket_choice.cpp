#include "train/bucket_choice.hpp"

#include <nlohmann/json.hpp>

#include <sinew/error.hpp>
#include "model/overlap.hpp"
#include "train/bucket_plan.hpp"
#include "train/checkpoint.hpp"

namespace sinew {
namespace {

constexpr std::uint64_t kLeast = std::uint64_t{1} << 20;

// From the beginning of the backward pass to the last gradient.
double arrival_us(const BucketPlan& plan, bool hides, double backward_us,
                  const std::function<double(std::uint64_t)>& takes_us) {
  std::vector<Travelling> buckets;
  std::size_t elements = 0, all = 0;
  for (const auto& bucket : plan.buckets) all += bucket.elements;
  for (const auto& bucket : plan.buckets) {
    elements += bucket.elements;
    const double ready =
        backward_us * (hides ? static_cast<double>(elements) / static_cast<double>(all) : 1);
    buckets.push_back({ready, takes_us(bucket.elements * sizeof(float))});
  }
  return last_arrival(buckets);
}

}  // namespace

std::uint64_t choose_bucket_bytes(const BucketQuestion& question,
                                  const std::function<double(std::uint64_t)>& takes_us) {
  std::uint64_t all = 0;
  for (const auto& parameter : question.parameters) all += parameter.elements() * sizeof(float);
  std::uint64_t best = kLeast;
  while (best < 4 * all) best *= 2;  // one bucket: the first is closed at a quarter
  if (question.compressed || all == 0) return best;
  const double backward_us = takes_us(all);
  double least = backward_us * 2;  // one bucket, after the backward pass
  for (auto bytes = best / 2; bytes >= kLeast; bytes /= 2) {
    const auto plan = plan_buckets(question.parameters, bytes);
    const double arrives = arrival_us(plan, question.hides, backward_us, takes_us);
    if (arrives >= least) continue;
    least = arrives;
    best = bytes;
  }
  return best;
}

std::uint64_t choose_bucket_bytes(const BucketQuestion& question, Communicator& communicator) {
  std::uint64_t chosen = 0;
  if (communicator.rank() == 0)
    chosen = choose_bucket_bytes(question, [&](std::uint64_t bytes) {
      const auto candidates = communicator.explain({.collective = Collective::allreduce,
                                                    .dtype = DType::f32,
                                                    .op = ReduceOp::sum,
                                                    .count = bytes / sizeof(float)});
      return candidates.empty() ? 0 : candidates.front().predicted_us;
    });
  communicator.broadcast(std::span(&chosen, 1), 0);
  return chosen;
}

std::uint64_t bucket_bytes_of_checkpoint(const std::string& folder) {
  try {
    const CheckpointFolder checkpoints(folder);
    const auto steps = checkpoints.steps();
    if (steps.empty()) return 0;
    const auto saved = nlohmann::json::parse(checkpoints.load_shared(steps.back()).metadata);
    return saved.at("run").at("bucket_bytes").get<std::uint64_t>();
  } catch (const Error&) {
  } catch (const nlohmann::json::exception&) {
  }
  return 0;
}

}  // namespace sinew
