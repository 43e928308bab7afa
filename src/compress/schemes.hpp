// Every scheme of the library. Each lives in the file of its name; registry.cpp lists them.
#pragma once

#include <memory>

#include <sinew/scheme.hpp>

namespace sinew {

std::unique_ptr<Scheme> make_bf16(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_dense(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_dgc(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_fp16(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_gaussiank(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_gtopk(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_int8(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_oktopk(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_onebit(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_powersgd(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_qsgd(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_randomk(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_threshold(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_topka(const SchemeSetup& setup);
std::unique_ptr<Scheme> make_topkdsa(const SchemeSetup& setup);

/// Sparse items have 32-bit indices; throws Error{unsupported} where they do not reach.
void check_counts_in_32_bits(std::string_view scheme, std::size_t elements);

}  // namespace sinew
