#include "model/scheme_phases.hpp"

#include <algorithm>
#include <array>
#include <cmath>

#include <sinew/error.hpp>
#include "base/text.hpp"

namespace sinew {
namespace {

constexpr std::array<std::string_view, 8> kSchemes{"dense", "fp16",    "bf16",  "int8",
                                                   "topka", "topkdsa", "gtopk", "oktopk"};
constexpr double kWord = 8;  // counts travel as 64-bit words
constexpr double kHistogram = 2049 * 4;
constexpr double kNearThreshold = 512 * 4;  // values that share the bin of the k-th
constexpr double kScaleEvery = 256;         // elements that share an int8 scale

// What all owners together have to hand out when nothing is dropped: items, or plain regions where
// those are shorter.
double union_bytes(int ranks, const Sparsity& gradient) {
  const double k = gradient.items();
  const double distinct =
      gradient.fill > 0
          ? std::min(gradient.fill * k, gradient.elements)
          : gradient.elements * (1 - std::pow(1 - k / std::max(1.0, gradient.elements), ranks));
  return std::min(distinct * gradient.item_bytes, gradient.elements * gradient.element_bytes);
}

std::vector<Phase> of_owners(int ranks, const Sparsity& gradient, bool selects) {
  const double mine = gradient.items() * gradient.item_bytes;
  const double all = selects ? mine : union_bytes(ranks, gradient);
  std::vector<Phase> phases{
      {"counts", Collective::alltoall, kWord * ranks},
      {"split", Collective::alltoall, mine, gradient.imbalance, true},
  };
  if (selects) {
    phases.push_back({"thresholds", Collective::allreduce, kHistogram});
    phases.push_back({"thresholds", Collective::allgather, kNearThreshold});
  }
  phases.push_back({"counts", Collective::allgather, kWord * ranks});
  // Ok-Topk evens its blocks out; the other sends what owners happen to have.
  phases.push_back({"gather", Collective::allgather, all, selects ? 1 : gradient.imbalance});
  return phases;
}

double log2_ceil(double ranks) { return std::ceil(std::log2(ranks)); }

}  // namespace

double Sparsity::items() const { return std::max(1.0, std::floor(elements * density)); }

std::span<const std::string_view> modelled_schemes() { return kSchemes; }

bool is_sparse(std::string_view scheme) {
  return scheme == "topka" || scheme == "topkdsa" || scheme == "gtopk" || scheme == "oktopk";
}

std::vector<Phase> phases_of(std::string_view scheme, int ranks, const Sparsity& gradient) {
  const double dense = gradient.elements * gradient.element_bytes;
  const double mine = gradient.items() * gradient.item_bytes;
  if (ranks < 2) return {};
  if (scheme == "dense") return {{"dense", Collective::allreduce, dense}};
  if (scheme == "fp16" || scheme == "bf16")
    return {{"values", Collective::allreduce, 2 * gradient.elements}};
  if (scheme == "int8") {
    const double bytes = gradient.elements * (1 + 4 / kScaleEvery);
    return {{"split", Collective::alltoall, bytes, 1, true},
            {"gather", Collective::allgather, bytes}};
  }
  if (scheme == "topka")
    return {{"counts", Collective::allgather, kWord * ranks},
            {"items", Collective::allgather, mine * ranks}};
  if (scheme == "gtopk")  // every message says its length in one before it
    return {{"counts", Collective::reduce, kWord},
            {"up", Collective::reduce, mine},
            {"counts", Collective::broadcast, kWord},
            {"down", Collective::broadcast, mine}};
  if (scheme == "topkdsa") return of_owners(ranks, gradient, false);
  if (scheme == "oktopk") return of_owners(ranks, gradient, true);
  throw Error(Errc::invalid_argument, unknown("compression scheme", scheme, kSchemes));
}

ClosedForm closed_form(std::string_view scheme, double ranks, const Sparsity& gradient,
                       double alpha_s, double byte_s) {
  const double others = (ranks - 1) / ranks, rounds = log2_ceil(ranks);
  const double k = gradient.items(), word = gradient.item_bytes / 2;
  const double n = gradient.elements;
  const auto time = [&](double messages, double words) {
    return messages * alpha_s + words * word * byte_s;
  };
  if (scheme == "dense") {
    const double words = 2 * others * n * gradient.element_bytes / word;
    return {time(2 * rounds, words), time(2 * (ranks - 1), words)};
  }
  if (scheme == "topka") {
    const double exact = time(rounds, 2 * k * (ranks - 1));
    return {exact, exact};
  }
  if (scheme == "topkdsa")
    return {time(ranks + 2 * rounds, 4 * k * others),
            time(ranks + 2 * rounds, (2 * k + n) * others)};
  if (scheme == "gtopk") {
    const double exact = time(2 * rounds, 4 * k * rounds);
    return {exact, exact};
  }
  if (scheme == "oktopk")
    return {time(2 * ranks + 2 * rounds, 2 * k * others),
            time(2 * ranks + 2 * rounds, 6 * k * others)};
  return {};
}

}  // namespace sinew
