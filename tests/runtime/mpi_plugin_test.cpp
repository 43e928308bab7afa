// Which MPI is chosen by which signs, and what is said when there is none to choose.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include <sinew/communicator.hpp>
#include "runtime/mpi_plugin.hpp"
#include "runtime/plugin.hpp"

namespace sinew {
namespace {

std::string error_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

bool says(const std::string& text, std::string_view part) {
  return text.find(part) != std::string::npos;
}

TEST(MpiSeats, come_from_the_launchers_variables) {
  EXPECT_TRUE(mpi_seats(Variables({})).empty());
  const auto open =
      mpi_seats(Variables({{"OMPI_COMM_WORLD_RANK", "2"}, {"OMPI_COMM_WORLD_SIZE", "4"}}));
  ASSERT_EQ(open.size(), 1U);
  EXPECT_EQ(open[0].mpi, Mpi::openmpi);
  EXPECT_EQ(open[0].rank, 2);
  EXPECT_EQ(open[0].size, 4);
  const auto mpich = mpi_seats(Variables({{"PMI_RANK", "0"}, {"PMI_SIZE", "3"}}));
  ASSERT_EQ(mpich.size(), 1U);
  EXPECT_EQ(mpich[0].mpi, Mpi::mpich);
  EXPECT_TRUE(says(error_of([] {
                     mpi_seats(Variables({{"PMI_RANK", "x"}, {"PMI_SIZE", "3"}}));
                   }),
                   "PMI_RANK='x' is not a count"));
}

TEST(MpiChoice, takes_the_wish_then_what_is_loaded_then_who_started_us) {
  const MpiSeat by_open{Mpi::openmpi, 0, 2}, by_mpich{Mpi::mpich, 0, 2};
  EXPECT_EQ(choose_mpi({"mpich", {}, {by_open}}), Mpi::mpich);
  EXPECT_EQ(choose_mpi({"", Mpi::openmpi, {by_mpich}}), Mpi::openmpi);  // as srun does it
  EXPECT_EQ(choose_mpi({"", {}, {by_mpich}}), Mpi::mpich);
  EXPECT_EQ(choose_mpi({"", {}, {by_open}}), Mpi::openmpi);
}

TEST(MpiChoice, says_what_to_do_when_there_is_none_or_too_many) {
  const MpiSeat by_open{Mpi::openmpi, 0, 2}, by_mpich{Mpi::mpich, 0, 2};
  EXPECT_TRUE(says(error_of([] { choose_mpi({"", {}, {}}); }), "mpirun.mpich -n 4 PROGRAM"));
  EXPECT_TRUE(says(error_of([&] { choose_mpi({"", {}, {by_open, by_mpich}}); }), "SINEW_MPI="));
  EXPECT_TRUE(says(error_of([] { choose_mpi({"openmp", {}, {}}); }), "did you mean 'openmpi'?"));
  EXPECT_TRUE(says(error_of([] {
                     choose_mpi({"mpich", Mpi::openmpi, {}});
                   }),
                   "linked with Open MPI"));
}

TEST(LoadedMpi, is_told_by_the_names_of_libraries) {
  using List = std::vector<std::string>;
  EXPECT_FALSE(loaded_mpi(List{"", "/lib/libc.so.6", "/lib/libmpi_cxx.so.40"}));
  EXPECT_EQ(loaded_mpi(List{"/usr/lib/libmpi.so.40"}), Mpi::openmpi);
  EXPECT_EQ(loaded_mpi(List{"/usr/lib/libmpich.so.12"}), Mpi::mpich);
  EXPECT_EQ(loaded_mpi(List{"/opt/intel/libmpi.so.12"}), Mpi::mpich);
  EXPECT_TRUE(says(error_of([] { loaded_mpi(List{"libmpi.so.40", "libmpich.so.12"}); }), "both"));
  EXPECT_FALSE(loaded_mpi());  // this program has none
}

TEST(Plugin, that_is_missing_or_not_one_is_an_error_that_says_where) {
  const auto folder = std::filesystem::temp_directory_path() / "sinew-plugin-test";
  std::filesystem::create_directories(folder);
  EXPECT_EQ(plugin_folders(folder.string() + ":/other")[1], "/other");
  const auto found = find_plugin("libsinew-mpi-none.so", {folder});
  EXPECT_TRUE(found.empty());
  const auto file = folder / "libsinew-mpi-none.so";
  std::ofstream(file) << "not a library";
  EXPECT_EQ(find_plugin("libsinew-mpi-none.so", {folder}), file);
  EXPECT_TRUE(says(error_of([&] { load_plugin(file); }), file.string()));
  EXPECT_TRUE(says(error_of([&] { load_plugin("libm.so.6"); }), "has no sinew_transport_plugin"));
  std::filesystem::remove_all(folder);
}

TEST(Plugin, of_another_version_is_refused) {
  const auto text = error_of([] { load_plugin(SINEW_OLD_PLUGIN); });
  EXPECT_TRUE(says(text, "is of Sinew 0.0.0 (plugin version 0)")) << text;
  EXPECT_TRUE(says(text, "install both from one build")) << text;
}

TEST(Connect, refuses_transports_it_does_not_know) {
  EXPECT_TRUE(says(error_of([] { connect({.transport = "mpy"}); }), "did you mean 'mpi'?"));
}

TEST(Connect, over_mpi_promises_no_TLS) {
  EXPECT_TRUE(says(error_of([] { connect({.transport = "mpi", .tls = true}); }),
                   "what an MPI sends is not sealed"));
}

}  // namespace
}  // namespace sinew
