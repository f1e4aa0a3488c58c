#include "agents/runtime/workspace.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "agents/runtime/durable_file.h"
#include "common/status_matchers.h"

namespace solward::runtime {
namespace {

using solward::testing::IsOk;
using solward::testing::StatusIs;
using ::testing::HasSubstr;

// printf abc | sha256sum
constexpr char kShaOfAbc[] = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

class WorkspaceTest : public ::testing::Test {
 protected:
  WorkspaceTest() {
    std::string pattern = ::testing::TempDir() + "/workspaceXXXXXX";
    parent_ = mkdtemp(pattern.data());
    root_ = parent_ + "/a/b";
  }
  ~WorkspaceTest() override { std::filesystem::remove_all(parent_); }

  static absl::StatusOr<v1::ArtifactReference> Put(Workspace& workspace, absl::string_view data,
                                                   absl::string_view label = "x.csv",
                                                   absl::string_view sha256 = "") {
    ASSIGN_OR_RETURN(ArtifactWriter writer, workspace.Create());
    RETURN_IF_ERROR(writer.Append(data));
    return writer.Commit(label, "text/csv", v1::CAPTURE_KIND_NCU_CSV_RAW, sha256);
  }

  static std::string Read(const std::string& path) {
    std::ifstream file(path, std::ios::binary);
    return {std::istreambuf_iterator<char>(file), {}};
  }

  size_t Unfinished() const {
    return static_cast<size_t>(
        std::distance(std::filesystem::directory_iterator(root_ + "/tmp"), {}));
  }

  std::string parent_, root_;
};

TEST_F(WorkspaceTest, KeepsBytesUnderAnIdWithTheirSha256) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  ASSERT_OK_AND_ASSIGN(ArtifactWriter writer, workspace->Create());
  ASSERT_THAT(writer.Append("a"), IsOk());
  ASSERT_THAT(writer.Append("bc"), IsOk());
  ASSERT_OK_AND_ASSIGN(
      auto artifact, writer.Commit("bmm.csv", "text/csv", v1::CAPTURE_KIND_NCU_CSV_RAW, kShaOfAbc));
  EXPECT_EQ(artifact.sha256(), kShaOfAbc);
  EXPECT_EQ(artifact.size(), 3);
  EXPECT_EQ(artifact.label(), "bmm.csv");
  EXPECT_EQ(artifact.media_type(), "text/csv");
  EXPECT_EQ(artifact.specialist_instance(), workspace->instance_id());
  ASSERT_OK_AND_ASSIGN(std::string path, workspace->PathOf(artifact.id()));
  EXPECT_EQ(Read(path), "abc");
  ASSERT_OK_AND_ASSIGN(auto by_sha, workspace->FindBySha256(kShaOfAbc));
  EXPECT_EQ(by_sha.id(), artifact.id());
  EXPECT_THAT(writer.Append("d"), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("")));
}

TEST_F(WorkspaceTest, TheSameBytesAreOneArtifact) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  ASSERT_OK_AND_ASSIGN(auto first, Put(*workspace, "abc", "one.csv"));
  ASSERT_OK_AND_ASSIGN(auto second, Put(*workspace, "abc", "two.csv"));
  ASSERT_OK_AND_ASSIGN(auto other, Put(*workspace, "abd"));
  EXPECT_EQ(first.id(), second.id());
  EXPECT_NE(first.id(), other.id());
  EXPECT_EQ(workspace->List().size(), 2);
  EXPECT_EQ(Unfinished(), 0);
}

TEST_F(WorkspaceTest, ArtifactsAndInstanceIdSurviveARestart) {
  std::string instance, id;
  {
    ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
    ASSERT_OK_AND_ASSIGN(auto artifact, Put(*workspace, "abc", "bmm \"µ\".csv"));
    ASSERT_THAT(workspace->SetKind(artifact.id(), v1::CAPTURE_KIND_TORCH_TRACE), IsOk());
    instance = workspace->instance_id();
    id = artifact.id();
  }
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  EXPECT_EQ(workspace->instance_id(), instance);
  ASSERT_OK_AND_ASSIGN(auto artifact, workspace->Find(id));
  EXPECT_EQ(artifact.label(), "bmm \"µ\".csv");
  EXPECT_EQ(artifact.kind(), v1::CAPTURE_KIND_TORCH_TRACE);
  EXPECT_EQ(artifact.sha256(), kShaOfAbc);
}

TEST_F(WorkspaceTest, TwoWorkspacesHaveTwoInstanceIds) {
  ASSERT_OK_AND_ASSIGN(auto one, Workspace::Open(root_, {}));
  ASSERT_OK_AND_ASSIGN(auto two, Workspace::Open(root_ + "2", {}));
  EXPECT_NE(one->instance_id(), two->instance_id());
}

TEST_F(WorkspaceTest, ASecondProcessIsRefusedAndToldWhoHoldsIt) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  auto second = Workspace::Open(root_ + "/", {});
  EXPECT_THAT(second, StatusIs(absl::StatusCode::kFailedPrecondition,
                               HasSubstr("in use by process " + std::to_string(getpid()))));
  EXPECT_EQ(ErrorReason(second.status()), "WORKSPACE_IN_USE");
  workspace.reset();
  EXPECT_THAT(Workspace::Open(root_, {}), IsOk());
}

TEST_F(WorkspaceTest, NobodyElseMayLookInside) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  ASSERT_OK_AND_ASSIGN(auto artifact, Put(*workspace, "abc"));
  ASSERT_OK_AND_ASSIGN(std::string path, workspace->PathOf(artifact.id()));
  struct stat info {};
  ASSERT_EQ(stat(root_.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700u);
  ASSERT_EQ(stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0600u);
}

TEST_F(WorkspaceTest, AWriterThatIsDroppedLeavesNothing) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  {
    ASSERT_OK_AND_ASSIGN(ArtifactWriter writer, workspace->Create());
    ASSERT_THAT(writer.Append("abc"), IsOk());
    EXPECT_EQ(Unfinished(), 1);
    EXPECT_TRUE(workspace->List().empty());
  }
  EXPECT_EQ(Unfinished(), 0);
}

TEST_F(WorkspaceTest, BytesThatDoNotHaveTheExpectedSha256AreRefused) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  EXPECT_THAT(Put(*workspace, "abd", "x.csv", kShaOfAbc),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(kShaOfAbc)));
  EXPECT_TRUE(workspace->List().empty());
  EXPECT_EQ(Unfinished(), 0);
}

TEST_F(WorkspaceTest, LimitsAreNamed) {
  ASSERT_OK_AND_ASSIGN(auto workspace,
                       Workspace::Open(root_, {.max_artifact_bytes = 4, .max_total_bytes = 6}));
  EXPECT_THAT(Put(*workspace, "12345"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_artifact_bytes = 4")));
  ASSERT_THAT(Put(*workspace, "1234"), IsOk());
  EXPECT_THAT(Put(*workspace, "567"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("max_total_bytes = 6")));
  // What was refused, doubled or dropped takes no room.
  ASSERT_THAT(Put(*workspace, "12"), IsOk());
  EXPECT_THAT(Put(*workspace, ""), IsOk());
  EXPECT_THAT(Put(*workspace, "3"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("holds 6 bytes")));
}

TEST_F(WorkspaceTest, UnfinishedWritesCountAgainstTheTotal) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {.max_total_bytes = 6}));
  ASSERT_OK_AND_ASSIGN(ArtifactWriter writer, workspace->Create());
  ASSERT_THAT(writer.Append("1234"), IsOk());
  EXPECT_THAT(Put(*workspace, "567"),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("")));
}

TEST_F(WorkspaceTest, OpeningRemovesLeftoversAndDamagedArtifacts) {
  std::string good, cut, path;
  {
    ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
    ASSERT_OK_AND_ASSIGN(auto first, Put(*workspace, "abc"));
    ASSERT_OK_AND_ASSIGN(auto second, Put(*workspace, "longer"));
    good = first.id();
    cut = second.id();
    ASSERT_OK_AND_ASSIGN(path, workspace->PathOf(cut));
  }
  std::ofstream(path) << "short";
  std::ofstream(root_ + "/tmp/write-1") << "unfinished";
  std::ofstream(root_ + "/artifacts/" + std::string(64, 'a')) << "no manifest";
  std::ofstream(root_ + "/artifacts/" + std::string(64, 'b') + ".json") << "{ not json";
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  EXPECT_THAT(workspace->Find(good), IsOk());
  EXPECT_THAT(workspace->Find(cut), StatusIs(absl::StatusCode::kNotFound, HasSubstr(cut)));
  EXPECT_EQ(workspace->List().size(), 1);
  EXPECT_EQ(Unfinished(), 0);
  // The artifact and its manifest, nothing else.
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(root_ + "/artifacts"), {}), 2);
}

TEST_F(WorkspaceTest, AnUnknownIdIsNotFoundAndNeverAPath) {
  ASSERT_OK_AND_ASSIGN(auto workspace, Workspace::Open(root_, {}));
  for (const char* id : {"", "art-1", "../instance", "/etc/passwd"}) {
    EXPECT_THAT(workspace->PathOf(id), StatusIs(absl::StatusCode::kNotFound, HasSubstr(id)));
    EXPECT_THAT(workspace->FindBySha256(id), StatusIs(absl::StatusCode::kNotFound, HasSubstr("")));
    EXPECT_THAT(workspace->SetKind(id, v1::CAPTURE_KIND_TORCH_TRACE),
                StatusIs(absl::StatusCode::kNotFound, HasSubstr(id)));
  }
}

TEST_F(WorkspaceTest, AFolderThatCannotBeOneIsAnError) {
  std::ofstream(parent_ + "/file") << "x";
  EXPECT_FALSE(Workspace::Open(parent_ + "/file", {}).ok());
  EXPECT_FALSE(Workspace::Open(parent_ + "/file/below", {}).ok());
  EXPECT_THAT(Workspace::Open("", {}), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("")));
}

TEST_F(WorkspaceTest, ADurableFileReplacesTheOldOneWhole) {
  const std::string path = parent_ + "/record";
  ASSERT_THAT(WriteDurably(path, "first"), IsOk());
  ASSERT_THAT(WriteDurably(path, "second"), IsOk());
  EXPECT_THAT(ReadSmallFile(path, 6), solward::testing::IsOkAndHolds("second"));
  EXPECT_THAT(ReadSmallFile(path, 5),
              StatusIs(absl::StatusCode::kResourceExhausted, HasSubstr("at most 5")));
  EXPECT_THAT(ReadSmallFile(path + "x", 5), StatusIs(absl::StatusCode::kNotFound, HasSubstr("")));
  EXPECT_FALSE(std::filesystem::exists(path + ".tmp"));
}

}  // namespace
}  // namespace solward::runtime
