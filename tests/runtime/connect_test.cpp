// connect() as a program meets it: real launchers, real processes, and environments that do not add
// up.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "support/program.hpp"
#include "transport/rendezvous/socket.hpp"
#include "transport/trust/token.hpp"

namespace sinew::test {
namespace {

using namespace std::chrono_literals;
using Variables = std::vector<std::string>;

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

struct Folder {
  std::string path;
  Folder() {
    std::string pattern = "/tmp/sinew-test-XXXXXX";
    path = ::mkdtemp(pattern.data());
  }
  ~Folder() { std::filesystem::remove_all(path); }
};

/// A port that was free a moment ago, of those that the kernel gives to nobody unasked: it stays
/// free while other programs connect.
int free_port() {
  static int next = 10'000 + ::getpid() % 20'000;
  while (true) {
    const Address address{Address::Kind::tcp, "127.0.0.1", static_cast<std::uint16_t>(++next)};
    try {
      return bound_address(listen_at(address), address).port;
    } catch (const Error&) {  // taken: the next one
    }
  }
}

std::string tcp_address() { return fmt::format("tcp://127.0.0.1:{}", free_port()); }

/// A process with this environment and no other, but for a folder for its secret.
class Ranks {
 public:
  void start(Variables variables, int seconds = 20) {
    std::vector<std::string> words{"env", "-i", "XDG_RUNTIME_DIR=" + folder_.path};
    words.insert(words.end(), variables.begin(), variables.end());
    words.insert(words.end(), {SINEW_RANK_PROGRAM, std::to_string(seconds)});
    programs_.push_back(std::make_unique<Program>(words));
  }
  std::vector<Ran> finish() {
    std::vector<Ran> all;
    for (const auto& program : programs_) all.push_back(program->finish());
    return all;
  }
  [[nodiscard]] const std::string& folder() const { return folder_.path; }

 private:
  Folder folder_;
  std::vector<std::unique_ptr<Program>> programs_;
};

void expect_right(const std::vector<Ran>& all) {
  for (std::size_t rank = 0; rank < all.size(); ++rank) {
    EXPECT_EQ(all[rank].status, 0);
    EXPECT_EQ(all[rank].out, fmt::format("rank {} of {} over shm: right\n", rank, all.size()));
  }
}

// Launchers that are installed

class Launcher : public testing::TestWithParam<std::vector<std::string>> {};

std::vector<std::string> mpich(std::vector<std::string> options) {
  options.insert(options.begin(), "mpirun.mpich");
  return options;
}

std::vector<std::string> open_mpi(std::vector<std::string> options) {
  options.insert(options.begin(), {"mpirun.openmpi", "--allow-run-as-root", "--oversubscribe", "-x",
                                   "SINEW_IFACE=lo"});
  return options;
}

// Stands in for ssh: what should run on host "b" runs here.
constexpr auto kHere = SINEW_SOURCE_DIR "/tests/programs/run_here.sh";

INSTANTIATE_TEST_SUITE_P(
    Installed, Launcher,
    testing::Values(
        mpich({"-n", "4"}), mpich({"-n", "1"}), open_mpi({"-n", "4"}), open_mpi({"-n", "1"}),
        // Two managers, as on two hosts: ranks meet by PMI and by PMIx.
        mpich({"-env", "SINEW_IFACE", "lo", "-launcher", "fork", "-hosts", "a,b", "-n", "4"}),
        // Two daemons of Open MPI on one host may pick one place in memory for their topology, and
        // then one of them crashes: none is picked.
        open_mpi({"--mca", "rtc_hwloc_vmhole", "none", "--mca", "plm_rsh_agent", kHere, "-host",
                  "a:2,b:2", "-n", "4"})));

TEST_P(Launcher, starts_ranks_that_find_each_other) {
  auto words = GetParam();
  if (run({"sh", "-c", "command -v " + words[0]}).status != 0)
    GTEST_SKIP() << words[0] << " is not installed";
  const int ranks = std::stoi(words.back());
  const Folder folder;
  words.insert(words.begin(), {"env", fmt::format("TMPDIR={}", folder.path)});
  words.insert(words.end(), {SINEW_RANK_PROGRAM, "30"});
  const auto ran = run(words);
  EXPECT_EQ(ran.status, 0) << fmt::format("{}\n", fmt::join(words, " ")) << ran.out << ran.err;
  for (int rank = 0; rank < ranks; ++rank)
    EXPECT_TRUE(contains(ran.out, fmt::format("rank {} of {} over {}: right", rank, ranks,
                                              ranks == 1 ? "local" : "shm")))
        << ran.out << ran.err;
}

// Launchers that are played

TEST(Connect, torchrun_and_srun_variables_are_enough_on_one_host) {
  Ranks torchrun;
  for (int rank = 0; rank < 3; ++rank)
    torchrun.start({fmt::format("RANK={}", rank), "WORLD_SIZE=3",
                    fmt::format("LOCAL_RANK={}", rank), "LOCAL_WORLD_SIZE=3",
                    "MASTER_ADDR=127.0.0.1", "MASTER_PORT=29500"});
  expect_right(torchrun.finish());
  Ranks srun;
  for (int rank = 0; rank < 3; ++rank)
    srun.start({fmt::format("SLURM_PROCID={}", rank), "SLURM_STEP_NUM_TASKS=3", "SLURM_NTASKS=3",
                "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_ID=0", "SLURM_JOB_ID=4711"});
  expect_right(srun.finish());
}

TEST(Connect, two_jobs_of_one_user_do_not_meet) {
  Ranks ranks;
  for (const int job : {1, 2})
    for (int rank = 0; rank < 2; ++rank)
      ranks.start({fmt::format("SLURM_PROCID={}", rank), "SLURM_STEP_NUM_TASKS=2",
                   "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_ID=0",
                   fmt::format("SLURM_JOB_ID={}", job)});
  for (const auto& ran : ranks.finish()) EXPECT_EQ(ran.status, 0) << ran.out;
}

TEST(Connect, hosts_that_are_not_told_are_found_out_at_every_kind_of_meeting) {
  Ranks files;
  const auto shared = files.folder() + "/meeting";
  for (int rank = 0; rank < 3; ++rank)
    files.start(
        {fmt::format("SINEW_RANK={}", rank), "SINEW_SIZE=3", "SINEW_RENDEZVOUS=file://" + shared});
  expect_right(files.finish());
  EXPECT_FALSE(std::filesystem::exists(shared));  // the last one has cleaned up

  const auto token = "SINEW_TOKEN=" + Token::make().hex();
  Ranks tcp;
  const int port = free_port();
  for (int rank = 0; rank < 3; ++rank)
    tcp.start({fmt::format("SINEW_RANK={}", rank), "SINEW_SIZE=3", token,
               fmt::format("SINEW_RENDEZVOUS=tcp://localhost:{}", port)});
  expect_right(tcp.finish());
}

TEST(Connect, the_token_can_come_from_a_file_that_is_nobody_elses) {
  Ranks ranks;
  const auto file = ranks.folder() + "/token";
  const auto address = "SINEW_RENDEZVOUS=" + tcp_address();
  std::ofstream(file) << Token::make().hex() << "\n";
  ::chmod(file.c_str(), 0600);
  for (int rank = 0; rank < 2; ++rank)
    ranks.start(
        {fmt::format("SINEW_RANK={}", rank), "SINEW_SIZE=2", "SINEW_TOKEN_FILE=" + file, address});
  expect_right(ranks.finish());
  Ranks open;
  ::chmod(file.c_str(), 0644);
  open.start({"SINEW_RANK=0", "SINEW_SIZE=2", "SINEW_TOKEN_FILE=" + file, address});
  EXPECT_TRUE(contains(open.finish()[0].out, "can be read by others: chmod 600 it"));
}

TEST(Connect, one_rank_needs_nobody_to_tell_it_anything) {
  for (const auto* const transport : {"auto", "shm", "tcp"}) {
    Ranks ranks;
    ranks.start({std::string("SINEW_TRANSPORT=") + transport}, 1);
    const auto ran = ranks.finish()[0];
    EXPECT_EQ(ran.status, 0) << transport;
    EXPECT_TRUE(contains(ran.out, "rank 0 of 1 over")) << ran.out;
  }
}

// What does not add up

std::string alone(const Variables& variables) {
  Ranks ranks;
  ranks.start(variables, 1);
  const auto ran = ranks.finish()[0];
  EXPECT_EQ(ran.status, 1);
  return ran.out;
}

TEST(Connect, says_exactly_what_to_set_when_something_is_missing) {
  const auto nowhere = alone({"SINEW_RANK=0", "SINEW_SIZE=2"});
  EXPECT_TRUE(contains(nowhere, "SINEW_RENDEZVOUS=tcp://HOST_OF_RANK_0:PORT")) << nowhere;
  const auto hosts = alone({"SLURM_PROCID=1", "SLURM_STEP_NUM_TASKS=8", "SLURM_STEP_NUM_NODES=2",
                            "SLURM_STEP_NODELIST=n[1-2]", "SLURM_STEP_ID=0", "SLURM_JOB_ID=5"});
  EXPECT_TRUE(contains(hosts, "8 ranks meet at tcp://n1:2")) << hosts;
  EXPECT_TRUE(contains(hosts, "SINEW_TOKEN=$(openssl rand -hex 32)")) << hosts;
  const auto token = alone({"SINEW_RANK=0", "SINEW_SIZE=2", "SINEW_RENDEZVOUS=tcp://node7:4000"});
  EXPECT_TRUE(contains(token, "have no secret")) << token;
  EXPECT_TRUE(contains(alone({"SINEW_RANK=0", "SINEW_SIZE=2", "SINEW_RENDEZVOUS=tcp://node7"}),
                       "the port is missing"));
  EXPECT_TRUE(contains(alone({"SINEW_TRANSPORT=smh"}), "did you mean 'shm'?"));
  EXPECT_TRUE(
      contains(alone({"RANK=0", "WORLD_SIZE=2", "PMI_RANK=1", "PMI_SIZE=2"}), "PMI_RANK=1"));
}

TEST(Connect, a_token_that_is_wrong_is_never_shown) {
  const auto out = alone({"SINEW_RANK=0", "SINEW_SIZE=2", "SINEW_RENDEZVOUS=tcp://127.0.0.1:1",
                          "SINEW_TOKEN=deadbeefdeadbeef"});
  EXPECT_TRUE(contains(out, "a token has 64 hexadecimal digits")) << out;
  EXPECT_FALSE(contains(out, "deadbeef")) << out;
}

TEST(Connect, a_secret_that_others_can_touch_is_refused) {
  const Folder folder;
  const auto secret = folder.path + "/sinew";
  const auto attempt = [&] {
    const auto ran = run({"env", "-i", "XDG_RUNTIME_DIR=" + folder.path, "SLURM_PROCID=1",
                          "SLURM_STEP_NUM_TASKS=2", "SLURM_STEP_NUM_NODES=1", "SLURM_STEP_ID=0",
                          "SLURM_JOB_ID=5", SINEW_RANK_PROGRAM, "1"});
    return ran.out;
  };
  std::filesystem::create_directory(secret);
  ::chmod(secret.c_str(), 0755);
  EXPECT_TRUE(contains(attempt(), "/sinew can be read by others; remove it"));
  ::chmod(secret.c_str(), 0700);
  std::ofstream(secret + "/secret") << "short";
  ::chmod((secret + "/secret").c_str(), 0600);
  EXPECT_TRUE(contains(attempt(), "too short"));
  std::filesystem::remove_all(secret);
  std::filesystem::create_directory_symlink("/tmp", secret);
  EXPECT_TRUE(contains(attempt(), "cannot be opened"));
  if (::geteuid() != 0) return;
  std::filesystem::remove(secret);
  std::filesystem::create_directory(secret);
  ::chmod(secret.c_str(), 0700);
  ASSERT_EQ(::chown(secret.c_str(), 65534, 65534), 0);
  EXPECT_TRUE(contains(attempt(), "belongs to user 65534"));
}

struct Bad {
  std::string name;
  std::vector<Variables> ranks;
  std::vector<std::string> stories;  // of each rank
};

class BadGroup : public testing::TestWithParam<Bad> {};

TEST_P(BadGroup, is_told_to_both_sides) {
  const auto& [name, variables, stories] = GetParam();
  Ranks ranks;
  for (const auto& one : variables) {
    ranks.start(one, 2);
    std::this_thread::sleep_for(100ms);  // their order decides which story is whose
  }
  const auto begin = std::chrono::steady_clock::now();
  const auto all = ranks.finish();
  EXPECT_LT(std::chrono::steady_clock::now() - begin, 15s);
  for (std::size_t i = 0; i < all.size(); ++i) {
    EXPECT_NE(all[i].status, 0);
    EXPECT_TRUE(contains(all[i].out, stories[i])) << i << ": " << all[i].out << all[i].err;
  }
}

Variables rank_of(int rank, int size, const std::string& rendezvous, const std::string& token) {
  return {fmt::format("SINEW_RANK={}", rank), fmt::format("SINEW_SIZE={}", size),
          "SINEW_RENDEZVOUS=" + rendezvous, "SINEW_TOKEN=" + token};
}

const std::string kTcp[] = {tcp_address(), tcp_address(), tcp_address(), tcp_address(),
                            tcp_address()};
const std::string kA(64, 'a'), kB(64, 'b');
const auto kName = fmt::format("sinew-test-connect-{}", ::getpid());

INSTANTIATE_TEST_SUITE_P(
    Cases, BadGroup,
    testing::Values(
        Bad{"one_rank_twice_shm",
            {rank_of(0, 3, kName + "a", kA), rank_of(1, 3, kName + "a", kA),
             rank_of(1, 3, kName + "a", kA)},
            {"each rank joins once", "each rank joins once", "says it is rank 1, but so does"}},
        Bad{"rank_0_twice_shm",
            {rank_of(0, 2, kName + "b", kA), rank_of(0, 2, kName + "b", kA)},
            {"rank(s) 1 of 2 did not join", "another process says that it is rank 0"}},
        Bad{"another_size_shm",
            {rank_of(0, 2, kName + "c", kA), rank_of(1, 3, kName + "c", kA)},
            {"this job has 2 ranks", "says it is rank 1 of 3, but this job has 2 ranks"}},
        Bad{"one_rank_twice_tcp",
            {rank_of(0, 3, kTcp[0], kA), rank_of(1, 3, kTcp[0], kA), rank_of(1, 3, kTcp[0], kA)},
            {"rank 1, which has joined from", "rank 1, which has joined from",
             "refuses us, saying: this end claims to be rank 1, which has joined from"}},
        Bad{"rank_0_twice_tcp",
            {rank_of(0, 2, kTcp[1], kA), rank_of(0, 2, kTcp[1], kA)},
            {"nobody has set 'host/1'", "is in use on this host"}},
        Bad{"another_size_tcp",
            {rank_of(0, 2, kTcp[2], kA), rank_of(1, 3, kTcp[2], kA)},
            {"says: 127.0.0.1:", "counts 3 ranks, not 2"}},
        Bad{"another_token",
            {rank_of(0, 2, kTcp[3], kA), rank_of(1, 2, kTcp[3], kB)},
            {"turned away: 127.0.0.1:", "has another token"}},
        Bad{"rank_0_missing",
            {rank_of(1, 2, kTcp[4], kA), rank_of(1, 2, kName + "d", kA)},
            {"nobody listens at " + kTcp[4], "rank 0 did not open"}}),
    [](const auto& one) { return one.param.name; });

}  // namespace
}  // namespace sinew::test
