#include "common/peer_credentials.h"

#include <sys/socket.h>

#include <cerrno>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "common/status.h"

namespace solward {

absl::StatusOr<uid_t> PeerUid(int fd) {
  struct ucred credentials {};
  socklen_t size = sizeof(credentials);
  if (getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &credentials, &size) != 0) {
    return MakeError(absl::StatusCode::kInternal, "PEER_CREDENTIALS",
                     absl::StrCat("cannot read the user at the other end of fd ", fd, ": ",
                                  std::strerror(errno)));
  }
  // A socket that is no connected Unix socket answers with no process and the
  // overflow user; that is nobody's identity.
  if (size != sizeof(credentials) || credentials.uid == static_cast<uid_t>(-1)) {
    return MakeError(absl::StatusCode::kFailedPrecondition, "PEER_CREDENTIALS",
                     absl::StrCat("fd ", fd, " is not a connected Unix socket"));
  }
  return credentials.uid;
}

}  // namespace solward
