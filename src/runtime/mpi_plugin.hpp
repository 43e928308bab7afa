// Which MPI to speak to, and joining through its plugin. There is a plugin for each ABI, because a
// program can use only the MPI it was started by.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/transport.hpp>
#include "runtime/environment.hpp"

namespace sinew {

enum class Mpi : std::uint8_t { openmpi, mpich };
std::string_view name(Mpi mpi) noexcept;
/// "openmpi" or "mpich"; throws Error{invalid_argument} with the nearest.
Mpi parse_mpi(std::string_view text);
/// How ranks are started by it: "mpirun.openmpi --allow-run-as-root --oversubscribe -n".
std::string_view mpirun_words(Mpi mpi) noexcept;

/// The place a process was given by a launcher, as its environment tells it.
struct MpiSeat {
  Mpi mpi{};  // whose variables these are; srun sets those of MPICH for others, too
  int rank = 0;
  int size = 1;
};
/// None when this process is not one of an MPI job; two when one job was started inside another.
std::vector<MpiSeat> mpi_seats(const Variables& variables);

/// What a choice is made from.
struct MpiSigns {
  std::string wanted;          // by the user: a name, or ""
  std::optional<Mpi> loaded;   // the MPI that this process is linked with or has loaded
  std::vector<MpiSeat> seats;  // those that started it
};
/// The first sign that there is. Throws Error{invalid_argument} that says what to do when there is
/// none, or when what is wanted, or started us, is not one.
Mpi choose_mpi(const MpiSigns& signs);

/// The MPI whose library is mapped into this process. Throws when it is both.
std::optional<Mpi> loaded_mpi();
/// Of a list of libraries' files.
std::optional<Mpi> loaded_mpi(std::span<const std::string> libraries);

/// The path of a plugin, or "" when it is not installed.
std::string mpi_plugin_file(Mpi mpi, const Variables& variables);

/// This rank's end of a group of all ranks that mpirun started. `wanted`: which MPI, or "" to find
/// out (SINEW_MPI, then what is loaded, then who started us).
std::unique_ptr<Transport> join_mpi(std::string_view wanted, const Variables& variables,
                                    Deadline deadline);

}  // namespace sinew
