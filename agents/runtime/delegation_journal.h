// Ended delegations on disk, so that a repeat of a key after a restart returns
// the first result. One file a key, written whole or not at all.
#ifndef SOLWARD_AGENTS_RUNTIME_DELEGATION_JOURNAL_H_
#define SOLWARD_AGENTS_RUNTIME_DELEGATION_JOURNAL_H_

#include <memory>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "agents/runtime/delegation.h"

namespace solward::runtime {

// Thread-safe.
class DelegationJournal {
 public:
  // Keeps the newest `max_entries` of the files of `folder`, which exists.
  static absl::StatusOr<std::unique_ptr<DelegationJournal>> Open(const std::string& folder,
                                                                 size_t max_entries);

  absl::Status Write(const DelegationIdentity& identity, const DelegationEnd& end);
  // nullptr when there is none. A damaged record is removed (logged) and counts
  // as none.
  std::shared_ptr<Delegation> Read(const std::string& caller, const std::string& key);

 private:
  DelegationJournal(std::string folder, size_t max_entries)
      : folder_(std::move(folder)), max_entries_(max_entries) {}

  std::string PathOf(const std::string& caller, const std::string& key) const;
  void Prune() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const std::string folder_;
  const size_t max_entries_;
  absl::Mutex mutex_;
  size_t entries_ ABSL_GUARDED_BY(mutex_) = 0;  // an upper bound between two prunings
};

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_DELEGATION_JOURNAL_H_
