// Figures of a summary in words: the same in every format.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "report/summary.hpp"

namespace sinew::report {

std::string percent(double share);
std::string percent(const std::optional<double>& share);  // "" where it is not known
std::string seconds(double value);

/// A table as any format prints it.
struct TextTable {
  std::string title;
  std::string about;                 // a sentence, or empty
  std::vector<std::string> columns;  // the first is text, the others are figures
  std::vector<std::vector<std::string>> rows;
};

TextTable routine_table(const Summary& summary);
TextTable split_table(const Summary& summary);  // where the time went
TextTable phase_table(const Summary& summary);
TextTable iteration_table(const Summary& summary);  // of the strip
TextTable bandwidth_table(const Summary& summary);
TextTable algorithm_table(const Summary& summary);
TextTable compression_table(const Summary& summary);
TextTable model_table(const Summary& summary);
TextTable scaling_table(const Summary& summary);
TextTable more_workers_table(const Summary& summary);
TextTable heat_table(const Summary& summary);
TextTable environment_table(const Summary& summary);
TextTable rank_table(const Summary& summary);
TextTable matrix_table(const Summary& summary);
/// The ten most frequent sizes of a routine, and how sizes spread.
TextTable size_table(const RoutineSummary& routine);
/// Routines whose sizes are worth a table, the costliest first.
std::vector<const RoutineSummary*> sized_routines(const Summary& summary);

/// "1.2 s", "(assumed)" behind it where it is not measured.
std::string with_label(std::string text, Source source);
/// How it was measured, where, and by what command.
std::string method_text(const Summary& summary);

/// Three figures that say how it stands: what, and how much.
std::vector<std::pair<std::string, std::string>> headline(const Summary& summary);

}  // namespace sinew::report
