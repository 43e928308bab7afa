// What users hold: a group of ranks and the operations between them.
#pragma once

#include <chrono>
#include <cstring>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <sinew/algorithms.hpp>
#include <sinew/error.hpp>
#include <sinew/trace.hpp>
#include <sinew/transport.hpp>
#include <sinew/types.hpp>

namespace sinew {

struct Options {
  std::chrono::nanoseconds timeout = std::chrono::minutes(5);  // of every wait
  bool deterministic = false;     // only algorithms that combine in rank order
  std::string algorithm{};        // for every collective that has it; "": the one predicted fastest
  std::uint64_t chunk_bytes = 0;  // pipelining; 0: choose
  /// What algorithms are chosen by, as text (docs/format-net.md), equal on all ranks; "": figures
  /// that come with the library. Counts for communicators over what it was measured with. connect()
  /// reads the file that SINEW_MODEL names.
  std::string model{};
  /// How many calls of each kind (collective, type, operation, root, counts) try several
  /// algorithms by turns; after those, all ranks tell each other what they measured and keep to the
  /// fastest. 0: none. 2 or more: that many, with the two that are predicted fastest; which is kept
  /// depends on timing, and on it the order of sums. -1: as SINEW_TRIAL says, of connect(), and
  /// without it 36 calls wherever ranks share memory and no bit of a result depends on the winner:
  /// the fastest by messages, through slots and by reading other ranks' memory, of 4 KiB and more,
  /// and again after some thousands of calls. Equal on all ranks. Calls that name their algorithm
  /// take no part, nor does anything that is `deterministic`, nor parts of sizes that only their
  /// owner knows, unless the call says about how long it is (`likely_bytes`).
  int trial_calls = -1;
  /// Of connect(): "auto", "shm", "tcp", "mpi"; "": as SINEW_TRANSPORT says.
  std::string transport{};
  bool tls = false;  // of connect(): TLS over sockets, as with SINEW_TLS=1
  /// What the user should know although nothing is lost: strangers who knock at the job's port; who
  /// is late, when a wait has taken a tenth of its timeout, and again each time it has taken twice
  /// as long. Rarely called, perhaps from another thread; empty: nobody is told.
  std::function<void(std::string_view)> warn{};
  /// Sees every step and operation, also of communicators that come from this one; null: nobody.
  /// connect() makes one that writes a trace when SINEW_TRACE names a folder.
  std::shared_ptr<Observer> observer{};
};

/// What may differ from call to call.
struct CallOptions {
  std::string_view algorithm{};         // "": as the communicator's options say
  std::uint64_t tag = 0;                // tells calls of equal shape apart in error checks
  std::chrono::nanoseconds timeout{0};  // 0: as the communicator's options say
  /// alltoallv, where ranks know no counts but their own: about how many bytes a rank sends in all,
  /// the same on all ranks. It decides what is chosen, and nothing else; 0: the choice suits short
  /// calls.
  std::uint64_t likely_bytes = 0;
};

/// One collective call, untyped. Ranks must agree on everything but the pointers.
///
/// `count` is in elements: of the whole vector for allreduce, reduce and broadcast; of one rank's
/// part for the others. Calls with parts of different sizes name them in `counts` (one entry for
/// each rank): allgather and reduce_scatter on all ranks, scatter and gather on the root only
/// (others give their own `count`), alltoall as what is sent to each rank, with `recv_counts` as
/// what comes from each. In place: `input` is where the data would lie in `output`, or the other
/// way round (the smaller buffer inside the larger, at this rank's part).
struct Call {
  Collective collective{};
  DType dtype = DType::f32;
  ReduceOp op = ReduceOp::sum;
  int root = 0;
  const void* input = nullptr;
  void* output = nullptr;
  std::size_t count = 0;
  std::span<const std::size_t> counts{};
  std::span<const std::size_t> recv_counts{};
  CallOptions options{};
};

/// A collective or message under way. Cheap to copy; waiting twice is fine.
struct Request {
  enum class Kind : std::uint8_t { none, collective, message };
  Kind kind = Kind::none;
  std::uint64_t id = 0;
};

/// An algorithm that could serve a call, with what it is predicted to take; the fastest first.
struct Candidate {
  std::string_view algorithm;
  double predicted_us = 0;
  std::string_view refused;  // why it does not fit, or ""
  double measured_us = 0;    // in the last trial that is over, by the slowest rank; 0: in none
  bool won = false;          // that trial
};

/// Bytes that one call moved out of this rank and into it. What is handed over in shared memory is
/// sent once, when it is put there, and received by each rank that reads it.
struct Moved {
  std::uint64_t sent = 0;
  std::uint64_t received = 0;
};

class Communicator;

/// Memory all ranks of the node can address. Collectives on it copy less, or nothing. Must not
/// outlive its communicator; others may write to it while a collective on it is under way.
class SharedBuffer {
 public:
  SharedBuffer() = default;
  SharedBuffer(SharedBuffer&& other) noexcept;
  SharedBuffer& operator=(SharedBuffer&& other) noexcept;
  ~SharedBuffer();
  template <Element T>
  [[nodiscard]] std::span<T> as() const noexcept {
    return {reinterpret_cast<T*>(begin_), bytes_ / sizeof(T)};
  }

 private:
  friend class Communicator;
  Arena* arena_ = nullptr;
  std::byte* begin_ = nullptr;
  std::size_t bytes_ = 0;
};

/// Used by one thread at a time. A failed operation poisons it on every rank: each later call
/// throws the same error.
class Communicator {
 public:
  explicit Communicator(std::unique_ptr<Transport> transport, Options options = {});
  Communicator(Communicator&&) noexcept;
  Communicator& operator=(Communicator&&) noexcept;
  ~Communicator();

  [[nodiscard]] int rank() const noexcept;
  [[nodiscard]] int size() const noexcept;
  [[nodiscard]] std::string_view transport() const noexcept;

  /// What the last blocking collective moved. Counted from its schedule when asked, so that calls
  /// pay nothing for it.
  [[nodiscard]] Moved last_moved() const noexcept;

  /// Any collective, blocking and not. Runs on one communicator advance in the order they were
  /// started; dup() gives one that overlaps.
  void run(const Call& call);
  Request start(const Call& call);
  bool test(Request request);
  void wait(Request request);
  void wait_all(std::span<const Request> requests);

  template <Element T>
  void allreduce(std::span<T> data, ReduceOp op = ReduceOp::sum, const CallOptions& options = {}) {
    run({.collective = Collective::allreduce,
         .dtype = DTypeOf<T>::value,
         .op = op,
         .input = data.data(),
         .output = data.data(),
         .count = data.size(),
         .options = options});
  }
  template <Element T>
  void allreduce(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::sum,
                 const CallOptions& options = {}) {
    check_room(out.size(), in.size());
    run({.collective = Collective::allreduce,
         .dtype = DTypeOf<T>::value,
         .op = op,
         .input = in.data(),
         .output = out.data(),
         .count = in.size(),
         .options = options});
  }
  /// `out` matters on the root only.
  template <Element T>
  void reduce(std::span<const T> in, std::span<T> out, int root, ReduceOp op = ReduceOp::sum,
              const CallOptions& options = {}) {
    if (rank() == root) check_room(out.size(), in.size());
    run({.collective = Collective::reduce,
         .dtype = DTypeOf<T>::value,
         .op = op,
         .root = root,
         .input = in.data(),
         .output = out.data(),
         .count = in.size(),
         .options = options});
  }
  template <Element T>
  void broadcast(std::span<T> data, int root, const CallOptions& options = {}) {
    run({.collective = Collective::broadcast,
         .dtype = DTypeOf<T>::value,
         .root = root,
         .input = data.data(),
         .output = data.data(),
         .count = data.size(),
         .options = options});
  }
  template <Element T>
  void allgather(std::span<const T> in, std::span<T> out, const CallOptions& options = {}) {
    check_room(out.size(), in.size() * parts());
    run({.collective = Collective::allgather,
         .dtype = DTypeOf<T>::value,
         .input = in.data(),
         .output = out.data(),
         .count = in.size(),
         .options = options});
  }
  template <Element T>
  void allgatherv(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                  const CallOptions& options = {}) {
    check_parts(counts, out.size(), in.size());
    run({.collective = Collective::allgather,
         .dtype = DTypeOf<T>::value,
         .input = in.data(),
         .output = out.data(),
         .count = in.size(),
         .counts = counts,
         .options = options});
  }
  template <Element T>
  void reduce_scatter(std::span<const T> in, std::span<T> out, ReduceOp op = ReduceOp::sum,
                      const CallOptions& options = {}) {
    check_room(in.size(), out.size() * parts());
    run({.collective = Collective::reduce_scatter,
         .dtype = DTypeOf<T>::value,
         .op = op,
         .input = in.data(),
         .output = out.data(),
         .count = out.size(),
         .options = options});
  }
  template <Element T>
  void reduce_scatterv(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
                       ReduceOp op = ReduceOp::sum, const CallOptions& options = {}) {
    check_parts(counts, in.size(), out.size());
    run({.collective = Collective::reduce_scatter,
         .dtype = DTypeOf<T>::value,
         .op = op,
         .input = in.data(),
         .output = out.data(),
         .count = out.size(),
         .counts = counts,
         .options = options});
  }
  template <Element T>
  void alltoall(std::span<const T> in, std::span<T> out, const CallOptions& options = {}) {
    check_room(out.size(), in.size());
    run({.collective = Collective::alltoall,
         .dtype = DTypeOf<T>::value,
         .input = in.data(),
         .output = out.data(),
         .count = in.size() / parts(),
         .options = options});
  }
  template <Element T>
  void alltoallv(std::span<const T> in, std::span<const std::size_t> counts, std::span<T> out,
                 std::span<const std::size_t> recv_counts, const CallOptions& options = {}) {
    check_parts(counts, in.size(), 0);
    check_parts(recv_counts, out.size(), 0);
    run({.collective = Collective::alltoall,
         .dtype = DTypeOf<T>::value,
         .input = in.data(),
         .output = out.data(),
         .counts = counts,
         .recv_counts = recv_counts,
         .options = options});
  }
  /// `in` matters on the root only.
  template <Element T>
  void scatter(std::span<const T> in, std::span<T> out, int root, const CallOptions& options = {}) {
    if (rank() == root) check_room(in.size(), out.size() * parts());
    run({.collective = Collective::scatter,
         .dtype = DTypeOf<T>::value,
         .root = root,
         .input = in.data(),
         .output = out.data(),
         .count = out.size(),
         .options = options});
  }
  /// `counts` matters on the root only.
  template <Element T>
  void scatterv(std::span<const T> in, std::span<const std::size_t> counts, std::span<T> out,
                int root, const CallOptions& options = {}) {
    if (rank() == root) check_parts(counts, in.size(), out.size());
    run({.collective = Collective::scatter,
         .dtype = DTypeOf<T>::value,
         .root = root,
         .input = in.data(),
         .output = out.data(),
         .count = out.size(),
         .counts = rank() == root ? counts : kSomeCounts,
         .options = options});
  }
  template <Element T>
  void gather(std::span<const T> in, std::span<T> out, int root, const CallOptions& options = {}) {
    if (rank() == root) check_room(out.size(), in.size() * parts());
    run({.collective = Collective::gather,
         .dtype = DTypeOf<T>::value,
         .root = root,
         .input = in.data(),
         .output = out.data(),
         .count = in.size(),
         .options = options});
  }
  template <Element T>
  void gatherv(std::span<const T> in, std::span<T> out, std::span<const std::size_t> counts,
               int root, const CallOptions& options = {}) {
    if (rank() == root) check_parts(counts, out.size(), in.size());
    run({.collective = Collective::gather,
         .dtype = DTypeOf<T>::value,
         .root = root,
         .input = in.data(),
         .output = out.data(),
         .count = in.size(),
         .counts = rank() == root ? counts : kSomeCounts,
         .options = options});
  }
  void barrier(const CallOptions& options = {}) {
    run({.collective = Collective::barrier, .options = options});
  }

  /// Messages between two ranks, in order for each (source, destination, tag). A receive for more
  /// or fewer bytes than were sent is an error on the receiver.
  Request isend(std::span<const std::byte> data, int to, std::uint32_t tag = 0);
  Request irecv(std::span<std::byte> data, int from, std::uint32_t tag = 0);
  /// From whichever rank's message with this tag is there first. `source` is borrowed as `data` is
  /// and says, when the message has come, whose it was.
  Request irecv_any(std::span<std::byte> data, int& source, std::uint32_t tag = 0);
  template <Element T>
  Request isend(std::span<const T> data, int to, std::uint32_t tag = 0) {
    return isend(std::as_bytes(data), to, tag);
  }
  template <Element T>
  Request irecv(std::span<T> data, int from, std::uint32_t tag = 0) {
    return irecv(std::as_writable_bytes(data), from, tag);
  }
  template <Element T>
  void send(std::span<const T> data, int to, std::uint32_t tag = 0) {
    wait(isend(data, to, tag));
  }
  template <Element T>
  void recv(std::span<T> data, int from, std::uint32_t tag = 0) {
    wait(irecv(data, from, tag));
  }
  template <Element T>
  void sendrecv(std::span<const T> out, int to, std::span<T> in, int from, std::uint32_t tag = 0) {
    const Request both[] = {irecv(in, from, tag), isend(out, to, tag)};
    wait_all(both);
  }

  /// A communicator of those who gave the same colour, ranked by key (then by rank here).
  Communicator split(int color, int key = 0);
  Communicator dup() { return split(0, rank()); }

  /// After a failure: a communicator of those who are left, ranked in the same order, for all of
  /// them to call. Whoever died or left is not waited for; whoever is silent is, for `patience`
  /// (0: the timeout of the options, or 2 s if a timeout is what broke this one), and then given
  /// up. Throws Error{expelled} on a rank that was given up, and Error{minority} where too few are
  /// left (docs/failures.md). This one stays of no use.
  Communicator shrink(std::chrono::nanoseconds patience = std::chrono::nanoseconds{0});
  /// How often the group has been shrunk.
  [[nodiscard]] std::uint32_t epoch() const noexcept;

  /// Throws Error{unsupported} where ranks share no memory.
  SharedBuffer alloc_shared(std::size_t bytes);

  /// Adds an algorithm of the user's, for this communicator: verified first (a fault throws
  /// Error{not_verified} with the counterexample), then chosen by its name.
  void install(const World& world);

  /// Every algorithm for a call, cheapest first, those that do not fit last.
  [[nodiscard]] std::vector<Candidate> explain(const Call& call) const;

  /// One observer at a time; null: none. Called at the end of every step and operation.
  void observe(Observer* observer) noexcept;

 private:
  // Marks a call as one with counts where only the root knows them.
  static const std::span<const std::size_t> kSomeCounts;
  [[nodiscard]] std::size_t parts() const noexcept { return static_cast<std::size_t>(size()); }
  void check_room(std::size_t elements, std::size_t needed) const;
  void check_parts(std::span<const std::size_t> counts, std::size_t elements,
                   std::size_t own) const;

  struct State;
  explicit Communicator(std::unique_ptr<State> state) noexcept;
  std::unique_ptr<State> state_;
};

/// Joins the group that the environment describes: SINEW_*, as set by `sinew launch`, or what
/// mpirun, srun or torchrun set; docs/environment.md lists it. Alone, a group of one.
Communicator connect(const Options& options = {});

/// Runs `body` as `size` ranks in threads of this process, each with its communicator, and rethrows
/// the first error.
void run_local(int size, const std::function<void(Communicator&)>& body,
               const Options& options = {});

}  // namespace sinew
