// Training with a server, over ranks as threads: the same steps as without one, bounded lateness,
// and frames that are checked.
#include "train/server.hpp"

#include <gtest/gtest.h>

#include <sinew/error.hpp>
#include "support/local_ranks.hpp"
#include "support/plain_learner.hpp"
#include "train/gradient_frame.hpp"
#include "train/letters.hpp"
#include "train/synthetic.hpp"
#include "train/task_frame.hpp"

namespace sinew {
namespace {

TrainOptions options_of(std::uint64_t steps) {
  TrainOptions options;
  options.batch = 8;
  options.steps = steps;
  return options;
}

TrainResult run(int processes, const TrainOptions& options, bool serves) {
  TrainResult result;
  test::on_local(processes, [&](Communicator& c) {
    const auto data = make_rows(300, 5);
    test::PlainLearner learner(10, 10);
    TrainWatcher watcher;
    auto mine = (serves ? train_with_server : train)(c, learner, data, options, watcher);
    if (c.rank() == 0) result = std::move(mine);
  });
  return result;
}

TEST(TrainServer, that_waits_for_all_takes_the_steps_that_workers_take_together) {
  for (const int workers : {1, 2, 3}) {
    const auto together = run(workers, options_of(40), false);
    const auto served = run(workers + 1, options_of(40), true);
    EXPECT_NEAR(served.test.loss, together.test.loss, 1e-3 * together.test.loss) << workers;
    EXPECT_EQ(served.test.samples, together.test.samples);
    EXPECT_EQ(served.steps, 40U);
    ASSERT_EQ(served.workers.size(), static_cast<std::size_t>(workers));
    for (const auto& worker : served.workers) EXPECT_EQ(worker.batches, 40);
    if (workers <= 2) {
      EXPECT_EQ(served.hashes[0], together.hashes[0]) << "one order of adding";
    }
  }
}

TEST(TrainServer, takes_sparse_gradients_and_learns_from_them) {
  auto options = options_of(150);
  const auto dense = run(4, options, true);
  options.compression = parse_compression("topka:0.1");
  const auto sparse = run(4, options, true);
  EXPECT_LT(sparse.workers[0].bytes_sent, dense.workers[0].bytes_sent);
  EXPECT_NEAR(sparse.workers[0].items / sparse.workers[0].elements, 0.1, 0.01);
  EXPECT_LT(sparse.loss, 2.3) << "better than guessing one of ten";
}

TEST(TrainServer, with_stale_gradients_everybody_does_all_batches_and_ends_alike) {
  auto options = options_of(60);
  options.stale = 3;
  const auto result = run(5, options, true);
  for (const auto& worker : result.workers) EXPECT_EQ(worker.batches, 60);
  for (const auto hash : result.hashes) EXPECT_EQ(hash, result.hashes[0]);
  EXPECT_LT(result.loss, 2.3);
}

TEST(TrainServer, refuses_what_it_cannot) {
  auto options = options_of(5);
  options.elastic = true;
  EXPECT_THROW(run(2, options, true), Error);
  EXPECT_THROW(run(1, options_of(5), true), Error);
}

TEST(TrainServer, believes_no_frame_that_does_not_fit) {
  std::vector<float> sum(10);
  GradientPacker packer(12, 0.5);
  std::vector<float> gradient(12, 1.0F);
  gradient[11] = 9;
  EXPECT_THROW(add_gradient(packer.pack(gradient, {}), sum), Error) << "element 11 of 10";
  auto whole = GradientPacker(10, 0).pack(sum, {});
  EXPECT_NO_THROW(add_gradient(whole, sum));
  for (std::size_t length = 0; length < whole.size(); ++length)
    EXPECT_THROW(add_gradient(std::span(whole).first(length), sum), Error) << length;
  Batch batch;
  auto task = write_task({.step = 3, .random_key = 4, .scale = 0.5F}, batch, sum);
  const auto read = read_task(task, batch, sum);
  EXPECT_EQ(read.step, 3U);
  EXPECT_EQ(read.scale, 0.5F);
  std::vector<float> more(11);
  EXPECT_THROW(read_task(task, batch, more), Error);
}

TEST(TrainServer, takes_no_longer_a_frame_than_it_expects) {
  const auto errors = test::try_local(2, [](Communicator& c) {
    Letters letters(c, 1 - c.rank(), 100);
    if (c.rank() == 0) {
      letters.send(std::vector<std::byte>(1000));
      letters.finish_sending();
    } else {
      letters.receive();
    }
  });
  ASSERT_TRUE(errors[1]);
  EXPECT_NE(std::string(errors[1]->what()).find("1000 bytes"), std::string::npos);
}

}  // namespace
}  // namespace sinew
