#include <pybind11/stl.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>

#include <sinew/algorithms.hpp>
#include <sinew/draw.hpp>
#include <sinew/scheme.hpp>
#include <sinew/verify.hpp>
#include "model/network_file.hpp"
#include "model/predict.hpp"
#include "python/parts.hpp"
#include "report/report_page.hpp"
#include "report/summary.hpp"
#include "trace/profile.hpp"
#include "trace/reader.hpp"

namespace py = pybind11;

namespace sinew::python {
namespace {

World world_of(const std::string& collective, const std::string& algorithm, int size, int root,
               std::uint32_t segments) {
  return make_world(find_algorithm(parse_collective(collective), algorithm), size, root, segments);
}

py::dict verify_one(const std::string& collective, const std::string& algorithm, int size, int root,
                    std::uint32_t segments) {
  const auto world = world_of(collective, algorithm, size, root, segments);
  Verdict verdict;
  for (const auto sends : {Sends::buffered, Sends::synchronous}) {
    verdict = verify(world, {.sends = sends});
    if (!verdict.ok()) break;
  }
  py::dict result;
  result["ok"] = verdict.ok();
  result["same_order"] = verdict.same_order;
  result["rank_order"] = verdict.rank_order;
  result["fault"] = py::none();
  if (verdict.fault) {
    py::dict fault;
    fault["rank"] = verdict.fault->rank;
    fault["round"] = verdict.fault->round;
    fault["why"] = verdict.fault->why;
    result["fault"] = fault;
  }
  return result;
}

std::string draw_one(const std::string& collective, const std::string& algorithm, int size,
                     int root, std::uint32_t segments, const std::string& format) {
  const auto world = world_of(collective, algorithm, size, root, segments);
  if (format == "text") return draw_text(world);
  if (format == "svg") return draw_svg(world);
  if (format == "html") return draw_html(world, "sinew.draw");
  throw py::value_error("format '" + format + "'; there are text, svg and html");
}

Network network_of(const std::string& text) {
  if (!std::filesystem::is_regular_file(text)) return parse_network_line(text);
  std::ostringstream content;
  content << std::ifstream(text).rdbuf();
  return parse_network(content.str(), text);
}

py::dict dict_of(const Prediction& answer) {
  py::dict share;
  share["alpha"] = answer.alpha;
  share["beta"] = answer.beta;
  share["gamma"] = answer.gamma;
  share["wait"] = answer.wait;
  py::dict result;
  result["algorithm"] = std::string(answer.algorithm->name);
  result["ranks"] = answer.ranks;
  result["bytes"] = answer.bytes;
  result["segments"] = answer.segments;
  result["time_us"] = static_cast<double>(answer.time) / 1e6;
  result["low_us"] = answer.low / 1e6;
  result["high_us"] = answer.high / 1e6;
  result["bytes_per_rank"] = answer.bytes_per_rank;
  result["messages"] = answer.messages;
  result["share"] = share;
  result["idle"] = answer.idle;
  result["lower_bound_us"] = answer.lower_bound / 1e6;
  result["correction"] = answer.correction;
  result["ratio_to_bound"] = answer.ratio_to_bound();
  return result;
}

py::list predict_all(const std::string& collective, int ranks, double bytes,
                     const std::string& network_text, const std::string& algorithm, int root) {
  const auto network = network_of(network_text);
  const Question question{
      .collective = parse_collective(collective), .ranks = ranks, .bytes = bytes, .root = root};
  std::vector<Prediction> answers;
  if (!algorithm.empty())
    answers.push_back(predict(find_algorithm(question.collective, algorithm), question, network));
  else
    for (const auto& row : algorithms())
      if (row.collective == question.collective && fits(row, question, network))
        answers.push_back(predict(row, question, network));
  std::stable_sort(answers.begin(), answers.end(),
                   [](const auto& a, const auto& b) { return a.time < b.time; });
  py::list results;
  for (const auto& answer : answers) results.append(dict_of(answer));
  return results;
}

py::object report_folder(const std::string& folder) {
  std::vector<trace::Trace> traces;
  std::vector<std::string> paths;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    if (entry.path().extension() == ".trace") paths.push_back(entry.path().string());
  std::sort(paths.begin(), paths.end());
  for (const auto& path : paths) traces.push_back(trace::read_trace_file(path));
  if (traces.empty()) throw Error(Errc::invalid_argument, folder + " has no traces (*.trace)");
  const auto text = report::to_json(report::summarize(trace::summarize(traces)));
  return py::module_::import("json").attr("loads")(text);
}

py::list algorithm_list() {
  py::list all;
  for (const auto& row : algorithms()) {
    py::dict one;
    one["collective"] = std::string(name(row.collective));
    one["algorithm"] = std::string(row.name);
    one["summary"] = std::string(row.summary);
    all.append(one);
  }
  return all;
}

py::list scheme_list() {
  py::list all;
  for (const auto& row : schemes()) {
    py::dict one;
    one["scheme"] = std::string(row.name);
    one["summary"] = std::string(row.summary);
    one["sparse"] = row.sparse;
    all.append(one);
  }
  return all;
}

}  // namespace

void define_analysis(py::module_& m) {
  m.def("verify", &verify_one, py::arg("collective"), py::arg("algorithm"), py::arg("size"),
        py::arg("root") = 0, py::arg("segments") = 1,
        "Whether an algorithm does what its collective promises, and if not, where it goes wrong.");
  m.def("draw", &draw_one, py::arg("collective"), py::arg("algorithm"), py::arg("size"),
        py::arg("root") = 0, py::arg("segments") = 1, py::arg("format") = "text",
        "The schedule as text, as an SVG image, or as a page to step through (html).");
  m.def(
      "predict", &predict_all, py::arg("collective"), py::arg("ranks"), py::arg("bytes"),
      py::arg("net"), py::arg("algorithm") = "", py::arg("root") = 0,
      "What each algorithm that fits would take on a network, fastest first. `net`: a model file, "
      "or a line such as alpha=5us,bw=25GB/s.");
  m.def("report", &report_folder, py::arg("folder"),
        "What the traces in a folder say: the figures of `sinew report`, as plain values.");
  m.def("algorithms", &algorithm_list, "Every algorithm there is.");
  m.def("schemes", &scheme_list, "Every compression scheme there is.");
}

}  // namespace sinew::python
