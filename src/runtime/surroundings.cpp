#include "runtime/surroundings.hpp"

#include <utility>

#include "model/defaults.hpp"
#include "model/network_file.hpp"
#include "transport/board.hpp"

namespace sinew {
namespace {

Medium medium_of(Transport& transport) {
  if (transport.board() != nullptr) return Medium::memory;
  return transport.name() == "mpi" ? Medium::mpi : Medium::sockets;
}

bool is_about(const Network& network, Medium medium) {
  const auto& measured = network.provenance.transport;
  if (medium == Medium::memory) return network.board.has_value();
  return measured.empty() || measured == (medium == Medium::mpi ? "mpi" : "tcp");
}

}  // namespace

Surroundings surroundings_of(Transport& transport, const Options& options) {
  const auto medium = medium_of(transport);
  Surroundings around{.network = default_network(medium), .cores = transport.cores()};
  if (!options.model.empty()) {
    auto given = parse_network(options.model, "the model");
    if (!given.topology.levels.empty()) given.corrections.clear();
    given.topology = {};
    given.noise = {};
    given.stragglers = {};
    given.cores.switch_ps = around.network.cores.switch_ps;
    // Older files say nothing of reading others' memory, which is not for nothing.
    if (given.board && given.board->pull.is_free() && around.network.board)
      given.board->pull = around.network.board->pull;
    if (is_about(given, medium)) around.network = std::move(given);
  }
  if (const Board* board = transport.board(); board != nullptr && around.network.board)
    around.network.board->slot_bytes = static_cast<double>(board->slot_bytes());
  around.network.slice_bytes = static_cast<double>(transport.slice_bytes());
  const auto link = transport.between_nodes();
  around.crossing_ps = link.message_ns * 1e3;
  around.crossing_byte_ps = link.byte_ns * 1e3;
  return around;
}

}  // namespace sinew
