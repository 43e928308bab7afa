// Grid: nodes of equal size are the rows, their first, second, ... ranks the columns. Each rank
// sums one part over its row, then over its column, and hands the result to its row. So each byte
// crosses between nodes as seldom as it can, and all ranks of a node drive its link together.
#include "collective/generators.hpp"
#include "collective/places.hpp"
#include "schedule/builder.hpp"

namespace sinew {
namespace {

struct Grid {
  std::vector<std::vector<int>> rows;
  int row = 0, column = 0;  // of this rank

  explicit Grid(const Place& at) : rows(nodes_of(at)) {
    for (int r = 0; r < height(); ++r)
      for (int c = 0; c < width(); ++c)
        if (rank(r, c) == at.rank) row = r, column = c;
  }
  [[nodiscard]] int height() const { return static_cast<int>(rows.size()); }
  [[nodiscard]] int width() const { return static_cast<int>(rows.front().size()); }
  [[nodiscard]] int rank(int r, int c) const {
    return rows[static_cast<std::size_t>(wrap(r, height()))]
               [static_cast<std::size_t>(wrap(c, width()))];
  }
  /// What the ranks of a column sum together: a chunk for each of them.
  [[nodiscard]] Chunks part(int c) const {
    return out(u32(wrap(c, width()) * height()), u32(height()));
  }
  [[nodiscard]] Chunks piece(int r) const {
    return out(u32(column * height() + wrap(r, height())));
  }
};

void reduce_scatter_in_row(Builder& b, const Grid& grid) {
  for (int k = 1; k < grid.width(); ++k) {
    b.next_round();
    b.send(grid.rank(grid.row, grid.column + k), grid.part(grid.column + k));
    b.recv_reduce(grid.rank(grid.row, grid.column - k), grid.part(grid.column));
  }
}

void ring_in_column(Builder& b, const Grid& grid) {
  const int below = grid.rank(grid.row + 1, grid.column);
  const int above = grid.rank(grid.row - 1, grid.column);
  for (int k = 0; k < grid.height() - 1; ++k) {
    b.next_round();
    b.send(below, grid.piece(grid.row - k));
    b.recv_reduce(above, grid.piece(grid.row - k - 1));
  }
  for (int k = 0; k < grid.height() - 1; ++k) {
    b.next_round();
    b.send(below, grid.piece(grid.row + 1 - k));
    b.recv(above, grid.piece(grid.row - k));
  }
}

void allgather_in_row(Builder& b, const Grid& grid) {
  for (int k = 1; k < grid.width(); ++k) {
    b.next_round();
    b.send(grid.rank(grid.row, grid.column + k), grid.part(grid.column));
    b.recv(grid.rank(grid.row, grid.column - k), grid.part(grid.column - k));
  }
}

}  // namespace

Schedule allreduce_grid(const Place& at) {
  const Grid grid(at);
  const auto all = u32(at.size);
  Builder b("grid", at.rank, at.size, all, all);
  b.copy(in(0, all), out(0, all));
  reduce_scatter_in_row(b, grid);
  ring_in_column(b, grid);
  allgather_in_row(b, grid);
  return b.finish(b.round() + 1);
}

}  // namespace sinew
