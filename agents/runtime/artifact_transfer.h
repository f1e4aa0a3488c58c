// Streams of artifact bytes out of and into a workspace.
#ifndef SOLWARD_AGENTS_RUNTIME_ARTIFACT_TRANSFER_H_
#define SOLWARD_AGENTS_RUNTIME_ARTIFACT_TRANSFER_H_

#include <grpcpp/support/server_callback.h>

#include <atomic>

#include "agents/runtime/specialist.h"
#include "agents/runtime/workspace.h"
#include "solward/v1/specialist.pb.h"

namespace solward::runtime {

// Both own themselves until the call is done; `workspace` must outlive that.

// Bytes `offset` to `offset + length` (0: to the end) in chunks of at most
// 1 MiB, the reference in the first. OUT_OF_RANGE beyond the artifact's size.
grpc::ServerWriteReactor<v1::ReadArtifactResponse>* StartArtifactRead(
    const Workspace& workspace, const v1::ReadArtifactRequest& request);

// Header, then data; the specialist tells the kind, so that the same bytes always
// give the same reference. `uploads` counts the ones in progress, at most
// `max_uploads`.
grpc::ServerReadReactor<v1::PutCaptureRequest>* StartCaptureUpload(
    const Specialist& specialist, Workspace& workspace, std::atomic<int>& uploads, int max_uploads,
    v1::PutCaptureResponse* response);

}  // namespace solward::runtime

#endif  // SOLWARD_AGENTS_RUNTIME_ARTIFACT_TRANSFER_H_
