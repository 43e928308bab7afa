#include "runtime/environment.hpp"

#include <fmt/format.h>
#include <unistd.h>

#include <array>
#include <charconv>
#include <optional>
#include <vector>

#include <sinew/error.hpp>
#include "runtime/trial.hpp"

namespace sinew {
namespace {

constexpr int kMostRanks = 1 << 20;

class Reader {
 public:
  explicit Reader(const Variables& variables) : variables_(variables) {}

  /// The value; a variable that is set to nothing counts as not set.
  [[nodiscard]] std::string text(std::string_view name) const {
    const auto found = variables_.find(name);
    return found == variables_.end() ? "" : found->second;
  }
  [[nodiscard]] bool has(std::string_view name) const { return !text(name).empty(); }

  /// A number between `least` and `most`, if the variable is set.
  [[nodiscard]] std::optional<int> number(std::string_view name, int least, int most) const {
    const auto word = text(name);
    if (word.empty()) return {};
    int value = 0;
    const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
    if (status != std::errc{} || end != word.data() + word.size())
      throw Error(Errc::invalid_argument, fmt::format("{}='{}' is not a number", name, word));
    if (value < least || value > most)
      throw Error(Errc::invalid_argument,
                  fmt::format("{}={} is not between {} and {}", name, value, least, most));
    return value;
  }

 private:
  const Variables& variables_;
};

std::string bracketed(const std::string& host) {
  return host.find(':') == std::string::npos ? host : fmt::format("[{}]", host);
}

/// The tag and the values, apart from each other.
template <class... Names>
std::string join(const Reader& reader, std::string_view tag, const Names&... names) {
  return fmt::format("{}{}", tag, (fmt::format(" {}", reader.text(names)) + ...));
}

// Equal on all hosts, and rarely taken: below the ports that systems give away by themselves.
int port_of(std::string_view job) {
  std::uint32_t hash = 2166136261;
  for (const char c : job) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619U;
  return 20000 + static_cast<int>(hash % 10000);
}

std::string torchrun_job(const Reader& reader) {
  if (!reader.has("MASTER_PORT")) return "";
  return join(reader, "torchrun", "MASTER_ADDR", "MASTER_PORT", "TORCHELASTIC_RUN_ID",
              "TORCHELASTIC_RESTART_COUNT");
}

// The port itself is where torch meets.
std::string torchrun_meeting(const Reader& reader) {
  const auto port = reader.number("MASTER_PORT", 1, 65534);
  if (!port || !reader.has("MASTER_ADDR")) return "";
  return fmt::format("tcp://{}:{}", bracketed(reader.text("MASTER_ADDR")), *port + 1);
}

std::string openmpi_job(const Reader& reader) {
  if (!reader.has("PMIX_NAMESPACE") && !reader.has("OMPI_MCA_ess_base_jobid")) return "";
  return join(reader, "openmpi", "PMIX_NAMESPACE", "OMPI_MCA_ess_base_jobid",
              "OMPI_MCA_orte_hnp_uri", "OMPI_MCA_orte_precondition_transports");
}

// Where Hydra gives a descriptor instead, that can be asked: see Environment::pmi_descriptor.
std::string pmi_job(const Reader& reader) {
  return reader.has("PMI_PORT") ? join(reader, "pmi", "PMI_PORT") : "";
}

std::string slurm_job(const Reader& reader) {
  return join(reader, "slurm", "SLURM_JOB_ID", "SLURM_STEP_ID", "SLURM_RESTART_COUNT");
}

std::string slurm_meeting(const Reader& reader) {
  if (!reader.has("SLURM_STEP_NODELIST")) return "";
  return fmt::format("tcp://{}:{}", first_host(reader.text("SLURM_STEP_NODELIST")),
                     port_of(slurm_job(reader)));
}

std::string pbs_job(const Reader& reader) {
  return reader.has("PBS_JOBID") ? join(reader, "pbs", "PBS_JOBID") : "";
}

/// How a launcher tells a process its place.
struct Source {
  std::string_view launcher;
  std::string_view rank, size, local_rank{}, local_size{};
  bool is_ours = false;   // half a pair is a mistake, not somebody else's variable of that name
  bool is_batch = false;  // counts only where no launcher says more: mpirun runs inside batch jobs
  std::string_view nodes{};  // how many hosts there are, where local_size is not told
  /// Whether the variables mean the ranks of a group here.
  bool (*counts)(const Reader&) = [](const Reader&) { return true; };
  /// What tells this job from others, and where ranks of several hosts can meet.
  std::string (*job)(const Reader&) = [](const Reader&) -> std::string { return ""; };
  std::string (*meeting)(const Reader&) = [](const Reader&) -> std::string { return ""; };
};

constexpr std::array kSources{
    Source{.launcher = "SINEW_RANK",
           .rank = "SINEW_RANK",
           .size = "SINEW_SIZE",
           .local_rank = "SINEW_LOCAL_RANK",
           .local_size = "SINEW_LOCAL_SIZE",
           .is_ours = true},
    Source{.launcher = "torchrun",
           .rank = "RANK",
           .size = "WORLD_SIZE",
           .local_rank = "LOCAL_RANK",
           .local_size = "LOCAL_WORLD_SIZE",
           .job = torchrun_job,
           .meeting = torchrun_meeting},
    Source{.launcher = "Open MPI",
           .rank = "OMPI_COMM_WORLD_RANK",
           .size = "OMPI_COMM_WORLD_SIZE",
           .local_rank = "OMPI_COMM_WORLD_LOCAL_RANK",
           .local_size = "OMPI_COMM_WORLD_LOCAL_SIZE",
           .job = openmpi_job},
    Source{.launcher = "PMI",  // MPICH's Hydra, and srun --mpi=pmi2
           .rank = "PMI_RANK",
           .size = "PMI_SIZE",
           .local_rank = "MPI_LOCALRANKID",
           .local_size = "MPI_LOCALNRANKS",
           .job = pmi_job},
    Source{.launcher = "Slurm",
           .rank = "SLURM_PROCID",
           .size = "SLURM_STEP_NUM_TASKS",
           .local_rank = "SLURM_LOCALID",
           .is_batch = true,
           .nodes = "SLURM_STEP_NUM_NODES",
           // The script of a batch job has a SLURM_PROCID as well, but is one process.
           .counts = [](const Reader& reader) { return reader.has("SLURM_STEP_ID"); },
           .job = slurm_job,
           .meeting = slurm_meeting},
    Source{.launcher = "PBS",  // pbsdsh in Torque; PBS itself numbers no ranks
           .rank = "PBS_VNODENUM",
           .size = "PBS_NP",
           .is_batch = true,
           .nodes = "PBS_NUM_NODES",
           // The job's script is task 1, and is one process.
           .counts =
               [](const Reader& reader) {
                 return reader.number("PBS_TASKNUM", 0, kMostRanks).value_or(1) > 1;
               },
           .job = pbs_job},
};

struct Place {
  const Source* source;
  int rank, size;
};

std::optional<Place> find_place(const Reader& reader, const Source& source) {
  const bool has_rank = reader.has(source.rank), has_size = reader.has(source.size);
  if (source.is_ours && has_rank != has_size)
    throw Error(
        Errc::invalid_argument,
        fmt::format("{} is set and {} is not; they belong together (`sinew launch -n N "
                    "program` sets both)",
                    has_rank ? source.rank : source.size, has_rank ? source.size : source.rank));
  if (!has_rank || !has_size || !source.counts(reader)) return {};
  const int size = reader.number(source.size, 1, kMostRanks).value();
  const int rank = reader.number(source.rank, 0, kMostRanks).value();
  if (rank >= size)
    throw Error(Errc::invalid_argument,
                fmt::format("{}={} is not a rank of {}={}", source.rank, rank, source.size, size));
  return Place{&source, rank, size};
}

std::vector<Place> find_places(const Reader& reader) {
  std::vector<Place> places;
  for (const auto& source : kSources)
    if (const auto place = find_place(reader, source))
      if (!source.is_batch || places.empty()) places.push_back(*place);
  for (const auto& place : places) {
    const auto& first = places.front();
    if (place.rank == first.rank && place.size == first.size) continue;
    throw Error(Errc::invalid_argument,
                fmt::format("{}={} of {}={} ({}), but {}={} of {}={} ({}): one launcher inside "
                            "another? Unset the variables of the one that does not count",
                            first.source->rank, first.rank, first.source->size, first.size,
                            first.source->launcher, place.source->rank, place.rank,
                            place.source->size, place.size, place.source->launcher));
  }
  return places;
}

int local_size(const Reader& reader, const Source& source, int size) {
  if (source.nodes.empty()) return reader.number(source.local_size, 1, size).value_or(0);
  return reader.number(source.nodes, 1, kMostRanks) == 1 ? size : 0;
}

}  // namespace

std::vector<std::string_view> place_variables() {
  std::vector<std::string_view> names;
  for (const auto& source : kSources)
    for (const auto name : {source.rank, source.size, source.local_rank, source.local_size})
      if (!source.is_batch && !name.empty()) names.push_back(name);
  return names;
}

std::string first_host(std::string_view list) {
  std::string host;
  bool in_brackets = false, skipping = false;
  for (const char c : list) {
    if (c == '[') {
      in_brackets = true;
    } else if (c == ']') {
      in_brackets = skipping = false;
    } else if (in_brackets && (c == '-' || c == ',')) {
      skipping = true;
    } else if (c == ',') {
      break;
    } else if (!skipping) {
      host += c;
    }
  }
  return host;
}

Environment read_environment(const Variables& variables) {
  const Reader reader(variables);
  Environment environment;
  environment.rendezvous = reader.text("SINEW_RENDEZVOUS");
  environment.token = reader.text("SINEW_TOKEN");
  environment.token_file = reader.text("SINEW_TOKEN_FILE");
  environment.transport = reader.text("SINEW_TRANSPORT");
  environment.interfaces = reader.text("SINEW_IFACE");
  environment.trace = reader.text("SINEW_TRACE");
  environment.model = reader.text("SINEW_MODEL");
  if (const auto calls = reader.number("SINEW_TRIAL", 0, kMostTrialCalls))
    environment.trial_calls = checked_trial_calls(*calls, "SINEW_TRIAL");
  environment.tls = reader.number("SINEW_TLS", 0, 1) == 1;
  environment.shared_device = reader.number("SINEW_SHARED_DEVICE", 0, 1) != 0;
  environment.runtime_folder = reader.text("XDG_RUNTIME_DIR");
  const auto places = find_places(reader);
  if (places.empty()) return environment;

  environment.rank = places.front().rank;
  environment.size = places.front().size;
  environment.launcher = places.front().source->launcher;
  for (const auto& [source, rank, size] : places) {
    if (environment.local_size == 0) environment.local_size = local_size(reader, *source, size);
    if (environment.local_rank < 0)
      environment.local_rank = reader.number(source->local_rank, 0, size - 1).value_or(-1);
    if (environment.job.empty()) environment.job = source->job(reader);
    if (environment.meeting.empty()) environment.meeting = source->meeting(reader);
    if (source->rank == "PMI_RANK")
      environment.pmi_descriptor = reader.number("PMI_FD", 0, 1 << 20).value_or(-1);
  }
  environment.has_pmix = reader.has("PMIX_RANK") && reader.has("PMIX_NAMESPACE");
  return environment;
}

Variables process_environment() {
  Variables variables;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view text(*entry);
    const auto equals = text.find('=');
    if (equals != std::string_view::npos)
      variables.emplace(text.substr(0, equals), text.substr(equals + 1));
  }
  return variables;
}

}  // namespace sinew
