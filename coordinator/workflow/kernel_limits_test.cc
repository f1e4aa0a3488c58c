#include "coordinator/workflow/kernel_limits.h"

#include <gtest/gtest.h>

namespace solward::workflow {
namespace {

constexpr v1::BottleneckClass kCompute = v1::BOTTLENECK_CLASS_COMPUTE_BOUND;
constexpr v1::BottleneckClass kMemory = v1::BOTTLENECK_CLASS_MEMORY_BOUND;
constexpr v1::BottleneckClass kLatency = v1::BOTTLENECK_CLASS_LATENCY_BOUND;
constexpr v1::BottleneckClass kNone = v1::BOTTLENECK_CLASS_UNSPECIFIED;

struct Case {
  double compute, memory;
  v1::BottleneckClass first, second;
};

class LimitOfThroughputs : public ::testing::TestWithParam<Case> {};

TEST_P(LimitOfThroughputs, IsTheLargerOneFromSixtyPercent) {
  const Limit limit = LimitOf(GetParam().compute, GetParam().memory, ClassificationParameters());
  EXPECT_EQ(limit.first, GetParam().first);
  EXPECT_EQ(limit.second, GetParam().second);
}

INSTANTIATE_TEST_SUITE_P(Kernels, LimitOfThroughputs,
                         ::testing::Values(Case{84.3, 66.3, kCompute, kNone},  // bmm
                                           Case{21.4, 70.7, kMemory, kNone},   // axpy
                                           Case{93.7, 0.07, kCompute, kNone},  // fma_loop
                                           Case{3.99, 5.69, kLatency, kNone},  // rnn_small
                                           Case{60, 10, kCompute, kNone},  // the threshold itself
                                           Case{59.9, 59.9, kLatency, kNone},
                                           Case{70, 80, kMemory, kCompute},  // ten points apart
                                           Case{70, 80.1, kMemory, kNone},
                                           Case{62, 55, kCompute, kMemory}));  // second below 60

}  // namespace
}  // namespace solward::workflow
