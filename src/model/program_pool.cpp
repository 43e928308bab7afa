#include "model/program_pool.hpp"

#include <utility>

namespace sinew {

const Program& ProgramPool::keep(Program program, std::int32_t rank) {
  for (auto& item : program.items) {
    if (item.peer < 0) continue;
    if (by_xor_)
      item.peer ^= rank;
    else
      item.peer += item.peer < rank ? size_ - rank : -rank;
  }
  return *programs_.insert(std::move(program)).first;
}

std::size_t ProgramPool::Hash::operator()(const Program& program) const noexcept {
  constexpr std::uint64_t kOdd = 0x9E3779B97F4A7C15U;
  std::uint64_t hash = program.items.size();
  for (const auto& item : program.items) {
    const auto kind = item.round ^ item.op << 24U ^ item.channel << 28U;
    hash = (hash ^ kind ^ std::uint64_t{static_cast<std::uint32_t>(item.peer)} << 32) * kOdd;
    hash = (hash ^ hash >> 32 ^ item.chunks) * kOdd;
  }
  return hash ^ hash >> 32;
}

}  // namespace sinew
