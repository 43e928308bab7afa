// What the file of a run and --set have in common: the keys, and what is wrong with a value.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "model/training_run.hpp"

namespace sinew {

/// Null: there is none of that key or short name.
const RunSetting* find_setting(std::string_view key);
std::string unknown_key(std::string_view key, const TrainingRun& run);
/// Throws Error{invalid_argument}.
void check_range(const RunSetting& setting, double value);
std::span<const std::string_view> run_patterns();

}  // namespace sinew
