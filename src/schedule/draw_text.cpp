// A world as plain text: a table of rounds and ranks where the columns fit, else a line a rank.
#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>
#include <sinew/draw.hpp>

#include "schedule/draw_layout.hpp"

namespace sinew {
namespace {

using detail::Notation;
using detail::plural;
using Cells = std::vector<std::vector<std::vector<std::string>>>;  // by rank, by round

Cells spell_all(const World& world, const Notation& notation, const detail::Shown& part) {
  Cells cells;
  for (const auto& rounds : detail::steps_by_round(world, part)) {
    const Schedule& schedule = world.ranks[cells.size()];
    auto& mine = cells.emplace_back(rounds.size());
    for (std::size_t round = 0; round < rounds.size(); ++round)
      for (const Step* step : rounds[round]) mine[round].push_back(notation.spell(schedule, *step));
  }
  return cells;
}

// Whether every rank does the same in a round, and so little that one line can say it.
bool uniform(const Cells& cells, std::size_t round) {
  const std::size_t steps = cells.front()[round].size();
  return steps >= 1 && steps <= 3 && std::all_of(cells.begin(), cells.end(), [&](const auto& rank) {
           return rank[round] == cells.front()[round];
         });
}

std::string every_rank(const std::vector<std::string>& steps) {
  return fmt::format("every rank: {}", fmt::join(steps, ", "));
}

std::size_t widest(const Cells& cells, bool merge) {
  std::size_t width = 0;
  for (std::size_t round = 0; !cells.empty() && round < cells.front().size(); ++round) {
    if (merge && uniform(cells, round)) continue;
    for (const auto& rank : cells)
      for (const std::string& cell : rank[round]) width = std::max(width, cell.size());
  }
  return width;
}

void add_line(std::string& out, std::string line) {
  line.erase(line.find_last_not_of(' ') + 1);
  out += line + '\n';
}

struct Table {
  std::size_t width = 0;  // of a column
  bool merge = false;     // uniform rounds take one line across all columns
  bool narrow = false;    // no blanks around cells, no word "round"
  [[nodiscard]] std::string_view gap() const { return narrow ? "|" : " | "; }
  [[nodiscard]] std::size_t margin() const { return narrow ? 2 : 5; }
};

// As roomy as fits: the word "round" and blanks go first, then repeated cells of uniform rounds.
std::optional<Table> fit_table(const Cells& cells, std::size_t columns) {
  const std::size_t head = fmt::formatted_size("rank {}", cells.size() - 1);
  for (const bool merge : {false, true}) {
    for (const bool narrow : {false, true}) {
      const Table table{std::max(widest(cells, merge), head), merge, narrow};
      if (table.margin() + cells.size() * (table.width + table.gap().size()) <= columns)
        return table;
    }
  }
  return std::nullopt;
}

std::string draw_table(const Cells& cells, const Table& table,
                       const std::vector<detail::Rounds>& rows) {
  std::string out, rule(table.margin(), '-');
  std::string header = fmt::format("{:>{}}", table.narrow ? "" : "round", table.margin());
  for (std::size_t r = 0; r < cells.size(); ++r) {
    header += fmt::format("{}{:<{}}", table.gap(), fmt::format("rank {}", r), table.width);
    rule += (table.narrow ? "+" : "-+-") + std::string(table.width, '-');
  }
  add_line(out, header);
  add_line(out, rule);

  std::vector<std::size_t> heights;
  for (std::size_t round = 0; round < cells.front().size(); ++round) {
    std::size_t lines = 1;
    for (const auto& rank : cells) lines = std::max(lines, rank[round].size());
    heights.push_back(lines);
  }
  const bool ruled =
      std::any_of(heights.begin(), heights.end(), [](auto lines) { return lines > 1; });
  for (const detail::Rounds& row : rows) {
    const std::size_t round = row.first;
    if (ruled && round > 0) add_line(out, rule);
    const std::string number = fmt::format("{:>{}}", round, table.margin());
    if (row.idle) {
      const std::string until =
          row.last > row.first ? fmt::format(" until round {}", row.last) : "";
      add_line(out, fmt::format("{}{}(idle{})", number, table.gap(), until));
      continue;
    }
    if (table.merge && uniform(cells, round)) {
      add_line(out, fmt::format("{}{}{}", number, table.gap(), every_rank(cells.front()[round])));
      continue;
    }
    for (std::size_t line = 0; line < heights[round]; ++line) {
      std::string text = line == 0 ? number : std::string(table.margin(), ' ');
      for (const auto& rank : cells) {
        const std::string cell = line < rank[round].size() ? rank[round][line] : "";
        text += fmt::format("{}{:<{}}", table.gap(), cell, table.width);
      }
      add_line(out, text);
    }
  }
  return out;
}

std::string draw_list(const Cells& cells, std::size_t columns,
                      const std::vector<detail::Rounds>& rows) {
  const std::string indent(2, ' ');
  const std::size_t label = fmt::formatted_size("ranks {0}-{0}", cells.size() - 1) + 2;
  const std::size_t width = widest(cells, true);
  const std::size_t room = columns > indent.size() + label ? columns - indent.size() - label : 0;
  const std::size_t per_line = std::max<std::size_t>(1, (room + 3) / (width + 3));
  std::string out;
  for (const detail::Rounds& row : rows) {
    const std::size_t round = row.first;
    const char* noun = row.first == row.last ? "round" : "rounds";
    add_line(out, fmt::format("{} {}{}", noun, spell(row), row.idle ? ": idle" : ""));
    if (row.idle) continue;
    if (uniform(cells, round)) {
      add_line(out, indent + every_rank(cells.front()[round]));
      continue;
    }
    std::vector<int> idle;
    for (std::size_t r = 0, next = 0; r < cells.size(); r = next) {
      const auto& steps = cells[r][round];
      for (next = r + 1; next < cells.size() && cells[next][round] == steps;) ++next;
      for (std::size_t i = r; steps.empty() && i < next; ++i) idle.push_back(static_cast<int>(i));
      const std::string who =
          next == r + 1 ? fmt::format("rank {}", r) : fmt::format("ranks {}-{}", r, next - 1);
      for (std::size_t first = 0; first < steps.size(); first += per_line) {
        std::string line = fmt::format("{}{:<{}}", indent, first == 0 ? who : "", label);
        for (std::size_t i = first; i < std::min(first + per_line, steps.size()); ++i)
          line += fmt::format("{:<{}}", steps[i], width + 3);
        add_line(out, line);
      }
    }
    if (!idle.empty()) add_line(out, fmt::format("{}idle: {}", indent, detail::spell_ranks(idle)));
  }
  return out;
}

std::string_view meaning(const Step& step, bool by_reference) {
  if (step.op == Op::publish && step.src.count == 0) return "tell the others";
  if (step.op == Op::gather_copy && step.dst.count == 0) return "wait for the others";
  switch (step.op) {
    case Op::send:
      return "send to that rank";
    case Op::recv:
      return "receive from that rank";
    case Op::recv_reduce:
      return "receive from that rank and combine with what is there";
    case Op::copy:
      return "copy";
    case Op::reduce:
      return "combine with what is there";
    case Op::publish:
      return by_reference ? "tell where it lies, so that others can read it there"
                          : "put on my board, where others can read it";
    case Op::gather_copy:
      return by_reference ? "read it where it lies" : "read from that board";
    case Op::gather_reduce:
      return by_reference ? "combine what all told, read where it lies, in rank order"
                          : "combine what the boards hold, in rank order";
    case Op::gather_reduce_all:
      return "combine shared buffers and write all of them";
  }
  return "?";
}

// Explains, with examples out of this very drawing, only what occurs in it.
std::string draw_legend(const World& world, const Notation& notation, const detail::Shown& part) {
  const detail::Uses used = detail::uses(detail::steps_by_round(world, part));
  std::vector<std::pair<std::string, std::string>> rows;
  std::string text;  // of all examples
  for (std::size_t op = 0; op < used.example.size(); ++op) {
    if (used.example[op] == nullptr) continue;
    const auto rank = static_cast<std::size_t>(used.example_rank[op]);
    rows.emplace_back(notation.spell(world.ranks[rank], *used.example[op]),
                      meaning(*used.example[op], world.ranks.front().by_reference));
    text += rows.back().first + '\n';
  }
  std::string letters, names;
  for (std::size_t b = 0; b < used.bufs.size(); ++b) {
    if (!used.bufs[b]) continue;
    letters += fmt::format("{}{}", letters.empty() ? "" : " ", "iosb"[b]);
    names += fmt::format("{}{}", names.empty() ? "" : ", ", name(static_cast<Buf>(b)));
  }
  if (!letters.empty()) rows.emplace_back(letters, "chunks of " + names);
  if (used.sync) rows.emplace_back("sync", "no data, only word of having come this far");
  if (text.find("@r") != text.npos) rows.emplace_back("@r1", "of rank 1");
  if (text.find('*') != text.npos) rows.emplace_back("*", "every rank, my own included");
  for (std::size_t g = 0; g < notation.groups().size(); ++g)
    rows.emplace_back(fmt::format("g{}", g), "ranks " + detail::spell_ranks(notation.groups()[g]));
  if (used.channels) rows.emplace_back("~1", "on channel 1, which runs beside the others");

  std::size_t width = 0;
  for (const auto& row : rows) width = std::max(width, row.first.size());
  std::string out;
  for (const auto& [symbol, words] : rows)
    add_line(out, fmt::format("  {:<{}}  {}", symbol, width, words));
  return out;
}

}  // namespace

std::string draw_text(const World& world, int columns) {
  const Notation notation(world);
  const detail::Shown part = detail::shown(world);
  const auto wide = static_cast<std::size_t>(std::max(columns, 1));

  std::string out = detail::title(world) + '\n';
  for (const std::string& fact : detail::facts(world)) out += fact + '\n';
  const Cells cells = spell_all(world, notation, part);
  out += '\n';
  if (widest(cells, false) == 0)
    return out + (part.left_out.empty() ? "no rank has anything to do" : part.left_out) + '\n';

  const auto rows = detail::rounds_of(detail::steps_by_round(world, part), part.rounds);
  const auto table = fit_table(cells, wide);
  out += table ? draw_table(cells, *table, rows) : draw_list(cells, wide, rows);
  if (!part.left_out.empty()) out += part.left_out + '\n';
  return out + '\n' + draw_legend(world, notation, part);
}

}  // namespace sinew
