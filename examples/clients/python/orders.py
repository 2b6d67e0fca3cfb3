"""Submits two orders, waits for the job, and prints what was found.

    python3 orders.py HOST:PORT

TLS_CA names the file of the server's authority, TOKEN_FILE that of a token.
"""

import json
import os
import random
import sys
import time

import grpc
import hints_pb2
from coditect.mapreduce.v1 import job_pb2, mapreduce_service_pb2 as pb
from coditect.mapreduce.v1.mapreduce_service_pb2_grpc import MapReduceServiceStub

SCHEMA = {
    "type": "object",
    "properties": {
        "seller": {"type": "string", "x-coditect": {"labels": ["Seller"]}},
        "total": {"type": "number", "x-coditect": {"labels": ["Total"]}},
    },
}
ORDERS = {
    "orders/1.txt": "Seller: Acme Tools\nTotal: 10.50\n",
    "orders/2.txt": "Seller: Bolt & Sons\nTotal: 20.25\n",
}
PIECE = 256 * 1024  # bytes of a document in one message, at most


def connect(target):
    """Returns a channel to a server."""
    if "TLS_CA" not in os.environ:
        return grpc.insecure_channel(target)  # of this machine alone
    with open(os.environ["TLS_CA"], "rb") as file:
        credentials = grpc.ssl_channel_credentials(file.read())
    if "TOKEN_FILE" in os.environ:
        with open(os.environ["TOKEN_FILE"], encoding="ascii") as file:
            token = grpc.access_token_call_credentials(file.read().strip())
        credentials = grpc.composite_channel_credentials(credentials, token)
    return grpc.secure_channel(target, credentials)


def submission(schema):
    """Yields the messages of a submission: the spec, and documents piece by piece."""
    yield pb.SubmitJobRequest(spec=job_pb2.JobSpec(schema=json.dumps(schema)))
    for name, text in ORDERS.items():
        data = text.encode()
        for start in range(0, max(1, len(data)), PIECE):
            piece = pb.DocumentPiece(document_id=name, content=data[start : start + PIECE], more=start + PIECE < len(data))
            yield pb.SubmitJobRequest(documents=[piece])


def retry_delay(error):
    """Returns for how many seconds the service refuses a call, or None if it does not say."""
    for key, value in error.trailing_metadata() or ():
        if key == "grpc-status-details-bin":
            for detail in hints_pb2.Status.FromString(value).details:
                if detail.type_url.endswith("/google.rpc.RetryInfo"):
                    delay = hints_pb2.RetryInfo.FromString(detail.value).retry_delay
                    return delay.seconds + delay.nanos / 1e9
    return None


def patiently(call, patience=60.0):
    """Makes a call, and again while the service says for how long it refuses it."""
    while True:
        try:
            return call()
        except grpc.RpcError as error:
            delay = retry_delay(error)
            if delay is None or delay > patience:
                raise
            patience -= delay
            time.sleep(delay * random.uniform(1, 1.25))


def run(target, schema):
    """Runs the job on a server, prints how it ended, and returns its result."""
    with connect(target) as channel:
        service = MapReduceServiceStub(channel)
        job = patiently(lambda: service.SubmitJob(submission(schema)).job)
        for now in service.WatchJob(pb.WatchJobRequest(job_id=job.job_id)):
            job = now.job
        print(job_pb2.JobState.Name(job.state), job.coverage.documents.mapped, "documents")

        file = b"".join(m.data for m in service.GetResultFile(pb.GetResultFileRequest(job_id=job.job_id)))
        return json.loads(file)


def main(target):
    result = run(target, SCHEMA)
    for record in sorted(result["aggregated_data"], key=lambda r: r["seller"]):
        cited = result["citations"][record["_citations"]["total"][0]]
        print(record["seller"], record["total"], "from", cited["document_id"], repr(cited["quote"]))


if __name__ == "__main__":
    main(sys.argv[1])
