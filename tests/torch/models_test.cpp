// Models have the parameters they are known for, and the same first values wherever they are made.
#include "torch/models.hpp"

#include <gtest/gtest.h>

#include <cmath>
#include <map>
#include <numeric>
#include <utility>

#include <sinew/error.hpp>
#include "train/dataset.hpp"

namespace sinew {
namespace {

std::uint64_t parameters_of(const Learner& learner) {
  std::uint64_t count = 0;
  for (const auto& parameter : learner.parameters()) count += parameter.elements();
  return count;
}

TEST(Models, have_exactly_the_parameters_they_say) {
  for (const auto& model : models())
    EXPECT_EQ(parameters_of(*model.make({})), model.parameters) << model.name;
}

TEST(Models, have_the_parameters_of_what_they_repeat) {
  const std::map<std::string_view, std::uint64_t> expected{
      {"tiny", 430},          {"mlp", 1'201'290},     {"cnn", 1'199'882},
      {"ctc-small", 391'944}, {"ctc-mid", 2'069'392}, {"lstman4", 27'569'568}};
  for (const auto& [name, parameters] : expected)
    EXPECT_EQ(parameters_of(*find_model(name).make({})), parameters) << name;
}

TEST(Models, have_the_tensors_of_what_they_repeat) {
  const auto cnn = find_model("cnn").make({});
  std::map<std::string, std::size_t> sizes;
  for (const auto& parameter : cnn->parameters()) sizes[parameter.name] = 4 * parameter.elements();
  EXPECT_EQ(sizes, (std::map<std::string, std::size_t>{{"conv1.weight", 1152},
                                                       {"conv1.bias", 128},
                                                       {"conv2.weight", 73'728},
                                                       {"conv2.bias", 256},
                                                       {"dense1.weight", 4'718'592},
                                                       {"dense1.bias", 512},
                                                       {"dense2.weight", 5120},
                                                       {"dense2.bias", 40}}));
}

TEST(Models, lstman4_has_forty_tensors_and_the_statistics_of_what_it_repeats) {
  const auto model = find_model("lstman4").make({});
  EXPECT_EQ(model->parameters().size(), 40U);
  std::size_t largest = 0, statistics = 0;
  for (const auto& parameter : model->parameters())
    largest = std::max(largest, parameter.elements());
  for (const auto& buffer : model->buffers()) statistics += buffer.elements();
  EXPECT_EQ(largest, 3200U * 1312);
  EXPECT_EQ(statistics, 8128U);  // without the counters that torch keeps besides
  EXPECT_EQ(parameters_of(*model) * sizeof(float), 110'278'272U) << "bytes of gradients";
}

TEST(Models, fit_the_data_they_learn_from_and_no_others) {
  for (const auto& model : models()) {
    EXPECT_NO_THROW(check_fits(model, sample_shape(model.data), model.data)) << model.name;
    const auto others = model.data == "tones" ? "fashion" : "tones";
    EXPECT_THROW(check_fits(model, sample_shape(others), others), Error) << model.name;
  }
  EXPECT_NO_THROW(check_fits(find_model("mlp"), std::vector<std::int64_t>{784}, "rows of pixels"));
}

/// Images of more letters than there are digits.
struct Letters final : Dataset {
  [[nodiscard]] std::size_t samples() const noexcept override { return 1; }
  [[nodiscard]] std::span<const std::int64_t> shape() const noexcept override { return kShape; }
  [[nodiscard]] int classes() const noexcept override { return 26; }
  void fill(std::span<const std::uint32_t>, Batch&) const override {}
  static constexpr std::int64_t kShape[] = {1, 28, 28};
};

TEST(Models, refuse_more_classes_than_they_tell_apart) {
  try {
    check_fits(find_model("cnn"), Letters(), "idx:letters");
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_EQ(std::string_view(error.what()),
              "the model cnn tells 10 classes apart, and idx:letters has 26");
  }
}

/// A learner with memory of its own.
struct Alone {
  std::unique_ptr<Learner> learner;
  std::vector<std::vector<float>> parameters, gradients, buffers;

  explicit Alone(const char* model, const ModelOptions& options = {})
      : learner(find_model(model).make(options)) {
    Homes homes;
    const auto make = [](const auto& specs, auto& memory, auto& homes_of) {
      for (const auto& spec : specs) memory.emplace_back(spec.elements());
      for (auto& values : memory) homes_of.emplace_back(values);
    };
    make(learner->parameters(), parameters, homes.parameters);
    make(learner->parameters(), gradients, homes.gradients);
    make(learner->buffers(), buffers, homes.buffers);
    learner->move_to(homes);
  }
};

Batch rows_batch() {
  Batch batch;
  batch.shape = {4, 10};
  for (int i = 0; i < 40; ++i) batch.inputs.push_back(static_cast<float>(i % 7) - 3);
  batch.labels = {1, 0, 9, 3};
  return batch;
}

TEST(Learners, start_alike_for_a_seed_and_differ_for_another) {
  EXPECT_EQ(Alone("tiny").parameters, Alone("tiny").parameters);
  EXPECT_NE(Alone("tiny").parameters, Alone("tiny", {.seed = 2}).parameters);
}

TEST(Learners, write_gradients_where_they_are_told_and_say_when_each_is_there) {
  Alone alone("tiny");
  std::vector<std::size_t> order;
  const auto batch = rows_batch();
  const auto score = alone.learner->learn(batch, 0.25F, 1, [&](std::size_t parameter) {
    order.push_back(parameter);
    EXPECT_NE(alone.gradients[parameter], std::vector<float>(alone.gradients[parameter].size()));
  });
  EXPECT_EQ(score.samples, 4U);
  ASSERT_EQ(order.size(), 4U);
  EXPECT_GE(order[0], 2U) << "the last layer is done first";
  EXPECT_LE(order[3], 1U);
}

TEST(Learners, have_gradients_that_agree_with_differences) {
  Alone alone("tiny");
  const auto batch = rows_batch();
  alone.learner->learn(batch, 1, 1, [](std::size_t) {});
  for (std::size_t parameter = 0; parameter < alone.parameters.size(); ++parameter) {
    auto& value = alone.parameters[parameter][1];
    const float before = value, step = 1e-2F;
    value = before + step;
    const double above = alone.learner->evaluate(batch).loss;
    value = before - step;
    const double below = alone.learner->evaluate(batch).loss;
    value = before;
    EXPECT_NEAR((above - below) / (2 * step), alone.gradients[parameter][1], 2e-2);
  }
}

// Torch's own text goes on with forty lines of where in torch it was.
TEST(Learners, say_in_one_line_what_torch_refuses) {
  Alone alone("tiny");
  auto batch = rows_batch();
  batch.shape = {8, 5};
  const auto expect_one_line = [&](auto pass) {
    try {
      pass();
      ADD_FAILURE();
    } catch (const Error& error) {
      const std::string text = error.what();
      EXPECT_TRUE(text.starts_with("torch cannot compute a pass over inputs of 8 x 5: ")) << text;
      EXPECT_NE(text.find("shapes"), std::string::npos) << text;
      EXPECT_EQ(text.find('\n'), std::string::npos) << text;
    }
  };
  expect_one_line([&] { (void)alone.learner->evaluate(batch); });
  expect_one_line([&] { (void)alone.learner->learn(batch, 1, 1, [](std::size_t) {}); });
}

TEST(Learners, add_to_gradients_that_are_there) {
  Alone once("tiny"), twice("tiny");
  const auto batch = rows_batch();
  once.learner->learn(batch, 1, 1, [](std::size_t) {});
  for (int i = 0; i < 2; ++i) twice.learner->learn(batch, 0.5F, 1, [](std::size_t) {});
  for (std::size_t i = 0; i < once.gradients.size(); ++i)
    for (std::size_t k = 0; k < once.gradients[i].size(); ++k)
      ASSERT_NEAR(once.gradients[i][k], twice.gradients[i][k], 1e-5);
}

TEST(Learners, compute_nearly_the_same_in_16_bits) {
  for (const auto* model : {"mlp", "cnn"}) {  // 1024, 384, 128 and 10 rows
    const auto data = open_data("synthetic:40", 1);
    std::vector<std::uint32_t> which(40);
    std::iota(which.begin(), which.end(), 0U);
    Batch batch;
    data.train->fill(which, batch);
    Alone full(model, {.dropout = 0}), narrow(model, {.dropout = 0, .precision = "bf16"}),
        again(model, {.dropout = 0, .precision = "bf16"}),
        apart(model, {.dropout = 0, .precision = "bf16", .apart = true});
    for (auto* one : {&full, &narrow, &again, &apart})
      one->learner->learn(batch, 0.025F, 1, [](std::size_t) {});
    EXPECT_EQ(narrow.gradients, again.gradients);
    EXPECT_EQ(narrow.gradients, apart.gradients);
    EXPECT_NE(narrow.gradients, full.gradients);
    for (std::size_t i = 0; i < full.gradients.size(); ++i) {
      double apart_by = 0, size = 0;
      for (std::size_t k = 0; k < full.gradients[i].size(); ++k) {
        apart_by += std::pow(double{full.gradients[i][k]} - narrow.gradients[i][k], 2);
        size += std::pow(double{full.gradients[i][k]}, 2);
      }
      EXPECT_LT(std::sqrt(apart_by / size), 0.1) << model << ' ' << i;
    }
  }
}

TEST(Learners, refuse_precisions_that_they_do_not_have) {
  EXPECT_THROW((void)find_model("mlp").make({.precision = "bf61"}), Error);
  EXPECT_THROW(check_precision(find_model("mlp"), "bf61"), Error);
  EXPECT_THROW(check_precision(find_model("ctc-small"), "bf16"), Error);
  EXPECT_NO_THROW(check_precision(find_model("cnn"), "bf16"));
}

TEST(Learners, drop_out_by_the_key_alone) {
  Alone a("cnn"), b("cnn"), c("cnn");
  Batch batch;
  batch.shape = {2, 1, 28, 28};
  batch.inputs.assign(2 * 28 * 28, 0.5F);
  batch.labels = {1, 2};
  a.learner->learn(batch, 1, 7, [](std::size_t) {});
  b.learner->learn(batch, 1, 7, [](std::size_t) {});
  c.learner->learn(batch, 1, 8, [](std::size_t) {});
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_NE(a.gradients, c.gradients);
}

// What a GPU needs, where there is none: the net computes on copies.
TEST(Learners, apart_from_their_homes_compute_the_same) {
  for (const auto* model : {"cnn", "ctc-small"}) {
    Alone here(model, {.dropout = 0}), apart(model, {.dropout = 0, .apart = true});
    const auto data = open_data(std::string_view(model) == "cnn" ? "synthetic:6" : "tones:6", 1);
    Batch batch;
    for (std::uint32_t pass = 0; pass < 6; ++pass) {
      const std::uint32_t which[] = {pass};
      data.train->fill(which, batch);
      std::size_t told = 0;
      const Learner::Ready count = [&](std::size_t parameter) {
        ++told;
        EXPECT_EQ(apart.gradients[parameter], here.gradients[parameter]) << parameter;
      };
      // Two passes a step; after the second the parameters move on the host.
      const bool is_last = pass % 2 == 1;
      here.learner->learn(batch, 0.5F, 1, {});
      apart.learner->learn(batch, 0.5F, 1, is_last ? count : Learner::Ready{});
      EXPECT_EQ(told, is_last ? here.parameters.size() : 0);
      EXPECT_EQ(apart.buffers, here.buffers);
      if (!is_last) continue;
      for (auto* learner : {&here, &apart})
        for (std::size_t i = 0; i < learner->parameters.size(); ++i)
          for (std::size_t k = 0; k < learner->parameters[i].size(); ++k)
            learner->parameters[i][k] -= 0.001F * std::exchange(learner->gradients[i][k], 0.0F);
    }
    EXPECT_EQ(apart.learner->evaluate(batch).loss, here.learner->evaluate(batch).loss);
  }
}

TEST(Learners, on_a_device_that_is_not_there_are_refused) {
  EXPECT_THROW((void)find_model("tiny").make({.device = "cdua"}), Error);
  if (std::string_view(torch_version()).starts_with("1.13")) {  // Debian's knows no GPU
    EXPECT_THROW((void)find_model("tiny").make({.device = "cuda"}), Error);
  }
}

TEST(Learners, of_sequences_learn_and_count_letters) {
  Alone alone("ctc-small");
  const auto data = open_data("tones:4", 1);
  Batch batch;
  const std::uint32_t which[] = {0, 1, 2, 3};
  data.train->fill(which, batch);
  double first = 0, last = 0;
  for (int step = 0; step < 8; ++step) {
    last = alone.learner->learn(batch, 0.25F, 1, [](std::size_t) {}).loss;
    if (step == 0) first = last;
    for (std::size_t i = 0; i < alone.parameters.size(); ++i)
      for (std::size_t k = 0; k < alone.parameters[i].size(); ++k) {
        alone.parameters[i][k] -= 0.005F * alone.gradients[i][k];
        alone.gradients[i][k] = 0;
      }
  }
  EXPECT_LT(last, 0.7 * first);
  const auto score = alone.learner->evaluate(batch);
  EXPECT_EQ(score.labels, batch.labels.size());
  EXPECT_EQ(score.samples, 4U);
  EXPECT_GT(score.errors, 0U);
  EXPECT_NE(alone.buffers[0], std::vector<float>(alone.buffers[0].size())) << "statistics";
}

}  // namespace
}  // namespace sinew
