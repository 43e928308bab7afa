// A plan: one rank's schedule lowered to bytes, with everything it needs to run again and again
// without allocating.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include <sinew/schedule.hpp>
#include <sinew/transport.hpp>
#include "kernel/reduce.hpp"
#include "runtime/chunk_map.hpp"
#include "runtime/store_policy.hpp"

namespace sinew {

/// What a plan's steps are made from.
struct Binding {
  ChunkMap input, output;
  DType dtype{};
  ReduceOp op{};
  int divisor = 1;               // for avg: how many ranks
  std::size_t slot_bytes = 0;    // of the board; 0: the schedule uses none
  std::size_t slice_bytes = 0;   // of a chunk that messages carry in one pass; 0: all of it
  bool staged = false;           // read a private copy of the input
  bool has_output = true;        // false on ranks that only contribute
  bool over_input = false;       // the output is the input, byte for byte
  bool crowded = false;          // there are more ranks than cores
  int neighbours = 1;            // ranks of this node that receive as much, itself included
  const World* world = nullptr;  // everybody's schedule, to bind one by reference
  bool on_board = false;         // some rank uses the board, even if this one does not
  bool posts_all = false;        // others may wait for any round, not only for those that publish
  bool divides_folds = true;  // avg: a fold over everybody may divide; what it made is only copied
  bool tells_places = false;  // by reference: where chunks lie is known to their owners alone
};

struct BoundStep {
  Op op{};
  Buf src_buf{}, dst_buf{};
  bool streaming = false;  // write past the caches
  bool echoes = false;     // gather_reduce: write the result to `board` of my slot as well,
  bool echoed = false;     // publish: an earlier step has done so
  std::uint16_t channel = 0;
  std::int32_t peer = -1;
  std::int32_t group = -1;                       // index into Plan::groups
  std::uint32_t waits_begin = 0, waits_end = 0;  // in Plan::waits: whom a board step waits for
  std::uint64_t src = 0, dst = 0;                // byte offsets
  std::uint64_t board = 0;                       // byte offset in a slot
  std::uint64_t echo = 0;                        // the same, of what is echoed
  bool from_output = false;                      // by reference: which buffer of the peer is read,
  std::uint64_t remote = 0;                      // and where in it, or which chunk if that is told
  std::uint64_t bytes = 0;                       // over all passes
};

/// Steps [begin, end) of one round of one channel.
struct BoundRound {
  const BoundStep* only = nullptr;  // its step, where it has but one
  std::uint32_t begin = 0, end = 0;
  std::uint32_t number = 0;
  bool post = false;       // others wait for what this round did
  std::uint32_t then = 0;  // the next round with steps: all before it are behind us
};

class Plan {
 public:
  /// Throws Error{unsupported} when a chunk range cannot be lowered.
  Plan(Schedule schedule, Binding binding);

  [[nodiscard]] const Schedule& schedule() const noexcept { return schedule_; }
  [[nodiscard]] const Binding& binding() const noexcept { return binding_; }
  /// Bytes out of this rank and into it, over all passes.
  [[nodiscard]] std::uint64_t bytes_sent() const noexcept;
  [[nodiscard]] std::uint64_t bytes_received() const noexcept;

  // Read by the executor.
  std::vector<BoundStep> steps;
  std::vector<std::vector<BoundRound>> streams;  // a channel each
  std::vector<std::vector<int>> groups;          // the last is everybody
  std::vector<int> waits;                        // each rank, then each group without this rank
  Transfer& transfer_of(const BoundStep& step) noexcept {
    return transfers[static_cast<std::size_t>(&step - steps.data())];
  }
  Reducer reducer;
  std::uint32_t passes = 1;
  std::uint64_t width = ~std::uint64_t{0};  // bytes of each chunk in one pass
  std::uint64_t window_bytes = 0;           // of the slots, for all board chunks
  bool uses_board = false;
  bool posts_start = false;              // say at the start of a pass that we have come,
  std::uint32_t first_round = 0;         // and up to this round have nothing to do
  bool tiny = false;                     // everything published fits the flag line
  bool starts_ahead = false;             // publishes a little, then waits for everybody: the end
  bool by_reference = false;             // others read where the data lies, not a slot
  bool divide_folds = false;             // avg: divide where a fold completes the sum,
  bool divide_output = false;            // or else all of the output at the end
  std::unique_ptr<std::byte[]> scratch;  // staged input, then the schedule's scratch
  std::uint64_t staged_bytes = 0;
  std::unique_ptr<std::byte[]> pulled;  // by reference: a block of each other rank, to be reduced
  std::uint64_t pulled_block = 0;       // bytes of one,
  std::uint64_t pulled_stride = 0;      // and from one to the next
  bool has_wide_rounds = false;  // of several steps, so that it matters which of them are done

  bool measures_stores = false;  // long enough that how slots are written matters

  // Written by the executor; one run at a time.
  StorePolicy stores;
  std::vector<Transfer> transfers;
  std::vector<std::uint8_t> done;
  std::vector<const std::byte*> inputs;
  std::vector<std::byte*> outputs;
  static constexpr std::uint64_t kBlockBytes = std::uint64_t{64} << 10;  // of a fold to everyone

 private:
  void lower();
  void cut_passes();
  [[nodiscard]] bool publishes_once_and_folds() const;
  void plan_posts(std::vector<BoundRound>& rounds);
  void fuse_echoes(std::vector<BoundRound>& rounds);
  void find_remote(const Step& step, BoundStep& bound) const;
  void make_room_to_pull();
  void add_step(const Step& step);
  void add_piece(const Step& step, std::uint32_t chunk, std::uint32_t count);
  void list_waits();
  void find_waits(BoundStep& step) const;
  [[nodiscard]] bool writes_past_caches(const Step& step, const BoundStep& bound) const;
  [[nodiscard]] bool reduces_anything() const;
  [[nodiscard]] const ChunkMap& map(Buf buf) const;

  Schedule schedule_;
  Binding binding_;
  ChunkMap scratch_map_;
  std::uint64_t scratch_capacity_ = 0;
};

}  // namespace sinew
