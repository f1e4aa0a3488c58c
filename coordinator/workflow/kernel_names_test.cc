#include "coordinator/workflow/kernel_names.h"

#include <gtest/gtest.h>

namespace solward::workflow {
namespace {

// The same kernel as ncu, nsys and torch.profiler print it
// (tests/data/ground_truth/ew_chain.*).
TEST(NormalKernelName, OneKernelOfThreeToolsIsOneName) {
  const std::string ncu = NormalKernelName(
      "void vectorized_elementwise_kernel<4, AUnaryFunctor<float, float, float, "
      "binary_internal::MulFunctor<float>>, array<char *, 2>>(int, T2, T3)");
  EXPECT_EQ(ncu,
            "vectorized_elementwise_kernel<4,AUnaryFunctor<float,float,float,MulFunctor<float>>,"
            "array<char*,2>>");
  EXPECT_EQ(ncu, NormalKernelName("void at::native::vectorized_elementwise_kernel<(int)4, "
                                  "at::native::AUnaryFunctor<float, float, float, "
                                  "at::native::binary_internal::MulFunctor<float>>, "
                                  "std::array<char *, (unsigned long)2>>(int, T2, T3)"));
  EXPECT_EQ(
      ncu, NormalKernelName(
               "void at::native::vectorized_elementwise_kernel<4, at::native::AUnaryFunctor<float, "
               "float, float, at::native::binary_internal::MulFunctor<float> >, std::array<char*, "
               "2ul> >(int, at::native::AUnaryFunctor<float, float, float, "
               "at::native::binary_internal::MulFunctor<float> >, std::array<char*, 2ul>)"));
}

TEST(NormalKernelName, LambdasAndUnnamedNamespacesHaveOneSpelling) {
  const std::string nsys = NormalKernelName(
      "void at::native::vectorized_elementwise_kernel<(int)4, "
      "at::native::<unnamed>::launch_clamp_scalar(at::TensorIteratorBase &, c10::Scalar, "
      "c10::Scalar, at::native::detail::ClampLimits)::[lambda() (instance 1)]::operator ()() "
      "const::[lambda() (instance 7)]::operator ()() const::[lambda(float) (instance 1)], "
      "std::array<char *, (unsigned long)2>>(int, T2, T3)");
  EXPECT_EQ(nsys,
            NormalKernelName(
                "void vectorized_elementwise_kernel<4, "
                "unnamed>::launch_clamp_scalar(TensorIteratorBase &, c10::Scalar, c10::Scalar, "
                "detail::ClampLimits)::[lambda() (instance 1)]::operator ()() const::[lambda() "
                "(instance 7)]::operator ()() const::[lambda(float) (instance 1)], array<char *, "
                "2>>(int, T2, T3)"));
  EXPECT_EQ(
      nsys,
      NormalKernelName(
          "void at::native::vectorized_elementwise_kernel<4, at::native::(anonymous "
          "namespace)::launch_clamp_scalar(at::TensorIteratorBase&, c10::Scalar, c10::Scalar, "
          "at::native::detail::ClampLimits)::{lambda()#1}::operator()() "
          "const::{lambda()#7}::operator()() const::{lambda(float)#1}, std::array<char*, 2ul> "
          ">(int, std::array<char*, 2ul>)"));
}

TEST(NormalKernelName, DifferentTemplateArgumentsStayDifferent) {
  EXPECT_NE(NormalKernelName("void f<4, Add<float>>(int)"),
            NormalKernelName("void f<4, Mul<float>>(int)"));
  EXPECT_NE(NormalKernelName("void f<(int)4>(int)"), NormalKernelName("void f<(int)8>(int)"));
}

TEST(NormalKernelName, PlainNamesStay) {
  EXPECT_EQ(NormalKernelName("nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT"),
            "nvjet_sm90_hsh_256x128_64x4_1x2_h_bz_coopA_NNT");
  EXPECT_EQ(NormalKernelName("axpy(float, const float *, float *, unsigned long)"), "axpy");
  EXPECT_EQ(NormalKernelName(""), "");
  EXPECT_EQ(NormalKernelName("(int"), "(int");
}

TEST(BaseKernelName, IsTheFunctionAlone) {
  EXPECT_EQ(
      BaseKernelName("void at::native::<unnamed>::kernel::lstm_cell_forward<float, float, int, "
                     "(int)1>(at::cuda::detail::TensorInfo<T1, T3>, T3)"),
      "lstm_cell_forward");
}

}  // namespace
}  // namespace solward::workflow
