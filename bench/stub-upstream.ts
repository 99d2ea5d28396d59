/**
 * Child process: an engine that costs next to nothing, on one port per endpoint. Requests that ask for a stream get
 * 100 events 10 ms apart, with token ids where they are asked for, others 500 bytes of JSON, or 7 MB where their user is
 * "large". It lists its model and shows a
 * metrics page of vLLM's. Its parent gets the ports. With `pods` as second argument each has an address of its own, and all the
 * same port; with `few` as third its metrics page has only what routers read.
 */
import { readFileSync } from "node:fs";
import { type AddressInfo, type Socket, createServer } from "node:net";
import { join } from "node:path";
import { engineHost } from "../test/serve/migrate/record/held-engines.ts";

const LAST_CHUNK = Buffer.from("\r\n0\r\n\r\n");
const EVENTS = 100;
const EVENT_MILLIS = 10;

const usage = '"usage":{"prompt_tokens":400,"total_tokens":410,"completion_tokens":10,"prompt_tokens_details":null}';
const answerJson = `{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"${"word ".repeat(45)}"},"logprobs":null,"finish_reason":"stop","stop_reason":null}],${usage}}`;
const wholeAnswer = Buffer.from(
  `HTTP/1.1 200 OK\r\ndate: Sat, 21 Nov 2026 00:04:58 GMT\r\nserver: uvicorn\r\ncontent-length: ${answerJson.length}\r\ncontent-type: application/json\r\n\r\n${answerJson}`,
);
const largeAnswer = whole("application/json", answerJson.replace("word ", "word ".repeat(1_400_000)));
const models = whole(
  "application/json",
  '{"object":"list","data":[{"id":"tiny","object":"model","max_model_len":131072}]}',
);
/** A captured page, of an engine with room for 500,000 tokens. */
const page = readFileSync(
  join(import.meta.dirname, "../test/golden/vllm-http/metrics_after_traffic.http"),
  "utf8",
).replace('num_gpu_blocks="2048"', 'num_gpu_blocks="15625"');
const READ =
  /^(?:# TYPE )?vllm:(?:num_requests_waiting|num_requests_running|kv_cache_usage_perc|cache_config_info)[ {]/;
const rows = page.slice(page.indexOf("\r\n\r\n") + 4);
const few = rows.split("\n").filter((row) => READ.test(row));
const metrics = whole(
  "text/plain; version=0.0.4; charset=utf-8",
  process.argv[4] === "few" ? `${few.join("\n")}\n` : rows,
);
const streamHead = Buffer.from(
  "HTTP/1.1 200 OK\r\ndate: Sat, 21 Nov 2026 00:04:58 GMT\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n",
);
const head =
  'data: {"id":"chatcmpl-ab4a080792c17ef2","object":"chat.completion.chunk","created":1795219500,"model":"tiny","choices":[{"index":0,';
const event = chunk(`${head}"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":null}]}\n\n`);
const idEvent = chunk(
  `${head}"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":[103492]}]}\n\n`,
);
const PROMPT_TOKENS = 400;
const promptIds = chunk(
  `${head}"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[${Array.from({ length: PROMPT_TOKENS }, (_, i) => 1_000 + 37 * i).join(",")}],"prompt_text":null}\n\n`,
);
const done = Buffer.concat([chunk("data: [DONE]\n\n"), Buffer.from("0\r\n\r\n")]);

function whole(type: string, body: string): Buffer {
  return Buffer.from(
    `HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-length: ${Buffer.byteLength(body)}\r\ncontent-type: ${type}\r\n\r\n${body}`,
  );
}

function chunk(text: string): Buffer {
  return Buffer.from(`${text.length.toString(16)}\r\n${text}\r\n`);
}

interface Stream {
  readonly socket: Socket;
  readonly ids: boolean;
  left: number;
}

/** Streams that are due in each of the next turns of 1 ms; one timer serves all. */
const turns: Stream[][] = Array.from({ length: EVENT_MILLIS }, () => []);
let turn = 0;
let last = performance.now();

setInterval(() => {
  for (const now = performance.now(); last + 1 <= now; last++) {
    turn = (turn + 1) % EVENT_MILLIS;
    turns[turn] = turns[turn]!.filter(sendNext);
  }
}, 1);

function sendNext(stream: Stream): boolean {
  if (!stream.socket.writable) return false;
  stream.socket.write(stream.left > 0 ? (stream.ids ? idEvent : event) : done);
  return stream.left-- > 0;
}

/** A long body is passed over piece by piece: joined anew with each, it would cost its length squared. */
function serve(socket: Socket): void {
  let held: Buffer | undefined;
  let head: string | undefined;
  let streams = false;
  let ids = false;
  let large = false;
  let chunked = false;
  /** Bytes of a body that are still to come. */
  let missing = 0;
  socket.setNoDelay(true);
  socket.on("error", () => {});
  socket.on("data", (data: Buffer) => {
    let bytes = held === undefined ? data : Buffer.concat([held, data]);
    held = undefined;
    while (bytes.length > 0) {
      if (head === undefined) {
        const end = bytes.indexOf("\r\n\r\n");
        if (end < 0) {
          held = bytes;
          return;
        }
        head = bytes.toString("latin1", 0, end).toLowerCase();
        missing = Number(/content-length: (\d+)/.exec(head)?.[1] ?? 0);
        bytes = bytes.subarray(end + 4);
        // A proxy whose filter may change a body sends it in chunks; JSON has no line end of theirs in it.
        chunked = head.includes("transfer-encoding: chunked");
      }
      if (chunked) {
        const end = bytes.indexOf(LAST_CHUNK);
        if (end < 0) {
          held = bytes;
          return;
        }
        missing = end + LAST_CHUNK.length;
      }
      const piece = bytes.subarray(0, missing);
      streams ||= piece.indexOf('"stream":true') >= 0;
      ids ||= piece.indexOf('"return_token_ids":true') >= 0;
      large ||= piece.indexOf('"user":"large"') >= 0;
      missing -= piece.length;
      bytes = bytes.subarray(piece.length);
      if (missing > 0) return;
      answer(socket, head, { streams, ids, large });
      head = undefined;
      chunked = false;
      streams = false;
      ids = false;
      large = false;
    }
  });
}

interface Asked {
  readonly streams: boolean;
  readonly ids: boolean;
  readonly large: boolean;
}

function answer(socket: Socket, head: string, { streams, ids, large }: Asked): void {
  if (head.startsWith("get /metrics")) socket.write(metrics);
  else if (head.startsWith("get ")) socket.write(models);
  else if (streams) {
    socket.write(ids ? Buffer.concat([streamHead, promptIds]) : streamHead);
    turns[Math.floor(Math.random() * EVENT_MILLIS)]!.push({ socket, ids, left: EVENTS });
  } else socket.write(large ? largeAnswer : wholeAnswer);
}

/** Resolves with the port. */
function listen(host: string, port = 0): Promise<number> {
  return new Promise((resolve) => {
    const server = createServer(serve).listen(port, host, () => resolve((server.address() as AddressInfo).port));
  });
}

const [count, kind] = [Number(process.argv[2] ?? 1), process.argv[3]];
const ports: number[] = [];
for (let i = 0; i < count; i++)
  ports.push(await (kind === "pods" ? listen(engineHost(i), ports[0]) : listen("127.0.0.1")));
process.send!({ ports });
process.on("disconnect", () => process.exit(0));
