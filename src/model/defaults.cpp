#include "model/defaults.hpp"

namespace sinew {
namespace {

constexpr double kNs = 1e3, kUs = 1e6;  // in picoseconds

constexpr double kAnyLength = 1e18;

// Combining and copying are the processor's, whatever carries messages: the first level of cache,
// and then the others.
void add_processor(Network& network) {
  if (network.reduce.is_free()) network.reduce = Curve({{23e3, 5 * kNs, 14}, {kAnyLength, 0, 20}});
  network.copy = Curve({{3e3, 3 * kNs, 8}, {kAnyLength, 25 * kNs, 18}});
  // Of ranks that outnumber the cores, by 8-byte collectives of 4 and 8 ranks on two.
  network.cores.switch_ps = 0.85 * kUs;
  network.eager_bytes = -1;
  network.provenance.made_by = "sinew";
}

Network memory() {
  Network network;
  network.name = "shared memory";
  network.one_way = Curve({{64, 90 * kNs, 1}, {1e3, 100 * kNs, 25}, {kAnyLength, 50 * kNs, 110}});
  network.exchange = Curve({{64, 90 * kNs, 1}, {1e3, 100 * kNs, 30}, {kAnyLength, 50 * kNs, 130}});
  network.reduce = Curve(5 * kNs, 2);  // while it is read, which is paid for already
  network.call_ps = 50 * kNs;
  network.board = BoardCosts{.wait_ps = 40 * kNs};
  // A few lines of cache go from core to core one by one, many in a stream.
  network.board->publish = network.board->gather =
      Curve({{1500, 0, 7}, {12e3, 0, 35}, {24e3, 300 * kNs, 14}, {kAnyLength, 900 * kNs, 14}});
  // A system call, and a copy that the kernel makes page by page.
  network.board->pull = Curve({{12e3, 700 * kNs, 75}, {kAnyLength, 900 * kNs, 100}});
  return network;
}

// Loopback, where the kernel's copies are what bytes cost; a network adds to the beginnings.
Network sockets() {
  Network network;
  network.name = "sockets";
  network.one_way = Curve({{2900, 3.2 * kUs, 126},
                           {57e3, 3.5 * kUs, 48},
                           {320e3, 4 * kUs, 71},
                           {kAnyLength, 1.9 * kUs, 84}});
  network.exchange = Curve({{2900, 4.4 * kUs, 203},
                            {57e3, 4.8 * kUs, 54},
                            {160e3, 5.9 * kUs, 109},
                            {kAnyLength, 2.6 * kUs, 126}});
  network.call_ps = 0.2 * kUs;
  return network;
}

// As on one host; a fabric's figures are not ours to know.
Network mpi() {
  Network network;
  network.name = "MPI";
  network.one_way = Curve(0.4 * kUs, 100);
  network.exchange = Curve(0.45 * kUs, 120);
  return network;
}

}  // namespace

Network default_network(Medium medium) {
  auto network = medium == Medium::memory ? memory() : medium == Medium::mpi ? mpi() : sockets();
  add_processor(network);
  return network;
}

}  // namespace sinew
