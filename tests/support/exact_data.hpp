// Integer-valued data whose sums have no rounding, and what every collective must make of it.
#pragma once

#include <string>
#include <vector>

#include <sinew/communicator.hpp>

namespace sinew::test {

/// One call to check: the same on every rank.
struct Trial {
  const Algorithm* algorithm = nullptr;
  std::size_t count = 0;
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  bool in_place = false;
  bool ragged = false;  // parts of different sizes, some empty
  bool shared_buffers = false;
};
std::string to_string(const Trial& trial);

/// Runs the trial and compares every byte of the result (and that input and neighbours of the
/// output are untouched). Returns what is wrong, or "".
std::string attempt(Communicator& communicator, const Trial& trial);

/// Every trial of the data sweep for one rank count: algorithms x counts x in place or not.
std::vector<Trial> sweep(int size, const std::vector<int>& node_of = {});

}  // namespace sinew::test
