#include <fmt/format.h>
#include <xxhash.h>

#include <algorithm>
#include <cmath>
#include <cstring>

#include <sinew/algorithms.hpp>
#include <sinew/compression.hpp>
#include <sinew/error.hpp>
#include "base/roles.hpp"
#include "base/text.hpp"
#include "compress/quality.hpp"
#include "kernel/select.hpp"

namespace sinew {
namespace {

constexpr std::string_view kPolicies[] = {"propagate", "skip", "error"};
constexpr std::string_view kStepName = "compressor/step";

std::uint64_t target_items(const SchemeInfo& scheme, std::size_t elements,
                           const CompressionOptions& options) {
  if (!scheme.sparse) return 0;
  if (options.target_items) {
    if (*options.target_items == 0)
      throw Error(Errc::invalid_argument, "0 items to send; give 1 or more, or a density");
    return std::min<std::uint64_t>(*options.target_items, elements);
  }
  if (!(options.density > 0 && options.density <= 1))
    throw Error(Errc::invalid_argument,
                fmt::format("density {} is not in (0, 1]; 0.01 sends one element of a hundred",
                            options.density));
  const auto items = std::floor(static_cast<double>(elements) * options.density);
  return elements == 0 ? 0 : std::max<std::uint64_t>(1, static_cast<std::uint64_t>(items));
}

std::vector<TensorSpec> one_tensor(std::size_t elements) {
  if (elements == 0) return {};
  return {{"", {elements}}};
}

std::uint64_t hash_layout(const std::vector<TensorSpec>& layout) {
  std::string text;
  for (const auto& tensor : layout) {
    text += tensor.name;
    for (const auto extent : tensor.shape) text += fmt::format(" {}", extent);
    text += '\n';
  }
  return XXH3_64bits(text.data(), text.size());
}

std::uint64_t hash_options(const SchemeInfo& scheme, const CompressionOptions& options) {
  auto text = fmt::format("{} {} {} {}", scheme.name, static_cast<int>(options.op),
                          options.dense_steps, static_cast<int>(options.non_finite));
  text += options.measure ? " measured" : "";
  for (const auto& [name, value] : options.parameters) text += fmt::format(" {}={}", name, value);
  return XXH3_64bits(text.data(), text.size());
}

// What ranks must have in common, compared before anything depends on it.
void agree_on_arguments(Communicator& communicator, const std::vector<std::uint64_t>& mine) {
  constexpr std::string_view kWhat[] = {"elements", "items to send", "tensors", "options"};
  std::vector<std::uint64_t> all(mine.size() * static_cast<std::size_t>(communicator.size()));
  communicator.allgather(std::span<const std::uint64_t>(mine), std::span(all),
                         {.tag = role_tag("agree")});
  for (std::size_t rank = 1; rank < all.size() / mine.size(); ++rank)
    for (std::size_t i = 0; i < mine.size(); ++i) {
      const auto theirs = all[rank * mine.size() + i];
      if (theirs == all[i]) continue;
      const bool is_number = i < 2;
      throw Error(
          Errc::mismatch,
          fmt::format("compressor: ranks 0 and {} differ in their {}{}; all ranks must "
                      "construct it alike",
                      rank, kWhat[i], is_number ? fmt::format(" ({} and {})", all[i], theirs) : ""),
          {.rank = communicator.rank(), .peer = static_cast<int>(rank)});
    }
}

ErrorFeedback empty_feedback(std::vector<TensorSpec> layout, const CompressionOptions& options) {
  return ErrorFeedback(std::move(layout), options.non_finite == NonFinite::propagate
                                              ? ErrorFeedback::Undo::no
                                              : ErrorFeedback::Undo::yes);
}

}  // namespace

std::string_view name(NonFinite policy) noexcept {
  return kPolicies[static_cast<std::size_t>(policy)];
}

NonFinite parse_non_finite(std::string_view text) {
  for (const auto policy : {NonFinite::propagate, NonFinite::skip, NonFinite::error})
    if (name(policy) == text) return policy;
  throw Error(Errc::invalid_argument, unknown("policy", text, kPolicies));
}

struct Compressor::Impl {
  Communicator& communicator;
  const SchemeInfo info;  // a copy: a user's row need not outlive the call
  CompressionOptions options;
  Parameters parameters;
  ErrorFeedback feedback;
  std::uint64_t target;
  std::unique_ptr<Scheme> scheme;
  std::uint64_t step = 0;
  StepReport report;
  std::vector<float> dense;  // measuring: the mean of all that came in

  Impl(Communicator& c, const SchemeInfo& i, std::vector<TensorSpec> layout, CompressionOptions o)
      : communicator(c),
        info(i),
        options(std::move(o)),
        parameters(info.parameters, options.parameters),
        feedback(empty_feedback(std::move(layout), options)),
        target(target_items(info, feedback.elements(), options)) {
    if (options.op != ReduceOp::avg && options.op != ReduceOp::sum)
      throw Error(Errc::unsupported, fmt::format("compressed allreduce has no {}; use avg or sum",
                                                 sinew::name(options.op)));
    if (info.sparse && feedback.elements() > std::uint64_t{0xFFFFFFFF})
      throw Error(Errc::unsupported,
                  fmt::format("{} elements; a sparse scheme counts up to {}: use several buckets",
                              feedback.elements(), 0xFFFFFFFF));
    agree_on_arguments(communicator, {feedback.elements(), target, hash_layout(feedback.layout()),
                                      hash_options(info, options)});
    scheme = info.make({feedback.layout(), feedback.elements(), communicator.rank(),
                        communicator.size(), target, &parameters});
  }

  void check_elements(std::size_t elements) const {
    if (elements == feedback.elements()) return;
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}: a gradient of {} elements for a compressor of {}",
                            communicator.rank(), elements, feedback.elements()));
  }

  void begin_report() {
    auto bytes = std::move(report.bytes);  // its memory
    bytes.clear();
    report = {};
    report.bytes = std::move(bytes);
    report.step = step;
    report.elements = feedback.elements();
    report.target_items = target;
  }

  Exchange exchange_of(std::span<float> gradient) {
    return {communicator, gradient,   feedback,
            report,       options.op, options.non_finite == NonFinite::propagate};
  }

  [[nodiscard]] Call dense_call(std::span<float> gradient) const {
    return {.collective = Collective::allreduce,
            .dtype = DType::f32,
            .op = options.op,
            .input = gradient.data(),
            .output = gradient.data(),
            .count = gradient.size()};
  }

  // What a scheme promises of its sums holds for steps that it leaves to us, too.
  [[nodiscard]] std::string_view algorithm_for_scheme(std::span<float> gradient) const {
    if (!info.rank_order) return {};
    for (const auto& candidate : communicator.explain(dense_call(gradient)))
      if (candidate.refused.empty() &&
          find_algorithm(Collective::allreduce, candidate.algorithm).traits.rank_order)
        return candidate.algorithm;
    return {};
  }

  // Everything that came in, over all ranks. Nothing of it is kept, unless the result is refused:
  // so the residual is forgotten by whoever accepts it.
  void run_dense(std::span<float> gradient, std::string_view algorithm = {}) {
    auto x = exchange_of(gradient);
    if (!feedback.in_step() && !feedback.kept().empty()) feedback.accumulate(gradient);
    if (feedback.in_step()) {
      const auto sum = feedback.pending();
      std::copy(sum.begin(), sum.end(), gradient.begin());
    }
    auto call = dense_call(gradient);
    call.options.algorithm = algorithm;
    x.run("dense", call);
    report.was_dense = true;
    report.items = report.local_items = gradient.size();
  }

  void settle(std::span<float> gradient) {
    switch (options.non_finite) {
      case NonFinite::propagate:
        run_dense(gradient);
        return forget_residual();
      case NonFinite::skip:
        feedback.roll_back(ErrorFeedback::Keep::before);
        std::fill(gradient.begin(), gradient.end(), 0.0F);
        return note_skipped();
      case NonFinite::error:
        feedback.roll_back(ErrorFeedback::Keep::before);
        refuse_non_finite();
    }
  }

  void note_skipped() {
    report.skipped = true;
    report.items = 0;
  }

  [[noreturn]] void refuse_non_finite(bool forgotten = true) const {
    throw Error(Errc::invalid_argument,
                fmt::format("rank {}, step {} of {}: a gradient has a NaN or an infinity; the "
                            "residual is {}",
                            communicator.rank(), step, info.name,
                            forgotten ? "as before the step" : "what came in"),
                {.rank = communicator.rank()});
  }

  void run(std::span<float> gradient) {
    if (step < options.dense_steps) return run_dense_checked(gradient);
    auto x = exchange_of(gradient);
    const auto outcome = scheme->exchange(x);
    if (outcome == Outcome::non_finite) settle(gradient);
    if (outcome == Outcome::dense) run_dense_checked(gradient, algorithm_for_scheme(gradient));
  }

  // Only the result can tell whether some rank had a NaN, and it tells all ranks alike.
  void run_dense_checked(std::span<float> gradient, std::string_view algorithm = {}) {
    run_dense(gradient, algorithm);
    if (options.non_finite != NonFinite::propagate && !all_finite(gradient))
      settle(gradient);
    else
      forget_residual();
  }

  // What the scheme can do with a gradient that is elsewhere; all the rest is done on the host.
  void run(FarGradient& gradient) {
    hand_over(gradient);
    const bool warms_up = step < options.dense_steps;
    auto outcome = Outcome::dense;
    if (!warms_up) {
      auto x = exchange_of({});
      x.far = &gradient;
      outcome = scheme->exchange(x);
    }
    const bool propagates = options.non_finite == NonFinite::propagate;
    if (outcome == Outcome::dense || (outcome == Outcome::non_finite && propagates)) {
      const auto host = gradient.fetch();
      const bool by_scheme = outcome == Outcome::dense && !warms_up;
      run_dense(host, by_scheme ? algorithm_for_scheme(host) : std::string_view{});
      if (propagates || all_finite(host)) return gradient.store();
    } else if (outcome == Outcome::done) {
      return;
    }
    gradient.roll_back(ErrorFeedback::Keep::before);
    if (options.non_finite == NonFinite::error) refuse_non_finite(gradient.can_forget());
    gradient.clear_gradient();
    note_skipped();
  }

  void hand_over(FarGradient& gradient) {
    if (feedback.kept().empty()) return;
    gradient.keep(feedback.kept());
    feedback = empty_feedback(feedback.layout(), options);
  }

  void forget_residual() {
    if (feedback.in_step()) feedback.clear();
  }

  void prepare_measures(std::span<const float> gradient) {
    dense.assign(gradient.begin(), gradient.end());
    const auto kept = feedback.kept();
    for (std::size_t i = 0; i < kept.size(); ++i) dense[i] += kept[i];
    report.gradient_norm = norm(gradient);
    communicator.allreduce(std::span(dense), options.op);
  }

  void take_measures(std::span<const float> gradient) {
    compare(gradient, dense, report);
    report.residual_norm = norm(feedback.kept());
    report.measured = true;
  }
};

Compressor::Compressor(Communicator& communicator, const SchemeInfo& scheme,
                       std::vector<TensorSpec> layout, CompressionOptions options)
    : impl_(std::make_unique<Impl>(communicator, scheme, std::move(layout), std::move(options))) {}
Compressor::Compressor(Communicator& communicator, const SchemeInfo& scheme, std::size_t elements,
                       CompressionOptions options)
    : Compressor(communicator, scheme, one_tensor(elements), std::move(options)) {}
Compressor::Compressor(Compressor&&) noexcept = default;
Compressor& Compressor::operator=(Compressor&&) noexcept = default;
Compressor::~Compressor() = default;

const StepReport& Compressor::allreduce(std::span<float> gradient) {
  auto& impl = *impl_;
  impl.check_elements(gradient.size());
  impl.begin_report();
  try {
    if (impl.options.measure) impl.prepare_measures(gradient);
    impl.run(gradient);
    if (impl.options.measure) impl.take_measures(gradient);
  } catch (...) {
    impl.feedback.roll_back(ErrorFeedback::Keep::all);  // nothing left to do after `error`
    throw;
  }
  ++impl.step;
  return impl.report;
}

const StepReport& Compressor::allreduce(FarGradient& gradient) {
  auto& impl = *impl_;
  impl.check_elements(gradient.elements());
  if (!impl.info.far || impl.options.measure)
    throw Error(Errc::unsupported, fmt::format("{} needs gradients on the host{}", impl.info.name,
                                               impl.info.far ? " to measure their quality" : ""));
  if (impl.options.non_finite == NonFinite::skip && !gradient.can_forget())
    throw Error(Errc::unsupported,
                "a gradient that is added to what was kept cannot be forgotten again: with it, a "
                "NaN is an error or propagates, and no step is skipped");
  impl.begin_report();
  try {
    impl.run(gradient);
  } catch (...) {
    gradient.roll_back(ErrorFeedback::Keep::all);
    throw;
  }
  ++impl.step;
  return impl.report;
}

const SchemeInfo& Compressor::scheme() const noexcept { return impl_->info; }
const ErrorFeedback& Compressor::feedback() const noexcept { return impl_->feedback; }
std::uint64_t Compressor::steps() const noexcept { return impl_->step; }

void Compressor::save(State& state) const { save(state, impl_->feedback.kept()); }

void Compressor::save(State& state, std::span<const float> kept) const {
  state.put(std::string(kStepName), std::span<const std::uint64_t>(&impl_->step, 1));
  ErrorFeedback::save(impl_->feedback.layout(), kept, state);
  impl_->scheme->save(state);
}

void Compressor::hand_over(FarGradient& gradient) {
  impl_->check_elements(gradient.elements());
  impl_->hand_over(gradient);
}

void Compressor::load(const State& state) {
  const auto step = state.get<std::uint64_t>(kStepName);
  if (step.size() != 1)
    throw Error(Errc::invalid_argument, "this state was not saved by a compressor");
  impl_->feedback.load(state);
  impl_->scheme->load(state);
  impl_->step = step.front();
}

}  // namespace sinew
