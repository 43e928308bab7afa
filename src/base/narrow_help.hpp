// Help of at most 80 columns, however long the texts are.
#pragma once

#include <CLI/CLI.hpp>
#include <string>

#include "base/wrapped.hpp"

namespace sinew {

class NarrowHelp final : public CLI::Formatter {
 public:
  std::string make_option_desc(const CLI::Option* option) const override {
    return wrapped(Formatter::make_option_desc(option), 80 - get_column_width());
  }
  std::string make_description(const CLI::App* app) const override {
    return wrapped(Formatter::make_description(app));
  }
  std::string make_footer(const CLI::App* app) const override {
    return wrapped(Formatter::make_footer(app));
  }
};

}  // namespace sinew
