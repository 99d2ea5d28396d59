import * as z from "zod";
import { MIB, MILLIS_PER_DAY, bytes, millis } from "./schema-value.ts";

const count = (min: number, max: number) => z.int().min(min).max(max);

/** Bounds of the request path, by the names that the gateway has for them. */
export const limits = z.strictObject({
  bodyBytesMax: bytes()
    .default(16 * MIB)
    .describe("One request body; more is 413. A larger one may hold the gateway up for some 2 ms a MiB."),
  jsonDepthMax: count(1, 10_000)
    .default(128)
    .describe("Arrays and objects within one another in a JSON body; more is 400, here and for the next eight."),
  jsonKeysMax: count(1, 10_000_000).default(32_768).describe("Keys of all objects of a JSON body."),
  jsonFieldsMax: count(1, 10_000_000)
    .default(256)
    .describe("Keys of the outermost object of a JSON body; vLLM knows some 100."),
  jsonItemsMax: count(1, 10_000_000)
    .default(65_536)
    .describe("Strings, arrays and objects of a JSON body, without the keys."),
  jsonValuesMax: count(1, 100_000_000).default(2_097_152).describe("Values of a JSON body: token ids, above all."),
  messagesMax: count(1, 1_000_000).default(10_000).describe("Messages of a chat, or input items of a response."),
  contentPartsMax: count(1, 1_000_000).default(20_000).describe("Parts of the contents of all messages."),
  toolsMax: count(1, 1_000_000).default(2048).describe("Tools of a chat."),
  promptsMax: count(1, 1_000_000).default(4096).describe("Prompts of a completion, or inputs of an embedding."),
  bodyBytesInFlightMax: bytes()
    .default(1024 * MIB)
    .describe("Request bodies held at once, or still arriving; more is 429."),
  requestsInFlightMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(16_384)
    .describe("Requests between head and last byte; more is 503."),
  clientConnectionsMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(32_768)
    .describe("Sockets of clients; more are closed at once."),
  upstreamConnectionsMax: z
    .int()
    .min(1)
    .max(65_535)
    .default(4096)
    .describe("Sockets to one endpoint, and so requests given to it at once."),
  attemptsMax: z.int().min(1).max(16).default(3).describe("Endpoints that one request may be sent to."),
  continuationsMax: z
    .int()
    .min(0)
    .max(64)
    .default(8)
    .describe("Times that one stream goes on at another endpoint after its own broke; 0 cuts it."),
  continuationTokensKept: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(32_768)
    .describe(
      "Tokens of prompt and answer kept of one stream, so that it can go on; a longer one is cut where it breaks.",
    ),
  continuationBytesKept: bytes()
    .default(256 * MIB)
    .describe("What the tokens kept of all streams may take; a stream without room is cut where it breaks."),
  knownBodyBytesKept: z
    .int()
    .min(0)
    .max(1e12)
    .default(64 * MIB)
    .describe(
      "What beginnings of chats may take, so that of a conversation that goes on only the new messages are read; 0 for none.",
    ),
  retryRatio: z
    .number()
    .min(0)
    .max(10)
    .default(0.2)
    .describe("Retries per request in the long run, beyond retryBurst."),
  retryBurst: z.int().min(0).max(1_000_000).default(1000).describe("Retries that may come at once."),
  hedgeMillis: millis(1, MILLIS_PER_DAY)
    .optional()
    .describe(
      "Without a token for this long, a stream is asked for at a second endpoint too; the slower one is aborted. Unset: never.",
    ),
  hedgeShareMax: z
    .number()
    .min(0)
    .max(1)
    .default(0.05)
    .describe("Share of requests that may go to a second endpoint so, beyond hedgeBurst."),
  hedgeBurst: z.int().min(0).max(100_000).default(10).describe("Requests that may do so at once."),
  connectMillisMax: millis(1, 600_000).default(5000).describe("Connecting to an endpoint."),
  firstByteMillisMax: millis(1, MILLIS_PER_DAY)
    .default(600_000)
    .describe("Arrival to the first body byte, of requests that stream."),
  idleMillisMax: millis(1, MILLIS_PER_DAY).default(120_000).describe("Silence between two pieces of an answer."),
  totalMillisMax: millis(1, MILLIS_PER_DAY).default(3_600_000).describe("Arrival to the last byte."),
  lostMillisMax: millis(1, MILLIS_PER_DAY)
    .default(5000)
    .describe("From the loss of an engine until its requests that no other may take get an error; others go at once."),
  cutMillisMax: millis(1, MILLIS_PER_DAY)
    .default(10_000)
    .describe("Silence of an answer that began, at an engine that is lost or hangs, until it is cut."),
  continueMillisMax: millis(1, MILLIS_PER_DAY)
    .default(1000)
    .describe("The same of a stream that can go on at another endpoint; it goes there then."),
  writeStallMillisMax: millis(1, MILLIS_PER_DAY)
    .default(120_000)
    .describe("A client that reads nothing while bytes wait for it."),
  headersMillisMax: millis(1, MILLIS_PER_DAY).default(60_000).describe("Receiving the head of a request."),
  requestReadMillisMax: millis(1, MILLIS_PER_DAY).default(300_000).describe("Receiving head and body of a request."),
  clientKeepAliveMillis: millis(0, MILLIS_PER_DAY)
    .default(75_000)
    .describe("Idle connections of clients; above a load balancer's limit."),
  upstreamKeepAliveMillis: millis(1, MILLIS_PER_DAY)
    .default(4000)
    .describe("Idle connections to endpoints; below vLLM's 5 s."),
  answerBytesInspected: bytes()
    .default(8 * MIB)
    .describe("Part of an answer that does not stream which is held back and inspected."),
  errorBytesKept: bytes().default(65_536).describe("Part of an endpoint's error that is kept for passing on."),
  eventBytesInspected: bytes().default(MIB).describe("Part of one server-sent event that is inspected."),
  answerTokensKept: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(32_768)
    .describe(
      "Token ids kept of one answer whose client asked for them (return_token_ids), for its blocks; of an answer's text, 6 bytes for each; 0 for none.",
    ),
  answersWaitingMax: count(1, 1024)
    .default(256)
    .describe("Texts of answers that wait to become tokens; more are left."),
  holdBytesMax: bytes().default(65_536).describe("Events before the first token that are held back."),
  holdMillis: millis(0, MILLIS_PER_DAY)
    .optional()
    .describe("After this long an answer's head goes out without a body; unset holds it until the first byte."),
  progressTokens: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(64)
    .describe("Output tokens between two reports of progress to the router."),
  progressMillis: millis(1, MILLIS_PER_DAY)
    .default(1000)
    .describe("Time between two such reports where output is slower."),
  sweepMillis: millis(10, 60_000).default(250).describe("How often these limits are checked."),
});
