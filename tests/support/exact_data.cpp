#include "support/exact_data.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>

#include "kernel/reduce.hpp"

namespace sinew::test {
namespace {

using Bytes = std::vector<std::byte>;
constexpr std::byte kUntouched{0xA5};
constexpr std::size_t kMargin = 64;

// Small enough that sums of 64 ranks are exact in every type, and products of a few are too.
int value(int rank, std::size_t element, ReduceOp op) {
  const auto mixed = static_cast<int>((element * 7 + static_cast<std::size_t>(rank) * 13) % 5);
  if (op == ReduceOp::prod) return 1 + (mixed == 0 ? 1 : 0);
  return op == ReduceOp::band || op == ReduceOp::bor || op == ReduceOp::bxor ? mixed : mixed - 1;
}

template <class T>
void store(std::byte* at, int number) {
  const auto element = static_cast<T>(number);
  std::memcpy(at, &element, sizeof element);
}

void put(DType dtype, std::byte* at, int number) {
  switch (dtype) {
    case DType::f32:
      store<float>(at, number);
      break;
    case DType::f64:
      store<double>(at, number);
      break;
    case DType::i8:
      store<std::int8_t>(at, number);
      break;
    case DType::u8:
      store<std::uint8_t>(at, number);
      break;
    case DType::i32:
      store<std::int32_t>(at, number);
      break;
    case DType::i64:
      store<std::int64_t>(at, number);
      break;
    case DType::u64:
      store<std::uint64_t>(at, number);
      break;
    case DType::f16: {
      const auto half = to_f16(static_cast<float>(number));
      std::memcpy(at, &half, 2);
      break;
    }
    case DType::bf16: {
      const auto half = to_bf16(static_cast<float>(number));
      std::memcpy(at, &half, 2);
      break;
    }
  }
}

// Elements first..first+count of what `rank` contributes; alltoall parts differ by destination too.
Bytes contribution(const Trial& trial, int rank, std::size_t first, std::size_t count) {
  const auto element = size_of(trial.dtype);
  Bytes bytes(count * element);
  for (std::size_t i = 0; i < count; ++i)
    put(trial.dtype, bytes.data() + i * element, value(rank, first + i, trial.op));
  return bytes;
}

Bytes reduction(const Trial& trial, int size, std::size_t first, std::size_t count) {
  auto sum = contribution(trial, 0, first, count);
  const auto reducer = find_scalar_reducer(trial.dtype, trial.op);
  for (int rank = 1; rank < size; ++rank)
    reducer.pair(sum.data(), contribution(trial, rank, first, count).data(), count);
  if (trial.op == ReduceOp::avg) divide(trial.dtype, sum.data(), count, size);
  return sum;
}

struct Shape {
  std::vector<std::size_t> parts;       // sizes of what each rank contributes or gets
  std::vector<std::size_t> recv_parts;  // alltoall: what comes from each
  std::size_t input = 0, output = 0;    // elements
  std::size_t before = 0;               // elements before this rank's part
  bool has_input = true, has_output = true;
};

std::size_t part_of(const Trial& trial, int from, int to) {
  return trial.ragged
             ? (trial.count + static_cast<std::size_t>(from * 3 + to)) % 7 * (trial.count / 3 + 1)
             : trial.count;
}

std::size_t sum_of(const std::vector<std::size_t>& parts, std::size_t most) {
  std::size_t total = 0;
  for (std::size_t i = 0; i < most; ++i) total += parts[i];
  return total;
}

Shape shape_of(const Trial& trial, int rank, int size) {
  Shape shape;
  const auto collective = trial.algorithm->collective;
  const auto me = static_cast<std::size_t>(rank);
  const bool is_root = rank == trial.root;
  for (int r = 0; r < size; ++r) {
    const bool matrix = collective == Collective::alltoall;
    shape.parts.push_back(matrix ? part_of(trial, rank, r) : part_of(trial, r, 0));
    shape.recv_parts.push_back(part_of(trial, r, rank));
  }
  const auto all = sum_of(shape.parts, shape.parts.size());
  shape.before = sum_of(shape.parts, me);
  switch (collective) {
    case Collective::allreduce:
      shape.input = shape.output = trial.count;
      break;
    case Collective::reduce:
      shape.input = shape.output = trial.count;
      shape.has_output = is_root;
      break;
    case Collective::broadcast:
      shape.input = shape.output = trial.count;
      shape.has_input = is_root;
      break;
    case Collective::allgather:
      shape.input = shape.parts[me];
      shape.output = all;
      break;
    case Collective::gather:
      shape.input = shape.parts[me];
      shape.output = all;
      shape.has_output = is_root;
      break;
    case Collective::reduce_scatter:
      shape.input = all;
      shape.output = shape.parts[me];
      break;
    case Collective::scatter:
      shape.input = all;
      shape.output = shape.parts[me];
      shape.has_input = is_root;
      break;
    case Collective::alltoall:
      shape.input = all;
      shape.output = sum_of(shape.recv_parts, shape.recv_parts.size());
      break;
    case Collective::barrier:
      break;
  }
  return shape;
}

Bytes expected(const Trial& trial, const Shape& shape, int rank, int size) {
  switch (trial.algorithm->collective) {
    case Collective::allreduce:
    case Collective::reduce:
      return reduction(trial, size, 0, trial.count);
    case Collective::broadcast:
      return contribution(trial, trial.root, 0, trial.count);
    case Collective::reduce_scatter:
      return reduction(trial, size, shape.before, shape.output);
    case Collective::scatter:
      return contribution(trial, trial.root, shape.before, shape.output);
    case Collective::barrier:
      return {};
    default:
      break;
  }
  Bytes result;
  for (int from = 0; from < size; ++from) {
    Shape theirs = shape_of(trial, from, size);
    const bool matrix = trial.algorithm->collective == Collective::alltoall;
    const auto first = matrix ? sum_of(theirs.parts, static_cast<std::size_t>(rank)) : 0;
    const auto count = matrix ? theirs.parts[static_cast<std::size_t>(rank)] : theirs.input;
    const auto part = contribution(trial, from, first, count);
    result.insert(result.end(), part.begin(), part.end());
  }
  return result;
}

// Buffers with margins on both sides, private or shared.
struct Buffer {
  Bytes own;
  SharedBuffer shared;
  std::byte* begin = nullptr;
  std::size_t bytes = 0;
  Buffer(Communicator& communicator, std::size_t wanted, bool in_shared) : bytes(wanted) {
    if (in_shared) {
      shared = communicator.alloc_shared(wanted + 2 * kMargin);
      begin = reinterpret_cast<std::byte*>(shared.as<std::uint8_t>().data()) + kMargin;
    } else {
      own.resize(wanted + 2 * kMargin);
      begin = own.data() + kMargin;
    }
    std::fill(begin - kMargin, begin + wanted + kMargin, kUntouched);
  }
  [[nodiscard]] bool margins_hold() const {
    const auto untouched = [](std::byte b) { return b == kUntouched; };
    return std::all_of(begin - kMargin, begin, untouched) &&
           std::all_of(begin + bytes, begin + bytes + kMargin, untouched);
  }
};

}  // namespace

std::string to_string(const Trial& trial) {
  return fmt::format("{} {} count={} {} {} root={}{}{}{}", name(trial.algorithm->collective),
                     trial.algorithm->name, trial.count, name(trial.dtype), name(trial.op),
                     trial.root, trial.in_place ? " in place" : "", trial.ragged ? " ragged" : "",
                     trial.shared_buffers ? " shared" : "");
}

std::string attempt(Communicator& communicator, const Trial& trial) {
  const int rank = communicator.rank(), size = communicator.size();
  const auto element = size_of(trial.dtype);
  const auto shape = shape_of(trial, rank, size);
  const auto collective = trial.algorithm->collective;
  const bool overlaid = trial.in_place && shape.has_input && shape.has_output;
  Buffer input(communicator, shape.input * element, trial.shared_buffers);
  Buffer output(communicator, shape.output * element, trial.shared_buffers);
  // In place: the smaller buffer lies inside the larger, at this rank's part.
  std::byte* in = input.begin;
  std::byte* out = output.begin;
  const bool parts_out = collective == Collective::allgather || collective == Collective::gather;
  const bool parts_in =
      collective == Collective::reduce_scatter || collective == Collective::scatter;
  if (overlaid && parts_in) out = in + shape.before * element;
  if (overlaid && !parts_in) in = out + (parts_out ? shape.before * element : 0);
  const auto mine = contribution(trial, rank, 0, shape.input);
  if (shape.has_input) std::copy(mine.begin(), mine.end(), in);
  Call call{.collective = collective,
            .dtype = trial.dtype,
            .op = trial.op,
            .root = trial.root,
            .input = shape.has_input ? in : nullptr,
            .output = shape.has_output ? out : nullptr,
            .options = {.algorithm = trial.algorithm->name}};
  call.count = collective == Collective::allreduce || collective == Collective::reduce ||
                       collective == Collective::broadcast
                   ? trial.count
                   : shape.parts[static_cast<std::size_t>(rank)];
  if (collective == Collective::barrier) call.count = 0;
  static const std::size_t none = 0;
  const bool root_only = collective == Collective::scatter || collective == Collective::gather;
  if (trial.ragged)
    call.counts = root_only && rank != trial.root ? std::span(&none, 0)
                                                  : std::span<const std::size_t>(shape.parts);
  if (trial.ragged && collective == Collective::alltoall) call.recv_counts = shape.recv_parts;
  communicator.run(call);
  if (!input.margins_hold() || !output.margins_hold())
    return fmt::format("rank {}: {}: wrote outside the buffer", rank, to_string(trial));
  if (!overlaid && shape.has_input && !std::equal(mine.begin(), mine.end(), in))
    return fmt::format("rank {}: {}: changed its input", rank, to_string(trial));
  if (!shape.has_output) return "";
  const auto wanted = expected(trial, shape, rank, size);
  const auto wrong = std::mismatch(wanted.begin(), wanted.end(), out).first;
  if (wrong == wanted.end()) return "";
  return fmt::format("rank {} of {}: {}: element {} is wrong", rank, size, to_string(trial),
                     static_cast<std::size_t>(wrong - wanted.begin()) / element);
}

std::vector<Trial> sweep(int size, const std::vector<int>& node_of) {
  const auto p = static_cast<std::size_t>(size);
  std::vector<Trial> trials;
  for (const auto& algorithm : algorithms()) {
    if (!algorithm.fits({0, size, 0, 1, node_of}, {true, true, true, true})) continue;
    const bool shared = algorithm.name == "shared";
    for (const std::size_t count :
         {std::size_t{0}, std::size_t{1}, p - 1, p, p + 1, std::size_t{1000}, std::size_t{20011}})
      for (const bool in_place : {false, true}) {
        const int root = has_root(algorithm.collective) ? static_cast<int>(count % p) : 0;
        trials.push_back(
            {&algorithm, count, DType::f32, ReduceOp::sum, root, in_place, false, shared});
        const bool has_parts = algorithm.collective != Collective::allreduce &&
                               algorithm.collective != Collective::reduce &&
                               algorithm.collective != Collective::broadcast &&
                               algorithm.collective != Collective::barrier;
        const bool may_be_ragged = algorithm.traits.ragged ||
                                   algorithm.collective == Collective::allgather ||
                                   algorithm.collective == Collective::reduce_scatter;
        // Parts sent and received differ in size, so a ragged alltoall cannot be in place.
        const bool makes_sense = !in_place || algorithm.collective != Collective::alltoall;
        if (has_parts && may_be_ragged && makes_sense && count < 20000)
          trials.push_back(
              {&algorithm, count, DType::i32, ReduceOp::sum, root, in_place, true, false});
      }
    if (!reduces(algorithm.collective)) continue;
    for (const auto dtype : kDTypes)
      for (const auto op : kReduceOps)
        if (supports(dtype, op))
          trials.push_back({&algorithm, 333, dtype, op, 0, true, false, shared});
  }
  return trials;
}

}  // namespace sinew::test
