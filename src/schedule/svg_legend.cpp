#include "schedule/svg_legend.hpp"

#include <vector>

#include <fmt/format.h>

namespace sinew::detail {
namespace {

struct Sample {
  std::string_view shape, colour, words;
};

std::vector<Sample> samples_of(const Legend& legend) {
  bool moves = false, joins = false, publishes = false, boards = false;
  for (const Step* step : legend.uses.example) {
    if (step == nullptr || is_message(step->op)) continue;
    moves = moves || colour_of(*step) == "move";
    joins = joins || colour_of(*step) == "join";
    publishes = publishes || colour_of(*step) == "board";
    boards = boards || !is_local(step->op);
  }
  std::vector<Sample> samples;
  if (legend.moves) samples.push_back({"arrow", "move", "receive"});
  if (legend.joins) samples.push_back({"arrow", "join", "receive and combine"});
  if (legend.uses.channels) samples.push_back({"arrow side", "move", "~1: on channel 1"});
  if (legend.lost) samples.push_back({"arrow", "lost", "only one side takes part"});
  if (moves) samples.push_back({"pill", "move", "copy"});
  if (joins) samples.push_back({"pill", "join", "combine"});
  if (publishes) samples.push_back({"pill", "board", "publish, or wait for others"});
  if (boards) samples.push_back({"bar", "board", "memory that ranks share"});
  return samples;
}

std::vector<std::string> notes_of(const Legend& legend) {
  std::vector<std::string> notes;
  std::string names;
  for (std::size_t b = 0; b < legend.uses.bufs.size(); ++b)
    if (legend.uses.bufs[b])
      names += fmt::format("{}{}0: {} chunk 0", names.empty() ? "" : ", ", "iosb"[b],
                           name(static_cast<Buf>(b)));
  if (!names.empty()) notes.push_back(names);
  bool gathers = false, any = false;
  for (const Step* step : legend.uses.example) {
    any = any || step != nullptr;
    gathers = gathers || (step != nullptr && step->op >= Op::gather_copy && step->dst.count > 0);
  }
  if (gathers) notes.emplace_back("@r1: of rank 1, @g1: of group 1, @*: of every rank");
  if (legend.uses.sync) notes.emplace_back("sync: no data, only word of having come this far");
  if (legend.turns) notes.emplace_back("what leaves at one side comes in at the other");
  if (legend.crowded) notes.emplace_back("crowded rounds have no labels; hover over an arrow");
  if (!legend.left_out.empty()) notes.push_back(legend.left_out);
  if (!any && legend.left_out.empty()) notes.emplace_back("no rank has anything to do");
  return notes;
}

}  // namespace

std::string_view colour_of(const Step& step) {
  if (step.op == Op::publish || step.dst.count == 0) return "board";
  return step.op == Op::reduce || step.op >= Op::gather_reduce ? "join" : "move";
}

double draw_legend(SvgCanvas& canvas, const Legend& legend, double margin, double width, double y) {
  constexpr double kSample = 30, kLine = 20;
  double x = margin;
  for (const Sample& sample : samples_of(legend)) {
    const double wide = kSample + 6 + text_width(sample.words) + 14;
    if (x == margin || x + wide > width) x = margin, y += kLine;
    const std::string classes = fmt::format("{} {}", sample.shape, sample.colour);
    if (sample.shape.starts_with("arrow"))
      canvas.line(Layer::shapes, x, y - 4, x + kSample, y - 4, classes, sample.colour);
    else
      canvas.rect(Layer::shapes, x + 2, y - 10, kSample - 4, 12, 4, classes);
    canvas.text(Layer::labels, x + kSample + 6, y, "soft", sample.words);
    x += wide;
  }
  for (const std::string& note : notes_of(legend))
    canvas.text(Layer::labels, margin, y += kLine, "soft", note);
  return y;
}

}  // namespace sinew::detail
