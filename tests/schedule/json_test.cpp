// Schedule documents: what is written is read back equal, and nothing malformed gets through.
#include <gtest/gtest.h>
#include <sinew/error.hpp>

#include <nlohmann/json.hpp>

#include "support/worlds.hpp"

namespace sinew {
namespace {

using Json = nlohmann::ordered_json;

World ring(int size) { return make_world(find_algorithm(Collective::allreduce, "ring"), size); }

std::string refusal(const std::string& text) {
  try {
    parse_world(text);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Errc::invalid_argument);
    return error.what();
  }
  return "";
}

TEST(Json, every_registered_schedule_survives_the_round_trip) {
  for (const auto& algorithm : algorithms())
    for (const int size : {1, 2, 5, 8})
      for (const auto& setting : settings(algorithm, size)) {
        const auto world = setting.world();
        EXPECT_EQ(parse_world(to_json(world)), world) << to_string(setting);
      }
}

TEST(Json, a_truncated_document_is_an_error_wherever_it_ends) {
  const auto text = to_json(make_world(find_algorithm(Collective::allreduce, "direct"), 2));
  for (std::size_t length = 0; length < text.size() - 1; ++length)
    ASSERT_NE(refusal(text.substr(0, length)), "") << length;
}

// Every value of the document in turn becomes something else.
void replace_each(const Json& document, const Json& value) {
  const auto flat = document.flatten();
  for (const auto& [path, old] : flat.items()) {
    Json spoiled = document;
    spoiled[Json::json_pointer(path)] = value;
    try {
      parse_world(spoiled.dump());  // may be fine: a name may be any text
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), Errc::invalid_argument) << path;
      EXPECT_STRNE(error.what(), "") << path;
    }
  }
}

TEST(Json, any_value_of_another_kind_is_an_error_or_harmless_and_never_a_crash) {
  const auto document = Json::parse(to_json(make_world(
      find_algorithm(Collective::allreduce, "two_level"), 4, 0, 1, std::vector{0, 0, 1, 1})));
  for (const Json& value : {Json(nullptr), Json(true), Json("text"), Json(-1), Json(4'000'000'000U),
                            Json(Json::array()), Json(Json::object())})
    replace_each(document, value);
}

TEST(Json, a_missing_field_is_named_with_its_rank_and_step) {
  auto document = Json::parse(to_json(ring(3)));
  document["ranks"][1]["steps"][2].erase("op");
  const auto why = refusal(document.dump());
  EXPECT_NE(why.find("rank 1"), std::string::npos) << why;
  EXPECT_NE(why.find("step 2"), std::string::npos) << why;
  EXPECT_NE(why.find("'op'"), std::string::npos) << why;
}

TEST(Json, a_mistyped_word_suggests_the_nearest) {
  auto document = Json::parse(to_json(ring(3)));
  document["ranks"][0]["steps"][1]["op"] = "sned";
  EXPECT_NE(refusal(document.dump()).find("did you mean 'send'"), std::string::npos);
  document = Json::parse(to_json(ring(3)));
  document["collective"] = "alreduce";
  EXPECT_NE(refusal(document.dump()).find("did you mean 'allreduce'"), std::string::npos);
}

TEST(Json, documents_of_another_kind_or_version_are_refused) {
  EXPECT_NE(refusal("{}").find("not a sinew-schedule document"), std::string::npos);
  auto document = Json::parse(to_json(ring(2)));
  document["version"] = 2;
  EXPECT_NE(refusal(document.dump()).find("version 1"), std::string::npos);
  EXPECT_NE(refusal("[1, 2"), "");
  EXPECT_NE(refusal(""), "");
}

TEST(Json, what_lies_outside_its_buffer_is_refused_at_reading) {
  auto document = Json::parse(to_json(ring(3)));
  document["ranks"][2]["steps"][1]["src"] = {"output", 3, 1};
  const auto why = refusal(document.dump());
  EXPECT_NE(why.find("rank 2"), std::string::npos) << why;
  EXPECT_NE(why.find("lies outside"), std::string::npos) << why;
}

// Numbers that would overflow, or be cut to something else, must not get near the verifier.
TEST(Json, numbers_that_do_not_fit_are_refused) {
  const auto document = Json::parse(to_json(ring(2)));
  const auto spoiled = [&](const char* path, const Json& value) {
    Json copy = document;
    for (const auto* rank : {"/ranks/0", "/ranks/1"})
      if (std::string_view(path).starts_with("/chunks"))
        copy[Json::json_pointer(std::string(rank) + path)] = value;
    if (!std::string_view(path).starts_with("/chunks")) copy[Json::json_pointer(path)] = value;
    return copy.dump();
  };
  for (const char* path : {"/chunks/0", "/chunks/1", "/chunks/2", "/chunks/3"})
    for (const std::uint64_t count :
         {std::uint64_t{1} << 31, (std::uint64_t{1} << 32) - 1, std::uint64_t{1} << 33})
      EXPECT_NE(refusal(spoiled(path, count)), "") << path << " " << count;
  EXPECT_NE(refusal(spoiled("/root", 0.7)), "");
  EXPECT_NE(refusal(spoiled("/root", std::uint64_t{1} << 32)), "");
  EXPECT_NE(refusal(spoiled("/ranks/0/steps/1/peer", (std::uint64_t{1} << 32) + 1)), "");
}

}  // namespace
}  // namespace sinew
