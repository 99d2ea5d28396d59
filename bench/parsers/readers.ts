import { rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { encode } from "@msgpack/msgpack";
import { parseKeysFile } from "#config/keys-file.ts";
import { llmDProfile } from "#config/llm-d-config.ts";
import { loadProfile } from "#config/profile-file.ts";
import { parseYamlFile } from "#config/yaml-file.ts";
import type { PeerNews } from "#core/request/peer-news.ts";
import { DualIndex } from "#core/prefix/dual-index.ts";
import { blake3Hasher } from "#core/prompt/block-hash.ts";
import { Router } from "#core/router.ts";
import { isAborted } from "#live/answer/aborted-answer.ts";
import type { Delivery } from "#live/answer/answer.ts";
import { StreamAnswer } from "#live/answer/stream-answer.ts";
import { findUsage } from "#live/answer/answer-json.ts";
import { nowMicros } from "#live/base/clock.ts";
import type { ContinuationPlan } from "#live/continuation/continuation-plan.ts";
import { KeptStream } from "#live/continuation/kept-stream.ts";
import { MODELS_BYTES_MAX, readServedModels } from "#live/endpoints/served-models.ts";
import { BlockTranslator } from "#live/kv-events/block-translator.ts";
import { EndpointFeed } from "#live/kv-events/endpoint-feed.ts";
import { inTurns, STAYS } from "#live/base/loop-turn.ts";
import { DEFAULT_LIMITS } from "#live/http/limits.ts";
import type { Dialect } from "#live/http/route.ts";
import { Intake } from "#live/base/intake.ts";
import { dcgmPage } from "#live/scrape/dcgm-page.ts";
import { EXPOSITION_BYTES_MAX_DEFAULT } from "#live/scrape/exposition.ts";
import { enginePage } from "#live/scrape/scrape-map.ts";
import { windowsOfText } from "#live/share/kept-limits.ts";
import { PeerReports } from "#live/share/peer-reports.ts";
import { ReportEncoder } from "#live/share/report-encoder.ts";
import { newShareCounts } from "#live/share/share-status.ts";
import { kubeContext } from "#live/discovery/kubeconfig.ts";
import { bodyOf } from "#live/admin/admin-api.ts";
import { parseSyntheticSpec } from "#trace/import/synthetic-spec.ts";
import { openTrace } from "#cli/trace/trace-source.ts";
import { TraceEncoder } from "#trace/codec/encoder.ts";
import { TraceReader } from "#trace/reader.ts";
import type { TraceHeader } from "#trace/codec/record.ts";
import { MESSAGE_BYTES } from "#picker/picker-server.ts";
import { readProcessingRequest } from "#picker/processing-request.ts";
import { DNS_BYTES_MAX, DNS_SHAPES, readDnsAnswer } from "./dns.ts";
import { EMPTY_LIST, EMPTY_WATCH, podJson, readCollection } from "./kubernetes.ts";
import { FRAME_SHAPES, PROXY_SHAPES, readFrames } from "./protobuf.ts";
import { jsonShapes, METRIC_SHAPES, repeated, type Shape, STREAM_SHAPES, YAML_SHAPES } from "./shapes.ts";

/** What reads bytes that another process sent, or a file of another one. */
export interface Reader {
  /** The most that is read at once, by default. */
  readonly bytesMax: number;
  /** Who operates the gateway sends it: to a command of its own, as configuration, with the admin token. */
  readonly isOperators?: true;
  /** Its format has no longer ones than `bytesMax`: a stretch counts, and no exponent. */
  readonly isBounded?: true;
  readonly shapes: Readonly<Record<string, Shape>>;
  /** Refuses by throwing, or reads. */
  readonly read: (bytes: Buffer) => unknown;
}

const MIB = 1_048_576;
const BLOCK_TOKENS = 16;
/** One message of a publisher, and one report. */

const KV_BYTES = 4 * MIB;
const REPORT_BYTES = 4 * MIB;
/** The most that a proxy sends at once. */
const PROXY_BYTES = DEFAULT_LIMITS.bodyBytesMax + MESSAGE_BYTES;
const PICKER_HEAD = "apiVersion: inference.networking.x-k8s.io/v1alpha1\nkind: EndpointPickerConfig\nplugins:\n";
const traceHead = new TraceEncoder({ blockTokens: BLOCK_TOKENS });
traceHead.header({
  run: "r",
  segment: 0,
  version: "0",
  startWallMicros: 0,
  hash: { kind: "blake3", blockTokens: BLOCK_TOKENS },
  router: { seed: 1, profiles: {}, defaultProfile: "gnomon", blockTokens: BLOCK_TOKENS, staleAfterMicros: 1 },
  endpoints: [],
} as unknown as TraceHeader);
const TRACE_HEAD = traceHead.lines.taken().toString();

const event = (type: string, i: number): string => `{"type":"${type}","object":${podJson(i)}}\n`;

const WHOLE_SHAPES: Readonly<Record<string, Shape>> = {
  ...jsonShapes('{"choices":', "}"),
  "names of counts": repeated(() => '"usage"  ', '{"choices":[', "]}"),
  "names of an end": repeated(() => '"finish_reason":  ', '{"choices":[', "]}"),
  "names of ids": repeated(() => '"token_ids":  ', '{"choices":[', "]}"),
  "names of a status": repeated(() => '"status"  ', "{", "}"),
};

export const READERS: Readonly<Record<string, Reader>> = {
  "engine's metrics": {
    bytesMax: EXPOSITION_BYTES_MAX_DEFAULT,
    shapes: METRIC_SHAPES,
    read: (bytes) => inTurns(enginePage(bytes.toString("utf8")), STAYS),
  },
  "exporter's metrics": {
    bytesMax: EXPOSITION_BYTES_MAX_DEFAULT,
    shapes: METRIC_SHAPES,
    read: (bytes) => inTurns(dcgmPage(bytes.toString("utf8")), STAYS),
  },
  "engine's models": {
    bytesMax: MODELS_BYTES_MAX,
    shapes: {
      ...jsonShapes('{"data":', "}"),
      models: repeated((i) => `{"id":"m${i}"},`, '{"data":[', '{"id":"m"}]}'),
    },
    read: (bytes) => readServedModels(bytes.toString("utf8")),
  },
  "streamed answer": { bytesMax: 4 * MIB, shapes: STREAM_SHAPES, read: (bytes) => readStream(bytes, 65_536) },
  ...Object.fromEntries(
    (["chat", "completions", "messages", "responses"] as const).map((dialect): [string, Reader] => [
      `event of ${dialect}`,
      {
        bytesMax: DEFAULT_LIMITS.eventBytesInspected,
        shapes: jsonShapes(
          'data: {"type":"response.output_text.delta","choices":[{"index":0,"delta":{"content":"w"},"text":"w"}],"delta":',
          "}\n\n",
        ),
        read: (bytes) => readStream(bytes, 65_536, dialect),
      },
    ]),
  ),
  "streamed answer, by 100 bytes": { bytesMax: MIB, shapes: STREAM_SHAPES, read: (bytes) => readStream(bytes, 100) },
  ...Object.fromEntries(
    (["chat", "messages", "responses"] as const).map((dialect): [string, Reader] => [
      `whole answer, ${dialect}`,
      {
        bytesMax: DEFAULT_LIMITS.answerBytesInspected,
        shapes: WHOLE_SHAPES,
        read: (bytes) => isAborted(dialect, bytes, findUsage(bytes)),
      },
    ]),
  ),
  "message of a proxy": { bytesMax: PROXY_BYTES, shapes: PROXY_SHAPES, read: readProcessingRequest },
  "gRPC's messages": {
    bytesMax: PROXY_BYTES,
    shapes: FRAME_SHAPES,
    read: (bytes) => readFrames(bytes, 16_384, PROXY_BYTES),
  },
  "gRPC's messages, by 100 bytes": {
    bytesMax: MIB,
    shapes: FRAME_SHAPES,
    read: (bytes) => readFrames(bytes, 100, MIB),
  },
  "KV events": { bytesMax: KV_BYTES, shapes: kvShapes(), read: readKvEvents },
  "Redis reports": { bytesMax: REPORT_BYTES, shapes: reportShapes(), read: readReport },
  "limits kept in Redis": {
    bytesMax: MIB,
    shapes: {
      ...jsonShapes('{"format":1,"keptMillis":1,"windows":', "}"),
      windows: repeated(
        (i) => `["l","m","s${i}",1,2],`,
        '{"format":1,"keptMillis":1,"windows":[',
        '["l","m","s",1,2]]}',
      ),
      "a window with a long name": repeated(
        () => '\\"abcdef',
        '{"format":1,"keptMillis":1,"windows":[["l","m","',
        '",1,2]]}',
      ),
      "a window with a name, not closed": repeated(
        () => '\\"abcdef',
        '{"format":1,"keptMillis":1,"windows":[["l","m","',
        "",
      ),
      "a window with long numbers": repeated(() => ",1", '{"format":1,"keptMillis":1,"windows":[["l","m","s",1', "]]}"),
    },
    read: (bytes) => windowsOfText(bytes.toString("utf8"), 1),
  },
  "policy in YAML": {
    bytesMax: MIB / 4,
    isOperators: true,
    shapes: YAML_SHAPES,
    read: (bytes) => {
      const file = parseYamlFile("policy", bytes.toString("utf8"));
      if (!file.ok) return;
      // As problems are placed.
      for (const key of Object.keys(Object(file.value.value) as object).slice(0, 100)) file.value.lineOf([key]);
    },
  },
  "admin's body": {
    bytesMax: MIB / 4,
    isOperators: true,
    shapes: YAML_SHAPES,
    read: (bytes) => bodyOf(bytes.toString("utf8")),
  },
  "workload spec": {
    bytesMax: MIB / 4,
    isOperators: true,
    shapes: YAML_SHAPES,
    read: (bytes) => parseSyntheticSpec("spec", bytes.toString("utf8")),
  },
  kubeconfig: {
    bytesMax: MIB / 4,
    isOperators: true,
    shapes: YAML_SHAPES,
    read: (bytes) => inFile("kubeconfig", bytes, async (path) => void kubeContext({ KUBECONFIG: path })),
  },
  "DNS answers": { bytesMax: DNS_BYTES_MAX, isBounded: true, shapes: DNS_SHAPES, read: readDnsAnswer },
  "Kubernetes watch": {
    bytesMax: 2 * MIB,
    shapes: {
      events: repeated((i) => event("ADDED", i)),
      "events of one pod": repeated(() => event("MODIFIED", 0)),
      "pods that come and go": repeated((i) => event(i % 2 === 0 ? "ADDED" : "DELETED", i >> 1)),
      "empty lines": repeated(() => "\n"),
      "lines of blanks": repeated(() => " \n"),
      "one line without an end": repeated(() => "x"),
      "lines that are no JSON": repeated(() => "x\n"),
      bookmarks: repeated((i) => `{"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"${i}"}}}\n`),
      ...jsonShapes('{"type":"ADDED","object":', "}\n"),
    },
    read: (bytes) => readCollection(EMPTY_LIST, bytes),
  },
  EndpointPickerConfig: {
    bytesMax: MIB / 4,
    isOperators: true,
    shapes: {
      plugins: repeated((i) => `- {type: prefix-cache-scorer, name: p${i}}\n`, PICKER_HEAD),
      "unknown plugins": repeated((i) => `- {type: t${i}}\n`, PICKER_HEAD),
      "equal plugins": repeated(() => `- {type: prefix-cache-scorer}\n`, PICKER_HEAD),
      "unknown keys": repeated((i) => `k${i}: 1\n`, PICKER_HEAD.replace("plugins:\n", "")),
      parameters: repeated((i) => `    k${i}: 1\n`, `${PICKER_HEAD}- type: prefix-cache-scorer\n  parameters:\n`),
      references: repeated(
        (i) => `  - {pluginRef: p${i}}\n`,
        `${PICKER_HEAD}- {type: prefix-cache-scorer, name: p0}\nschedulingProfiles:\n- name: d\n  plugins:\n`,
      ),
    },
    read: (bytes) => {
      const file = parseYamlFile("picker", bytes.toString("utf8"));
      if (file.ok) llmDProfile(file.value, "picker");
    },
  },
  "file of keys": {
    bytesMax: MIB / 4,
    isOperators: true,
    shapes: {
      keys: repeated(
        (i) => `  - {name: k${i}, digest: sha256:${String(i).padStart(64, "0")}, tenant: t${i}}\n`,
        "keys:\n",
      ),
      "broken keys": repeated((i) => `  - {name: k${i}}\n`, "keys:\n"),
    },
    read: (bytes) => parseKeysFile("keys", bytes.toString("utf8")),
  },
  "Kubernetes list": {
    bytesMax: 4 * MIB,
    shapes: {
      pods: repeated((i) => `${podJson(i)},`, '{"items":[', `${podJson(0)}]}`),
      "pods of many ports": repeated(
        (i) => `{"containerPort":${i}},`,
        '{"items":[{"status":{"podIP":"10.0.0.1"},"spec":{"containers":[{"ports":[',
        "{}]}]}}]}",
      ),
      "pods of many addresses": repeated(
        (i) => `{"ip":"10.0.0.${i}"},`,
        '{"items":[{"status":{"podIPs":[',
        '{"ip":""}]}}]}',
      ),
    },
    read: (bytes) => readCollection(bytes, EMPTY_WATCH),
  },
  "trace, segment": {
    bytesMax: 16 * MIB,
    isOperators: true,
    shapes: Object.fromEntries(
      Object.entries({
        "empty lines": repeated(() => "\n"),
        "lines that are no record": repeated(() => "x\n"),
        "records without a field": repeated(() => '{"kind":"request-arrived"}\n'),
        "unknown records": repeated((i) => `{"kind":"k${i}"}\n`),
        gaps: repeated((i) => `{"kind":"gap","at":${i},"dropped":1}\n`),
        "checks of nothing": repeated((i) => `{"kind":"check","crc32":${i}}\n`),
        ...jsonShapes("", "\n"),
      }).map(([name, shape]) => [name, behind(TRACE_HEAD, shape)]),
    ),
    read: (bytes) => inFile("trace.ndjson", bytes, readTrace),
  },
  "trace, foreign": {
    bytesMax: 16 * MIB,
    isOperators: true,
    shapes: {
      mooncake: repeated((i) => `{"timestamp":${i},"input_length":512,"output_length":3,"hash_ids":[${i}]}\n`),
      "mooncake, one prompt": repeated(
        (i) => `${i},`,
        '{"timestamp":1,"input_length":512,"output_length":3,"hash_ids":[1]}\n{"timestamp":1,"input_length":1,"output_length":3,"hash_ids":[',
        "1]}\n",
      ),
      "broken lines": repeated(() => "{\n", '{"timestamp":1,"input_length":512,"output_length":3,"hash_ids":[1]}\n'),
      "empty lines": repeated(() => "\n", '{"timestamp":1,"input_length":512,"output_length":3,"hash_ids":[1]}\n'),
      "backward in time": repeated(
        (i) => `{"timestamp":${1e9 - i},"input_length":512,"output_length":3,"hash_ids":[1]}\n`,
      ),
    },
    read: (bytes) => inFile("foreign.jsonl", bytes, readForeign),
  },
  "trace, CSV": {
    bytesMax: 4 * MIB,
    isOperators: true,
    shapes: {
      rows: repeated(
        (i) => `2023-11-16 18:17:03.${String(i % 10_000_000).padStart(7, "0")},10,10\n`,
        "TIMESTAMP,ContextTokens,GeneratedTokens\n",
      ),
      quotes: repeated(() => '"', "TIMESTAMP,ContextTokens,GeneratedTokens\n"),
      commas: repeated(() => ",", "TIMESTAMP,ContextTokens,GeneratedTokens\n"),
    },
    read: (bytes) => inFile("foreign.csv", bytes, readForeign),
  },
};

/** Piece by piece, as reads bring it; a piece is one stretch. */
async function readStream(bytes: Buffer, pieceBytes: number, dialect: Dialect = "chat"): Promise<void> {
  const delivery = deliveryOf(dialect);
  const answer = new StreamAnswer(delivery, { status: 200, headers: {} });
  answer.data(Buffer.from(FIRST_EVENT));
  for (let at = 0, pieces = 1; at < bytes.length && delivery.state !== "over"; at += pieceBytes, pieces++) {
    answer.data(Buffer.from(bytes.subarray(at, at + pieceBytes)));
    if (pieces % PIECES_AT_ONCE === 0 || pieceBytes > READ_BYTES_MIN) await new Promise(setImmediate);
  }
  answer.ended();
  answer.counts();
}

const FIRST_EVENT =
  'data: {"id":"c","object":"o","created":1,"model":"m","choices":[{"index":0,"delta":{"content":"w"},"logprobs":null,"finish_reason":null,"token_ids":[1]}],"prompt_token_ids":[1,2]}\n\n';
const READ_BYTES_MIN = 4_096;
/** Small reads that one pass of the event loop may bring. */
const PIECES_AT_ONCE = 64;

function deliveryOf(dialect: Dialect): Delivery {
  const plan = { dialect, stops: [], includesStop: false, showsIds: false, greedy: false };
  const kept = new KeptStream({
    plan: plan as unknown as ContinuationPlan,
    byText: undefined,
    end: undefined,
    tokensMax: DEFAULT_LIMITS.continuationTokensKept,
    hold: () => true,
  });
  const over = (): void => void (delivery.state = "over");
  const delivery = {
    kept: dialect === "chat" || dialect === "completions" ? kept : undefined,
    dialect,
    state: "passing",
    limits: DEFAULT_LIMITS,
    counters: { uninspected: 0 },
    hidesUsage: true,
    continues: true,
    write: () => {},
    firstToken: () => {},
    progress: () => {},
    marked: () => {},
    completed: () => {},
    broke: over,
    attemptFailed: over,
  };
  return delivery as unknown as Delivery;
}

function newIntake(): Intake {
  const router = new Router({
    seed: 1,
    profiles: { gnomon: loadProfile("gnomon").spec },
    defaultProfile: "gnomon",
    index: new DualIndex(),
    blockTokens: BLOCK_TOKENS,
    staleAfterMicros: 5_000_000,
  });
  const endpoint = { id: "e", models: ["m"], labels: {}, kvCapacityTokens: 500_000, concurrencyMax: 256 };
  router.accept({ kind: "endpoint-joined", at: 0, endpoint });
  return new Intake(router);
}

async function readKvEvents(bytes: Buffer): Promise<void> {
  const hasher = blake3Hasher(BLOCK_TOKENS);
  const translator = new BlockTranslator({ hasher, rootOf: () => ROOT, modelOf: () => "m", blocksMax: 1e6 });
  const feed = new EndpointFeed({ endpoint: "e", intake: newIntake(), translator, now: nowMicros, changed: () => {} });
  feed.alive(true);
  await feed.message(bytes);
}

const ROOT = new Int32Array(8).fill(7);

/** Of `count` events, or of one event whose lists have so many items. */
function kvShapes(): Record<string, Shape> {
  const packed = (events: unknown[]): Buffer => Buffer.from(encode([1.5, events, 0], { useBigInt64: true }));
  const many = (event: (i: number) => unknown): Shape => {
    const size = packed(Array.from({ length: 1_000 }, (_, i) => event(i))).length / 1_000;
    return (bytes) => packed(Array.from({ length: Math.ceil(bytes / size) }, (_, i) => event(i)));
  };
  const stored = (hashes: unknown[], tokens: number[], more: object = {}) => ({
    type: "BlockStored",
    block_hashes: hashes,
    parent_block_hash: null,
    token_ids: tokens,
    block_size: BLOCK_TOKENS,
    ...more,
  });
  const ids = (count: number, from = 0): bigint[] => Array.from({ length: count }, (_, i) => BigInt(from + i) << 20n);
  const tokens = (count: number): number[] => Array.from({ length: count }, (_, i) => i % 1_000);
  const nested = (bytes: number, byte: number): Buffer =>
    Buffer.concat([Buffer.from([0x93, 0xcb, 0, 0, 0, 0, 0, 0, 0, 0]), Buffer.alloc(bytes, byte)]);
  return {
    "blocks stored one by one": many((i) => stored(ids(1, i), tokens(BLOCK_TOKENS))),
    "one long prompt stored": (bytes) =>
      packed([stored(ids(bytes / 30), tokens(BLOCK_TOKENS * Math.floor(bytes / 30)))]),
    "blocks without tokens": (bytes) => packed([stored(ids(bytes / 9), [], { block_size: 0 })]),
    "blocks removed one by one": many((i) => ({ type: "BlockRemoved", block_hashes: ids(1, i) })),
    "blocks removed at once": (bytes) => packed([{ type: "BlockRemoved", block_hashes: ids(bytes / 9) }]),
    "stored and removed by turns": many((i) =>
      i % 2 === 0 ? stored(ids(1, i), tokens(BLOCK_TOKENS)) : { type: "BlockRemoved", block_hashes: ids(1, i - 1) },
    ),
    "cleared again and again": many(() => ({ type: "AllBlocksCleared" })),
    "unknown events": many((i) => ({ type: `T${i}` })),
    "events as lists": many(() => ["X"]),
    "extra keys": (bytes) =>
      packed([
        stored(ids(bytes / 60), tokens(BLOCK_TOKENS * Math.floor(bytes / 60)), {
          extra_keys: ids(bytes / 60).map((i) => [String(i)]),
        }),
      ]),
    "adapters of many names": many((i) => stored(ids(1, i), tokens(BLOCK_TOKENS), { lora_name: `a${i}` })),
    "one event twice": (bytes) =>
      packed([
        stored(ids(bytes / 60), tokens(BLOCK_TOKENS * Math.floor(bytes / 60))),
        stored(ids(bytes / 60), tokens(BLOCK_TOKENS * Math.floor(bytes / 60))),
      ]),
    "deep lists": (bytes) => nested(bytes, 0x91),
    "deep maps": (bytes) => nested(bytes, 0x81),
    "empty lists": many(() => []),
    "small numbers": (bytes) => packed([Array.from({ length: bytes }, () => 1)]),
  };
}

function readReport(bytes: Buffer): void {
  const reports = new PeerReports({
    intake: newIntake(),
    replica: "own",
    epoch: 1,
    fingerprint: 1,
    leaseMillis: 10_000,
    counts: newShareCounts(),
    own: () => {},
    came: () => {},
    report: () => {},
  });
  reports.received(bytes, false);
}

function reportShapes(): Record<string, Shape> {
  const report = (news: readonly PeerNews[], kind: "news" | "snapshot" = "news"): Buffer =>
    Buffer.from(new ReportEncoder().encode({ kind, fingerprint: 1, replica: "r", epoch: 1, sequence: 1, news }));
  const many = (one: (i: number) => PeerNews, kind?: "snapshot"): Shape => {
    const size = report(Array.from({ length: 1_000 }, (_, i) => one(i))).length / 1_000;
    return (bytes) =>
      report(
        Array.from({ length: Math.ceil(bytes / size) }, (_, i) => one(i)),
        kind,
      );
  };
  const chain = (length: number, seed: number) => ({
    hashes: Int32Array.from({ length: 2 * length }, (_, i) => Math.imul(i + 2 * seed * length, 0x9e3779b1)),
    length,
    blockTokens: BLOCK_TOKENS,
  });
  const held = (blocks: ReturnType<typeof chain>): PeerNews => ({
    kind: "held",
    endpoint: "e",
    session: undefined,
    blocks,
  });
  const long = chain(16_384, 1);
  const window = (i: number): PeerNews => ({
    kind: "window",
    limit: "l",
    measure: "m",
    subject: `s${i}`,
    passedMicros: 1,
    ageMicros: 1,
    counts: [1, 2],
  });
  return {
    "prompts of one block": many((i) => held(chain(1, i))),
    "one long prompt": (bytes) => report([held(chain(Math.min(262_144, bytes / 8), 1))]),
    "long prompts again and again": many(() => held(long)),
    "prompts of 100 blocks": many((i) => held(chain(100, i))),
    ends: many((i) => ({ kind: "failed", request: i + 1 })),
    "first tokens": many((i) => ({ kind: "first-token", request: i + 1, ttftMicros: 1 })),
    "windows of a snapshot": many(window, "snapshot"),
    "endpoints of many names": many((i) => ({ ...held(chain(1, i)), endpoint: `e${i}` }) as PeerNews),
    zeros: (bytes) => Buffer.concat([report([]).subarray(0, -1), Buffer.alloc(bytes, 0)]),
    ones: (bytes) => Buffer.concat([report([]).subarray(0, -1), Buffer.alloc(bytes, 0x01)]),
    "continued numbers": (bytes) => Buffer.concat([report([]).subarray(0, -1), Buffer.alloc(bytes, 0xff)]),
  };
}

function behind(begin: string, shape: Shape): Shape {
  return (bytes) => Buffer.concat([Buffer.from(begin), shape(bytes)]);
}

async function inFile(name: string, bytes: Buffer, read: (path: string) => Promise<void>): Promise<void> {
  const path = join(tmpdir(), `gnomon-parsers-${process.pid}-${name}`);
  writeFileSync(path, bytes);
  try {
    await read(path);
  } finally {
    rmSync(path);
  }
}

async function readTrace(path: string): Promise<void> {
  let items = 0;
  for await (const _ of new TraceReader(path).items()) items++;
  if (items === 0) throw new Error("nothing was read");
}

async function readForeign(path: string): Promise<void> {
  const source = await openTrace(path, { strict: false, seed: 1 });
  let requests = 0;
  for await (const _ of source.traffic()) requests++;
}
