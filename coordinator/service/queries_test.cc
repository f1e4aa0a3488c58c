// Lists, kernels, provenance, verification, captures and artifacts.
#include <cmath>
#include <set>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/clock.h"
#include "coordinator/service/coordinator_fixture.h"
#include "coordinator/service/list_filter.h"

namespace solward::service {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::_;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

class QueriesTest : public CoordinatorFixture {
 protected:
  absl::StatusOr<v1::ListAnalysesResponse> List(const std::string& filter, uint32_t page_size = 0,
                                                const std::string& token = "") {
    v1::ListAnalysesRequest request;
    request.set_filter(filter);
    request.set_page_size(page_size);
    request.set_page_token(token);
    return Call(*user_, &Stub::ListAnalyses, request);
  }
  static std::vector<std::string> Ids(const v1::ListAnalysesResponse& response) {
    std::vector<std::string> ids;
    for (const auto& analysis : response.analyses()) ids.push_back(analysis.id());
    return ids;
  }
  absl::StatusOr<v1::ListKernelsResponse> Kernels(const std::string& id, uint32_t page_size = 0,
                                                  const std::string& token = "") {
    v1::ListKernelsRequest request;
    request.set_analysis_id(id);
    request.set_page_size(page_size);
    request.set_page_token(token);
    return Call(*user_, &Stub::ListKernels, request);
  }
  absl::StatusOr<v1::ExplainMetricResponse> Explain(const std::string& id,
                                                    const std::string& metric) {
    v1::ExplainMetricRequest request;
    request.set_analysis_id(id);
    request.set_metric(metric);
    return Call(*user_, &Stub::ExplainMetric, request);
  }
  absl::StatusOr<v1::VerifyReportResponse> Verify(const std::string& id) {
    v1::VerifyReportRequest request;
    request.set_analysis_id(id);
    return Call(*user_, &Stub::VerifyReport, request);
  }
  // Sends header and bytes in chunks; the answer of the coordinator.
  absl::StatusOr<v1::ArtifactReference> Upload(const std::string& bytes, std::string sha256,
                                               uint64_t size, size_t chunk = 100000) {
    grpc::ClientContext context;
    v1::UploadCaptureResponse response;
    const auto stream = user_->UploadCapture(&context, &response);
    v1::UploadCaptureRequest part;
    part.mutable_header()->set_label("x.nsys.sqlite");
    part.mutable_header()->set_size(size);
    part.mutable_header()->set_sha256(std::move(sha256));
    bool open = stream->Write(part);
    for (size_t at = 0; open && at < bytes.size(); at += chunk) {
      part.set_data(bytes.substr(at, chunk));
      open = stream->Write(part);
    }
    stream->WritesDone();
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return response.artifact();
  }
  absl::StatusOr<std::string> Download(const std::string& id, const std::string& instance,
                                       v1::ArtifactReference* artifact = nullptr) {
    grpc::ClientContext context;
    v1::DownloadArtifactRequest request;
    request.set_artifact_id(id);
    request.set_specialist_instance(instance);
    const auto stream = user_->DownloadArtifact(&context, request);
    v1::DownloadArtifactResponse response;
    std::string bytes;
    while (stream->Read(&response)) {
      if (response.has_artifact() && artifact != nullptr) *artifact = response.artifact();
      bytes += response.data();
    }
    const grpc::Status status = stream->Finish();
    if (!status.ok()) return FromGrpcStatus(status);
    return bytes;
  }
  static std::string SomeBytes(size_t size) {
    std::string bytes(size, '\0');
    for (size_t i = 0; i < size; ++i) bytes[i] = static_cast<char>(i * 31 + i / 251);
    return bytes;
  }
};

TEST_F(QueriesTest, AnalysesComeNewestFirstInPagesOfOneFilter) {
  RegisterProfiler();
  std::vector<std::string> ids;
  for (int i = 0; i < 5; ++i) ids.insert(ids.begin(), Finished(Question()).id());
  ASSERT_OK_AND_ASSIGN(const auto first, List("state=SUCCEEDED", 2));
  EXPECT_THAT(Ids(first), ElementsAre(ids[0], ids[1]));
  EXPECT_EQ(first.total(), 5u);
  ASSERT_OK_AND_ASSIGN(const auto second, List("state=SUCCEEDED", 2, first.next_page_token()));
  EXPECT_THAT(Ids(second), ElementsAre(ids[2], ids[3]));
  ASSERT_OK_AND_ASSIGN(const auto third, List("state=SUCCEEDED", 2, second.next_page_token()));
  EXPECT_THAT(Ids(third), ElementsAre(ids[4]));
  EXPECT_EQ(third.next_page_token(), "");
  // A token of another filter, or one made up, is no token.
  for (const auto& [filter, token] : {std::pair("", first.next_page_token().c_str()),
                                      std::pair("state=SUCCEEDED", "bm90IGEgdG9rZW4gYXQgYWxs"),
                                      std::pair("state=SUCCEEDED", "%%%")}) {
    const auto refused = List(filter, 2, token);
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("page_token")));
    EXPECT_EQ(ErrorReason(refused.status()), "PAGE_TOKEN_INVALID");
  }
  EXPECT_THAT(List("", 1001), StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("1000")));
}

TEST_F(QueriesTest, AnalysesAreFilteredByStateClassAndTime) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  EXPECT_EQ(List("state=FAILED")->total(), 0u);
  EXPECT_EQ(List("state=succeeded AND class=launch-overhead")->total(), 1u);
  EXPECT_EQ(List("class=memory-bound")->total(), 0u);
  const std::string hour_ago =
      absl::FormatTime(absl::RFC3339_full, absl::Now() - absl::Hours(1), absl::UTCTimeZone());
  const std::string tomorrow =
      absl::FormatTime(absl::RFC3339_full, absl::Now() + absl::Hours(24), absl::UTCTimeZone());
  EXPECT_THAT(Ids(*List("since=" + hour_ago)), ElementsAre(id));
  EXPECT_EQ(List("since=" + tomorrow)->total(), 0u);
}

TEST_F(QueriesTest, AFilterThatIsNoneSaysWhatWouldFit) {
  const std::pair<const char*, const char*> cases[] = {{"state=DONE", "SUCCEEDED"},
                                                       {"class=slow", "memory-bound"},
                                                       {"since=yesterday", "RFC 3339"},
                                                       {"owner=me", "state, class or since"},
                                                       {"state", "name=value"},
                                                       {"state=QUEUED AND state=FAILED", "twice"},
                                                       {"state=QUEUED AND class", "name=value"}};
  for (const auto& [filter, expected] : cases) {
    const auto refused = List(filter);
    EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr(expected)));
    ASSERT_EQ(FieldViolations(refused.status()).size(), 1u);
    EXPECT_EQ(FieldViolations(refused.status())[0].field, "filter");
  }
}

TEST_F(QueriesTest, KernelsComeLongestFirstInPagesWithTheirMetrics) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  ASSERT_OK_AND_ASSIGN(const auto first, Kernels(id, 2));
  ASSERT_EQ(first.kernels_size(), 2);
  EXPECT_EQ(first.kernels(0).name(), "mul_kernel");
  EXPECT_EQ(first.kernels(1).name(), "add_kernel");
  EXPECT_EQ(first.total(), 3u);
  std::set<std::string> keys;
  for (const auto& metric : first.metrics()) EXPECT_TRUE(keys.insert(metric.key()).second);
  for (const auto& kernel : first.kernels()) {
    EXPECT_GT(kernel.metric_keys_size(), 0);
    for (const auto& key : kernel.metric_keys()) EXPECT_TRUE(keys.contains(key)) << key;
  }
  for (const auto& metric : first.metrics()) {
    for (const auto& input : metric.provenance().derived().inputs()) {
      EXPECT_TRUE(keys.contains(input.metric_key())) << input.metric_key();
    }
  }
  ASSERT_OK_AND_ASSIGN(const auto second, Kernels(id, 2, first.next_page_token()));
  ASSERT_EQ(second.kernels_size(), 1);
  EXPECT_EQ(second.kernels(0).name(), "tail");
  EXPECT_EQ(second.next_page_token(), "");
  EXPECT_THAT(Kernels(id, 2, "nonsense"), StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(QueriesTest, KernelsAreOfFinishedAnalyses) {
  RegisterProfiler();
  profiler_.Hold();
  const std::string id = Submit(Question())->analysis().id();
  EXPECT_THAT(Kernels(id), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("watch it")));
}

TEST_F(QueriesTest, AMetricIsExplainedDownToWhatWasMeasured) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  ASSERT_OK_AND_ASSIGN(const auto by_id, Explain(id, "gpu_busy_share"));
  ASSERT_GE(by_id.chain_size(), 3);
  EXPECT_EQ(by_id.chain(0).id(), "gpu_busy_share");
  EXPECT_TRUE(by_id.chain(0).provenance().has_derived());
  EXPECT_EQ(by_id.chain(1).key(), by_id.chain(0).provenance().derived().inputs(0).metric_key());
  std::vector<std::string> lines = absl::StrSplit(by_id.text(), '\n', absl::SkipEmpty());
  ASSERT_EQ(lines.size(), static_cast<size_t>(by_id.chain_size()));
  EXPECT_THAT(lines[0], HasSubstr("part / window * 100"));
  EXPECT_THAT(lines[1], HasSubstr("measured by nsys"));
  ASSERT_OK_AND_ASSIGN(const auto by_key, Explain(id, by_id.chain(0).key()));
  EXPECT_EQ(by_key.text(), by_id.text());
  EXPECT_THAT(Explain(id, "m99999"), StatusIs(absl::StatusCode::kNotFound, HasSubstr("m99999")));
}

TEST_F(QueriesTest, EveryNumberOfAReportIsComputedAgain) {
  RegisterProfiler();
  const v1::Analysis analysis = Finished(Question());
  ASSERT_OK_AND_ASSIGN(const auto report, Report(analysis.id()));
  ASSERT_OK_AND_ASSIGN(const auto verified, Verify(analysis.id()));
  EXPECT_EQ(verified.metrics_size(), report.report().all_metrics_size());
  EXPECT_EQ(verified.not_matching(), 0u);
  for (const auto& metric : verified.metrics()) {
    EXPECT_EQ(metric.verdict(), v1::RECOMPUTE_VERDICT_MATCHES)
        << metric.key() << " " << metric.detail();
  }
  EXPECT_EQ(verified.matching(), static_cast<uint64_t>(verified.metrics_size()));
}

TEST_F(QueriesTest, ANumberTheSpecialistDoesNotFindAgainIsNamed) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  profiler_.RecomputeWith([](const v1::Metric& metric) {
    v1::RecomputedMetric out;
    out.set_key(metric.key());
    const bool wrong = metric.id() == "kernel_count";
    out.set_value(metric.value() + (wrong ? 1 : 0));
    out.set_verdict(wrong ? v1::RECOMPUTE_VERDICT_DIFFERS : v1::RECOMPUTE_VERDICT_MATCHES);
    return out;
  });
  ASSERT_OK_AND_ASSIGN(const auto verified, Verify(id));
  EXPECT_EQ(verified.not_matching(), 1u);
}

TEST_F(QueriesTest, WithoutTheSpecialistMeasuredNumbersCannotBeVerified) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  Restart();  // nobody is registered any more
  ASSERT_OK_AND_ASSIGN(const auto report, Report(id));
  ASSERT_OK_AND_ASSIGN(const auto verified, Verify(id));
  for (int i = 0; i < verified.metrics_size(); ++i) {
    const bool measured = report.report().all_metrics(i).provenance().has_measured();
    EXPECT_EQ(verified.metrics(i).verdict(),
              measured ? v1::RECOMPUTE_VERDICT_NO_ARTIFACT : v1::RECOMPUTE_VERDICT_MATCHES);
  }
}

TEST_F(QueriesTest, ACaptureGoesToTheSpecialistAndComesBack) {
  RegisterProfiler();
  const std::string bytes = SomeBytes(3'000'000);
  ASSERT_OK_AND_ASSIGN(const auto artifact, Upload(bytes, Sha256Hex(bytes), bytes.size(), 900'000));
  EXPECT_EQ(artifact.specialist_instance(), "one");
  EXPECT_EQ(artifact.label(), "x.nsys.sqlite");
  EXPECT_EQ(artifact.size(), bytes.size());
  v1::ArtifactReference described;
  ASSERT_OK_AND_ASSIGN(const std::string back, Download(artifact.id(), "one", &described));
  EXPECT_TRUE(back == bytes);
  EXPECT_EQ(described.specialist_instance(), "one");
  EXPECT_EQ(described.sha256(), Sha256Hex(bytes));
}

TEST_F(QueriesTest, AnArtifactIsFoundWithoutTheNameOfItsSpecialist) {
  // The other one is asked too; which comes first does not matter.
  delegation::TestSpecialist other("another-specialist", "two");
  ASSERT_THAT(other.Serve(folder_), IsOk());
  Register(other);
  RegisterProfiler();
  const std::string bytes = SomeBytes(5000);
  ASSERT_OK_AND_ASSIGN(const auto artifact, Upload(bytes, Sha256Hex(bytes), bytes.size()));
  ASSERT_OK_AND_ASSIGN(const std::string back, Download(artifact.id(), ""));
  EXPECT_TRUE(back == bytes);
  EXPECT_THAT(Download(artifact.id(), "two"), StatusIs(absl::StatusCode::kNotFound, _));
  EXPECT_THAT(Download("no-such", ""), StatusIs(absl::StatusCode::kNotFound, HasSubstr("no-such")));
  EXPECT_THAT(Download("", ""), StatusIs(absl::StatusCode::kInvalidArgument, _));
}

TEST_F(QueriesTest, AnEmptyCaptureIsPassedOnToo) {
  RegisterProfiler();
  ASSERT_OK_AND_ASSIGN(const auto artifact, Upload("", Sha256Hex(""), 0));
  EXPECT_EQ(artifact.size(), 0u);
}

TEST_F(QueriesTest, ABadUploadIsRefused) {
  RegisterProfiler();
  const std::string bytes = SomeBytes(5000);
  EXPECT_THAT(Upload(bytes, "short", bytes.size()),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_THAT(Upload(bytes, Sha256Hex("other"), bytes.size()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("SHA-256")));
  EXPECT_THAT(Upload(bytes, Sha256Hex(bytes), bytes.size() - 1),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer")));
  const std::string large = SomeBytes(3 << 20);
  EXPECT_THAT(Upload(large, Sha256Hex(large), large.size(), large.size()),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("longer")));
  grpc::ClientContext context;
  v1::UploadCaptureResponse response;
  const auto stream = user_->UploadCapture(&context, &response);
  stream->WritesDone();
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::INVALID_ARGUMENT);
}

TEST_F(QueriesTest, WithoutASpecialistAnUploadSaysSo) {
  const auto refused = Upload("x", Sha256Hex("x"), 1);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kUnavailable,
                                HasSubstr(std::string(delegation::kProfilingSpecialist))));
  EXPECT_EQ(ErrorReason(refused.status()), "SPECIALIST_UNAVAILABLE");
  EXPECT_THAT(Download("art", "one"), StatusIs(absl::StatusCode::kUnavailable, HasSubstr("one")));
}

TEST_F(QueriesTest, AnUploadThatIsAbandonedLeavesTheCoordinatorServing) {
  RegisterProfiler();
  for (int i = 0; i < 10; ++i) {
    grpc::ClientContext context;
    v1::UploadCaptureResponse response;
    const auto stream = user_->UploadCapture(&context, &response);
    v1::UploadCaptureRequest part;
    part.mutable_header()->set_label("x");
    part.mutable_header()->set_size(1000);
    part.mutable_header()->set_sha256(Sha256Hex("x"));
    stream->Write(part);
    if (i % 2 == 0) {
      part.set_data("some");
      stream->Write(part);
    }
    context.TryCancel();
    EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::CANCELLED);
  }
  EXPECT_THAT(Upload("x", Sha256Hex("x"), 1), IsOk());
}

TEST_F(QueriesTest, SpecialistsAreListedAndLeave) {
  RegisterProfiler();
  ASSERT_OK_AND_ASSIGN(const auto listed,
                       Call(*user_, &Stub::ListSpecialists, v1::ListSpecialistsRequest()));
  ASSERT_EQ(listed.specialists_size(), 1);
  EXPECT_EQ(listed.specialists(0).description().instance_id(), "one");
  EXPECT_TRUE(listed.specialists(0).healthy());
}

TEST_F(QueriesTest, HeartbeatsOfAnUnknownRegistrationSayRegisterAgain) {
  const auto stub = v1::RegistryService::NewStub(DialTarget(coordinator_->targets()[0]));
  grpc::ClientContext context;
  v1::HeartbeatRequest request;
  request.set_registration_id("reg-unknown");
  v1::HeartbeatResponse response;
  const grpc::Status status = stub->Heartbeat(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::NOT_FOUND);
  EXPECT_THAT(status.error_message(), HasSubstr("register again"));
}

TEST_F(QueriesTest, AttachingSaysThatItIsNotAvailable) {
  const auto stub = v1::RegistryService::NewStub(DialTarget(coordinator_->targets()[0]));
  grpc::ClientContext context;
  const auto stream = stub->Attach(&context);
  v1::AttachResponse response;
  EXPECT_FALSE(stream->Read(&response));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::UNIMPLEMENTED);
}

TEST_F(QueriesTest, ATargetElsewhereNeedsTls) {
  const auto stub = v1::RegistryService::NewStub(DialTarget(coordinator_->targets()[0]));
  grpc::ClientContext context;
  v1::RegisterSpecialistRequest request;
  *request.mutable_description() = profiler_.description();
  request.set_target("192.0.2.1:7301");
  v1::RegisterSpecialistResponse response;
  const grpc::Status status = stub->RegisterSpecialist(&context, request, &response);
  EXPECT_EQ(status.error_code(), grpc::StatusCode::FAILED_PRECONDITION);
  EXPECT_THAT(status.error_message(), HasSubstr("specialist_ca"));
}

}  // namespace
}  // namespace solward::service
