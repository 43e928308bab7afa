// What compression schemes are written with: the error-feedback container, one exchange as a scheme
// sees it, and the row by which a scheme is known. A scheme of your own needs nothing else.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/communicator.hpp>
#include <sinew/types.hpp>

namespace sinew {

/// A parameter of a model: a part of the flat gradient, known by its name.
struct TensorSpec {
  std::string name;
  std::vector<std::size_t> shape;
  [[nodiscard]] std::size_t elements() const noexcept;
  friend bool operator==(const TensorSpec&, const TensorSpec&) = default;
};

/// What must survive a restart: arrays by name. Several buckets may save into one.
class State {
 public:
  template <Element T>
  void put(const std::string& name, std::span<const T> values) {
    put(name, DTypeOf<T>::value, std::as_bytes(values));
  }
  /// Empty when there is none of that name; throws Error{invalid_argument} on another type.
  template <Element T>
  [[nodiscard]] std::vector<T> get(std::string_view name) const {
    const auto bytes = find(name, DTypeOf<T>::value);
    std::vector<T> values(bytes.size() / sizeof(T));
    if (!bytes.empty()) std::memcpy(values.data(), bytes.data(), values.size() * sizeof(T));
    return values;
  }
  [[nodiscard]] bool contains(std::string_view name) const { return arrays_.contains(name); }

  struct Array {
    DType dtype{};
    std::vector<std::byte> bytes;
    friend bool operator==(const Array&, const Array&) = default;
  };
  [[nodiscard]] const std::map<std::string, Array, std::less<>>& arrays() const { return arrays_; }
  void put(const std::string& name, DType dtype, std::span<const std::byte> bytes);
  friend bool operator==(const State&, const State&) = default;

 private:
  [[nodiscard]] std::span<const std::byte> find(std::string_view name, DType dtype) const;
  std::map<std::string, Array, std::less<>> arrays_;
};

/// What was not sent stays here and is added to the next gradient: what is sent plus what is kept
/// equals what came in, bit for bit. A step is a transaction:
///
///   begin(), or accumulate(gradient)    pending() = gradient + kept(); kept() is still as it was
///   take(indices), or write pending()   what was sent leaves
///   commit()                            pending becomes kept
///
/// and roll_back() instead of commit() either keeps all that came in, or forgets the step. Who
/// never needs to forget (Undo::no) saves half the memory: pending() is then kept() itself.
class ErrorFeedback {
 public:
  enum class Undo : bool { no, yes };
  explicit ErrorFeedback(std::vector<TensorSpec> layout, Undo undo = Undo::yes);
  ErrorFeedback(ErrorFeedback&&) noexcept;
  ErrorFeedback& operator=(ErrorFeedback&&) noexcept;
  ~ErrorFeedback();

  [[nodiscard]] const std::vector<TensorSpec>& layout() const noexcept { return layout_; }
  [[nodiscard]] std::size_t elements() const noexcept { return elements_; }
  /// What earlier steps left.
  [[nodiscard]] std::span<const float> kept() const noexcept;

  /// Begins a step whose sum a fused kernel writes: all of `sum`, which is gradient + kept, where
  /// elements of `kept` count as 0 whose bit in `gone` is set. `sum` may be `kept`.
  struct Step {
    std::span<const float> kept;
    std::span<const std::uint64_t> gone;
    std::span<float> sum;
  };
  Step begin();
  /// Begins a step: pending() = gradient + kept().
  std::span<float> accumulate(std::span<const float> gradient);
  [[nodiscard]] std::span<float> pending() noexcept;
  [[nodiscard]] bool in_step() const noexcept { return in_step_; }

  /// These elements were sent as they are. They become 0 when someone looks, at the latest in the
  /// next step, which passes by anyway.
  void take(std::span<const std::uint32_t> indices) noexcept;
  /// The same by a bit for each element, 64 in a word, the first lowest: the caller writes all of
  /// the words, and nothing else takes in this step.
  [[nodiscard]] std::span<std::uint64_t> take_by_bits() noexcept;
  void commit();

  enum class Keep : std::uint8_t {
    all,     // this step's gradient too: nothing of it was sent, and nothing is lost
    before,  // only what was kept before this step; needs Undo::yes
  };
  void roll_back(Keep keep);
  /// Nothing is kept any more.
  void clear();

  /// By tensor name, so that other buckets of the same tensors can load it. Loading throws
  /// Error{invalid_argument} where a tensor is missing or has another size, and changes nothing.
  void save(State& state) const;
  void load(const State& state);
  /// The same for what is kept elsewhere; empty: nothing is.
  static void save(const std::vector<TensorSpec>& layout, std::span<const float> kept,
                   State& state);

 private:
  struct Memory;
  [[nodiscard]] Memory& pending_memory() const noexcept;

  std::vector<TensorSpec> layout_;
  std::size_t elements_ = 0;
  Undo undo_;
  std::unique_ptr<Memory> kept_, pending_;  // without undo there is only the first
  bool in_step_ = false;
};

/// A gradient with its residual, kept by somebody else, such as in the memory of a GPU: what a
/// scheme that selects asks of it, so that no more than what is sent has to pass through its hands.
/// A step begins with choose() or fetch(), and ends with commit(), store() or roll_back().
class FarGradient {
 public:
  FarGradient() = default;
  FarGradient(const FarGradient&) = delete;
  FarGradient& operator=(const FarGradient&) = delete;
  virtual ~FarGradient() = default;

  struct Items {
    std::span<const std::uint32_t> indices;  // ascending
    std::span<const float> values;
  };
  struct Chosen {
    Items items;
    bool finite = true;  // whether all elements are, not only the chosen
    // Chosen elements of at least this magnitude have been taken already.
    float taken = std::numeric_limits<float>::infinity();
  };
  [[nodiscard]] virtual std::size_t elements() const = 0;
  /// Whether roll_back(Keep::before) brings back what was kept before the step; where it does not,
  /// all is kept.
  [[nodiscard]] virtual bool can_forget() const noexcept { return true; }
  /// A hint for choose(): elements of at least this magnitude will probably be sent, and taking
  /// them right away may be cheaper than later.
  virtual void expect(float /*least*/) {}
  /// Of gradient + kept the largest by magnitude: exactly min(most, nonzeros) where all are finite,
  /// ties by lowest index. Valid until the step ends.
  virtual Chosen choose(std::uint64_t most) = 0;
  /// All of gradient + kept, in memory of the host that is valid until the step ends.
  virtual std::span<float> fetch() = 0;

  /// These elements were sent as they are, and will not be kept. Several calls, in ascending order,
  /// and then commit().
  virtual void take(std::span<const std::uint32_t> indices) = 0;
  /// These were taken by choose(), and not sent. Calls alternate with those of take().
  virtual void give_back(const Items& /*items*/) {}
  /// The gradient becomes `result`, which stays where it is until the next step, and 0 elsewhere.
  virtual void commit(const Items& result) = 0;
  /// The gradient becomes what fetch() gave, as it is now. Nothing is kept.
  virtual void store() = 0;
  /// The gradient is unspecified. Does nothing outside of a step.
  virtual void roll_back(ErrorFeedback::Keep keep) = 0;
  /// The gradient becomes 0; what is kept stays. Outside of a step.
  virtual void clear_gradient() = 0;
  /// Takes over what was kept elsewhere. Outside of a step.
  virtual void keep(std::span<const float> kept) = 0;
};

/// Where the time of a step goes.
enum class Part : std::uint8_t { accumulate_select, encode, wire, reduce, decode };
inline constexpr std::size_t kParts = 5;
std::string_view name(Part part) noexcept;

/// Bytes of one kind of exchange within a step.
struct PhaseBytes {
  std::string_view phase;
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

/// What a step was, in numbers.
struct StepReport {
  std::uint64_t step = 0;  // from 0
  std::uint64_t elements = 0;
  std::uint64_t target_items = 0;  // what density asks for; 0: the scheme selects nothing
  std::uint64_t local_items = 0;   // selected here
  std::uint64_t items = 0;         // of the result; equal on all ranks
  bool was_dense = false;          // a warm-up step, or a fallback
  bool skipped = false;            // a rank had a NaN or an infinity
  std::uint64_t overflows = 0;     // elements of the result that 16 bits could not hold
  std::vector<PhaseBytes> bytes;
  std::uint64_t part_ns[kParts] = {};

  // With CompressionOptions::measure only.
  bool measured = false;
  double relative_error = 0;  // |result - dense| / |dense|, dense: the mean of gradient + residual
  double cosine = 1;          // between the two
  double residual_norm = 0;   // of what this rank keeps now
  double gradient_norm = 0;

  [[nodiscard]] std::uint64_t sent_bytes() const noexcept;
  [[nodiscard]] std::uint64_t received_bytes() const noexcept;
  [[nodiscard]] double density() const noexcept;  // realised
};

/// One step, as a scheme sees it.
class Exchange {
 public:
  Exchange(Communicator& over, std::span<float> data, ErrorFeedback& residual, StepReport& into,
           ReduceOp reduction, bool passes_non_finite)
      : gradient(data),
        feedback(residual),
        report(into),
        op(reduction),
        propagates(passes_non_finite),
        communicator_(over) {}

  std::span<float> gradient;  // in: this rank's; out: the sum or mean over ranks, equal on all
  ErrorFeedback& feedback;
  /// Where not null, it stands for both of these. Only schemes that say SchemeInfo::far see one.
  FarGradient* far = nullptr;
  StepReport& report;
  ReduceOp op;      // sum or avg
  bool propagates;  // NaN and infinities pass through: nobody needs to look for them

  [[nodiscard]] int rank() const noexcept { return communicator_.rank(); }
  [[nodiscard]] int size() const noexcept { return communicator_.size(); }
  /// What a sum is divided by.
  [[nodiscard]] float divisor() const noexcept {
    return op == ReduceOp::avg ? static_cast<float>(size()) : 1.0F;
  }

  /// Any collective, blocking; timed as Part::wire, its bytes counted under `phase` (a literal).
  void run(std::string_view phase, const Call& call);
  template <Element T>
  void allreduce(std::string_view phase, std::span<T> data, ReduceOp reduce = ReduceOp::sum) {
    run(phase, {.collective = Collective::allreduce,
                .dtype = DTypeOf<T>::value,
                .op = reduce,
                .input = data.data(),
                .output = data.data(),
                .count = data.size()});
  }
  template <Element T>
  void allgather(std::string_view phase, std::span<const T> mine, std::span<T> all) {
    run(phase, {.collective = Collective::allgather,
                .dtype = DTypeOf<T>::value,
                .input = mine.data(),
                .output = all.data(),
                .count = mine.size()});
  }
  /// `counts`: elements of each rank's part, known to all.
  template <Element T>
  void allgatherv(std::string_view phase, std::span<const T> mine, std::span<T> all,
                  std::span<const std::size_t> counts) {
    run(phase, {.collective = Collective::allgather,
                .dtype = DTypeOf<T>::value,
                .input = mine.data(),
                .output = all.data(),
                .count = mine.size(),
                .counts = counts});
  }
  template <Element T>
  void alltoall(std::string_view phase, std::span<const T> mine, std::span<T> theirs) {
    run(phase, {.collective = Collective::alltoall,
                .dtype = DTypeOf<T>::value,
                .input = mine.data(),
                .output = theirs.data(),
                .count = mine.size() / static_cast<std::size_t>(size())});
  }
  /// `likely_bytes`: as in CallOptions.
  template <Element T>
  void alltoallv(std::string_view phase, std::span<const T> mine,
                 std::span<const std::size_t> counts, std::span<T> theirs,
                 std::span<const std::size_t> their_counts, std::uint64_t likely_bytes = 0) {
    run(phase, {.collective = Collective::alltoall,
                .dtype = DTypeOf<T>::value,
                .input = mine.data(),
                .output = theirs.data(),
                .counts = counts,
                .recv_counts = their_counts,
                .options = {.likely_bytes = likely_bytes}});
  }
  /// A message to one rank; its bytes count under `phase` too. Who sends and who receives, and how
  /// much, must be known to both.
  void send(std::string_view phase, std::span<const std::byte> data, int to);
  void recv(std::string_view phase, std::span<std::byte> data, int from);
  /// True on all ranks if it is true on any.
  bool any_rank(std::string_view phase, bool mine);

  /// Time from construction to destruction counts as `part`, less what run() took meanwhile.
  class Timed {
   public:
    Timed(StepReport& report, Part part) noexcept;
    Timed(const Timed&) = delete;
    Timed& operator=(const Timed&) = delete;
    ~Timed();

   private:
    StepReport& report_;
    Part part_;
    std::chrono::steady_clock::time_point begin_;
    std::uint64_t wire_ns_;
  };
  [[nodiscard]] Timed time(Part part) noexcept { return {report, part}; }

 private:
  PhaseBytes& bytes_of(std::string_view phase);

  Communicator& communicator_;
};

enum class Outcome : std::uint8_t {
  done,
  /// This step is better done densely; all ranks say so, and `gradient` is untouched.
  dense,
  /// Some rank has a NaN or an infinity, and all ranks know it. The caller of the scheme does what
  /// the user wants done about it; with Exchange::propagates, `gradient` must be untouched.
  non_finite,
};

class Scheme {
 public:
  Scheme() = default;
  Scheme(const Scheme&) = delete;
  Scheme& operator=(const Scheme&) = delete;
  virtual ~Scheme() = default;

  /// Called by all ranks in the same step. Whatever it throws, the feedback is rolled back to
  /// Keep::all, so that it must commit() last.
  virtual Outcome exchange(Exchange& exchange) = 0;
  /// Beyond the feedback, which is saved anyway. Names begin with the scheme's.
  virtual void save(State& /*state*/) const {}
  virtual void load(const State& /*state*/) {}
};

/// A number a scheme can be told, with what it is when nobody does.
struct SchemeParameter {
  std::string_view name;
  double value = 0;
  double least = 0, most = 0;
  bool whole = false;  // only integers
  std::string_view help;
};

/// The parameters of one scheme, complete and checked.
class Parameters {
 public:
  Parameters(std::span<const SchemeParameter> known, const std::map<std::string, double>& given);
  /// The name must be one of the scheme's.
  [[nodiscard]] double operator[](std::string_view name) const;
  [[nodiscard]] std::uint64_t whole(std::string_view name) const {
    return static_cast<std::uint64_t>((*this)[name]);
  }

 private:
  std::map<std::string, double, std::less<>> values_;
};

/// What a scheme is made from. Equal on all ranks but for `rank`.
struct SchemeSetup {
  std::span<const TensorSpec> layout;
  std::size_t elements = 0;
  int rank = 0;
  int size = 1;
  std::uint64_t target_items = 0;  // k
  const Parameters* parameters = nullptr;
};

/// The row of a scheme.
struct SchemeInfo {
  std::string_view name;
  std::string_view summary;  // one line for lists
  std::unique_ptr<Scheme> (*make)(const SchemeSetup&) = nullptr;
  bool sparse = false;      // density has an effect
  bool feedback = false;    // keeps what it does not send
  bool conserves = false;   // sent + kept == came in, bit for bit
  bool rank_order = false;  // and the result is the sum in rank order, bit for bit
  std::span<const SchemeParameter> parameters{};
  bool far = false;  // can leave the gradient where it is (FarGradient)
};

/// The schemes of the library: the only list of them.
std::span<const SchemeInfo> schemes() noexcept;
/// By name, in `own` first; throws Error{invalid_argument} that suggests the nearest.
const SchemeInfo& find_scheme(std::string_view name, std::span<const SchemeInfo> own = {});

}  // namespace sinew
