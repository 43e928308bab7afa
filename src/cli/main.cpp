// `sinew <verb>`: finds the verb, runs it, and turns what it throws into one line and a status.
#include <fmt/format.h>

#include <array>
#include <cstdio>
#include <exception>
#include <string_view>
#include <vector>

#include <sinew/error.hpp>
#include "base/text.hpp"
#include "cli/verbs.hpp"

namespace sinew {
namespace {

struct Verb {
  std::string_view name;
  std::string_view summary;
  int (*run)(int argc, char** argv);
};

constexpr std::array kVerbs = std::to_array<Verb>({
    {"list", "the collectives and their algorithms, and what each costs", run_list},
    {"verify", "prove that schedules do what their collective promises", run_verify},
    {"draw", "a schedule as text, SVG, JSON or GOAL", run_draw},
    {"demo", "training dense and compressed, side by side, in about a minute", run_demo},
    {"bench", "time collectives, beside Open MPI, MPICH and Gloo if asked", run_bench},
    {"profile", "what an MPI program communicates, without rebuilding it", run_profile},
    {"report", "what a run communicated: tables, findings, JSON, mpitrace's text", run_report},
    {"compare", "two runs: ratios, significance, and exit 5 when it is worse", run_compare},
    {"import", "the same from files of mpitrace, mpiP, Horovod and PyTorch", run_import},
    {"calibrate", "measure this machine for predictions", run_calibrate},
    {"predict", "what a collective would take on a network, and why", run_predict},
    {"explain", "the longest chain of a collective: who waits for whom", run_explain},
    {"launch", "start ranks of a program on this host", run_launch},
    {"train", "train a model on several workers, dense or compressed", run_train},
    {"doctor", "what on this machine would get in the way, and its repair", run_doctor},
});

// What Sinew starts itself; `help` does not show it.
constexpr Verb kInner{"bench-rank", "", run_bench_rank};

constexpr std::string_view kExamples = R"(
Examples:
  sinew list allreduce --cost -p 8
  sinew verify --all -p 1..33,64
  sinew draw allreduce --algo ring -p 4
  sinew draw allreduce --algo ring -p 4 --format svg > ring.svg
  sinew demo collectives -p 4
  sinew bench allreduce -p 2,8 -b 8 -e 16M -f 8 --against openmpi,mpich,gloo
  sinew bench allreduce --transport mpi -p 4 --against openmpi
  sinew bench sparse --scheme oktopk --density 0.02 -p 4 --against openmpi
  sinew bench lossless --data sparse --link 0.1
  sinew profile -- mpirun -n 4 ./program
  sinew report sinew-profile --format mpitrace
  sinew report before after --format html -o out
  sinew compare before after --fail-over 5%
  sinew import mpi_profile.4711.*
  sinew train --model cnn -p 4 --steps 200 --compress oktopk:0.02 --warmup 20
  sinew calibrate -o net.toml
  sinew predict allreduce -p 8..1024 --bytes 110278272 --net alpha=5us,bw=25GB/s
  sinew explain allreduce --algo binomial -p 8 --net alpha=5us,bw=25GB/s
  sinew launch -n 4 -- ./program --its-option

`sinew VERB --help` explains a verb. Results go to stdout, talk to stderr.
Exit: 0 fine, 1 failed, 2 usage, 3 missing dependency or privilege,
      4 wrong results, 5 threshold missed, 124 timeout, 130 interrupted.
)";

int help() {
  fmt::print("Sinew {}: collectives as schedules.\n\nsinew VERB [OPTIONS]\n\n", SINEW_VERSION);
  for (const auto& verb : kVerbs) fmt::print("  {:<9} {}\n", verb.name, verb.summary);
  fmt::print("{}", kExamples);
  return kFine;
}

int dispatch(int argc, char** argv) {
  const std::string_view word = argc > 1 ? argv[1] : "--help";
  if (word == "--help" || word == "-h" || word == "help") return help();
  if (word == "--version") {
    fmt::print("sinew {}\n", SINEW_VERSION);
    return kFine;
  }
  if (word == kInner.name) return kInner.run(argc - 1, argv + 1);
  std::vector<std::string_view> names;
  for (const auto& verb : kVerbs) {
    if (verb.name == word) return verb.run(argc - 1, argv + 1);
    names.push_back(verb.name);
  }
  throw Error(Errc::invalid_argument, unknown("verb", word, names));
}

int status_of(Errc code) {
  switch (code) {
    case Errc::invalid_argument:
    case Errc::unsupported:
      return kUsage;
    case Errc::not_verified:
      return kWrong;
    case Errc::timeout:
      return kTimeout;
    default:
      return kFailed;
  }
}

int guarded(int argc, char** argv) {
  try {
    return dispatch(argc, argv);
  } catch (const Error& error) {
    fmt::print(stderr, "sinew: {}\n", error.what());
    return status_of(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "sinew: {}\n", error.what());
    return kFailed;
  }
}

}  // namespace
}  // namespace sinew

int main(int argc, char** argv) {
  const int status = sinew::guarded(argc, argv);
  if (std::fflush(stdout) == 0) return status;
  std::perror("sinew: standard output");
  return status == sinew::kFine ? sinew::kFailed : status;
}
