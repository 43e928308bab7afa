// What a network model says about the collectives of a run: beside the measurement, and for more
// ranks.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include <sinew/types.hpp>
#include "model/network.hpp"
#include "report/quantity.hpp"

namespace sinew::report {

/// A class of calls as the model is asked about it.
struct ModelQuestion {
  std::string routine;
  Collective collective{};
  double bytes = 0;  // of the larger buffer of a rank
  int ranks = 1;
  std::uint64_t calls = 0;
  Measured mean_s;        // waiting left out
  std::string algorithm;  // that served it, or ""
};

struct ModelRow {
  ModelQuestion asked;
  Modelled used_s;   // of the algorithm that was used; 0: not known
  std::string best;  // algorithm
  Modelled best_s;
  double low = 1, high = 1;  // factors: the model's error bar
};

struct ScalePoint {
  int ranks = 1;
  Modelled seconds, low, high;
  std::string algorithm;
};

struct CurvePoint {
  double bytes = 0;
  Modelled seconds;
};

struct ModelView {
  std::string network;           // its name
  bool calibrated = false;       // measured on some machine; else stated
  double left_out_error = 0;     // of its fit
  std::vector<CurvePoint> link;  // one message, by size: alpha and beta
  std::vector<ModelRow> rows;
  std::string scaled;  // what the points below are of
  std::vector<ScalePoint> scaling;
};

ModelView view_model(const Network& network, std::span<const ModelQuestion> questions);

}  // namespace sinew::report
