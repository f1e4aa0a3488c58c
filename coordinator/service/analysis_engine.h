// AnalysisEngine: owns the analyses that run. A bounded number of workers walk
// them through the stages; what waits, waits in a bounded queue.
#ifndef SOLWARD_COORDINATOR_SERVICE_ANALYSIS_ENGINE_H_
#define SOLWARD_COORDINATOR_SERVICE_ANALYSIS_ENGINE_H_

#include <deque>
#include <functional>
#include <map>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "coordinator/service/analysis_run.h"
#include "coordinator/service/journal.h"
#include "coordinator/store/store.h"

namespace solward::service {

struct EngineOptions {
  int workers = 4;
  // Analyses that wait for a worker; more are refused (RESOURCE_EXHAUSTED).
  size_t max_queued = 64;
};

struct CancelResult {
  v1::CancelOutcome outcome;
  v1::Analysis analysis;
};

// Thread-safe.
class AnalysisEngine {
 public:
  AnalysisEngine(EngineOptions options, RunEnvironment environment);
  // Stops at once; what ran is taken up again at the next start.
  ~AnalysisEngine();
  AnalysisEngine(const AnalysisEngine&) = delete;
  AnalysisEngine& operator=(const AnalysisEngine&) = delete;

  // Queues the analyses that a former process left queued or running.
  absl::Status ResumeUnfinished();

  // The first analysis of (caller, key) whatever became of it, or a new one. A
  // request that Understand refuses is refused here; nothing is kept of it.
  // Errors: INVALID_ARGUMENT, ALREADY_EXISTS (KEY_REUSED), RESOURCE_EXHAUSTED
  // (QUEUE_FULL), UNAVAILABLE (SHUTTING_DOWN).
  absl::StatusOr<store::Created> Submit(const std::string& caller, const std::string& key,
                                        const v1::AnalysisRequest& request);

  // FAILED_PRECONDITION (NO_QUESTIONS) when the analysis asks nothing;
  // INVALID_ARGUMENT names the answers that fit no question.
  absl::StatusOr<v1::Analysis> Answer(const std::string& analysis_id,
                                      const std::vector<v1::Answer>& answers);

  // The analysis is CANCELLED when this returns; its delegations end soon after.
  absl::StatusOr<CancelResult> Cancel(const std::string& analysis_id);

  // Takes no new work and lets what runs end until `deadline`; then calls
  // `before_interrupt` and interrupts the rest, which stays RUNNING in the store.
  void Stop(absl::Time deadline, const std::function<void()>& before_interrupt);

 private:
  struct Running {
    std::string analysis_id;
    std::stop_source stop;
  };
  class Slot;

  absl::Status Reserve();
  void Enqueue(const std::string& analysis_id);
  void Work();
  void StopRunning(const std::string& analysis_id);

  const EngineOptions options_;
  const RunEnvironment environment_;
  absl::Mutex answer_mutex_;  // one AnswerQuestions at a time reads and extends the answers
  absl::Mutex mutex_;
  std::deque<std::string> queue_ ABSL_GUARDED_BY(mutex_);
  size_t reserved_ ABSL_GUARDED_BY(mutex_) = 0;
  uint64_t next_run_ ABSL_GUARDED_BY(mutex_) = 0;
  std::map<uint64_t, Running> running_ ABSL_GUARDED_BY(mutex_);
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::jthread> workers_;
};

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_ANALYSIS_ENGINE_H_
