// The parts of a window that shares are taken of, by their catalogue ids.
#ifndef SOLWARD_COORDINATOR_WORKFLOW_SHARES_H_
#define SOLWARD_COORDINATOR_WORKFLOW_SHARES_H_

#include "absl/strings/string_view.h"

namespace solward::workflow {

struct SharePart {
  const char* share_id;
  const char* time_id;
  bool disjoint;  // these sum to the window
};

// Idle whose cause the capture does not hold; the only part a tool may leave out.
inline constexpr absl::string_view kUnattributedShare = "idle_unattributed_share";

inline constexpr SharePart kShareParts[] = {
    {"kernel_share", "kernel_time", true},
    {"exposed_communication_share", "exposed_communication_time", true},
    {"exposed_transfer_share", "exposed_transfer_time", true},
    {"idle_queued_share", "idle_queued_time", true},
    {"idle_host_share", "idle_host_time", true},
    {"idle_sync_share", "idle_sync_time", true},
    {"idle_launch_share", "idle_launch_time", true},
    {"idle_unattributed_share", "idle_unattributed_time", true},
    {"gpu_busy_share", "gpu_busy_time", false},
    {"idle_share", "idle_time", false},
    {"communication_share", "communication_time", false},
};

}  // namespace solward::workflow

#endif  // SOLWARD_COORDINATOR_WORKFLOW_SHARES_H_
