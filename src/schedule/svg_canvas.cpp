#include "schedule/svg_canvas.hpp"

#include <fmt/format.h>

namespace sinew::detail {
namespace {

// Plain colours twice rather than custom properties: not every viewer of SVG files knows those.
constexpr std::string_view kStyle = R"(
.sinew text{font-family:ui-sans-serif,system-ui,sans-serif;font-size:11px;fill:#1b1f24}
.sinew text.title{font-size:16px;font-weight:600}
.sinew text.rank{font-weight:600}
.sinew text.middle{text-anchor:middle}
.sinew text.end{text-anchor:end}
.sinew text.soft{fill:#5f6975}
.sinew .page,.sinew .odd{fill:#fff}
.sinew .even{fill:#f3f5f8}
.sinew .life{stroke:#b4bcc6;stroke-width:1.5}
.sinew .head{fill:#fff;stroke:#b4bcc6}
.sinew .root{stroke:#1b1f24;stroke-width:1.8}
.sinew .arrow{fill:none;stroke-width:1.6}
.sinew .side{stroke-dasharray:6 3}
.sinew .arrow.lost{stroke-dasharray:2 3}
.sinew .pill,.sinew .bar{stroke-width:1.2}
.sinew .pill{fill:#fff}
.sinew .bar{fill:#dcf2ef}
.sinew .move{stroke:#1d5fd1}
.sinew .join{stroke:#c2410c}
.sinew .board{stroke:#0f766e}
.sinew .lost{stroke:#d11d3a}
.sinew .ink-move{fill:#1d5fd1}
.sinew .ink-join{fill:#c2410c}
.sinew .ink-board{fill:#0f766e}
.sinew .ink-lost{fill:#d11d3a}
@media (prefers-color-scheme:dark){
.sinew text{fill:#e6eaef}
.sinew text.soft{fill:#98a3b0}
.sinew .page,.sinew .odd,.sinew .pill,.sinew .head{fill:#14181d}
.sinew .even{fill:#1c2229}
.sinew .life,.sinew .head{stroke:#4a545f}
.sinew .root{stroke:#e6eaef}
.sinew .bar{fill:#16332f}
.sinew .move{stroke:#78a9ff}
.sinew .join{stroke:#ff9d5c}
.sinew .board{stroke:#4fc9bb}
.sinew .lost{stroke:#ff6b81}
.sinew .ink-move{fill:#78a9ff}
.sinew .ink-join{fill:#ff9d5c}
.sinew .ink-board{fill:#4fc9bb}
.sinew .ink-lost{fill:#ff6b81}
}
)";

// Short numbers keep the file small and the same on every machine.
std::string num(double value) {
  std::string text = fmt::format("{:.1f}", value);
  if (text.ends_with(".0")) text.resize(text.size() - 2);
  return text == "-0" ? "0" : text;
}

std::string escape(std::string_view text) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        if (static_cast<unsigned char>(c) >= 0x20) out += c;  // XML has no control characters
    }
  }
  return out;
}

std::string head(std::string_view tip) {
  return tip.empty() ? "" : fmt::format(" marker-end=\"url(#sinew-{})\"", tip);
}

}  // namespace

std::string move_line(double x0, double y0, double x1, double y1) {
  return fmt::format("M{} {}L{} {}", num(x0), num(y0), num(x1), num(y1));
}

double text_width(std::string_view text) {
  double width = 0;
  for (const char c : text) {
    const bool continues_character = (static_cast<unsigned char>(c) & 0xC0) == 0x80;
    if (continues_character) continue;
    width += std::string_view("- ,.:").find(c) != text.npos ? 4 : 6.8;
    if (std::string_view("@m=+<>~").find(c) != text.npos) width += 3;
  }
  return width;
}

void SvgCanvas::text(Layer layer, double x, double y, std::string_view classes,
                     std::string_view words) {
  at(layer) += fmt::format("<text{} x=\"{}\" y=\"{}\">{}</text>\n",
                           classes.empty() ? "" : fmt::format(" class=\"{}\"", classes), num(x),
                           num(y), escape(words));
}

void SvgCanvas::rect(Layer layer, double x, double y, double width, double height, double radius,
                     std::string_view classes) {
  at(layer) +=
      fmt::format("<rect class=\"{}\" x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\" rx=\"{}\"/>\n",
                  classes, num(x), num(y), num(width), num(height), num(radius));
}

void SvgCanvas::line(Layer layer, double x0, double y0, double x1, double y1,
                     std::string_view classes, std::string_view tip) {
  at(layer) += fmt::format("<path class=\"{}\" d=\"{}\"{}/>\n", classes, move_line(x0, y0, x1, y1),
                           head(tip));
}

void SvgCanvas::path(Layer layer, std::string_view data, std::string_view classes,
                     std::string_view tip, std::string_view tooltip) {
  at(layer) += fmt::format("<path class=\"{}\" d=\"{}\"{}><title>{}</title></path>\n", classes,
                           data, head(tip), escape(tooltip));
}

std::string SvgCanvas::document(double width, double height, std::string_view title,
                                std::string_view description) const {
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" class=\"sinew\" role=\"img\" "
      "width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\">\n"
      "<title>{2}</title>\n<desc>{3}</desc>\n<style>{4}</style>\n<defs>\n",
      num(width), num(height), escape(title), escape(description), kStyle);
  for (const std::string_view tip : {"move", "join", "board", "lost"})
    out += fmt::format(
        "<marker id=\"sinew-{0}\" viewBox=\"0 0 8 8\" refX=\"7.5\" refY=\"4\" markerWidth=\"8\" "
        "markerHeight=\"8\" markerUnits=\"userSpaceOnUse\" orient=\"auto\">"
        "<path class=\"ink-{0}\" d=\"M0 .8L8 4L0 7.2z\"/></marker>\n",
        tip);
  out += fmt::format("</defs>\n<rect class=\"page\" width=\"{}\" height=\"{}\"/>\n", num(width),
                     num(height));
  for (const std::string& layer : layers_) out += layer;
  return out + "</svg>\n";
}

}  // namespace sinew::detail
