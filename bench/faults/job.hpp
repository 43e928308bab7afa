// What each system does in bench/faults: the same calls, told apart by name. A rank writes what
// happens to it into a file, line by line, since a rank that is killed can tell nobody else.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

namespace sinew::faults {

/// A communication system, joined. Calls are in place and return when done; errors are thrown.
class Job {
 public:
  Job() = default;
  Job(const Job&) = delete;
  Job& operator=(const Job&) = delete;
  virtual ~Job() = default;

  [[nodiscard]] virtual int rank() const = 0;
  [[nodiscard]] virtual int size() const = 0;
  enum class Op : std::uint8_t { sum, max };
  /// `tag` tells calls of equal shape apart, where the system has such a thing.
  virtual void allreduce(float* data, std::size_t elements, Op op, unsigned tag) = 0;
  virtual void allreduce(std::int32_t* data, std::size_t elements) = 0;
  virtual void broadcast(float* data, std::size_t elements, int root) = 0;
};

/// What the command line of every job says: CASE ELEMENTS DEADLINE_MS, and where to write.
struct Orders {
  std::string what;
  std::size_t elements = 0;
  int deadline_ms = 0;  // for systems that have one
  std::string folder;   // environment FAULTS_FOLDER

  static Orders read(int argc, char** argv);
};

/// Plays the case to its end, which for "loop" does not come. Returns the exit status; never
/// throws.
int play(Job& job, const Orders& orders);
/// For what fails before there is a job.
int could_not_join(const Orders& orders, const std::string& why);

}  // namespace sinew::faults
