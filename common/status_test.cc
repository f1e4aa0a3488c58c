#include "common/status.h"

#include <grpcpp/support/status.h>

#include "common/status_matchers.h"

namespace solward {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::HasSubstr;

absl::Status BadRequest() {
  return MakeBadRequest("REQUEST_INVALID", "2 fields are wrong",
                        {{"delegation.statement", "names a tool flag"},
                         {"context.batch", "expected a positive number, found -1"}});
}

TEST(StatusTest, AnErrorCarriesCodeReasonAndMessage) {
  const absl::Status status =
      MakeError(absl::StatusCode::kNotFound, "ARTIFACT_UNKNOWN", "artifact a-1: not here");
  EXPECT_THAT(status, StatusIs(absl::StatusCode::kNotFound, "artifact a-1: not here"));
  EXPECT_EQ(ErrorReason(status), "ARTIFACT_UNKNOWN");
  EXPECT_TRUE(FieldViolations(status).empty());
}

TEST(StatusTest, AStatusMadeElsewhereHasNoReason) {
  EXPECT_EQ(ErrorReason(absl::InternalError("x")), "");
  EXPECT_EQ(ErrorReason(absl::OkStatus()), "");
}

TEST(StatusTest, ABadRequestNamesEveryField) {
  const absl::Status status = BadRequest();
  EXPECT_EQ(status.code(), absl::StatusCode::kInvalidArgument);
  const std::vector<FieldViolation> violations = FieldViolations(status);
  ASSERT_EQ(violations.size(), 2u);
  EXPECT_EQ(violations[0].field, "delegation.statement");
  EXPECT_EQ(violations[1].description, "expected a positive number, found -1");
}

TEST(StatusTest, AnnotateKeepsCodeReasonAndViolations) {
  const absl::Status status = Annotate(BadRequest(), "analysis an-1");
  EXPECT_THAT(status,
              StatusIs(absl::StatusCode::kInvalidArgument, "analysis an-1: 2 fields are wrong"));
  EXPECT_EQ(ErrorReason(status), "REQUEST_INVALID");
  EXPECT_EQ(FieldViolations(status).size(), 2u);
  EXPECT_THAT(Annotate(absl::OkStatus(), "nothing"), IsOk());
}

TEST(StatusTest, EverythingTravelsOverGrpc) {
  const grpc::Status wire = ToGrpcStatus(BadRequest());
  EXPECT_EQ(wire.error_code(), grpc::StatusCode::INVALID_ARGUMENT);
  EXPECT_EQ(wire.error_message(), "2 fields are wrong");

  const absl::Status back = FromGrpcStatus(wire);
  EXPECT_THAT(back, StatusIs(absl::StatusCode::kInvalidArgument, "2 fields are wrong"));
  EXPECT_EQ(ErrorReason(back), "REQUEST_INVALID");
  ASSERT_EQ(FieldViolations(back).size(), 2u);
  EXPECT_EQ(FieldViolations(back)[0].description, "names a tool flag");

  EXPECT_TRUE(ToGrpcStatus(absl::OkStatus()).ok());
  EXPECT_THAT(FromGrpcStatus(grpc::Status::OK), IsOk());
}

TEST(StatusTest, DetailsThatAreNoStatusAreIgnored) {
  const grpc::Status wire(grpc::StatusCode::UNAVAILABLE, "gone", "\xFF\xFFnot a proto");
  const absl::Status back = FromGrpcStatus(wire);
  EXPECT_THAT(back, StatusIs(absl::StatusCode::kUnavailable, "gone"));
  EXPECT_EQ(ErrorReason(back), "");
}

absl::StatusOr<int> Half(int value) {
  if (value % 2 != 0) return MakeError(absl::StatusCode::kInvalidArgument, "ODD", "odd");
  return value / 2;
}

absl::StatusOr<int> Quarter(int value) {
  ASSIGN_OR_RETURN(const int half, Half(value));
  RETURN_IF_ERROR(Half(half).status());
  ASSIGN_OR_RETURN(const int quarter, Half(half));
  return quarter;
}

TEST(StatusTest, TheMacrosReturnTheFirstError) {
  EXPECT_THAT(Quarter(8), ::solward::testing::IsOkAndHolds(2));
  EXPECT_THAT(Quarter(7), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("odd")));
  EXPECT_EQ(ErrorReason(Quarter(6).status()), "ODD");
}

}  // namespace
}  // namespace solward
