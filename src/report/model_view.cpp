#include "report/model_view.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "base/text.hpp"
#include "model/predict.hpp"

namespace sinew::report {
namespace {

constexpr double kPicosecond = 1e-12;
constexpr int kMostPredicted = 256;  // ranks: beyond, a page would wait for its simulation

struct Answer {
  std::string algorithm;
  double seconds = 0, low = 1, high = 1;
};

std::optional<Answer> ask(const Algorithm& algorithm, const ModelQuestion& question,
                          const Network& network) {
  const Question asked{
      .collective = question.collective, .ranks = question.ranks, .bytes = question.bytes};
  if (!fits(algorithm, asked, network)) return {};
  const auto told = predict(algorithm, asked, network);
  const auto time = static_cast<double>(told.time);
  return Answer{std::string(algorithm.name), time * kPicosecond, time > 0 ? told.low / time : 1,
                time > 0 ? told.high / time : 1};
}

std::optional<Answer> best_of(const ModelQuestion& question, const Network& network) {
  std::optional<Answer> best;
  for (const auto& algorithm : algorithms()) {
    if (algorithm.collective != question.collective) continue;
    const auto answer = ask(algorithm, question, network);
    if (answer && (!best || answer->seconds < best->seconds)) best = answer;
  }
  return best;
}

std::vector<CurvePoint> curve_of(const Network& network) {
  std::vector<CurvePoint> points;
  for (double bytes = 8; bytes <= (1U << 28U); bytes *= 4) {
    const auto cost = network.one_way.at(bytes);
    points.push_back({bytes, {static_cast<double>(cost.alpha + cost.beta) * kPicosecond}});
  }
  return points;
}

}  // namespace

ModelView view_model(const Network& network, std::span<const ModelQuestion> questions) {
  ModelView view;
  view.network = network.name;
  view.calibrated = network.provenance.ranks > 0;
  view.left_out_error = network.provenance.left_out_error;
  view.link = curve_of(network);
  for (const auto& question : questions) {
    const auto best = best_of(question, network);
    if (!best) continue;
    ModelRow row{question, {}, best->algorithm, {best->seconds}, best->low, best->high};
    for (const auto& algorithm : algorithms())
      if (algorithm.collective == question.collective && algorithm.name == question.algorithm)
        if (const auto used = ask(algorithm, question, network)) row.used_s = {used->seconds};
    view.rows.push_back(std::move(row));
  }
  if (view.rows.empty()) return view;
  // What took longest on more ranks.
  auto asked =
      std::max_element(view.rows.begin(), view.rows.end(), [](const auto& a, const auto& b) {
        const auto all = [](const ModelRow& row) {
          return row.asked.mean_s.value * static_cast<double>(row.asked.calls);
        };
        return all(a) < all(b);
      })->asked;
  view.scaled =
      fmt::format("{} of {}", asked.routine, human_bytes(static_cast<std::uint64_t>(asked.bytes)));
  for (int ranks = 2; ranks <= kMostPredicted; ranks *= 2) {
    asked.ranks = ranks;
    if (const auto best = best_of(asked, network))
      view.scaling.push_back({ranks,
                              {best->seconds},
                              {best->seconds * best->low},
                              {best->seconds * best->high},
                              best->algorithm});
  }
  return view;
}

}  // namespace sinew::report
