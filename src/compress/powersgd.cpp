// PowerSGD: every matrix as a product of two thin ones, by a step of power iteration that begins
// where the last one ended. Thin matrices add up, so two ordinary allreduces are all there is:
// of M Q for all matrices, with the tensors that are too small beside them, and of M^T P.
#include <algorithm>
#include <vector>

#include "base/counter_random.hpp"
#include "compress/schemes.hpp"
#include "kernel/low_rank.hpp"
#include "kernel/select.hpp"

namespace sinew {
namespace {

std::string name_of_q(const std::string& tensor) { return "powersgd/q/" + tensor; }

// One tensor: a matrix of its first dimension by all others, or as it is.
struct Tensor {
  std::string name;
  std::size_t begin = 0, elements = 0;  // in the gradient
  MatrixShape shape;
  std::size_t rank = 0;                  // 0: as it is
  std::size_t p_begin = 0, q_begin = 0;  // in the two messages
};

template <class Values>
auto q_of(const Tensor& part, Values& values) {
  return std::span(values).subspan(part.q_begin, part.rank * part.shape.columns);
}

class PowerSgd final : public Scheme {
 public:
  explicit PowerSgd(const SchemeSetup& setup)
      : seed_(setup.parameters->whole("seed")), warm_(setup.parameters->whole("warm_start") != 0) {
    std::size_t begin = 0, p_end = 0, q_end = 0;
    for (const auto& tensor : setup.layout) {
      auto part = part_of(tensor, *setup.parameters);
      part.begin = begin;
      part.p_begin = p_end;
      part.q_begin = q_end;
      begin += part.elements;
      p_end += part.rank == 0 ? part.elements : part.rank * part.shape.rows;
      q_end += part.rank * part.shape.columns;
      parts_.push_back(std::move(part));
    }
    p_.resize(p_end);
    q_.resize(q_end);
    q_sum_.resize(q_end);
  }

  Outcome exchange(Exchange& x) override {
    const auto sum = x.feedback.accumulate(x.gradient);
    project(x, sum);
    x.allreduce("p", std::span(p_));
    // A NaN or an infinity in a row of a matrix is in its product with whatever.
    if (!all_finite(p_)) return Outcome::non_finite;
    project_back(x, sum);
    if (!q_.empty()) x.allreduce("q", std::span(q_sum_));
    finish(x, sum);
    return Outcome::done;
  }

  void save(State& state) const override {
    for (const auto& part : parts_)
      if (part.rank > 0) state.put(name_of_q(part.name), std::span<const float>(q_of(part, q_)));
  }
  // Without one of that size, or of another rank, it begins at random.
  void load(const State& state) override {
    std::fill(q_.begin(), q_.end(), 0.0F);
    for (const auto& part : parts_) {
      const auto saved = state.get<float>(name_of_q(part.name));
      const auto mine = q_of(part, q_);
      if (saved.size() == mine.size()) std::copy(saved.begin(), saved.end(), mine.begin());
    }
  }

 private:
  static Tensor part_of(const TensorSpec& tensor, const Parameters& parameters) {
    Tensor part;
    part.name = tensor.name;
    part.elements = tensor.elements();
    if (tensor.shape.size() < 2) return part;
    part.shape = {tensor.shape.front(), part.elements / tensor.shape.front()};
    const auto rank = std::min(
        {static_cast<std::size_t>(parameters.whole("rank")), part.shape.rows, part.shape.columns});
    const auto thin = static_cast<double>(rank * (part.shape.rows + part.shape.columns));
    if (thin * parameters["least_gain"] <= static_cast<double>(part.elements)) part.rank = rank;
    return part;
  }

  std::span<float> p_of(const Tensor& part) {
    return std::span(p_).subspan(part.p_begin,
                                 part.rank == 0 ? part.elements : part.rank * part.shape.rows);
  }

  void project(Exchange& x, std::span<const float> sum) {
    const auto timed = x.time(Part::encode);
    for (const auto& part : parts_) {
      const auto mine = sum.subspan(part.begin, part.elements);
      if (part.rank == 0) {
        std::copy(mine.begin(), mine.end(), p_of(part).begin());
        continue;
      }
      fill_empty_directions(part, x.report.step);
      multiply(mine, part.shape, q_of(part, q_), p_of(part));
    }
  }

  // A direction that found nothing would stay empty for ever.
  void fill_empty_directions(const Tensor& part, std::uint64_t step) {
    const auto q = q_of(part, q_);
    const auto length = part.shape.columns;
    for (std::size_t v = 0; v < part.rank; ++v) {
      const auto direction = q.subspan(v * length, length);
      const bool empty =
          std::all_of(direction.begin(), direction.end(), [](float value) { return value == 0; });
      if (warm_ && !empty) continue;
      const auto key = random_key(seed_, step, part.q_begin + v);
      for (std::size_t i = 0; i < length; ++i) direction[i] = random_unit(key, i) - 0.5F;
    }
  }

  // From the sum over ranks, which is the same everywhere, everybody makes the same directions.
  void project_back(Exchange& x, std::span<const float> sum) {
    const auto timed = x.time(Part::encode);
    for (const auto& part : parts_) {
      if (part.rank == 0) continue;
      orthonormalize(p_of(part), part.shape.rows);
      multiply_transposed(sum.subspan(part.begin, part.elements), part.shape, p_of(part),
                          q_of(part, q_sum_));
    }
  }

  // What a rank keeps is its own matrix less the mean of all as it was sent.
  void finish(Exchange& x, std::span<float> pending) {
    const auto timed = x.time(Part::decode);
    std::copy(q_sum_.begin(), q_sum_.end(), q_.begin());
    const auto ranks = static_cast<float>(x.size()), divisor = x.divisor();
    for (const auto& part : parts_) {
      const auto result = x.gradient.subspan(part.begin, part.elements);
      const auto kept = pending.subspan(part.begin, part.elements);
      if (part.rank == 0) {
        const auto sum = p_of(part);
        for (std::size_t i = 0; i < sum.size(); ++i) result[i] = sum[i] / divisor;
        std::fill(kept.begin(), kept.end(), 0.0F);
        continue;
      }
      outer_product(p_of(part), q_of(part, q_), part.shape, result);
      for (std::size_t i = 0; i < result.size(); ++i) {
        kept[i] -= result[i] / ranks;
        result[i] /= divisor;
      }
    }
    x.report.items = x.report.local_items = p_.size() + q_.size();
    x.feedback.commit();
  }

  std::uint64_t seed_;
  bool warm_;
  std::vector<Tensor> parts_;
  std::vector<float> p_, q_, q_sum_;
};

}  // namespace

std::unique_ptr<Scheme> make_powersgd(const SchemeSetup& setup) {
  return std::make_unique<PowerSgd>(setup);
}

}  // namespace sinew
