// Submits two orders, waits for the job, and prints what was found.
//
//   node out/orders.js http://HOST:PORT
//
// The address is that of --http. TLS_CA names the file of the server's authority, and
// TOKEN_FILE that of a token.
import { readFileSync } from "node:fs";
import { setTimeout as sleep } from "node:timers/promises";
import { createClient, ConnectError, type Interceptor } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { JobState } from "./gen/coditect/mapreduce/v1/job_pb.js";
import { MapReduceService } from "./gen/coditect/mapreduce/v1/mapreduce_service_pb.js";
import { z } from "zod";

// Order is the schema of the job, and the type of its records. What a document does not say
// is null. Hints stand in the metadata of a property.
const Order = z.object({
  seller: z.string().meta({ "x-coditect": { labels: ["Seller"] } }),
  total: z.number().nullable().meta({ "x-coditect": { labels: ["Total"] } }),
});
const schema = JSON.stringify(z.toJSONSchema(Order));

// Found is a record with the numbers of its citations, by field.
const Found = Order.extend({ _citations: z.record(z.string(), z.array(z.string())) });
const Result = z.object({
  aggregated_data: z.array(Found),
  citations: z.record(z.string(), z.object({ document_id: z.string(), quote: z.string() })),
});

const orders = {
  "orders/1.txt": "Seller: Acme Tools\nTotal: 10.50\n",
  "orders/2.txt": "Seller: Bolt & Sons\nTotal: 20.25\n",
};
const pieceBytes = 256 * 1024; // of a document in one message, at most

// submission yields the messages of a submission: the spec, and documents piece by piece.
async function* submission() {
  yield { spec: { schema } };
  for (const [documentId, text] of Object.entries(orders)) {
    const data = new TextEncoder().encode(text);
    for (let start = 0; start === 0 || start < data.length; start += pieceBytes) {
      const end = start + pieceBytes;
      yield { documents: [{ documentId, content: data.subarray(start, end), more: end < data.length }] };
    }
  }
}

// patiently makes a call, and again while the service says for how long it refuses it.
async function patiently<T>(call: () => Promise<T>, patience = 60): Promise<T> {
  for (;;) {
    try {
      return await call();
    } catch (e) {
      const delay = Number(ConnectError.from(e).metadata.get("retry-after") ?? NaN); // seconds
      if (!(delay > 0 && delay <= patience)) throw e;
      patience -= delay;
      await sleep(1000 * delay * (1 + Math.random() / 4));
    }
  }
}

// authorized adds the token of a file to each call.
const authorized: Interceptor = (next) => (request) => {
  const file = process.env["TOKEN_FILE"];
  if (file) request.header.set("Authorization", `Bearer ${readFileSync(file, "ascii").trim()}`);
  return next(request);
};

async function main(baseUrl: string) {
  const ca = process.env["TLS_CA"];
  const service = createClient(
    MapReduceService,
    createConnectTransport({
      baseUrl,
      httpVersion: "2",
      interceptors: [authorized],
      ...(ca ? { nodeOptions: { ca: readFileSync(ca) } } : {}),
    }),
  );
  let job = await patiently(async () => (await service.submitJob(submission())).job);
  if (!job) throw new Error("the reply holds no job");
  for await (const now of service.watchJob({ jobId: job.jobId })) job = now.job ?? job;
  console.log(`JOB_STATE_${JobState[job.state]}`, String(job.coverage?.documents?.mapped), "documents");

  const file: Uint8Array[] = [];
  for await (const part of service.getResultFile({ jobId: job.jobId })) file.push(part.data);
  const result = Result.parse(JSON.parse(Buffer.concat(file).toString()));
  for (const record of result.aggregated_data.toSorted((a, b) => a.seller.localeCompare(b.seller))) {
    const cited = result.citations[record._citations["total"]?.[0] ?? ""];
    console.log(record.seller, record.total, "from", cited?.document_id, `'${cited?.quote}'`);
  }
}

const address = process.argv[2];
if (!address) throw new Error("usage: node out/orders.js http://HOST:PORT");
await main(address);
