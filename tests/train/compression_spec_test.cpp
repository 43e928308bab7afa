// How people name compression in training, and what is said to them when it cannot be.
#include "train/compression_spec.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>

namespace sinew {
namespace {

using Stages = std::vector<CompressionSpec::Stage>;

TEST(CompressionSpec, reads_a_scheme_with_and_without_a_density) {
  EXPECT_TRUE(parse_compression("dense").is_dense());
  EXPECT_EQ(parse_compression("bf16").stages, Stages{});
  EXPECT_EQ(parse_compression("oktopk").stages, (Stages{{0, 0.01}}));
  EXPECT_EQ(parse_compression("oktopk:0.02").stages, (Stages{{0, 0.02}}));
  EXPECT_EQ(parse_compression("oktopk:0.25@0,0.1@100,0.02@500").stages,
            (Stages{{0, 0.25}, {100, 0.1}, {500, 0.02}}));
}

TEST(CompressionSpec, knows_the_density_of_every_step) {
  const auto spec = parse_compression("oktopk:0.25@0,0.1@100,0.02@500");
  for (const auto& [step, density] :
       {std::pair{0U, 0.25}, {99U, 0.25}, {100U, 0.1}, {499U, 0.1}, {500U, 0.02}, {9999U, 0.02}})
    EXPECT_EQ(spec.options(spec.stage_at(step)).density, density) << step;
}

TEST(CompressionSpec, refuses_what_cannot_be_and_says_why) {
  for (const auto& [text, why] : {std::pair{"okotpk", "did you mean 'oktopk'?"},
                                  {"oktopk:2", "not in (0, 1]"},
                                  {"oktopk:0", "not in (0, 1]"},
                                  {"oktopk:x", "is no number"},
                                  {"oktopk:", "is no number"},
                                  {"oktopk:0.1@5", "must be that of step 0"},
                                  {"oktopk:0.1@0,0.2@0", "do not ascend"},
                                  {"bf16:0.1", "has no density"}})
    try {
      parse_compression(text);
      ADD_FAILURE() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument);
      EXPECT_NE(std::string(error.what()).find(why), std::string::npos) << error.what();
    }
}

}  // namespace
}  // namespace sinew
