// The registry: every algorithm there is, as pure functions from a place to a schedule.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include <sinew/schedule.hpp>
#include <sinew/types.hpp>

namespace sinew {

/// Everything a generator may look at. Equal on all ranks but for `rank`.
struct Place {
  int rank = 0;
  int size = 1;
  int root = 0;
  std::uint32_t segments = 1;    // pipeline depth, for algorithms that pipeline
  std::span<const int> node_of;  // node_of[r]: memory domain of rank r; empty: one domain
};

/// What the medium between the ranks can do.
struct Capabilities {
  bool board = false;           // ranks of a node share memory
  bool shared_buffers = false;  // the caller's buffers live in that memory
  bool across_nodes = false;    // ranks of all nodes do: nodes are near and far memory of one host
  bool pull = false;            // ranks may read each other's private memory
};
/// Of ranks on one host, with the caller's buffers in shared memory.
inline constexpr Capabilities kOneHost{.board = true, .shared_buffers = true, .pull = true};

/// What an algorithm is good for, beyond being correct. The tests hold each against the verifier.
struct Traits {
  bool pipelines = false;   // `segments` has an effect
  bool rank_order = false;  // combines in rank order (or not at all), so it fits `deterministic`
  bool in_place = true;     // works with output over input; otherwise the input is staged
  bool ragged = true;       // works when parts differ in size and a rank knows only its own
};

struct Algorithm {
  Collective collective{};
  std::string_view name;
  std::string_view summary;  // one line for `sinew list`
  Schedule (*make)(const Place&) = nullptr;
  bool (*fits)(const Place&, Capabilities) = nullptr;
  Traits traits{};
};

/// The only list of algorithms there is.
std::span<const Algorithm> algorithms() noexcept;
/// Throws Error{invalid_argument} that suggests the nearest name.
const Algorithm& find_algorithm(Collective collective, std::string_view name);
/// Every rank's schedule. Throws Error{unsupported} when the algorithm does not fit the place.
World make_world(const Algorithm& algorithm, int size, int root = 0, std::uint32_t segments = 1,
                 std::span<const int> node_of = {}, Capabilities capabilities = kOneHost);

}  // namespace sinew
