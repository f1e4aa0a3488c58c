#include "agents/runtime/artifact_transfer.h"

#include "agents/runtime/specialist_service_fixture.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::_;
using ::testing::HasSubstr;

using ArtifactTransferTest = SpecialistServiceTest;

// --- PutCapture ------------------------------------------------------------

TEST_F(ArtifactTransferTest, TakesACaptureInChunks) {
  const std::string first(1 << 20, 'a'), second = "bc";
  ASSERT_OK_AND_ASSIGN(auto response,
                       Put({Header("x.json", first + second), Data(first), Data(second)}));
  EXPECT_FALSE(response.existed());
  EXPECT_EQ(response.artifact().size(), (1 << 20) + 2);
  EXPECT_EQ(response.artifact().label(), "x.json");
  EXPECT_THAT(workspace_->Find(response.artifact().id()), IsOk());
}

TEST_F(ArtifactTransferTest, ACaptureItHasAlreadyKeepsItsIdUnderTheCallersLabel) {
  ASSERT_OK_AND_ASSIGN(auto first, Put({Header("x.json", "abc"), Data("abc")}));
  ASSERT_OK_AND_ASSIGN(auto second, Put({Header("y.json", "abc"), Data("abc")}));
  EXPECT_TRUE(second.existed());
  EXPECT_EQ(second.artifact().id(), first.artifact().id());
  EXPECT_EQ(second.artifact().label(), "y.json");
  EXPECT_EQ(workspace_->List().size(), 1);
  // Knowing the digest is not having the bytes.
  EXPECT_THAT(Put({Header("z.json", "abc"), Data("abd")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SHA-256")));
  EXPECT_THAT(Put({Header("z.json", "abc")}),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("0 bytes came")));
}

TEST_F(ArtifactTransferTest, AnEmptyCaptureIsTaken) {
  EXPECT_THAT(Put({Header("empty.csv", "")}), IsOk());
}

TEST_F(ArtifactTransferTest, ACaptureThatIsNotWhatItsHeaderSaysIsRefused) {
  const auto refuses = [&](const std::vector<v1::PutCaptureRequest>& parts,
                           const std::string& what) {
    EXPECT_THAT(Put(parts), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(what)));
  };
  refuses({}, "before its header");
  refuses({Data("abc")}, "found data");
  refuses({Header("x", "abc"), Header("x", "abc")}, "second header");
  refuses({Header("x", "abc"), Data("ab")}, "2 bytes came, the header says 3");
  refuses({Header("x", "abc"), Data("abcd")}, "more bytes than");
  refuses({Header("x", "abc"), Data("abd")}, "SHA-256");
  const std::string large((1 << 20) + 1, 'a');
  refuses({Header("x", large), Data(large)}, "at most 1048576");
  refuses({Header("../x", "abc"), Data("abc")}, "header.label");
  refuses({Header("", "abc"), Data("abc")}, "header.label");
  v1::PutCaptureRequest upper = Header("x", "abc");
  upper.mutable_header()->set_sha256(std::string(64, 'A'));
  refuses({upper}, "header.sha256");
  EXPECT_TRUE(workspace_->List().empty());
}

TEST_F(ArtifactTransferTest, ACaptureAboveTheLimitIsRefusedAtItsHeader) {
  ShutDown();
  limits_.max_artifact_bytes = 2;
  StartUp();
  const auto answer = Put({Header("x", "abc"), Data("abc")});
  EXPECT_THAT(answer,
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_artifact_bytes = 2")));
  EXPECT_EQ(ErrorReason(answer.status()), "ARTIFACT_TOO_LARGE");
}

TEST_F(ArtifactTransferTest, MoreUploadsAtATimeThanAllowedAreRefused) {
  ShutDown();
  options_.max_uploads = 1;
  StartUp();
  {
    grpc::ClientContext context;
    SetDeadline(context);
    v1::PutCaptureResponse response;
    auto writer = stub_->PutCapture(&context, &response);
    ASSERT_TRUE(writer->Write(Header("x", "abc")));
    // The first is known to be in progress once the second is refused.
    absl::Status second;
    do {
      second = Put({Header("y", "abd"), Data("abd")}).status();
    } while (second.ok());
    EXPECT_EQ(ErrorReason(second), "TOO_MANY_UPLOADS");
    context.TryCancel();
    writer->Finish();
  }
  absl::Status after;
  do {  // The place comes back a moment after the client's end.
    after = Put({Header("y", "abc"), Data("abc")}).status();
  } while (absl::IsResourceExhausted(after));
  EXPECT_THAT(after, IsOk());
}

// --- ReadArtifact ----------------------------------------------------------

TEST_F(ArtifactTransferTest, ReadsAnArtifactInChunksOfAMebibyte) {
  const std::string chunk(1 << 20, 'a'), rest(1000, 'b');
  ASSERT_OK_AND_ASSIGN(
      auto put, Put({Header("x", chunk + chunk + rest), Data(chunk), Data(chunk), Data(rest)}));
  ASSERT_OK_AND_ASSIGN(auto responses, ReadArtifact(put.artifact().id(), 0, 0));
  ASSERT_EQ(responses.size(), 3);
  EXPECT_EQ(responses[0].artifact().sha256(), put.artifact().sha256());
  EXPECT_FALSE(responses[1].has_artifact());
  EXPECT_EQ(responses[0].data() + responses[1].data() + responses[2].data(), chunk + chunk + rest);
  EXPECT_LE(responses[0].data().size(), 1u << 20);
}

TEST_F(ArtifactTransferTest, ReadsARangeAndRefusesOneOutside) {
  ASSERT_OK_AND_ASSIGN(auto put, Put({Header("x", "0123456789"), Data("0123456789")}));
  const std::string id = put.artifact().id();
  const auto bytes = [&](uint64_t offset, uint64_t length) {
    const auto responses = ReadArtifact(id, offset, length);
    return responses.ok() ? responses->front().data() : responses.status().ToString();
  };
  EXPECT_EQ(bytes(3, 4), "3456");
  EXPECT_EQ(bytes(7, 0), "789");
  EXPECT_EQ(bytes(10, 0), "");
  for (const auto& [offset, length] :
       {std::pair<uint64_t, uint64_t>(11, 0), {0, 11}, {10, 1}, {UINT64_MAX, 2}, {2, UINT64_MAX}}) {
    EXPECT_THAT(ReadArtifact(id, offset, length),
                StatusIs(absl::StatusCode::kOutOfRange, HasSubstr("has 10 bytes")));
  }
  EXPECT_THAT(ReadArtifact("../instance", 0, 0), StatusIs(absl::StatusCode::kNotFound, _));
}

}  // namespace
}  // namespace solward::runtime
