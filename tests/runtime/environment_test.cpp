// What launchers say, and what is made of it.
#include "runtime/environment.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>

namespace sinew {
namespace {

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

std::string refusal(const Variables& variables) {
  try {
    (void)read_environment(variables);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "no error";
}

const Variables kSinew{{"SINEW_RANK", "2"}, {"SINEW_SIZE", "4"}, {"SINEW_RENDEZVOUS", "sinew-1"}};
const Variables kTorchrun{{"RANK", "5"},
                          {"WORLD_SIZE", "8"},
                          {"LOCAL_RANK", "1"},
                          {"LOCAL_WORLD_SIZE", "4"},
                          {"MASTER_ADDR", "node1"},
                          {"MASTER_PORT", "29500"}};
// As seen under Open MPI 4.1.4, two ranks on one host.
const Variables kOpenMpi{
    {"OMPI_COMM_WORLD_RANK", "1"},
    {"OMPI_COMM_WORLD_SIZE", "2"},
    {"OMPI_COMM_WORLD_LOCAL_RANK", "1"},
    {"OMPI_COMM_WORLD_LOCAL_SIZE", "2"},
    {"OMPI_MCA_ess_base_jobid", "1474035713"},
    {"OMPI_MCA_orte_precondition_transports", "79392a8caeeb94c1-dc000181f4f496a1"},
    {"PMIX_NAMESPACE", "1474035713"},
    {"PMIX_RANK", "1"}};
// As seen under MPICH 4.0.2.
const Variables kHydra{{"PMI_RANK", "1"},        {"PMI_SIZE", "2"}, {"MPI_LOCALRANKID", "1"},
                       {"MPI_LOCALNRANKS", "2"}, {"PMI_FD", "8"},   {"HYDI_CONTROL_FD", "7"}};
const Variables kSlurm{{"SLURM_PROCID", "3"},
                       {"SLURM_NTASKS", "6"},
                       {"SLURM_STEP_NUM_TASKS", "6"},
                       {"SLURM_STEP_NUM_NODES", "2"},
                       {"SLURM_STEP_NODELIST", "node[07-08]"},
                       {"SLURM_LOCALID", "0"},
                       {"SLURM_JOB_ID", "4711"},
                       {"SLURM_STEP_ID", "0"}};

Variables with(Variables variables, const Variables& more) {
  for (const auto& [name, value] : more) variables[name] = value;
  return variables;
}

TEST(Environment, without_a_launcher_is_a_group_of_one) {
  for (const auto& variables :
       {Variables{}, Variables{{"PATH", "/bin"}, {"RANK", "3"}}, Variables{{"WORLD_SIZE", "4"}},
        Variables{{"SINEW_RANK", ""}, {"SINEW_SIZE", ""}}}) {
    const auto environment = read_environment(variables);
    EXPECT_EQ(environment.rank, 0);
    EXPECT_EQ(environment.size, 1);
    EXPECT_EQ(environment.launcher, "");
  }
}

TEST(Environment, tls_is_on_or_off) {
  EXPECT_FALSE(read_environment(kSinew).tls);
  EXPECT_FALSE(read_environment(with(kSinew, {{"SINEW_TLS", "0"}})).tls);
  EXPECT_TRUE(read_environment(with(kSinew, {{"SINEW_TLS", "1"}})).tls);
  EXPECT_TRUE(has(refusal({{"SINEW_TLS", "yes"}}), "SINEW_TLS='yes'"));
}

TEST(Environment, a_shared_device_is_used_unless_told_otherwise) {
  EXPECT_TRUE(read_environment(kSinew).shared_device);
  EXPECT_TRUE(read_environment(with(kSinew, {{"SINEW_SHARED_DEVICE", "1"}})).shared_device);
  EXPECT_FALSE(read_environment(with(kSinew, {{"SINEW_SHARED_DEVICE", "0"}})).shared_device);
}

TEST(Environment, trials_have_two_calls_or_more) {
  EXPECT_EQ(read_environment(kSinew).trial_calls, -1);
  EXPECT_EQ(read_environment(with(kSinew, {{"SINEW_TRIAL", ""}})).trial_calls, -1);
  EXPECT_EQ(read_environment(with(kSinew, {{"SINEW_TRIAL", "0"}})).trial_calls, 0);
  EXPECT_EQ(read_environment(with(kSinew, {{"SINEW_TRIAL", "20"}})).trial_calls, 20);
  EXPECT_EQ(read_environment({{"SINEW_TRIAL", "2"}}).trial_calls, 2);
  EXPECT_TRUE(has(refusal({{"SINEW_TRIAL", "yes"}}), "SINEW_TRIAL='yes' is not a number"));
  EXPECT_TRUE(has(refusal({{"SINEW_TRIAL", "-1"}}), "SINEW_TRIAL=-1 is not between 0 and 10000"));
  EXPECT_TRUE(has(refusal({{"SINEW_TRIAL", "1"}}), "SINEW_TRIAL=1: two algorithms take turns"));
}

TEST(Environment, every_launcher_is_understood) {
  const auto sinew = read_environment(kSinew);
  EXPECT_EQ(sinew.rank, 2);
  EXPECT_EQ(sinew.size, 4);
  EXPECT_EQ(sinew.rendezvous, "sinew-1");

  const auto torchrun = read_environment(kTorchrun);
  EXPECT_EQ(torchrun.rank, 5);
  EXPECT_EQ(torchrun.size, 8);
  EXPECT_EQ(torchrun.local_rank, 1);
  EXPECT_EQ(torchrun.local_size, 4);
  EXPECT_FALSE(torchrun.is_one_host());
  EXPECT_EQ(torchrun.meeting, "tcp://node1:29501");  // torch itself meets at 29500

  const auto open_mpi = read_environment(kOpenMpi);
  EXPECT_EQ(open_mpi.rank, 1);
  EXPECT_EQ(open_mpi.launcher, "Open MPI");
  EXPECT_TRUE(open_mpi.is_one_host());
  EXPECT_TRUE(open_mpi.has_pmix);
  EXPECT_TRUE(has(open_mpi.job, "1474035713") && has(open_mpi.job, "79392a8caeeb94c1"));

  const auto hydra = read_environment(kHydra);
  EXPECT_EQ(hydra.rank, 1);
  EXPECT_EQ(hydra.size, 2);
  EXPECT_TRUE(hydra.is_one_host());
  EXPECT_EQ(hydra.pmi_descriptor, 8);

  const auto slurm = read_environment(kSlurm);
  EXPECT_EQ(slurm.rank, 3);
  EXPECT_EQ(slurm.size, 6);
  EXPECT_EQ(slurm.local_rank, 0);
  EXPECT_FALSE(slurm.is_one_host());
  EXPECT_TRUE(slurm.meeting.starts_with("tcp://node07:2")) << slurm.meeting;
  EXPECT_TRUE(read_environment(with(kSlurm, {{"SLURM_STEP_NUM_NODES", "1"}})).is_one_host());

  const Variables pbs{{"PBS_VNODENUM", "2"},
                      {"PBS_NP", "4"},
                      {"PBS_TASKNUM", "3"},
                      {"PBS_NUM_NODES", "1"},
                      {"PBS_JOBID", "12.head"}};
  EXPECT_EQ(read_environment(pbs).rank, 2);
  EXPECT_TRUE(read_environment(pbs).is_one_host());
}

TEST(Environment, jobs_are_told_apart_and_ranks_of_one_job_are_not) {
  const auto job = [](const Variables& variables) { return read_environment(variables).job; };
  EXPECT_NE(job(kSlurm), job(with(kSlurm, {{"SLURM_STEP_ID", "1"}})));
  EXPECT_NE(job(kSlurm), job(with(kSlurm, {{"SLURM_JOB_ID", "4712"}})));
  EXPECT_EQ(job(kSlurm), job(with(kSlurm, {{"SLURM_PROCID", "0"}, {"SLURM_LOCALID", "2"}})));
  EXPECT_NE(read_environment(kSlurm).meeting,
            read_environment(with(kSlurm, {{"SLURM_STEP_ID", "1"}})).meeting);
  EXPECT_NE(job(kTorchrun), job(with(kTorchrun, {{"MASTER_PORT", "29501"}})));
  EXPECT_NE(job(kTorchrun), job(with(kTorchrun, {{"TORCHELASTIC_RESTART_COUNT", "1"}})));
  EXPECT_NE(job(kOpenMpi), job(with(kOpenMpi, {{"PMIX_NAMESPACE", "1474035714"}})));
  EXPECT_EQ(job(kOpenMpi),
            job(with(kOpenMpi, {{"OMPI_COMM_WORLD_RANK", "0"}, {"PMIX_RANK", "0"}})));
}

TEST(Environment, two_launchers_that_agree_are_one) {
  const auto both = read_environment(with(
      kOpenMpi, {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "n"}, {"MASTER_PORT", "9"}}));
  EXPECT_EQ(both.launcher, "torchrun");
  EXPECT_EQ(both.local_size, 2);
}

TEST(Environment, two_launchers_that_disagree_are_both_shown) {
  const auto text = refusal(with(kOpenMpi, kSinew));
  EXPECT_TRUE(has(text, "SINEW_RANK=2 of SINEW_SIZE=4")) << text;
  EXPECT_TRUE(has(text, "OMPI_COMM_WORLD_RANK=1 of OMPI_COMM_WORLD_SIZE=2")) << text;
  EXPECT_TRUE(has(refusal(with(kTorchrun, kHydra)), "PMI_RANK=1 of PMI_SIZE=2"));
  EXPECT_TRUE(has(refusal(with(kSinew, {{"RANK", "2"}, {"WORLD_SIZE", "5"}})), "WORLD_SIZE=5"));
}

// mpirun starts one daemon a host by srun, whose numbers its ranks inherit.
TEST(Environment, mpirun_inside_a_batch_job_is_mpirun) {
  const auto environment = read_environment(with(kSlurm, kOpenMpi));
  EXPECT_EQ(environment.rank, 1);
  EXPECT_EQ(environment.size, 2);
  EXPECT_EQ(environment.launcher, "Open MPI");
}

TEST(Environment, the_script_of_a_batch_job_is_one_process) {
  auto script = kSlurm;
  script.erase("SLURM_STEP_ID");
  EXPECT_EQ(read_environment(script).size, 1);
  EXPECT_EQ(read_environment({{"PBS_VNODENUM", "0"}, {"PBS_NP", "8"}, {"PBS_TASKNUM", "1"}}).size,
            1);
}

TEST(Environment, what_is_not_a_number_or_half_a_pair_is_named) {
  EXPECT_TRUE(has(refusal({{"SINEW_RANK", "1"}}), "SINEW_RANK is set and SINEW_SIZE is not"));
  EXPECT_TRUE(has(refusal({{"SINEW_SIZE", "1"}}), "SINEW_SIZE is set and SINEW_RANK is not"));
  EXPECT_TRUE(has(refusal(with(kSinew, {{"SINEW_RANK", "two"}})), "SINEW_RANK='two'"));
  EXPECT_TRUE(has(refusal(with(kSinew, {{"SINEW_RANK", "2 "}})), "is not a number"));
  EXPECT_TRUE(has(refusal(with(kSinew, {{"SINEW_RANK", "4"}})), "SINEW_RANK=4 is not a rank of"));
  EXPECT_TRUE(has(refusal(with(kSinew, {{"SINEW_RANK", "-1"}})), "is not between 0 and"));
  EXPECT_TRUE(has(refusal(with(kSinew, {{"SINEW_SIZE", "0"}})), "is not between 1 and"));
  EXPECT_TRUE(has(refusal(with(kSinew, {{"SINEW_SIZE", "99999999999"}})), "is not a number"));
  EXPECT_TRUE(has(refusal(with(kHydra, {{"PMI_FD", "x"}})), "PMI_FD='x'"));
  EXPECT_TRUE(has(refusal(with(kHydra, {{"MPI_LOCALNRANKS", "3"}})), "MPI_LOCALNRANKS=3"));
  EXPECT_TRUE(has(refusal(with(kTorchrun, {{"MASTER_PORT", "65535"}})), "MASTER_PORT=65535"));
}

TEST(Environment, the_first_host_of_a_list_is_found) {
  const std::pair<std::string, std::string> cases[] = {
      {"node7", "node7"},
      {"node7,node8", "node7"},
      {"node[07-09,12],gpu1", "node07"},
      {"node[3,7]", "node3"},
      {"rack[2-4]-n[01-16]-ib", "rack2-n01-ib"},
      {"", ""},
      {"[", ""},
      {"a]b", "ab"},
  };
  for (const auto& [list, host] : cases) EXPECT_EQ(first_host(list), host) << list;
}

TEST(Environment, is_read_from_the_process) {
  ::setenv("SINEW_TEST_VARIABLE", "a=b=c", 1);
  EXPECT_EQ(process_environment().at("SINEW_TEST_VARIABLE"), "a=b=c");
  ::unsetenv("SINEW_TEST_VARIABLE");
  EXPECT_FALSE(process_environment().contains("SINEW_TEST_VARIABLE"));
}

}  // namespace
}  // namespace sinew
