// A workspace with captures of the source tree in it, for tests.
#ifndef SOLWARD_AGENTS_PROFILING_WORKSPACE_FIXTURE_H_
#define SOLWARD_AGENTS_PROFILING_WORKSPACE_FIXTURE_H_

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "agents/profiling/profiling_specialist.h"
#include "agents/profiling/readers/test_files.h"
#include "agents/runtime/specialist.h"
#include "agents/runtime/workspace.h"
#include "common/status_matchers.h"

namespace solward::testing {

class WorkspaceTest : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string folder = ::testing::TempDir() + "/solward-workspace-XXXXXX";
    folder_ = mkdtemp(folder.data());
    auto opened = runtime::Workspace::Open(folder_ + "/w", runtime::WorkspaceLimits());
    ASSERT_TRUE(opened.ok()) << opened.status();
    workspace_ = *std::move(opened);
  }
  void TearDown() override {
    workspace_.reset();
    std::filesystem::remove_all(folder_);
  }

  v1::ArtifactReference Put(const std::string& bytes, const std::string& label) {
    auto writer = workspace_->Create();
    EXPECT_TRUE(writer.ok()) << writer.status();
    EXPECT_TRUE(writer->Append(bytes).ok());
    auto artifact = writer->Commit(label, "application/octet-stream", v1::CAPTURE_KIND_UNSPECIFIED);
    EXPECT_TRUE(artifact.ok()) << artifact.status();
    return artifact.ok() ? *artifact : v1::ArtifactReference();
  }
  v1::ArtifactReference PutData(const std::string& name) {
    return Put(FileBytes(SourcePath("tests/data/" + name)),
               name.substr(name.find_last_of('/') + 1));
  }

  static v1::DelegationRequest Request(const std::vector<v1::ArtifactReference>& captures) {
    v1::DelegationRequest request;
    for (const v1::ArtifactReference& capture : captures) {
      *request.mutable_workload()->mutable_captures()->add_captures() = capture;
    }
    return request;
  }

  absl::StatusOr<v1::DelegationResult> Run(const v1::DelegationRequest& request,
                                           std::stop_token stop = {}) {
    runtime::DelegationContext context{*workspace_,
                                       [this](v1::DelegationPhase phase, const std::string& message,
                                              double) { progress_.emplace_back(phase, message); },
                                       stop, absl::InfiniteFuture()};
    return specialist_->Run(request, context);
  }

  std::string folder_;
  std::unique_ptr<runtime::Workspace> workspace_;
  std::unique_ptr<runtime::Specialist> specialist_ = profiling::MakeProfilingSpecialist();
  std::vector<std::pair<v1::DelegationPhase, std::string>> progress_;
};

}  // namespace solward::testing

#endif  // SOLWARD_AGENTS_PROFILING_WORKSPACE_FIXTURE_H_
