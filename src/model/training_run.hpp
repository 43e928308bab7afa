// A data-parallel training run as a prediction needs it: what is computed, what is sent, over what.
// Described in a file (docs/format-run.md), or taken from the folder of a run that took place.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "model/network.hpp"

namespace sinew {

/// A part of the gradient that travels alone, in the order in which the backward pass is done.
struct RunBucket {
  double bytes = 0;
  double ready_ms = -1;  // after the backward pass began; below 0: spread evenly by bytes
  friend bool operator==(const RunBucket&, const RunBucket&) = default;
};

/// What somebody says about the run, to be held against the model.
struct StatedValues {
  double allreduce_ms = 0;                           // one of them; 0: nothing said
  double communication_s = 0;                        // of the whole run
  double operations = 0;                             // that communication_s was added up from
  std::string scaling{};                             // a word such as "logarithmic"
  std::vector<std::pair<int, double>> at_workers{};  // communication_s there
  [[nodiscard]] bool empty() const {
    return allreduce_ms == 0 && communication_s == 0 && scaling.empty() && at_workers.empty();
  }
};

/// What was seen in a run that took place, at its worker count. Never mixed with what is modelled.
struct MeasuredStep {
  double step_ms = 0, exposed_ms = 0, hidden_ms = 0, bytes_per_worker = 0;
  int steps = 0;  // that these are medians of; 0: nothing was measured
};

struct TrainingRun {
  std::string name{};
  std::vector<RunBucket> buckets{};  // at least one, once loaded
  StatedValues stated{};
  MeasuredStep measured{};
  std::string pattern = "ddp";     // ddp, zero3, moe
  std::string scheme = "dense";    // of compression
  std::string link_name = "link";  // what the network's link is called
  // Numbers that a file and --set can give: `settings()` has their keys and limits.
  double workers = 1;          // the run was made with, or planned for
  double steps = 0;            // of the run at that count; 0: not said
  double element_bytes = 4;    // of the gradient
  double batch = 0;            // samples of a worker and step; 0: not said
  double described_batch = 0;  // that the times below hold for
  double forward_ms = 0, backward_ms = 0, update_ms = 0, data_ms = 0;
  double spread = 0;       // of a worker's compute time: standard deviation over mean
  double overlap = 0;      // 1: buckets travel while the backward pass goes on
  double slowdown = 0;     // how much slower computing is meanwhile
  double local_steps = 1;  // between two synchronisations
  double fragments = 1;    // that are synchronised one after another
  double density = 0.01;   // of sparse schemes
  double item_bytes = 8;   // an index and a value on the wire
  double fill = 0;         // distinct items of all workers over k; 0: as if independent
  double imbalance = 1;    // largest part that goes to one owner, over the mean
  double select_ms = 0;    // choosing what to send, a step
  double alpha_us = -1, gbytes_per_s = -1;  // of the link; below 0: as the network says
  double gamma_gbytes_per_s = 0;            // combining; 0: free, or as the network says
  double island_workers = 0;                // that a fast link joins; 0: none
  double island_alpha_us = 0, island_gbytes_per_s = 0;
  double island_uplinks = 1;                                // links of an island to others
  double moe_layers = 0, moe_bytes = 0, moe_imbalance = 1;  // a worker's tokens, each way

  [[nodiscard]] double gradient_bytes() const;
  [[nodiscard]] double elements() const { return gradient_bytes() / element_bytes; }
  /// Computing of one worker and step at the batch asked for.
  [[nodiscard]] double batch_factor() const {
    return batch > 0 && described_batch > 0 ? batch / described_batch : 1;
  }
  [[nodiscard]] double compute_ms() const {
    return (forward_ms + backward_ms + data_ms) * batch_factor() + update_ms;
  }
};

/// One number of a run that people can give: its key, where it goes, and what is allowed.
struct RunSetting {
  std::string_view key;    // "step.forward_ms"
  std::string_view alias;  // a shorter name for --set, or ""
  double TrainingRun::*value;
  double least, most;
  bool whole = false;
};
const std::vector<RunSetting>& run_settings();

/// Throws Error{invalid_argument} that names the file, the line, the key and what is allowed.
TrainingRun parse_run(std::string_view toml, std::string_view path);

/// "density=0.01", "link.nic.gbytes_per_s=12.5", "scheme=gtopk". Returns the key that was set.
/// Throws Error{invalid_argument} that names what can be set.
std::string apply_setting(TrainingRun& run, std::string_view assignment);

/// What a run says of its own link; `given` is the network asked for beside it, if any.
Network network_of(const TrainingRun& run, const Network* given);
/// The fast link inside an island.
Network island_of(const TrainingRun& run, const Network& network);

}  // namespace sinew
