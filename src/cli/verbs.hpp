// The verbs of the program: one file and one function each. main.cpp lists them.
#pragma once

namespace sinew {

/// What the program's exit status says, the same in every verb.
enum Exit : int {
  kFine = 0,
  kFailed = 1,
  kUsage = 2,
  kMissing = 3,  // a dependency or a privilege
  kWrong = 4,    // results
  kMissed = 5,   // a threshold
  kTimeout = 124,
  kInterrupted = 130,
};

/// Each gets its own name as argv[0] and returns an Exit, or what a started program returned.
int run_bench(int argc, char** argv);
int run_bench_lossless(int argc, char** argv);
int run_bench_rank(int argc, char** argv);
int run_bench_sparse(int argc, char** argv);
int run_calibrate(int argc, char** argv);
int run_compare(int argc, char** argv);
int run_demo(int argc, char** argv);
int run_doctor(int argc, char** argv);
int run_draw(int argc, char** argv);
int run_explain(int argc, char** argv);
int run_import(int argc, char** argv);
int run_launch(int argc, char** argv);
int run_list(int argc, char** argv);
int run_profile(int argc, char** argv);
int run_report(int argc, char** argv);
int run_train(int argc, char** argv);
int run_predict(int argc, char** argv);
int run_verify(int argc, char** argv);

}  // namespace sinew
