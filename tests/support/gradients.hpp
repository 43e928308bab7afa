// Gradients to compress: reproducible, heavy-tailed, different on every rank.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include <sinew/compression.hpp>

namespace sinew::test {

/// Laplace with layers of different scale: half of it shared by all ranks, half a rank's own.
std::vector<float> gradient(std::size_t elements, int rank, std::uint64_t step, float scale = 1);

/// What a rank had and got in one step.
struct Stepped {
  std::vector<float> came_in;  // gradient + what was kept before, as the library adds it
  std::vector<float> kept;     // afterwards
  std::vector<float> result;
  StepReport report;
};

/// One step of a compressor that keeps track of all that.
Stepped take_step(Compressor& compressor, const std::vector<float>& gradient);

/// What is wrong with the conservation law over all ranks of one step, or "": what a rank no longer
/// keeps, summed in rank order and divided, is the result, bit for bit; and it keeps the rest.
std::string conservation_fault(const std::vector<Stepped>& ranks, ReduceOp op);

/// The first element in whose bits two vectors differ, or "". `what`: what they are called.
std::string difference(std::span<const float> a, std::span<const float> b, std::string_view what);

/// Runs `body` on every rank over local, and with `everywhere` over tcp as well; a text is a fault.
std::string on_ranks(int size, const std::function<std::string(Communicator&)>& body,
                     bool tcp = false);

}  // namespace sinew::test
