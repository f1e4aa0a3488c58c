// Passes captures on to a specialist and artifacts back to the client, chunk by
// chunk: the next one is read when the one before was taken, so that nothing is
// kept here, and nothing is looked into.
#ifndef SOLWARD_COORDINATOR_SERVICE_ARTIFACT_PROXY_H_
#define SOLWARD_COORDINATOR_SERVICE_ARTIFACT_PROXY_H_

#include <grpcpp/grpcpp.h>

#include "coordinator/delegation/registry.h"
#include "solward/v1/analysis.pb.h"

namespace solward::service {

// To the least busy profiling specialist. The reactor owns itself until its call
// is done; the arguments outlive the call.
grpc::ServerReadReactor<v1::UploadCaptureRequest>* ForwardUpload(
    grpc::CallbackServerContext* context, delegation::Registry& registry,
    v1::UploadCaptureResponse* response);

// From the specialist the request names, or from the first that knows the id.
grpc::ServerWriteReactor<v1::DownloadArtifactResponse>* ForwardDownload(
    grpc::CallbackServerContext* context, delegation::Registry& registry,
    const v1::DownloadArtifactRequest& request);

}  // namespace solward::service

#endif  // SOLWARD_COORDINATOR_SERVICE_ARTIFACT_PROXY_H_
