// A user's program: only what the installed package offers.
#include <cstdio>

#include <sinew/sinew.hpp>

int main() {
  const sinew::World world{.collective = sinew::parse_collective("allreduce"), .ranks = {}};
  const auto name = sinew::name(world.collective);
  const auto json = sinew::to_json(world);
  std::printf("%.*s in %zu bytes of JSON\n", static_cast<int>(name.size()), name.data(),
              json.size());
  return name == "allreduce" && !json.empty() ? 0 : 1;
}
