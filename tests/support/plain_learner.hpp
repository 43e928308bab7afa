// Something to train without a framework: one dense layer and softmax, in plain loops.
#pragma once

#include <algorithm>
#include <cmath>

#include "train/learner.hpp"

namespace sinew::test {

/// Two tensors, so that there can be two buckets. Starts at zero, which is as good as any value
/// here.
class PlainLearner final : public Learner {
 public:
  PlainLearner(std::size_t inputs, std::size_t classes)
      : inputs_(inputs),
        classes_(classes),
        specs_{{"weight", {classes, inputs}}, {"bias", {classes}}} {}

  [[nodiscard]] const std::vector<TensorSpec>& parameters() const noexcept override {
    return specs_;
  }
  [[nodiscard]] const std::vector<TensorSpec>& buffers() const noexcept override { return none_; }
  [[nodiscard]] bool accumulates() const noexcept override { return true; }
  void move_to(const Homes& homes) override { homes_ = homes; }

  Score learn(const Batch& batch, float scale, std::uint64_t /*random_key*/,
              const Ready& ready) override {
    const auto score = pass(batch, scale);
    backward_begins();
    if (ready) {
      ready(1);
      ready(0);
    }
    return score;
  }
  Score evaluate(const Batch& batch) override { return pass(batch, 0); }

 private:
  Score pass(const Batch& batch, float scale) {
    Score score;
    std::vector<float> scores(classes_);
    for (std::size_t sample = 0; sample < batch.samples(); ++sample) {
      const auto* x = batch.inputs.data() + sample * inputs_;
      const auto label = static_cast<std::size_t>(batch.labels[sample]);
      for (std::size_t c = 0; c < classes_; ++c) {
        scores[c] = homes_.parameters[1][c];
        for (std::size_t i = 0; i < inputs_; ++i)
          scores[c] += homes_.parameters[0][c * inputs_ + i] * x[i];
      }
      const auto most = std::max_element(scores.begin(), scores.end());
      score.errors += static_cast<std::size_t>(most - scores.begin()) == label ? 0 : 1;
      const float shift = *most;
      float sum = 0;
      for (auto& value : scores) sum += value = std::exp(value - shift);
      score.loss -= std::log(scores[label] / sum);
      ++score.labels;
      ++score.samples;
      if (scale == 0) continue;
      for (std::size_t c = 0; c < classes_; ++c) {
        const float slope = scale * (scores[c] / sum - (c == label ? 1.0F : 0.0F));
        homes_.gradients[1][c] += slope;
        for (std::size_t i = 0; i < inputs_; ++i)
          homes_.gradients[0][c * inputs_ + i] += slope * x[i];
      }
    }
    return score;
  }

  std::size_t inputs_, classes_;
  std::vector<TensorSpec> specs_, none_;
  Homes homes_;
};

}  // namespace sinew::test
