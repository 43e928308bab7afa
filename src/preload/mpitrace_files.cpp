#include "preload/mpitrace_files.hpp"

#include <sched.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>

#include "preload/call.hpp"
#include "report/mpitrace_text.hpp"

namespace sinew::preload {
namespace {

using report::CommunicationRanks;
using trace::Profile;
using trace::RankProfile;

constexpr int kTag = 32767;  // the largest that every MPI allows; at the end nobody else uses any
constexpr std::uint64_t kPatienceNs = 30'000'000'000;

/// What a rank tells rank 0. Equal on all ranks: they run one program on one kind of machine.
struct Figures {
  double communication_ns, elapsed_ns, user_s, system_s, resident_kib, switches, cpu;
  char host[64];
};

/// What rank 0 tells the others.
struct Decision {
  CommunicationRanks chosen;
  int process;  // of rank 0
};

double number(const RankProfile& rank, const char* key) {
  return trace::info_number(rank, key).value_or(-1);
}

Figures figures_of(const RankProfile& rank) {
  Figures figures{rank.communication_ns,        rank.elapsed_ns,
                  number(rank, "user_s"),       number(rank, "system_s"),
                  number(rank, "resident_kib"), number(rank, "switches"),
                  number(rank, "cpu"),          {}};
  std::strncpy(figures.host, rank.host.c_str(), sizeof figures.host - 1);
  return figures;
}

RankProfile rank_of(const Figures& figures, int rank, int size) {
  RankProfile result;
  result.rank = rank;
  result.size = size;
  result.host = std::string(figures.host, ::strnlen(figures.host, sizeof figures.host));
  result.communication_ns = figures.communication_ns;
  result.elapsed_ns = figures.elapsed_ns;
  const auto keep = [&](const char* key, double value) {
    if (value >= 0) result.info[key] = std::to_string(value);
  };
  keep("user_s", figures.user_s);
  keep("system_s", figures.system_s);
  keep("resident_kib", figures.resident_kib);
  keep("switches", figures.switches);
  keep("cpu", figures.cpu);
  return result;
}

/// What this process has done so far, from its own trace.
Profile profile_of(Session& session) {
  session.writer.keep_time();
  auto trace = trace::read_trace_file(session.writer.path());
  trace.records.clear();  // counters have it all
  return trace::summarize({trace});
}

void nap() {
  const timespec moment{0, 100'000};
  ::nanosleep(&moment, nullptr);
}

/// False: nothing came from `source` in time.
bool receive(const Session& session, int source, void* data, std::size_t bytes,
             std::uint64_t deadline_ns) {
  for (int arrived = 0;;) {
    if (next.Iprobe(source, kTag, session.handles.world, &arrived, MPI_STATUS_IGNORE) !=
        MPI_SUCCESS)
      return false;
    if (arrived != 0) break;
    if (trace::monotonic_ns() > deadline_ns) return false;
    nap();
  }
  return next.Recv(data, static_cast<int>(bytes), session.handles.byte, source, kTag,
                   session.handles.world, MPI_STATUS_IGNORE) == MPI_SUCCESS;
}

void send(const Session& session, int to, const void* data, std::size_t bytes) {
  next.Send(data, static_cast<int>(bytes), session.handles.byte, to, kTag, session.handles.world);
}

/// Rank 0: puts the others beside itself in `profile`, decides, and tells them.
Decision collect(const Session& session, Profile& profile, int size) {
  const auto deadline_ns = trace::monotonic_ns() + kPatienceNs;
  for (int rank = 1; rank < size; ++rank) {
    Figures figures{};
    if (receive(session, rank, &figures, sizeof figures, deadline_ns))
      profile.ranks.push_back(rank_of(figures, rank, size));
    else
      std::fprintf(stderr,
                   "sinew: rank %d did not tell its times at MPI_Finalize; is SINEW_FORMAT set on "
                   "all hosts?\n",
                   rank);
  }
  const Decision decision{report::communication_ranks(profile.ranks), ::getpid()};
  for (int rank = 1; rank < size; ++rank) send(session, rank, &decision, sizeof decision);
  return decision;
}

bool writes(const MpitraceSettings& settings, const CommunicationRanks& chosen, int rank) {
  if (settings.all_ranks || rank == 0) return true;
  const auto ranks = settings.ranks.empty() ? report::ranks_with_files(chosen) : settings.ranks;
  return std::find(ranks.begin(), ranks.end(), rank) != ranks.end();
}

void write_file(const MpitraceSettings& settings, const Profile& profile, const RankProfile& rank,
                const Decision& decision) {
  const auto job = settings.job.empty() ? std::to_string(decision.process) : settings.job;
  const auto path = (settings.folder.empty() ? "" : settings.folder + "/") +
                    report::mpitrace_file_name(job, rank.rank);
  const auto text = mpitrace_text(profile, rank, decision.chosen);
  std::FILE* const file = std::fopen(path.c_str(), "we");
  const bool wrote =
      file != nullptr && std::fwrite(text.data(), 1, text.size(), file) == text.size();
  const bool closed = file != nullptr && std::fclose(file) == 0;
  if (!wrote || !closed)
    std::fprintf(stderr, "sinew: cannot write %s: %s\n", path.c_str(), std::strerror(errno));
}

void exchange_and_write(Session& session, const MpitraceSettings& settings) {
  auto profile = profile_of(session);
  auto& own = profile.ranks.at(0);
  own.info["cpu"] = std::to_string(::sched_getcpu());
  const int rank = own.rank, size = own.size;
  Decision decision{};
  if (rank == 0) {
    decision = collect(session, profile, size);
  } else {
    const auto figures = figures_of(own);
    send(session, 0, &figures, sizeof figures);
    if (!receive(session, 0, &decision, sizeof decision, trace::monotonic_ns() + 2 * kPatienceNs)) {
      std::fprintf(stderr, "sinew: rank 0 did not answer rank %d at MPI_Finalize; no mpi_profile\n",
                   rank);
      return;
    }
  }
  if (writes(settings, decision.chosen, rank))
    write_file(settings, profile, profile.ranks.at(0), decision);
}

const char* variable(const char* name) {
  const char* const value = std::getenv(name);
  return value != nullptr ? value : "";
}

}  // namespace

MpitraceSettings read_mpitrace_settings() {
  MpitraceSettings settings;
  const char* const format = variable("SINEW_FORMAT");
  settings.wanted = std::strcmp(format, "mpitrace") == 0;
  if (*format != '\0' && !settings.wanted)
    std::fprintf(stderr, "sinew: SINEW_FORMAT=%s is unknown; there is mpitrace\n", format);
  settings.folder = variable("TRACE_DIR");
  for (const char* const name : {"SLURM_JOBID", "PBS_JOBID", "LSB_JOBID", "COBALT_JOBID"})
    if (settings.job.empty() && *variable(name) != '\0')
      settings.job = std::to_string(std::atoi(variable(name)));
  settings.all_ranks = std::strncmp(variable("SAVE_ALL_TASKS"), "yes", 3) == 0;
  for (const char* at = variable("SAVE_LIST"); *at != '\0';) {
    char* end = nullptr;
    const auto rank = std::strtol(at, &end, 10);
    if (end == at) break;
    settings.ranks.push_back(static_cast<int>(rank));
    at = *end == ',' ? end + 1 : end;
  }
  return settings;
}

void write_mpitrace_files(Session& session, const MpitraceSettings& settings) noexcept {
  if (!settings.wanted || !session.is_active()) return;
  try {
    exchange_and_write(session, settings);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "sinew: no mpi_profile: %s\n", error.what());
  }
}

}  // namespace sinew::preload
