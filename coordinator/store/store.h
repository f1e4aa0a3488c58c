// Store: what the coordinator remembers of its analyses, across restarts.
//
// An analysis changes only by Append: one event, the state it leads to and the
// stage results it completes are written together or not at all.
//
//   ASSIGN_OR_RETURN(auto created, store.Create(analysis, hash, first_event));
//   RETURN_IF_ERROR(store.Append(id, {.event = planned, .documents = {{Document::kPlan, bytes}}},
//                                [](v1::Analysis& a) { ...; return absl::OkStatus(); }).status());
#ifndef SOLWARD_COORDINATOR_STORE_STORE_H_
#define SOLWARD_COORDINATOR_STORE_STORE_H_

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "solward/v1/analysis.pb.h"

namespace solward::store {

// Serialized message or text kept beside an analysis.
enum class Document {
  kAnswers,             // v1::AnswerQuestionsRequest: every answer so far, in order
  kUnderstanding,       // v1::Understanding
  kPlan,                // v1::Plan
  kEvidence,            // v1::Evidence of the first wave
  kSecondWaveEvidence,  // v1::Evidence of the second wave
  kMeasurement,         // v1::Measurement
  kClassification,      // v1::Classification
  kReport,              // v1::Report
  // Its renderings, kept so that they are served byte for byte by any version.
  kReportMarkdownEnglish,
  kReportMarkdownFrench,
  kReportJson,
};

// Stable name of a document, as the database has it.
const char* DocumentName(Document document);

// SUCCEEDED, FAILED or CANCELLED: nothing follows.
bool HasEnded(v1::AnalysisState state);

// One step of an analysis.
struct Transition {
  // Sequence, time, stage and state are filled by the store: the next number,
  // now, and those of the analysis after the update.
  v1::AnalysisEvent event;
  std::vector<std::pair<Document, std::string>> documents;
  // Set by the transition that classifies; what `class=` filters by.
  std::optional<v1::BottleneckClass> primary_class;
};

struct Created {
  v1::Analysis analysis;
  bool existed = false;
};

struct Appended {
  v1::Analysis analysis;
  v1::AnalysisEvent event;
};

// Place in the list, newest first: analyses before this one follow.
struct ListPosition {
  int64_t submit_time_ns = 0;
  std::string id;
};

struct ListQuery {
  std::optional<std::string> caller;      // nullopt: of every caller
  std::vector<v1::AnalysisState> states;  // empty: any
  std::optional<v1::BottleneckClass> primary_class;
  std::optional<int64_t> since_ns;  // submitted at or after, ns since 1970
  std::optional<ListPosition> after;
  uint32_t limit = 50;
};

struct ListResult {
  std::vector<v1::Analysis> analyses;
  std::optional<ListPosition> next;  // nullopt: this was the last page
  uint64_t total = 0;                // over all pages
};

// Thread-safe. Errors: RESOURCE_EXHAUSTED (STORE_FULL), FAILED_PRECONDITION
// (STORE_READ_ONLY, STORE_SCHEMA_NEWER), DATA_LOSS (STORE_CORRUPT),
// UNAVAILABLE (STORE_BUSY), INTERNAL (STORE_IO).
class Store {
 public:
  virtual ~Store() = default;

  // Keeps a new analysis with its first event (sequence 1). When (caller, key)
  // is known: the analysis it names when the request hash is the same,
  // otherwise ALREADY_EXISTS (KEY_REUSED).
  virtual absl::StatusOr<Created> Create(const v1::Analysis& analysis,
                                         const std::string& request_hash,
                                         const std::string& message) = 0;

  // The same look-up without creating. NOT_FOUND when the key is not known.
  virtual absl::StatusOr<v1::Analysis> FindByKey(const std::string& caller, const std::string& key,
                                                 const std::string& request_hash) = 0;

  // `update` gets the stored analysis and changes it; its error leaves
  // everything as it was and is returned. It runs inside the transaction and
  // must not call the store.
  virtual absl::StatusOr<Appended> Append(
      const std::string& analysis_id, Transition transition,
      const std::function<absl::Status(v1::Analysis&)>& update) = 0;

  // NOT_FOUND (ANALYSIS_NOT_FOUND) names the id.
  virtual absl::StatusOr<v1::Analysis> Get(const std::string& analysis_id) = 0;
  virtual absl::StatusOr<ListResult> List(const ListQuery& query) = 0;
  // Ids of analyses that are QUEUED or RUNNING, oldest first.
  virtual absl::StatusOr<std::vector<std::string>> Unfinished() = 0;

  // Events with a greater sequence number, in order, at most `limit`.
  virtual absl::StatusOr<std::vector<v1::AnalysisEvent>> EventsAfter(const std::string& analysis_id,
                                                                     uint64_t after_sequence,
                                                                     uint32_t limit) = 0;

  // nullopt when the analysis has none (yet).
  virtual absl::StatusOr<std::optional<std::string>> Read(const std::string& analysis_id,
                                                          Document document) = 0;
};

}  // namespace solward::store

#endif  // SOLWARD_COORDINATOR_STORE_STORE_H_
