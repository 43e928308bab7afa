#include "runtime/mpi_plugin.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <link.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <vector>

#include "base/text.hpp"
#include "runtime/plugin.hpp"
#include "transport/descriptor.hpp"

namespace sinew {
namespace {

// One row an ABI: how it is called, started, and recognised.
struct Row {
  Mpi mpi;
  std::string_view name, title, mpirun;
  std::string_view rank, size;  // variables its launcher sets
  std::string_view package;
};
constexpr std::array<Row, 2> kRows{{
    {Mpi::openmpi, "openmpi", "Open MPI", "mpirun.openmpi --allow-run-as-root --oversubscribe -n",
     "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "libopenmpi-dev"},
    {Mpi::mpich, "mpich", "MPICH", "mpirun.mpich -n", "PMI_RANK", "PMI_SIZE", "libmpich-dev"},
}};

const Row& row(Mpi mpi) { return kRows[static_cast<std::size_t>(mpi)]; }

std::string text(const Variables& variables, std::string_view name) {
  const auto found = variables.find(name);
  return found == variables.end() ? "" : found->second;
}

int number(std::string_view variable, const std::string& word) {
  int value = -1;
  const auto [end, status] = std::from_chars(word.data(), word.data() + word.size(), value);
  if (status != std::errc{} || end != word.data() + word.size() || value < 0)
    throw Error(Errc::invalid_argument, fmt::format("{}='{}' is not a count", variable, word));
  return value;
}

std::string plugin_name(Mpi mpi) { return fmt::format("libsinew-mpi-{}.so", name(mpi)); }

int remember(dl_phdr_info* info, std::size_t, void* list) {
  static_cast<std::vector<std::string>*>(list)->emplace_back(info->dlpi_name);
  return 0;
}

}  // namespace

std::string_view name(Mpi mpi) noexcept { return row(mpi).name; }
std::string_view mpirun_words(Mpi mpi) noexcept { return row(mpi).mpirun; }

Mpi parse_mpi(std::string_view text) {
  std::vector<std::string_view> names;
  for (const auto& known : kRows) {
    if (known.name == text) return known.mpi;
    names.push_back(known.name);
  }
  throw Error(Errc::invalid_argument, unknown("MPI", text, names));
}

std::vector<MpiSeat> mpi_seats(const Variables& variables) {
  std::vector<MpiSeat> seats;
  for (const auto& known : kRows) {
    const auto rank = text(variables, known.rank), size = text(variables, known.size);
    if (!rank.empty() && !size.empty())
      seats.push_back({known.mpi, number(known.rank, rank), number(known.size, size)});
  }
  return seats;
}

std::optional<Mpi> loaded_mpi(std::span<const std::string> libraries) {
  std::optional<Mpi> found;
  for (const auto& path : libraries) {
    const auto file = path.substr(path.find_last_of('/') + 1);
    // libmpi.so.12 is the name that MPICH and its relatives agreed on; Open MPI's has other
    // numbers.
    const bool mpich = file.starts_with("libmpich.so") || file.starts_with("libmpi.so.12");
    const bool openmpi = !mpich && file.starts_with("libmpi.so");
    if (!mpich && !openmpi) continue;
    const auto mpi = mpich ? Mpi::mpich : Mpi::openmpi;
    if (found && *found != mpi)
      throw Error(
          Errc::invalid_argument,
          "this process has loaded both Open MPI and MPICH, which share their symbols; link "
          "it with one of them");
    found = mpi;
  }
  return found;
}

std::optional<Mpi> loaded_mpi() {
  std::vector<std::string> libraries;
  dl_iterate_phdr(remember, &libraries);
  return loaded_mpi(libraries);
}

Mpi choose_mpi(const MpiSigns& signs) {
  if (!signs.wanted.empty()) {
    const auto wanted = parse_mpi(signs.wanted);
    if (signs.loaded && *signs.loaded != wanted)
      throw Error(Errc::invalid_argument,
                  fmt::format("{} is asked for, but this program is linked with {}",
                              row(wanted).title, row(*signs.loaded).title));
    return wanted;
  }
  if (signs.loaded) return *signs.loaded;
  if (signs.seats.size() == 1) return signs.seats.front().mpi;
  if (signs.seats.size() > 1)
    throw Error(
        Errc::invalid_argument,
        fmt::format("both {} and {} are set, as if both Open MPI and MPICH had started this "
                    "process; SINEW_MPI=openmpi or mpich says which to use",
                    row(Mpi::openmpi).rank, row(Mpi::mpich).rank));
  throw Error(
      Errc::invalid_argument,
      fmt::format("the mpi transport needs ranks started by an MPI: `{} 4 PROGRAM` or `{} 4 "
                  "PROGRAM`",
                  mpirun_words(Mpi::openmpi), mpirun_words(Mpi::mpich)));
}

std::string mpi_plugin_file(Mpi mpi, const Variables& variables) {
  return find_plugin(plugin_name(mpi), plugin_folders(text(variables, "SINEW_PLUGINS"))).string();
}

std::unique_ptr<Transport> join_mpi(std::string_view wanted, const Variables& variables,
                                    Deadline deadline) {
  const auto seats = mpi_seats(variables);
  const auto mpi = choose_mpi(
      {wanted.empty() ? text(variables, "SINEW_MPI") : std::string(wanted), loaded_mpi(), seats});
  const auto file = mpi_plugin_file(mpi, variables);
  if (file.empty()) {
    std::vector<std::string> looked;
    for (const auto& folder : plugin_folders(text(variables, "SINEW_PLUGINS")))
      looked.push_back(folder.string());
    throw Error(Errc::unsupported,
                fmt::format("no {} in {}; it is built where {} is installed, and SINEW_PLUGINS "
                            "names other folders",
                            plugin_name(mpi), fmt::join(looked, ", "), row(mpi).package));
  }
  std::array<char, 1024> why{};
  auto code = Errc::system;
  std::unique_ptr<Transport> transport(
      load_plugin(file).join({deadline, describe}, code, why.data(), why.size()));
  if (!transport) throw Error(code, why.data());
  // An MPI that did not start us takes each of its processes for a job of one.
  const auto environment = read_environment(variables);
  if (!environment.launcher.empty() && environment.size != transport->size())
    throw Error(Errc::invalid_argument,
                fmt::format("{} ranks were started ({}), but {} sees {}: it does not know that "
                            "launcher; start them with `{} {}`",
                            environment.size, environment.launcher, row(mpi).title,
                            transport->size(), mpirun_words(mpi), environment.size));
  return transport;
}

}  // namespace sinew
