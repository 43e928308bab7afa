// mpiP's report that someone has meddled with.
#include "imports/readers.hpp"
#include "imports_property.hpp"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t bytes) {
  imported(&sinew::imports::read_mpip, data, bytes);
  return 0;
}
