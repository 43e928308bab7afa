// A plugin of a version that never was: loading it must be refused.
#include "runtime/plugin.hpp"

extern "C" const sinew::TransportPlugin* sinew_transport_plugin() {
  static constexpr sinew::TransportPlugin kPlugin{0, "0.0.0", nullptr};
  return &kPlugin;
}
