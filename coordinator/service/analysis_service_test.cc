// One analysis through the whole coordinator, from submit to report.
#include <thread>

#include "absl/strings/str_cat.h"
#include "coordinator/service/coordinator_fixture.h"

namespace solward::service {
namespace {

using ::solward::testing::IsOk;
using ::solward::testing::StatusIs;
using ::testing::_;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::StartsWith;

using AnalysisServiceTest = CoordinatorFixture;

TEST_F(AnalysisServiceTest, FromSubmitThroughEveryStageToAReportOfFourSections) {
  RegisterProfiler();
  ASSERT_OK_AND_ASSIGN(const auto submitted, Submit(Question(), "my key"));
  EXPECT_EQ(submitted.analysis().key(), "my key");
  EXPECT_THAT(submitted.analysis().caller(), StartsWith("uid:"));
  const std::string id = submitted.analysis().id();
  const std::vector<v1::AnalysisEvent> events = Watch(id);

  std::vector<v1::Stage> stages;
  bool planned = false, progressed = false, classified = false;
  for (size_t i = 0; i < events.size(); ++i) {
    EXPECT_EQ(events[i].sequence(), i + 1);
    if (stages.empty() || stages.back() != events[i].stage()) stages.push_back(events[i].stage());
    planned |= events[i].has_plan();
    progressed |= events[i].has_delegation();
    classified |= events[i].has_classification();
  }
  EXPECT_TRUE(planned && progressed && classified);
  for (int stage = v1::STAGE_UNDERSTAND; stage <= v1::STAGE_REPORT; ++stage) {
    EXPECT_THAT(stages, Contains(static_cast<v1::Stage>(stage)));
  }
  ASSERT_EQ(events.back().state(), v1::ANALYSIS_STATE_SUCCEEDED) << events.back().DebugString();
  ASSERT_OK_AND_ASSIGN(const auto english, Report(id));
  for (const char* section : {"## Summary", "## Metrics", "## Findings", "## Recommendations"}) {
    EXPECT_THAT(english.text(), HasSubstr(section));
  }
  EXPECT_EQ(english.report().classification().primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
  ASSERT_OK_AND_ASSIGN(const auto french,
                       Report(id, v1::REPORT_FORMAT_MARKDOWN, v1::REPORT_LANGUAGE_FRENCH));
  for (const char* section : {"## Résumé", "## Métriques", "## Findings", "## Recommandations"}) {
    EXPECT_THAT(french.text(), HasSubstr(section));
  }
  EXPECT_EQ(Report(id, v1::REPORT_FORMAT_UNSPECIFIED)->text(), "");
}

TEST_F(AnalysisServiceTest, TheSpecialistIsAskedForAnOutcomeWithTheAnalysisInItsKey) {
  RegisterProfiler();
  const v1::Analysis analysis = Finished(Question());
  const auto requests = profiler_.requests();
  ASSERT_EQ(requests.size(), 1u);
  EXPECT_THAT(requests[0].key(), HasSubstr(analysis.id()));
  EXPECT_EQ(requests[0].workload().captures().captures(0).id(), "art-launch");
}

TEST_F(AnalysisServiceTest, ARepeatedSubmitReturnsTheFirstAnalysis) {
  RegisterProfiler();
  ASSERT_OK_AND_ASSIGN(const auto first, Submit(Question(), "k"));
  Watch(first.analysis().id());
  ASSERT_OK_AND_ASSIGN(const auto again, Submit(Question(), "k"));
  EXPECT_FALSE(first.existed());
  EXPECT_TRUE(again.existed());
  EXPECT_EQ(again.analysis().id(), first.analysis().id());
  EXPECT_EQ(again.analysis().state(), v1::ANALYSIS_STATE_SUCCEEDED);
  EXPECT_EQ(profiler_.requests().size(), 1u);
}

TEST_F(AnalysisServiceTest, AKeyWithAnotherRequestAlreadyExists) {
  RegisterProfiler();
  ASSERT_THAT(Submit(Question(), "k"), IsOk());
  v1::AnalysisRequest other = Question();
  other.set_notes("another question");
  const auto refused = Submit(other, "k");
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kAlreadyExists, HasSubstr("'k'")));
  EXPECT_EQ(ErrorReason(refused.status()), "KEY_REUSED");
  // The key belongs to its caller.
  ASSERT_OK_AND_ASSIGN(const auto others, Submit(other, "k", other_.get()));
  EXPECT_FALSE(others.existed());
}

TEST_F(AnalysisServiceTest, WithoutAKeyEveryAnalysisIsNew) {
  RegisterProfiler();
  ASSERT_OK_AND_ASSIGN(const auto first, Submit(Question()));
  ASSERT_OK_AND_ASSIGN(const auto second, Submit(Question()));
  EXPECT_NE(first.analysis().id(), second.analysis().id());
  EXPECT_NE(first.analysis().key(), second.analysis().key());
}

TEST_F(AnalysisServiceTest, AnotherCallerSeesNothingOfIt) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  const auto unseen = StatusIs(absl::StatusCode::kNotFound, HasSubstr(id));
  v1::GetAnalysisRequest get;
  get.set_analysis_id(id);
  EXPECT_THAT(Call(*other_, &Stub::GetAnalysis, get), unseen);
  v1::GetReportRequest report;
  report.set_analysis_id(id);
  EXPECT_THAT(Call(*other_, &Stub::GetReport, report), unseen);
  v1::CancelAnalysisRequest cancel;
  cancel.set_analysis_id(id);
  EXPECT_THAT(Call(*other_, &Stub::CancelAnalysis, cancel), unseen);
  EXPECT_EQ(Call(*other_, &Stub::ListAnalyses, v1::ListAnalysesRequest())->total(), 0u);
  grpc::ClientContext context;
  v1::WatchAnalysisRequest watch;
  watch.set_analysis_id(id);
  v1::WatchAnalysisResponse event;
  const auto stream = other_->WatchAnalysis(&context, watch);
  EXPECT_FALSE(stream->Read(&event));
  EXPECT_EQ(stream->Finish().error_code(), grpc::StatusCode::NOT_FOUND);
  // The server's own user sees what others submitted.
  ASSERT_OK_AND_ASSIGN(const auto others, Submit(Question(), "", other_.get()));
  EXPECT_EQ(others.analysis().caller(), "loopback");
  EXPECT_EQ(Get(others.analysis().id()).id(), others.analysis().id());
}

TEST_F(AnalysisServiceTest, QuestionsParkTheAnalysisUntilTheyAreAnswered) {
  RegisterProfiler();
  v1::AnalysisRequest question = Question();
  auto* capture = question.mutable_workload()->mutable_captures()->mutable_captures(0);
  capture->set_label("bmm.ncu.raw.csv");
  capture->set_kind(v1::CAPTURE_KIND_NCU_CSV_RAW);
  question.mutable_desired_metrics(0)->set_id("mfu");  // neither FLOPs nor dimensions are given
  question.mutable_context()->set_dtype(v1::DTYPE_FP16);
  ASSERT_OK_AND_ASSIGN(const auto submitted, Submit(question));
  const std::string id = submitted.analysis().id();
  ASSERT_TRUE(WaitFor(id, v1::ANALYSIS_STATE_INPUT_REQUIRED));
  const v1::Analysis waiting = Get(id);
  ASSERT_EQ(waiting.questions_size(), 1) << waiting.DebugString();
  EXPECT_EQ(waiting.questions(0).kind(), v1::QUESTION_KIND_FLOPS_MISSING);
  EXPECT_TRUE(profiler_.requests().empty());
  const auto early = Report(id);
  EXPECT_THAT(early, StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("questions")));

  v1::AnswerQuestionsRequest answers;
  answers.set_analysis_id(id);
  EXPECT_THAT(Call(*user_, &Stub::AnswerQuestions, answers),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  v1::Answer& answer = *answers.add_answers();
  answer.set_question_id("no_such_question");
  answer.set_name("flops_per_call");
  answer.set_value("68.72 GFLOP");
  const auto unfit = Call(*user_, &Stub::AnswerQuestions, answers);
  EXPECT_THAT(unfit, StatusIs(absl::StatusCode::kInvalidArgument, _));
  ASSERT_EQ(FieldViolations(unfit.status()).size(), 1u);
  EXPECT_EQ(FieldViolations(unfit.status())[0].field, "answers[0].question_id");

  answer.set_question_id(waiting.questions(0).id());
  ASSERT_OK_AND_ASSIGN(const auto answered, Call(*user_, &Stub::AnswerQuestions, answers));
  EXPECT_EQ(answered.analysis().questions_size(), 0);
  EXPECT_EQ(Watch(id).back().state(), v1::ANALYSIS_STATE_SUCCEEDED);
  EXPECT_THAT(Call(*user_, &Stub::AnswerQuestions, answers),
              StatusIs(absl::StatusCode::kFailedPrecondition, _));
  ASSERT_EQ(profiler_.requests().size(), 1u);
  EXPECT_EQ(profiler_.requests()[0].context().flops_per_call().value(), 68.72e9);
}

TEST_F(AnalysisServiceTest, CancellingEndsARunningAnalysisOnce) {
  RegisterProfiler();
  profiler_.Hold();
  ASSERT_OK_AND_ASSIGN(const auto submitted, Submit(Question()));
  const std::string id = submitted.analysis().id();
  ASSERT_TRUE(profiler_.WaitForRequests(1));
  ASSERT_OK_AND_ASSIGN(const auto first, Cancel(id));
  EXPECT_EQ(first.outcome(), v1::CANCEL_OUTCOME_CANCELLED);
  EXPECT_EQ(first.analysis().state(), v1::ANALYSIS_STATE_CANCELLED);
  EXPECT_TRUE(first.analysis().has_end_time());
  EXPECT_TRUE(profiler_.WaitForCancel(1));
  ASSERT_OK_AND_ASSIGN(const auto second, Cancel(id));
  EXPECT_EQ(second.outcome(), v1::CANCEL_OUTCOME_ALREADY_CANCELLED);
  const auto events = Watch(id);
  EXPECT_EQ(events.back().state(), v1::ANALYSIS_STATE_CANCELLED);
  EXPECT_EQ(events.back().sequence(), first.analysis().last_sequence());
  EXPECT_THAT(Report(id), StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("cancelled")));
}

TEST_F(AnalysisServiceTest, CancellingAfterTheEndChangesNothing) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  ASSERT_OK_AND_ASSIGN(const auto cancelled, Cancel(id));
  EXPECT_EQ(cancelled.outcome(), v1::CANCEL_OUTCOME_ALREADY_ENDED);
  EXPECT_EQ(cancelled.analysis().state(), v1::ANALYSIS_STATE_SUCCEEDED);
  EXPECT_THAT(Report(id), IsOk());
}

TEST_F(AnalysisServiceTest, AnAnalysisThatWaitsForAWorkerCanBeCancelled) {
  config_.engine.workers = 1;
  Restart();
  RegisterProfiler();
  profiler_.Hold();
  ASSERT_THAT(Submit(Question()), IsOk());
  ASSERT_TRUE(profiler_.WaitForRequests(1));
  ASSERT_OK_AND_ASSIGN(const auto waiting, Submit(Question()));
  EXPECT_EQ(Cancel(waiting.analysis().id())->outcome(), v1::CANCEL_OUTCOME_CANCELLED);
  EXPECT_EQ(Watch(waiting.analysis().id()).size(), 2u);
}

TEST_F(AnalysisServiceTest, AFullQueueRefusesButKnowsItsKeys) {
  config_.engine = {.workers = 1, .max_queued = 1};
  Restart();
  RegisterProfiler();
  profiler_.Hold();
  ASSERT_THAT(Submit(Question(), "runs"), IsOk());
  ASSERT_TRUE(profiler_.WaitForRequests(1));
  ASSERT_THAT(Submit(Question(), "waits"), IsOk());
  const auto refused = Submit(Question(), "too many");
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kResourceExhausted, _));
  EXPECT_EQ(ErrorReason(refused.status()), "QUEUE_FULL");
  EXPECT_TRUE(Submit(Question(), "waits")->existed());
  profiler_.Release();
}

TEST_F(AnalysisServiceTest, WithoutTheGraphSpecialistTheReportSaysSoAndIsComplete) {
  RegisterProfiler();
  const v1::Analysis analysis = Finished(Question());
  ASSERT_EQ(analysis.state(), v1::ANALYSIS_STATE_SUCCEEDED) << analysis.error().message();
  ASSERT_EQ(analysis.plan().delegations_size(), 2);
  EXPECT_EQ(analysis.plan().delegations(1).specialist(), delegation::kCudaGraphSpecialist);
  EXPECT_EQ(analysis.plan().delegations(1).wave(), 2u);
  ASSERT_OK_AND_ASSIGN(const auto report, Report(analysis.id()));
  EXPECT_THAT(report.text(), HasSubstr(std::string(delegation::kCudaGraphSpecialist)));
  EXPECT_EQ(report.report().classification().primary(), v1::BOTTLENECK_CLASS_LAUNCH_OVERHEAD);
}

TEST_F(AnalysisServiceTest, TheGraphSpecialistIsAskedInASecondWave) {
  delegation::TestSpecialist graph(std::string(delegation::kCudaGraphSpecialist), "two");
  ASSERT_THAT(graph.Serve(folder_), IsOk());
  graph.AnswerWith([](const v1::DelegationRequest&) -> absl::StatusOr<v1::DelegationResult> {
    return MakeError(absl::StatusCode::kUnimplemented, "NOT_BUILT", "graphs are not built yet");
  });
  RegisterProfiler();
  Register(graph);
  const v1::Analysis analysis = Finished(Question());
  EXPECT_EQ(analysis.state(), v1::ANALYSIS_STATE_SUCCEEDED);
  ASSERT_EQ(graph.requests().size(), 1u);
  EXPECT_EQ(profiler_.requests().size(), 1u);
  EXPECT_THAT(Report(analysis.id())->text(), HasSubstr("graphs are not built yet"));
}

TEST_F(AnalysisServiceTest, WithoutAnySpecialistTheReportSaysWhatIsMissing) {
  const v1::Analysis analysis = Finished(Question());
  ASSERT_EQ(analysis.state(), v1::ANALYSIS_STATE_SUCCEEDED) << analysis.error().message();
  ASSERT_OK_AND_ASSIGN(const auto report, Report(analysis.id()));
  EXPECT_THAT(report.text(), HasSubstr(std::string(delegation::kProfilingSpecialist)));
  EXPECT_EQ(report.report().classification().primary(),
            v1::BOTTLENECK_CLASS_UNDETERMINED_NO_EVIDENCE);
}

TEST_F(AnalysisServiceTest, AResultWithoutProvenanceFailsTheAnalysis) {
  profiler_.AnswerWith([](const v1::DelegationRequest&) {
    v1::DelegationResult result = LaunchBoundResult();
    result.mutable_metrics(0)->clear_provenance();
    return result;
  });
  RegisterProfiler();
  const v1::Analysis analysis = Finished(Question());
  EXPECT_EQ(analysis.state(), v1::ANALYSIS_STATE_FAILED);
  EXPECT_EQ(analysis.stage(), v1::STAGE_MEASURE);
  EXPECT_NE(analysis.error().code(), 0);
  EXPECT_THAT(analysis.error().message(), HasSubstr("provenance"));
  EXPECT_THAT(Report(analysis.id()),
              StatusIs(absl::StatusCode::kFailedPrecondition, HasSubstr("failed")));
}

TEST_F(AnalysisServiceTest, AWatchGoesOnAfterASequenceNumber) {
  RegisterProfiler();
  const std::string id = Finished(Question()).id();
  const auto all = Watch(id);
  const auto rest = Watch(id, 3);
  ASSERT_EQ(rest.size(), all.size() - 3);
  EXPECT_EQ(rest[0].sequence(), 4u);
  EXPECT_TRUE(Watch(id, all.size()).empty());
  EXPECT_TRUE(Watch(id, all.size() + 100).empty());
}

TEST_F(AnalysisServiceTest, ManyWatchersSeeTheSameEventsWhileItRuns) {
  RegisterProfiler();
  profiler_.Hold();
  ASSERT_OK_AND_ASSIGN(const auto submitted, Submit(Question()));
  const std::string id = submitted.analysis().id();
  ASSERT_TRUE(profiler_.WaitForRequests(1));
  std::vector<std::vector<v1::AnalysisEvent>> seen(12);
  {
    std::vector<std::jthread> watchers;
    for (auto& events : seen) watchers.emplace_back([&] { events = Watch(id); });
    // One that goes away in between does not disturb the others.
    Watch(id, 0, 2);
    profiler_.Release();
  }
  const auto all = Watch(id);
  for (const auto& events : seen) {
    ASSERT_EQ(events.size(), all.size());
    EXPECT_EQ(events.back().state(), v1::ANALYSIS_STATE_SUCCEEDED);
  }
}

TEST_F(AnalysisServiceTest, AShutdownEndsWatchersWithWhereToGoOn) {
  RegisterProfiler();
  profiler_.Hold();
  ASSERT_OK_AND_ASSIGN(const auto submitted, Submit(Question()));
  const std::string id = submitted.analysis().id();
  ASSERT_TRUE(profiler_.WaitForRequests(1));
  grpc::ClientContext context;
  v1::WatchAnalysisRequest request;
  request.set_analysis_id(id);
  const auto stream = user_->WatchAnalysis(&context, request);
  v1::WatchAnalysisResponse response;
  ASSERT_TRUE(stream->Read(&response));
  std::jthread stopping([&] { coordinator_->Shutdown(absl::ZeroDuration()); });
  uint64_t last = 0;
  do {
    last = response.event().sequence();
  } while (stream->Read(&response));
  const grpc::Status status = stream->Finish();
  EXPECT_THAT(status.error_message(), HasSubstr(absl::StrCat("after sequence ", last)));
  EXPECT_EQ(status.error_code(), grpc::StatusCode::UNAVAILABLE);
}

TEST_F(AnalysisServiceTest, WhatIsTooLargeIsRefusedByField) {
  RegisterProfiler();
  v1::AnalysisRequest question = Question();
  question.set_statement(std::string((16 << 10) + 1, 'a'));
  question.set_notes(std::string((4 << 10) + 1, 'a'));
  for (int i = 0; i < 64; ++i) {
    question.mutable_workload()->mutable_captures()->add_captures()->set_id("art");
  }
  const auto refused = Submit(question);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("statement")));
  std::vector<std::string> fields;
  for (const FieldViolation& v : FieldViolations(refused.status())) fields.push_back(v.field);
  EXPECT_THAT(fields, ::testing::ElementsAre("request.statement", "request.notes",
                                             "request.workload.captures.captures"));
  EXPECT_THAT(Submit(Question(), std::string(129, 'k')),
              StatusIs(absl::StatusCode::kInvalidArgument, HasSubstr("128")));
  EXPECT_THAT(Submit(Question(), "a\nb"), StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_EQ(Call(*user_, &Stub::ListAnalyses, v1::ListAnalysesRequest())->total(), 0u);
}

TEST_F(AnalysisServiceTest, HowInsteadOfWhatIsRefusedAtSubmit) {
  RegisterProfiler();
  v1::AnalysisRequest question = Question();
  question.set_statement("Measure the kernel time. Run ncu --set full on it.");
  const auto refused = Submit(question);
  EXPECT_THAT(refused, StatusIs(absl::StatusCode::kInvalidArgument, _));
  ASSERT_FALSE(FieldViolations(refused.status()).empty());
  EXPECT_THAT(FieldViolations(refused.status())[0].field, HasSubstr("statement"));
  EXPECT_THAT(FieldViolations(refused.status())[0].description, HasSubstr("--set full"));
  v1::ValidateAnalysisRequest validate;
  *validate.mutable_request() = question;
  EXPECT_THAT(Call(*user_, &Stub::ValidateAnalysis, validate),
              StatusIs(absl::StatusCode::kInvalidArgument, _));
  EXPECT_EQ(Call(*user_, &Stub::ListAnalyses, v1::ListAnalysesRequest())->total(), 0u);
}

TEST_F(AnalysisServiceTest, ValidatingPlansWithoutRunning) {
  RegisterProfiler();
  v1::ValidateAnalysisRequest request;
  *request.mutable_request() = Question();
  ASSERT_OK_AND_ASSIGN(const auto validated, Call(*user_, &Stub::ValidateAnalysis, request));
  EXPECT_TRUE(validated.questions().empty());
  ASSERT_EQ(validated.plan().delegations_size(), 1);
  EXPECT_EQ(validated.plan().delegations(0).specialist(), delegation::kProfilingSpecialist);
  EXPECT_TRUE(profiler_.requests().empty());
  EXPECT_EQ(Call(*user_, &Stub::ListAnalyses, v1::ListAnalysesRequest())->total(), 0u);
}

TEST_F(AnalysisServiceTest, ComparingSaysThatItIsNotAvailable) {
  const auto compared = Call(*user_, &Stub::CompareAnalyses, v1::CompareAnalysesRequest());
  EXPECT_THAT(compared, StatusIs(absl::StatusCode::kUnimplemented, HasSubstr("not available")));
  EXPECT_EQ(ErrorReason(compared.status()), "COMPARISON_NOT_AVAILABLE");
}

}  // namespace
}  // namespace solward::service
