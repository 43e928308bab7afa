// One rank of a compressed allreduce as a contender, and what it has to tell.
#pragma once

#include <string>

#include <sinew/compression.hpp>
#include "cli/bench_contender.hpp"

namespace sinew {

struct SparseSetup {
  std::string scheme = "oktopk";
  CompressionOptions options;
  std::string gradient;      // a file, or ""
  bool accumulated = false;  // gradients are added where the residual lies, before the step
};

/// What a rank tells after a turn: about its steps so far, all but the first.
struct SparseRemark {
  double items_over_k_min = 0, items_over_k_max = 0;  // 0: the scheme does not select
  double bytes = 0;                                   // received a step, mean
  double density = 0;                                 // realised, mean
  double relative_error = 0, cosine = 1;              // of the checked step
  double residual_over_gradient = 0;
  bool conserves = false, conserved = false;
  double part_ms[kParts] = {};  // medians
};
std::string to_text(const SparseRemark& remark);
SparseRemark parse_remark(const std::string& text);

bench::Launcher sparse_ranks(const BenchSetup& setup, const SparseSetup& sparse);

}  // namespace sinew
