// Every world the symbolic and data tests sweep: the registry times places.
#pragma once

#include "collective/sweep.hpp"

namespace sinew::test {

using sinew::Setting;
using sinew::settings;
using sinew::to_string;

}  // namespace sinew::test
