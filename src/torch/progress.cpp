#include "torch/progress.hpp"

#include <fmt/format.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "torch/figures.hpp"
#include "torch/prometheus.hpp"

namespace sinew {
namespace {

constexpr std::chrono::nanoseconds kOnTerminal = std::chrono::milliseconds(200);
constexpr std::chrono::nanoseconds kElsewhere = std::chrono::seconds(5);
constexpr std::size_t kWidth = 80;

double mean_loss(const Score& score) {
  return score.loss / std::max(1.0, static_cast<double>(score.samples));
}

std::size_t terminal_width() {
  winsize size{};
  return ::ioctl(STDERR_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col > 20 ? size.ws_col : kWidth;
}

}  // namespace

std::string progress_line(const StepRecord& record, const StepRecord& since, std::uint64_t steps,
                          double seconds, int workers, std::size_t width) {
  const auto done = record.step + 1;
  const auto count = static_cast<double>(std::max<std::uint64_t>(1, steps));
  const auto ms = [&](std::uint64_t ns) { return static_cast<double>(ns) / 1e6 / count; };
  const auto& c = since.communication;
  const auto sent = static_cast<double>(c.bytes_sent);
  const auto rate = count / std::max(1e-9, seconds);
  std::vector<std::string> parts{
      fmt::format("{}/{} loss {:.4f}", done, record.steps, mean_loss(record.score)),
      three_figures(static_cast<double>(since.score.samples) / std::max(1e-9, seconds) * workers) +
          " samples/s",
      fmt::format("{}+{} hidden+{} exposed ms", three_figures(ms(since.compute_ns)),
                  c.hidden_ns == 0 ? "0" : three_figures(ms(c.hidden_ns)),
                  three_figures(ms(c.exposed_ns)))};
  if (c.bytes_sent > 0) {
    parts.push_back(three_figures(sent / 1e6 / std::max(1e-9, seconds)) + " MB/s");
    parts.push_back(three_figures(static_cast<double>(c.elements * sizeof(float)) / sent) + "x");
  }
  if (record.steps > done)
    parts.push_back(fmt::format("{:.0f} s", static_cast<double>(record.steps - done) / rate));
  std::string line;
  for (const auto& part : parts) {
    if (!line.empty() && line.size() + 1 + part.size() > width) break;
    line += line.empty() ? part : " " + part;
  }
  return line;
}

TrainProgress::TrainProgress(const TrainCommand& command, int rank, int size)
    : command_(command), rank_(rank), size_(size), terminal_(::isatty(STDERR_FILENO) == 1) {
  if (command.folder.empty()) return;
  std::filesystem::create_directories(command.folder);
  metrics_.open(fmt::format("{}/metrics-rank-{}.jsonl", command.folder, rank),
                command.train.resume ? std::ios::app : std::ios::trunc);
  if (!metrics_) on_warning(fmt::format("cannot write metrics into '{}'", command.folder));
}
TrainProgress::~TrainProgress() { clear(); }

void TrainProgress::clear() {
  if (shown_) fmt::print(stderr, "\r\x1b[K");
  shown_ = false;
}

void TrainProgress::on_shrunk(int rank, int size) {
  rank_ = rank;
  size_ = size;
}

bool TrainProgress::is_due(const StepRecord& record) {
  if (command_.log == Log::verbose) return true;
  // The clock has been read for the record; only now and then is it worth another look.
  const auto now = Clock::now();
  const bool is_last = record.step + 1 == record.steps && record.steps > 0;
  if (now - last_ < (terminal_ ? kOnTerminal : kElsewhere) && !is_last) return false;
  return true;
}

void TrainProgress::on_step(const StepRecord& record) {
  each_step();
  if (metrics_.is_open()) write_metrics(record);
  if (rank_ != 0 || (command_.log == Log::silent && command_.prometheus.empty())) return;
  if (count_++ == 0) {
    first_step_ = shown_steps_ = record.step;
    last_ = begun_;
  }
  since_.compute_ns += record.compute_ns;
  since_.score += record.score;
  since_.communication.hidden_ns += record.communication.hidden_ns;
  since_.communication.exposed_ns += record.communication.exposed_ns;
  since_.communication.bytes_sent += record.communication.bytes_sent;
  since_.communication.items += record.communication.items;
  since_.communication.elements += record.communication.elements;
  if (is_due(record)) show(record);
}

void TrainProgress::show(const StepRecord& record) {
  const auto now = Clock::now();
  const auto steps = record.step + 1 - shown_steps_;
  const double seconds = std::chrono::duration<double>(now - last_).count();
  if (!command_.prometheus.empty())
    write_prometheus(command_.prometheus, prometheus_text(record, since_, steps, seconds, size_));
  if (command_.log != Log::silent) {
    const auto line = progress_line(record, since_, steps, seconds, size_,
                                    terminal_ ? terminal_width() - 1 : kWidth);
    if (terminal_)
      fmt::print(stderr, "\r{}\x1b[K", line);
    else
      fmt::print(stderr, "{}\n", line);
    std::fflush(stderr);
    shown_ = terminal_;
  }
  last_ = now;
  shown_steps_ = record.step + 1;
  since_ = {};
}

void TrainProgress::write_metrics(const StepRecord& record) {
  const auto& c = record.communication;
  metrics_ << nlohmann::ordered_json{{"step", record.step},
                                     {"epoch", record.epoch},
                                     {"loss", mean_loss(record.score)},
                                     {"samples", record.score.samples},
                                     {"workers", size_},
                                     {"rate", record.rate},
                                     {"total_ns", record.total_ns},
                                     {"data_ns", record.data_ns},
                                     {"compute_ns", record.compute_ns},
                                     {"update_ns", record.update_ns},
                                     {"communication_ns", c.busy_ns},
                                     {"hidden_ns", c.hidden_ns},
                                     {"exposed_ns", c.exposed_ns},
                                     {"waiting_ns", c.waiting_ns},
                                     {"compress_ns", c.compress_ns},
                                     {"bytes_dense", c.elements * sizeof(float)},
                                     {"bytes_sent", c.bytes_sent},
                                     {"collectives", c.collectives},
                                     {"items", c.items}}
                  .dump()
           << '\n';
}

void TrainProgress::on_saved(std::uint64_t step, const std::string& path) {
  if (rank_ != 0 || command_.log == Log::silent) return;
  clear();
  fmt::print(stderr, "checkpoint of step {}: {}\n", step, path);
}

void TrainProgress::on_warning(std::string_view text) {
  clear();
  fmt::print(stderr, "sinew train: {}\n", text);
}

}  // namespace sinew
