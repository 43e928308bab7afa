// The folder of a training run, as `sinew train -o` leaves it, with figures that tests know.
#pragma once

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>
#include <string>

namespace sinew::test {

/// Two workers, 40 steps of which the first ten are slow, Ok-Topk at 5 %. It has no traces.
inline std::filesystem::path record_run(const std::string& name) {
  const auto folder = std::filesystem::path(testing::TempDir()) / name;
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::ofstream(folder / "run.json")
      << R"({"model": "mlp", "data": "fashion", "workers": 2, "batch": 64, "accumulate": 1,
             "overlap": true, "compression": {"scheme": "oktopk",
             "stages": [{"step": 0, "density": 0.05}], "warmup": 0}})";
  std::ofstream(folder / "result.json") << R"({"steps": 100, "parameters": 1000000, "buckets": 3})";
  for (int rank = 0; rank < 2; ++rank) {
    std::ofstream metrics(folder / ("metrics-rank-" + std::to_string(rank) + ".jsonl"));
    for (int step = 0; step < 40; ++step)
      metrics << nlohmann::json{{"step", step},
                                {"total_ns", 9000000},
                                {"data_ns", 0},
                                {"compute_ns", step < 10 ? 90000000 : 6000000 + 200000 * rank},
                                {"update_ns", 1000000},
                                {"exposed_ns", 1500000},
                                {"hidden_ns", 500000},
                                {"bytes_sent", 300000}}
              << '\n';
  }
  return folder;
}

}  // namespace sinew::test
