#include "support/sample.hpp"

#include <fstream>
#include <iterator>
#include <stdexcept>

namespace sinew::test {

std::string sample_path(const std::string& name) { return SINEW_SOURCE_DIR "/tests/data/" + name; }

std::string sample(const std::string& name) {
  std::ifstream file(sample_path(name), std::ios::binary);
  if (!file) throw std::runtime_error("no " + sample_path(name));
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace sinew::test
