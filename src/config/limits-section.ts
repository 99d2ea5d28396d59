import * as z from "zod";
import { stageLimits } from "./stage-limits.ts";
import { MIB, MILLIS_PER_DAY, bytes, millis } from "./schema-value.ts";

const count = (min: number, max: number) => z.int().min(min).max(max);

/** Bounds of the request path, by the names that the gateway has for them. */
export const limits = z.strictObject({
  bodyBytesMax: bytes()
    .default(16 * MIB)
    .describe("Largest request body; a larger one gets 413. A body takes about 2 ms of the event loop per MiB."),
  jsonDepthMax: count(1, 10_000)
    .default(128)
    .describe("Depth of nesting in a JSON body; more gets 400, as do the next eight limits."),
  jsonKeysMax: count(1, 10_000_000).default(32_768).describe("Keys of all objects of a JSON body."),
  jsonFieldsMax: count(1, 10_000_000)
    .default(256)
    .describe("Keys of the outermost object of a JSON body; vLLM knows about 100."),
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
    .describe(
      "Bytes of request bodies held at once or still arriving; where they are spent, a body that comes slowly is cut, else a new one gets 429.",
    ),
  bodyBytesArrivingMax: bytes()
    .default(256 * MIB)
    .describe(
      "Of bodyBytesInFlightMax, what bodies that come in several pieces hold before they are whole; at least bodyBytesMax.",
    ),
  bodyShareMax: z
    .number()
    .gt(0)
    .max(1)
    .default(0.5)
    .describe(
      "Share of bodyBytesArrivingMax that bodies from one client address (IPv6: network of 64 bits) may hold; at least bodyBytesMax.",
    ),
  bodyBytesPerSecondMin: z
    .int()
    .min(0)
    .max(1e9)
    .default(1000)
    .describe("Bytes per second below which, for a minute, a body is cut with 408; 0 cuts none."),
  requestsInFlightMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(16_384)
    .describe("Requests in flight, from head to last byte; more get 503."),
  pipelinedRequestsMax: count(0, 100_000)
    .default(16)
    .describe("Requests of one connection that may wait for the answers before theirs; a connection with more is cut."),
  clientConnectionsMax: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(32_768)
    .describe("Client connections; more are closed at once."),
  upstreamConnectionsMax: z
    .int()
    .min(1)
    .max(65_535)
    .default(4096)
    .describe("Connections to one endpoint, and so requests sent to it at once."),
  ...stageLimits,
  knownBodyBytesKept: z
    .int()
    .min(0)
    .max(1e12)
    .default(16 * MIB)
    .describe(
      "Bytes that beginnings of chats may take, kept so that only the new messages of a conversation are parsed; 0 for none.",
    ),
  connectMillisMax: millis(1, 600_000).default(5000).describe("Time limit for connecting to an endpoint."),
  firstByteMillisMax: millis(1, MILLIS_PER_DAY)
    .default(600_000)
    .describe("Time limit from arrival to the first body byte, for streamed requests."),
  idleMillisMax: millis(1, MILLIS_PER_DAY).default(120_000).describe("Time limit between two pieces of an answer."),
  totalMillisMax: millis(1, MILLIS_PER_DAY).default(3_600_000).describe("Time limit from arrival to the last byte."),
  lostMillisMax: millis(1, MILLIS_PER_DAY)
    .default(5000)
    .describe(
      "Time from the loss of an engine until its requests that no other engine may take get an error; the others move at once.",
    ),
  cutMillisMax: millis(1, MILLIS_PER_DAY)
    .default(30_000)
    .describe(
      "Silence after which an answer that has begun is cut, at an engine that is lost or hangs, if it cannot continue elsewhere and another engine could serve its client anew; if none could, only the other limits end it.",
    ),
  continueMillisMax: millis(1, MILLIS_PER_DAY)
    .default(1000)
    .describe("The same for a stream that can continue at another engine, which it then does."),
  moveAgainMillis: millis(1, MILLIS_PER_DAY)
    .default(5000)
    .describe(
      "Time without a token at a busy engine to which a fault elsewhere moved a request, after which it moves again to one that stands idle; twice as long each time.",
    ),
  writeStallMillisMax: millis(1, MILLIS_PER_DAY)
    .default(120_000)
    .describe("Time after which a client that reads nothing while bytes wait for it is disconnected."),
  headersMillisMax: millis(1, MILLIS_PER_DAY)
    .default(60_000)
    .describe("Time limit for receiving the head of a request."),
  requestReadMillisMax: millis(1, MILLIS_PER_DAY)
    .default(300_000)
    .describe("Time limit for receiving head and body of a request."),
  clientKeepAliveMillis: millis(0, MILLIS_PER_DAY)
    .default(75_000)
    .describe("How long idle client connections are kept; should be longer than a load balancer keeps them."),
  upstreamKeepAliveMillis: millis(1, MILLIS_PER_DAY)
    .default(4000)
    .describe("How long idle connections to endpoints are kept; must be below vLLM's 5 s."),
  answerBytesInspected: bytes()
    .default(4 * MIB)
    .describe("Bytes of a non-streamed answer that are held back and inspected."),
  answerBytesUnreadMax: bytes()
    .default(128 * MIB)
    .describe(
      "Bytes of answers that all clients together have yet to read; beyond it non-streamed answers wait at their engines, and clients that read nothing for two seconds are cut, the longest first.",
    ),
  errorBytesKept: bytes().default(65_536).describe("Bytes of an endpoint's error that are kept and passed on."),
  eventBytesInspected: bytes().default(MIB).describe("Bytes of one server-sent event that are inspected."),
  answerTokensKept: z
    .int()
    .min(0)
    .max(1_000_000)
    .default(32_768)
    .describe(
      "Token ids kept of one answer whose client asked for them (return_token_ids), to index its blocks; of an answer's text, 6 bytes per token; 0 for none.",
    ),
  answersWaitingMax: count(1, 1024)
    .default(256)
    .describe("Answers whose text waits to be tokenized; further ones are not indexed."),
  holdBytesMax: bytes().default(65_536).describe("Bytes of events before the first token that are held back."),
  holdMillis: millis(0, MILLIS_PER_DAY)
    .optional()
    .describe("Time after which an answer's head is sent without a body; unset: it is held until the first byte."),
  progressTokens: z
    .int()
    .min(1)
    .max(1_000_000)
    .default(64)
    .describe("Output tokens between two reports of progress to the router."),
  progressMillis: millis(1, MILLIS_PER_DAY)
    .default(1000)
    .describe("Time between two such reports if output is slower."),
  sweepMillis: millis(10, 60_000).default(250).describe("How often these limits are checked."),
});
