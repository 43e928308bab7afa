// MPI begins and ends once a process, so this is the one thing here that exists once a process:
// who started it, which communicators are open, and which are on their way out.
#pragma once

#include <memory>
#include <mutex>
#include <vector>

namespace sinew::mpi {

/// Something that must be closed while MPI still works.
class Open {
 public:
  virtual ~Open() = default;
  virtual void close() noexcept = 0;
  /// Whether it failed, so that its ranks may not be waited for for long.
  [[nodiscard]] virtual bool failed() const noexcept = 0;
};

/// A communicator that its owner has left, but that others may still use.
class Leaving {
 public:
  virtual ~Leaving() = default;
  /// True when nobody uses it any more and it has been freed.
  virtual bool poll() noexcept = 0;
};

class Process {
 public:
  static Process& get();

  /// Starts MPI unless the program has. Who starts it ends it, at exit. Throws Error.
  void start();
  /// Whether MPI can still be called.
  [[nodiscard]] static bool is_alive() noexcept;

  void add(Open& open);
  void remove(Open& open) noexcept;
  /// Frees what nobody uses any more; true when nothing is left. Called where communicators are
  /// made, so that those before them make room.
  bool poll_leaving() noexcept;
  void add(std::unique_ptr<Leaving> leaving) noexcept;

 private:
  static void check_thread();
  void watch_end();
  void close_all() noexcept;
  bool everyone_came() noexcept;
  static void leave_in_time(int status) noexcept;
  void end(int status) noexcept;

  std::mutex mutex_;  // communicators may belong to different threads
  bool started_here_ = false;
  bool watched_ = false;
  bool failed_ = false;  // some communicator did
  std::vector<Open*> open_;
  std::vector<std::unique_ptr<Leaving>> leaving_;
};

}  // namespace sinew::mpi
