// Files under tests/data.
#pragma once

#include <string>

namespace sinew::test {

/// "profiles/x.txt" below tests/data.
std::string sample_path(const std::string& name);
std::string sample(const std::string& name);

}  // namespace sinew::test
