// Every scheme of the library. Each lives in the file of its name; registry.cpp lists them.
#pragma once

#include <memory>

#include <sinew/scheme.hpp>

namespace sinew {

std::unique_ptr<Scheme> make_dense(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_oktopk(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_topka(const SchemeSetup& setup);

}  // namespace sinew
