// A world as an SVG image: a lifeline a rank, rounds downward, an arrow a message. What a rank does
// alone stands in a box on its lifeline; a board is a bar across the ranks that share it.
#include <algorithm>
#include <cmath>
#include <map>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <sinew/draw.hpp>

#include "schedule/draw_arrows.hpp"
#include "schedule/draw_layout.hpp"
#include "schedule/svg_canvas.hpp"
#include "schedule/svg_legend.hpp"

namespace sinew {
namespace {

using detail::Arrow;
using detail::Layer;
using detail::Message;
using detail::text_width;

constexpr double kMargin = 16, kRoundName = 40, kEdgeName = 42;  // across
constexpr double kTextLine = 16, kBox = 18, kBoxStep = 22, kBar = 16, kStub = 14, kPad = 6;  // down

// Within a round, from the top: what needs no peer, reads of boards, writes to boards, messages.
enum class Lane { local, gather, publish };
using RankStep = std::pair<int, const Step*>;

Lane lane_of(Op op) {
  if (detail::is_local(op)) return Lane::local;
  return op == Op::publish ? Lane::publish : Lane::gather;
}

class Drawing {
 public:
  explicit Drawing(const World& world)
      : world_(world),
        notation_(world),
        part_(detail::shown(world)),
        facts_(detail::facts(world)),
        steps_(detail::steps_by_round(world, part_)),
        messages_(detail::match_messages(world)) {
    place_columns();
  }

  std::string draw() {
    draw_head();
    const double top = y_;
    for (const detail::Rounds& row : detail::rounds_of(steps_, part_.rounds)) draw_row(row);
    for (int r = 0; r < part_.ranks; ++r)
      canvas_.line(Layer::ground, frame_.x(r), top - 8, frame_.x(r), y_ + 8, "life");
    draw_arrows();
    legend_.uses = detail::uses(steps_);
    legend_.left_out = part_.left_out;
    y_ = draw_legend(canvas_, legend_, kMargin, width_, y_ + kPad + kPad) + kMargin;
    std::string description;
    for (const std::string& fact : facts_) description += fact + ". ";
    return canvas_.document(std::ceil(width_), std::ceil(y_), detail::title(world_),
                            description + "Rounds run downward, ranks across.");
  }

 private:
  const Schedule& of(int rank) const { return world_.ranks[static_cast<std::size_t>(rank)]; }
  std::string spell(const RankStep& s) const { return notation_.spell(of(s.first), *s.second); }

  void place_columns();
  void draw_head();
  void draw_row(const detail::Rounds& row);
  void draw_lane(std::size_t round, Lane lane);
  void draw_bar(int group, const std::vector<RankStep>& steps, double y);
  void draw_arrows();
  void draw_arrow(const Arrow& arrow);
  std::pair<int, int> span_of(int group) const;
  bool seen(const Message& m) const {
    return std::max(m.send_round, m.recv_round) < part_.rounds &&
           std::min(m.from, m.to) < part_.ranks;
  }
  double arrow_height(std::size_t round) const;
  std::string_view ground_at(double y) const;

  const World& world_;
  detail::Notation notation_;
  detail::Shown part_;
  std::vector<std::string> facts_;
  detail::StepTable steps_;
  std::vector<Message> messages_;
  detail::Frame frame_;
  double width_ = 0;
  double y_ = 0;                                        // how far down we are
  std::vector<std::pair<double, double>> arrow_space_;  // by round: where arrows begin and end
  std::vector<double> row_ends_;
  detail::Legend legend_;
  detail::SvgCanvas canvas_;
};

void Drawing::place_columns() {
  double step = 92;
  const int size = static_cast<int>(world_.ranks.size());
  bool edges = part_.ranks < size;
  for (const Message& m : messages_) {
    step = std::max(step, 2.8 * text_width(detail::label_of(m)) + 8);
    edges = edges || m.turn != 0;
  }
  for (int r = 0; r < part_.ranks; ++r)
    for (const auto& round : steps_[static_cast<std::size_t>(r)])
      for (const Step* s : round)
        if (!detail::is_message(s->op)) step = std::max(step, text_width(spell({r, s})) + 20);
  const double beside = edges ? kEdgeName : 0;
  frame_ = {.first = kMargin + kRoundName + beside + step / 2,
            .step = step,
            .ranks = part_.ranks,
            .size = size};
  width_ = frame_.right() + beside + kMargin;
  width_ = std::max(width_, 2 * kMargin + 1.6 * text_width(detail::title(world_)));
  for (const std::string& fact : facts_) width_ = std::max(width_, 2 * kMargin + text_width(fact));
}

void Drawing::draw_head() {
  canvas_.text(Layer::labels, kMargin, 28, "title", detail::title(world_));
  y_ = 30;
  for (const std::string& fact : facts_)
    canvas_.text(Layer::labels, kMargin, y_ += kTextLine, "soft", fact);
  y_ += 18;
  canvas_.text(Layer::labels, kMargin, y_ + 14, "soft", "round");
  for (int r = 0; r < part_.ranks; ++r) {
    const bool root = has_root(world_.collective) && r == world_.root;
    canvas_.rect(Layer::shapes, frame_.x(r) - 28, y_, 56, 20, 10, root ? "head root" : "head");
    canvas_.text(Layer::labels, frame_.x(r), y_ + 14, "rank middle", fmt::format("rank {}", r));
  }
  y_ += 28;
}

// Arrows that cross many columns need height, or they run flat through each other's labels.
double Drawing::arrow_height(std::size_t round) const {
  const auto here = static_cast<std::int64_t>(round);
  double height = 0;
  for (const Message& m : messages_) {
    if (!seen(m) || (m.send_round != here && m.recv_round != here)) continue;
    const int hop = std::abs(m.to - m.from + m.turn * frame_.size);
    height = std::max(height, 40.0 + 15 * std::min(hop, 7));
  }
  return height;
}

void Drawing::draw_row(const detail::Rounds& row) {
  const double top = y_;
  y_ += kPad;
  for (const Lane lane : {Lane::local, Lane::gather, Lane::publish}) draw_lane(row.first, lane);
  double height = 0;
  for (std::size_t round = row.first; round <= row.last; ++round)
    height = std::max(height, arrow_height(round));
  arrow_space_.resize(row.last + 1, {y_, y_ + height});
  y_ = std::max(y_ + height + kPad, top + 24);
  row_ends_.push_back(y_);
  canvas_.rect(Layer::ground, 8, top, width_ - 16, y_ - top, 0, ground_at(top));
  canvas_.text(Layer::labels, kMargin + 24, (top + y_) / 2 + 4, "end soft", detail::spell(row));
}

// Rows alternate; a label's plate must have the colour of what it lies on.
std::string_view Drawing::ground_at(double y) const {
  const auto row = std::upper_bound(row_ends_.begin(), row_ends_.end(), y) - row_ends_.begin();
  return row % 2 == 0 ? "even" : "odd";
}

std::pair<int, int> Drawing::span_of(int group) const {
  if (group < 0) return {0, part_.ranks - 1};
  const auto& members = notation_.groups()[static_cast<std::size_t>(group)];
  return {members.front(), std::min(members.back(), part_.ranks - 1)};
}

void Drawing::draw_lane(std::size_t round, Lane lane) {
  std::map<int, std::vector<RankStep>> by_group;
  for (int r = 0; r < part_.ranks; ++r)
    for (const Step* s : steps_[static_cast<std::size_t>(r)][round])
      if (!detail::is_message(s->op) && lane_of(s->op) == lane)
        by_group[lane == Lane::local ? -1 : notation_.group_of(of(r), *s)].emplace_back(r, s);

  // Groups side by side as long as their ranks do not interleave; else the next one goes below.
  double top = y_;
  int taken = -1;
  for (const auto& [group, steps] : by_group) {
    if (span_of(group).first <= taken) top = y_;
    taken = span_of(group).second;
    const double above = lane == Lane::gather ? kBar + kStub : 0;
    std::map<int, double> end;  // by rank: the lower edge of its lowest box
    for (const RankStep& s : steps) {
      const double y = end.contains(s.first) ? end[s.first] + kBoxStep - kBox : top + above;
      const double half = text_width(spell(s)) / 2 + 5;
      const std::string classes = fmt::format("pill {}", detail::colour_of(*s.second));
      canvas_.rect(Layer::shapes, frame_.x(s.first) - half, y, 2 * half, kBox, 4, classes);
      canvas_.text(Layer::labels, frame_.x(s.first), y + 13, "middle", spell(s));
      end[s.first] = y + kBox;
    }
    double bottom = 0;
    for (const auto& [rank, y] : end) bottom = std::max(bottom, y);
    const double bar = lane == Lane::gather ? top : bottom + kStub;
    if (lane != Lane::local) draw_bar(group, steps, bar);
    for (const auto& [rank, y] : end) {
      const double x = frame_.x(rank);
      if (lane == Lane::gather)
        canvas_.line(Layer::shapes, x, bar + kBar, x, top + above - 1, "arrow board", "board");
      if (lane == Lane::publish)
        canvas_.line(Layer::shapes, x, y, x, bar - 1, "arrow board", "board");
    }
    y_ = std::max(y_, (lane == Lane::publish ? bar + kBar : bottom) + kPad);
  }
}

void Drawing::draw_bar(int group, const std::vector<RankStep>& steps, double y) {
  const auto [first, last] = span_of(group);
  const double inset = 6;
  const double x = frame_.x(first) - frame_.step / 2 + inset;
  canvas_.rect(Layer::shapes, x, y, (last - first + 1) * frame_.step - 2 * inset, kBar, 4,
               "bar board");
  const bool shared = steps.front().second->op == Op::gather_reduce_all;
  const std::string what = shared ? "shared buffers" : group < 0 ? "boards" : "boards of";
  const auto members = [&] {
    return detail::spell_ranks(notation_.groups()[static_cast<std::size_t>(group)]);
  };
  canvas_.text(Layer::labels, x + 6, y + 12, "ink-board",
               group < 0 ? what : fmt::format("{} g{}: {}", what, group, members()));
}

void Drawing::draw_arrows() {
  std::map<std::int64_t, std::vector<Arrow>> by_round;
  for (const Message& m : messages_) {
    if (!seen(m)) continue;
    const auto begins = m.send_round == Message::kNoRound ? m.recv_round : m.send_round;
    const auto ends = m.recv_round == Message::kNoRound ? m.send_round : m.recv_round;
    Arrow arrow = lay_arrow(m, frame_, arrow_space_[static_cast<std::size_t>(begins)].first,
                            arrow_space_[static_cast<std::size_t>(ends)].second);
    if (!arrow.lines.empty()) by_round[begins].push_back(std::move(arrow));
  }
  for (auto& [round, arrows] : by_round) {
    if (arrows.size() > 2 * static_cast<std::size_t>(part_.ranks) + 2) {
      legend_.crowded = true;  // nobody could read so many labels
      for (Arrow& arrow : arrows) arrow.label.clear();
    } else {
      place_labels(arrows, frame_);
    }
    std::map<bool, std::vector<double>> taken;  // heights of names at the right and left edge
    const auto name_edge = [&](const detail::Point& p, const std::string& words) {
      const bool right = p.x > (frame_.left() + frame_.right()) / 2;
      for (const double y : taken[right])
        if (std::abs(y - p.y) < 11) return;
      taken[right].push_back(p.y);
      canvas_.text(Layer::labels, p.x + (right ? 4 : -4), p.y + 4, right ? "soft" : "end soft",
                   words);
    };
    for (const Arrow& arrow : arrows) {
      draw_arrow(arrow);
      if (arrow.exit) name_edge(*arrow.exit, fmt::format("to {}", arrow.message->to));
      if (arrow.entry) name_edge(*arrow.entry, fmt::format("from {}", arrow.message->from));
    }
  }
}

void Drawing::draw_arrow(const Arrow& arrow) {
  const Message& m = *arrow.message;
  const std::string_view kind = !m.paired() ? "lost" : m.reduces ? "join" : "move";
  (!m.paired() ? legend_.lost : m.reduces ? legend_.joins : legend_.moves) = true;
  legend_.turns = legend_.turns || m.turn != 0;
  std::string data;
  for (const detail::Line& l : arrow.lines) data += detail::move_line(l.a.x, l.a.y, l.b.x, l.b.y);
  const char* fate = m.send_round == Message::kNoRound   ? ", never sent"
                     : m.recv_round == Message::kNoRound ? ", never received"
                     : m.reduces                         ? ", combined"
                                                         : "";
  canvas_.path(Layer::arrows, data, fmt::format("arrow {}{}", kind, m.channel > 0 ? " side" : ""),
               arrow.arrives ? kind : "",
               fmt::format("rank {} to rank {}: {}{}", m.from, m.to, label_of(m), fate));
  if (arrow.label.empty()) return;
  const auto [x, y] = arrow.label_at;
  const double half = text_width(arrow.label) / 2;
  canvas_.rect(Layer::shapes, x - half, y - 6, 2 * half, 12, 0, ground_at(y));
  canvas_.text(Layer::labels, x, y + 4, fmt::format("middle ink-{}", kind), arrow.label);
}

}  // namespace

std::string draw_svg(const World& world) { return Drawing(world).draw(); }

}  // namespace sinew
