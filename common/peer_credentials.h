// Which user is at the other end of a Unix socket.
#ifndef SOLWARD_COMMON_PEER_CREDENTIALS_H_
#define SOLWARD_COMMON_PEER_CREDENTIALS_H_

#include <sys/types.h>

#include "absl/status/statusor.h"

namespace solward {

// SO_PEERCRED of a connected Unix socket.
absl::StatusOr<uid_t> PeerUid(int fd);

}  // namespace solward

#endif  // SOLWARD_COMMON_PEER_CREDENTIALS_H_
