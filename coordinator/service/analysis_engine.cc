#include "coordinator/service/analysis_engine.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "common/id.h"
#include "common/log.h"
#include "common/sha256.h"
#include "common/status.h"
#include "coordinator/workflow/understand.h"
#include "google/protobuf/io/coded_stream.h"
#include "google/protobuf/io/zero_copy_stream_impl_lite.h"

namespace solward::service {
namespace {

absl::Status ShuttingDown() {
  return MakeError(absl::StatusCode::kUnavailable, "SHUTTING_DOWN",
                   "the coordinator is shutting down; try again when it is back");
}

// The same request gives the same bytes: maps are written in order of key.
std::string DeterministicBytes(const google::protobuf::Message& message) {
  std::string bytes;
  google::protobuf::io::StringOutputStream stream(&bytes);
  google::protobuf::io::CodedOutputStream coded(&stream);
  coded.SetSerializationDeterministic(true);
  message.SerializeToCodedStream(&coded);
  coded.Trim();
  return bytes;
}

// Each answer names a question that waits and a name the question accepts.
absl::Status CheckAnswers(const v1::Analysis& analysis, const std::vector<v1::Answer>& answers) {
  std::vector<FieldViolation> violations;
  for (size_t i = 0; i < answers.size(); ++i) {
    const v1::Answer& answer = answers[i];
    const std::string field = absl::StrCat("answers[", i, "]");
    const auto& questions = analysis.questions();
    const auto question = std::find_if(questions.begin(), questions.end(), [&](const auto& q) {
      return q.id() == answer.question_id();
    });
    if (question == questions.end()) {
      violations.push_back(
          {absl::StrCat(field, ".question_id"),
           absl::StrCat("'", answer.question_id(), "' is none of the questions that wait")});
      continue;
    }
    const auto& accepts = question->accepts();
    if (answer.name() != "skip" &&
        std::find(accepts.begin(), accepts.end(), answer.name()) == accepts.end()) {
      violations.push_back(
          {absl::StrCat(field, ".name"),
           absl::StrCat("'", answer.name(), "' does not answer '", question->id(), "'; one of ",
                        absl::StrJoin(accepts, ", "), ", or skip, expected")});
    }
  }
  if (violations.empty()) return absl::OkStatus();
  return MakeBadRequest("ANSWER_FITS_NO_QUESTION", "some answers fit no question; nothing was kept",
                        violations);
}

}  // namespace

// A place in the queue, given back unless it was used.
class AnalysisEngine::Slot {
 public:
  explicit Slot(AnalysisEngine& engine) : engine_(engine) {}
  ~Slot() {
    absl::MutexLock lock(&engine_.mutex_);
    --engine_.reserved_;
  }
  Slot(const Slot&) = delete;
  Slot& operator=(const Slot&) = delete;

 private:
  AnalysisEngine& engine_;
};

AnalysisEngine::AnalysisEngine(EngineOptions options, RunEnvironment environment)
    : options_(options), environment_(environment) {
  for (int i = 0; i < std::max(1, options_.workers); ++i) {
    workers_.emplace_back([this] { Work(); });
  }
}

AnalysisEngine::~AnalysisEngine() { Stop(absl::InfinitePast(), nullptr); }

absl::Status AnalysisEngine::ResumeUnfinished() {
  ASSIGN_OR_RETURN(const std::vector<std::string> ids, environment_.journal.store().Unfinished());
  for (const std::string& id : ids) {
    Log(LogLevel::kInfo, "analysis taken up again", {{"id", id}});
    Enqueue(id);
  }
  return absl::OkStatus();
}

absl::Status AnalysisEngine::Reserve() {
  absl::MutexLock lock(&mutex_);
  if (stopping_) return ShuttingDown();
  if (queue_.size() + reserved_ >= options_.max_queued) {
    return MakeError(absl::StatusCode::kResourceExhausted, "QUEUE_FULL",
                     absl::StrCat(queue_.size(),
                                  " analyses wait already; try again later with "
                                  "the same key"));
  }
  ++reserved_;
  return absl::OkStatus();
}

void AnalysisEngine::Enqueue(const std::string& analysis_id) {
  absl::MutexLock lock(&mutex_);
  // When stopping it stays in the store as it is, for the next start.
  if (!stopping_) queue_.push_back(analysis_id);
}

absl::StatusOr<store::Created> AnalysisEngine::Submit(const std::string& caller,
                                                      const std::string& key,
                                                      const v1::AnalysisRequest& request) {
  store::Store& store = environment_.journal.store();
  const std::string hash = Sha256Hex(DeterministicBytes(request));
  if (!key.empty()) {
    absl::StatusOr<v1::Analysis> known = store.FindByKey(caller, key, hash);
    if (known.ok()) return store::Created{*std::move(known), true};
    if (!absl::IsNotFound(known.status())) return known.status();
  }
  RETURN_IF_ERROR(workflow::Understand(request, {}, environment_.knowledge).status());
  RETURN_IF_ERROR(Reserve());
  const Slot slot(*this);
  v1::Analysis analysis;
  analysis.set_id(NewId("an"));
  analysis.set_caller(caller);
  analysis.set_key(key.empty() ? NewId("key") : key);
  analysis.set_state(v1::ANALYSIS_STATE_QUEUED);
  analysis.set_stage(v1::STAGE_UNDERSTAND);
  *analysis.mutable_request() = request;
  ASSIGN_OR_RETURN(store::Created created, store.Create(analysis, hash, "queued"));
  if (!created.existed) {
    Log(LogLevel::kInfo, "analysis",
        {{"id", analysis.id()}, {"state", "QUEUED"}, {"stage", "UNDERSTAND"}, {"caller", caller}});
    Enqueue(analysis.id());
  }
  return created;
}

absl::StatusOr<v1::Analysis> AnalysisEngine::Answer(const std::string& analysis_id,
                                                    const std::vector<v1::Answer>& answers) {
  absl::MutexLock answering(&answer_mutex_);
  ASSIGN_OR_RETURN(
      auto given, LoadDocument<v1::AnswerQuestionsRequest>(environment_.journal.store(),
                                                           analysis_id, store::Document::kAnswers));
  v1::AnswerQuestionsRequest all = given.value_or(v1::AnswerQuestionsRequest());
  for (const v1::Answer& answer : answers) *all.add_answers() = answer;
  RETURN_IF_ERROR(Reserve());
  const Slot slot(*this);
  store::Transition answered;
  answered.event.set_message(absl::StrCat(answers.size(), " answers received"));
  answered.documents = {{store::Document::kAnswers, all.SerializeAsString()}};
  ASSIGN_OR_RETURN(
      store::Appended appended,
      environment_.journal.Append(
          analysis_id, std::move(answered), [&](v1::Analysis& analysis) -> absl::Status {
            if (analysis.state() != v1::ANALYSIS_STATE_INPUT_REQUIRED) {
              return MakeError(
                  absl::StatusCode::kFailedPrecondition, "NO_QUESTIONS",
                  absl::StrCat("analysis ", analysis_id, ": asks nothing, its state is ",
                               StateName(analysis.state())));
            }
            RETURN_IF_ERROR(CheckAnswers(analysis, answers));
            analysis.set_state(v1::ANALYSIS_STATE_QUEUED);
            analysis.clear_questions();
            return absl::OkStatus();
          }));
  Enqueue(analysis_id);
  return std::move(appended.analysis);
}

absl::StatusOr<CancelResult> AnalysisEngine::Cancel(const std::string& analysis_id) {
  store::Transition cancelled;
  cancelled.event.set_message("cancelled");
  absl::StatusOr<store::Appended> appended =
      environment_.journal.Append(analysis_id, std::move(cancelled), [](v1::Analysis& analysis) {
        analysis.set_state(v1::ANALYSIS_STATE_CANCELLED);
        analysis.clear_questions();
        return absl::OkStatus();
      });
  if (appended.ok()) {
    StopRunning(analysis_id);
    return CancelResult{v1::CANCEL_OUTCOME_CANCELLED, std::move(appended->analysis)};
  }
  if (!IsAnalysisEnded(appended.status())) return appended.status();
  ASSIGN_OR_RETURN(v1::Analysis analysis, environment_.journal.store().Get(analysis_id));
  const bool was_cancelled = analysis.state() == v1::ANALYSIS_STATE_CANCELLED;
  return CancelResult{
      was_cancelled ? v1::CANCEL_OUTCOME_ALREADY_CANCELLED : v1::CANCEL_OUTCOME_ALREADY_ENDED,
      std::move(analysis)};
}

void AnalysisEngine::StopRunning(const std::string& analysis_id) {
  std::vector<std::stop_source> stops;
  {
    absl::MutexLock lock(&mutex_);
    std::erase(queue_, analysis_id);
    for (const auto& [run, running] : running_) {
      if (running.analysis_id == analysis_id) stops.push_back(running.stop);
    }
  }
  for (std::stop_source& stop : stops) stop.request_stop();
}

void AnalysisEngine::Work() {
  while (true) {
    std::string analysis_id;
    std::stop_token stop;
    uint64_t run = 0;
    {
      absl::MutexLock lock(&mutex_);
      const auto ready = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
        return stopping_ || !queue_.empty();
      };
      mutex_.Await(absl::Condition(&ready));
      if (stopping_) return;
      analysis_id = std::move(queue_.front());
      queue_.pop_front();
      run = next_run_++;
      Running& running = running_[run];
      running.analysis_id = analysis_id;
      stop = running.stop.get_token();
    }
    AnalysisRun(analysis_id, environment_, stop).Walk();
    absl::MutexLock lock(&mutex_);
    running_.erase(run);
  }
}

void AnalysisEngine::Stop(absl::Time deadline, const std::function<void()>& before_interrupt) {
  std::vector<std::stop_source> stops;
  {
    absl::MutexLock lock(&mutex_);
    stopping_ = true;
    const auto idle = [this]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return running_.empty(); };
    mutex_.AwaitWithDeadline(absl::Condition(&idle), deadline);
    for (const auto& [run, running] : running_) stops.push_back(running.stop);
  }
  if (!stops.empty() && before_interrupt) before_interrupt();
  for (std::stop_source& stop : stops) stop.request_stop();
  workers_.clear();
}

}  // namespace solward::service
