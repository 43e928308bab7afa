#include "cli/sparse_contender.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <memory>
#include <sstream>

#include "cli/median.hpp"
#include "cli/sparse_gradient.hpp"
#include "kernel/large_buffer.hpp"
#include "measure/measure.hpp"

namespace sinew {
namespace {

constexpr int kStepsBeforeCheck = 2;

std::uint32_t bits(float value) { return std::bit_cast<std::uint32_t>(value); }

class SparseContender final : public bench::Contender {
 public:
  SparseContender(Communicator communicator, SparseSetup setup)
      : communicator_(std::move(communicator)), setup_(std::move(setup)) {}

  bool supports(const bench::Case& what) override { return !what.options.empty(); }

  void prepare(const bench::Case& what, const bench::Buffers& buffers) override {
    data_ = {reinterpret_cast<float*>(buffers.output.data()), what.bytes / sizeof(float)};
    gradient_ =
        std::make_unique<SparseGradient>(data_.size(), communicator_.rank(), setup_.gradient);
    compressor_ = std::make_unique<Compressor>(communicator_, find_scheme(setup_.scheme),
                                               data_.size(), setup_.options);
    if (!setup_.accumulated) return;
    sum_ = LargeBuffer<float>(data_.size());
    std::fill(sum_.all().begin(), sum_.all().end(), 0.0F);
    place_ = std::make_unique<AccumulatedGradient>(sum_.all());
  }
  void rewrite(const bench::Buffers&) override {
    gradient_->write(data_, compressor_->steps());
    if (place_ && place_->was_dense()) std::fill(sum_.all().begin(), sum_.all().end(), 0.0F);
    for (std::size_t i = 0; i < sum_.size(); ++i) sum_.data()[i] += data_[i];
  }
  void run() override {
    note(place_ ? compressor_->allreduce(*place_) : compressor_->allreduce(data_));
  }

  /// The checked step comes after a few others, so that there is a residual.
  void fill(const bench::Case&, bench::Seat, const bench::Buffers& buffers) override {
    for (int step = 0; step < kStepsBeforeCheck; ++step) {
      rewrite(buffers);
      run();
    }
    came_in_ = kept();
    rewrite(buffers);
    double kept_norm = 0, norm = 0;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      kept_norm += double{came_in_[i]} * came_in_[i];
      norm += double{data_[i]} * data_[i];
      came_in_[i] += data_[i];
    }
    remark_.residual_over_gradient = norm > 0 ? std::sqrt(kept_norm / norm) : 0;
  }

  std::uint64_t count_wrong(const bench::Case&, bench::Seat, const bench::Buffers&) override {
    if (place_) place_->write_result(data_);
    auto dense = came_in_;
    communicator_.allreduce(std::span(dense), setup_.options.op);
    double apart = 0, product = 0, ours = 0, theirs = 0;
    for (std::size_t i = 0; i < data_.size(); ++i) {
      const double a = data_[i], b = dense[i];
      apart += (a - b) * (a - b);
      product += a * b;
      ours += a * a;
      theirs += b * b;
    }
    remark_.relative_error = theirs > 0 ? std::sqrt(apart / theirs) : 0;
    remark_.cosine = ours * theirs > 0 ? product / std::sqrt(ours) / std::sqrt(theirs) : 1;
    remark_.conserves = compressor_->scheme().conserves && compressor_->scheme().feedback;
    if (!remark_.conserves) return 0;
    const auto wrong = not_conserved();
    remark_.conserved = wrong == 0;
    came_in_ = {};
    return wrong;
  }

  std::string remark() override {
    for (std::size_t part = 0; part < kParts; ++part) remark_.part_ms[part] = median(parts_[part]);
    remark_.bytes = steps_ > 0 ? bytes_ / steps_ : 0;
    remark_.density = steps_ > 0 ? density_ / steps_ : 0;
    return to_text(remark_);
  }

 private:
  /// Of all elements; nothing may be kept after a dense step, or ever.
  [[nodiscard]] std::vector<float> kept() const {
    const auto there = place_ ? place_->kept() : compressor_->feedback().kept();
    std::vector<float> all(there.begin(), there.end());
    all.resize(data_.size());
    return all;
  }

  // What a rank no longer keeps, added up in rank order, must be the result: bit for bit, or where
  // the scheme adds in another order, but for rounding.
  std::uint64_t not_conserved() {
    const auto kept = this->kept();
    std::uint64_t wrong = 0;
    std::vector<float> sent(data_.size()), amounts(data_.size());
    for (std::size_t i = 0; i < sent.size(); ++i) {
      const bool stays = bits(kept[i]) == bits(came_in_[i]);
      wrong += !stays && kept[i] != 0 ? 1 : 0;
      sent[i] = stays ? 0 : came_in_[i];
      amounts[i] = std::abs(sent[i]);
    }
    communicator_.allreduce(std::span(sent), setup_.options.op, {.algorithm = "chain"});
    communicator_.allreduce(std::span(amounts), setup_.options.op);
    const float rounding = compressor_->scheme().rank_order ? 0 : 1e-6F;
    for (std::size_t i = 0; i < sent.size(); ++i)
      wrong += std::abs(sent[i] - data_[i]) > rounding * amounts[i] ? 1 : 0;
    return wrong;
  }

  void note(const StepReport& report) {
    if (report.step == 0) return;  // from the second step on
    steps_ += 1;
    bytes_ += static_cast<double>(report.received_bytes());
    density_ += report.density();
    for (std::size_t part = 0; part < kParts; ++part)
      parts_[part].push_back(static_cast<double>(report.part_ns[part]) / 1e6);
    if (report.target_items == 0) return;
    const double ratio =
        static_cast<double>(report.items) / static_cast<double>(report.target_items);
    if (steps_ == 1) remark_.items_over_k_min = ratio;
    remark_.items_over_k_min = std::min(remark_.items_over_k_min, ratio);
    remark_.items_over_k_max = std::max(remark_.items_over_k_max, ratio);
  }

  Communicator communicator_;
  SparseSetup setup_;
  std::span<float> data_;
  std::unique_ptr<SparseGradient> gradient_;
  std::unique_ptr<Compressor> compressor_;
  LargeBuffer<float> sum_;  // residual and gradient in one, where asked for
  std::unique_ptr<AccumulatedGradient> place_;
  std::vector<float> came_in_;
  SparseRemark remark_;
  double steps_ = 0, bytes_ = 0, density_ = 0;
  std::vector<double> parts_[kParts];
};

}  // namespace

std::string to_text(const SparseRemark& remark) {
  auto text =
      fmt::format("{} {} {} {} {} {} {} {:d} {:d}", remark.items_over_k_min,
                  remark.items_over_k_max, remark.bytes, remark.density, remark.relative_error,
                  remark.cosine, remark.residual_over_gradient, remark.conserves, remark.conserved);
  for (const double ms : remark.part_ms) text += fmt::format(" {:.4f}", ms);
  return text;
}

SparseRemark parse_remark(const std::string& text) {
  SparseRemark remark;
  std::istringstream words(text);
  words >> remark.items_over_k_min >> remark.items_over_k_max >> remark.bytes >> remark.density >>
      remark.relative_error >> remark.cosine >> remark.residual_over_gradient >> remark.conserves >>
      remark.conserved;
  for (double& ms : remark.part_ms) words >> ms;
  return remark;
}

bench::Launcher sparse_ranks(const BenchSetup& setup, const SparseSetup& sparse) {
  return connected_ranks(setup, [sparse](bench::Control& control, Communicator communicator) {
    SparseContender contender(std::move(communicator), sparse);
    bench::serve(control, contender);
  });
}

}  // namespace sinew
