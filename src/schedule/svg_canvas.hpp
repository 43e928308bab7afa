// The few SVG shapes a drawing is made of, in layers, with one style sheet for light and dark
// pages.
#pragma once

#include <array>
#include <string>
#include <string_view>

namespace sinew::detail {

/// Later layers lie over earlier ones.
enum class Layer { ground, arrows, shapes, labels };

class SvgCanvas {
 public:
  void text(Layer layer, double x, double y, std::string_view classes, std::string_view words);
  void rect(Layer layer, double x, double y, double width, double height, double radius,
            std::string_view classes);
  /// `tip` names the arrow head ("move", "join", "board") or is empty.
  void line(Layer layer, double x0, double y0, double x1, double y1, std::string_view classes,
            std::string_view tip = "");
  /// `data` is path data out of `move_line`; `tooltip` is what a browser shows on hovering.
  void path(Layer layer, std::string_view data, std::string_view classes, std::string_view tip,
            std::string_view tooltip);
  [[nodiscard]] std::string document(double width, double height, std::string_view title,
                                     std::string_view description) const;

 private:
  std::string& at(Layer layer) { return layers_[static_cast<std::size_t>(layer)]; }
  std::array<std::string, 4> layers_;
};

/// Path data: go to the first point, draw to the second.
std::string move_line(double x0, double y0, double x1, double y1);

/// Of text in the drawing's font, roughly and on the safe side.
double text_width(std::string_view text);

}  // namespace sinew::detail
