// Journal: the one way an analysis changes. Appends to the store, wakes the
// watchers, and writes a log line whenever state or stage change.
#ifndef SOLWARD_COORDINATOR_SERVICE_JOURNAL_H_
#define SOLWARD_COORDINATOR_SERVICE_JOURNAL_H_

#include <functional>
#include <optional>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "common/status.h"
#include "coordinator/service/event_hub.h"
#include "coordinator/store/store.h"

namespace solward::service {

using Update = std::function<absl::Status(v1::Analysis&)>;

// Thread-safe.
class Journal {
 public:
  // Both must outlive the journal.
  Journal(store::Store& store, EventHub& hub) : store_(store), hub_(hub) {}

  // FAILED_PRECONDITION (ANALYSIS_ENDED) when the analysis has ended; then
  // nothing is written. Otherwise what `update` or the store says.
  absl::StatusOr<store::Appended> Append(const std::string& analysis_id,
                                         store::Transition transition, const Update& update);

  store::Store& store() { return store_; }

 private:
  store::Store& store_;
  EventHub& hub_;
};

// Whether a status says that the analysis had ended before.
bool IsAnalysisEnded(const absl::Status& status);

// "RUNNING", "PROFILE": the names without their prefix.
std::string StateName(v1::AnalysisState state);
std::string StageName(v1::Stage stage);

// The document parsed as its message; nullopt when there is none.
template <typename Message>
absl::StatusOr<std::optional<Message>> LoadDocument(store::Store& store,
                                                    const std::string& analysis_id,
                                                    store::Document document) {
  ASSIGN_OR_RETURN(const std::optional<std::string> bytes, store.Read(analysis_id, document));
  if (!bytes.has_value()) return std::optional<Message>();
  Message message;
  if (!message.ParseFromString(*bytes)) {
    return MakeError(absl::StatusCode::kDataLoss, "STORE_CORRUPT",
                     absl::StrCat("analysis ", analysis_id, ": its stored ",
                                  store::DocumentName(document), " cannot be read"));
  }
  return std::optional<Message>(std::move(message));
}

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_JOURNAL_H_
