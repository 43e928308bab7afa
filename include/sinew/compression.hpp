// Compressed allreduce: a scheme, its error feedback and its measures behind one call.
#pragma once

#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/communicator.hpp>
#include <sinew/scheme.hpp>

namespace sinew {

/// What happens when some rank's gradient has a NaN or an infinity: the same on all ranks, in the
/// same step. The residual never keeps one (but see AccumulatedGradient).
enum class NonFinite : std::uint8_t {
  propagate,  // the result has it: that step is a dense one
  skip,       // the result is zero and the residual as before: as if the step had not been
  error,      // every rank throws Error{invalid_argument}; the residual is as before
};
std::string_view name(NonFinite policy) noexcept;
NonFinite parse_non_finite(std::string_view text);

struct CompressionOptions {
  double density = 0.01;                        // of sparse schemes: share of the elements, (0, 1]
  std::optional<std::uint64_t> target_items{};  // the same as a number; overrules density
  ReduceOp op = ReduceOp::avg;                  // or sum
  std::uint64_t dense_steps = 0;                // warm-up: so many dense steps first
  NonFinite non_finite = NonFinite::propagate;
  bool measure = false;                        // quality figures; costs a dense allreduce a step
  std::map<std::string, double> parameters{};  // of the scheme, by name
};

/// A gradient that is added where what earlier steps left of it lies, as autograd adds to a
/// gradient that is there already: no pass brings the two together, clears the one or writes a
/// result as long as they are, and memory is what a sparse step is made of. Between two steps
/// whoever computes adds to `sum`, which begins as 0 and outlives this.
///
/// There is no way back to what was kept before a gradient was added: NonFinite::skip is refused,
/// and after NonFinite::error `sum` holds what came in.
class AccumulatedGradient final : public FarGradient {
 public:
  explicit AccumulatedGradient(std::span<float> sum);
  ~AccumulatedGradient() override;

  /// The mean (or sum) over ranks that the last step gave, elsewhere 0; until the next step, and
  /// while its compressor lives. `sum` has what was not sent. Nothing after a step that failed.
  [[nodiscard]] const Items& result() const noexcept { return result_; }
  /// Or that step was a dense one: its result is in `sum`, to be cleared by whoever has used it.
  [[nodiscard]] bool was_dense() const noexcept { return was_dense_; }
  /// Either of them, as a whole vector.
  void write_result(std::span<float> to) const;
  /// What is kept between two steps, for Compressor::save(); empty after a dense one.
  [[nodiscard]] std::span<const float> kept() const noexcept {
    return was_dense_ ? std::span<const float>() : sum_;
  }

  [[nodiscard]] bool can_forget() const noexcept override { return false; }
  [[nodiscard]] std::size_t elements() const override { return sum_.size(); }
  void expect(float least) override;
  Chosen choose(std::uint64_t most) override;
  std::span<float> fetch() override;
  void take(std::span<const std::uint32_t> indices) override;
  void give_back(const Items& items) override;
  void commit(const Items& result) override;
  void store() override;
  void roll_back(ErrorFeedback::Keep keep) override;
  void clear_gradient() override;
  void keep(std::span<const float> kept) override;

 private:
  void restore() noexcept;

  struct Memory;
  std::span<float> sum_;
  std::unique_ptr<Memory> memory_;
  Items result_;
  bool was_dense_ = false;
};

/// The allreduce of one flat gradient (a bucket), step after step. Ranks construct it together,
/// with equal arguments; what differs throws Error{mismatch} on all of them. The communicator must
/// outlive it.
class Compressor {
 public:
  /// Tensors in the order in which they lie in the gradient.
  Compressor(Communicator& communicator, const SchemeInfo& scheme, std::vector<TensorSpec> layout,
             CompressionOptions options = {});
  /// One tensor without a name.
  Compressor(Communicator& communicator, const SchemeInfo& scheme, std::size_t elements,
             CompressionOptions options = {});
  Compressor(Compressor&&) noexcept;
  Compressor& operator=(Compressor&&) noexcept;
  ~Compressor();

  /// Replaces the gradient by the mean (or sum) over ranks, as far as the scheme sends it. The
  /// report is that of this step, until the next. When it throws because a rank or a link failed,
  /// all that came in is kept; the contents of `gradient` are then unspecified.
  const StepReport& allreduce(std::span<float> gradient);
  /// The same for a gradient that stays where it is, with its residual; it comes to the host in
  /// dense steps only. The bits are those of the other form. Throws Error{unsupported} where the
  /// scheme cannot do that (SchemeInfo::far), quality is to be measured, or a step may have to be
  /// forgotten (NonFinite::skip) and the gradient cannot.
  const StepReport& allreduce(FarGradient& gradient);

  [[nodiscard]] const SchemeInfo& scheme() const noexcept;
  [[nodiscard]] const ErrorFeedback& feedback() const noexcept;
  [[nodiscard]] std::uint64_t steps() const noexcept;

  /// Residual, step count and what the scheme remembers. To change buckets, save all of the old
  /// ones into one State and load each of the new ones from it.
  void save(State& state) const;
  void load(const State& state);
  /// The same where the gradient keeps the residual: `kept` is what it has.
  void save(State& state, std::span<const float> kept) const;
  /// Gives the gradient what was loaded, or left by steps on the host. The next step would, but
  /// then it has been added to; and what is added in another order may have other bits.
  void hand_over(FarGradient& gradient);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace sinew
