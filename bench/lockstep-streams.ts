/**
 * Child process: engines and clients of streams in lockstep. An engine sends its next event only once the client has the
 * one before, so that each event is one read and one write of the gateway, however late anybody is. Its parent orders a
 * number of events and gets how many came.
 */
import { type AddressInfo, type Socket, connect, createServer } from "node:net";

export interface LockstepOrder {
  readonly port: number;
  readonly streams: number;
  readonly events: number;
  /** About so long is a request's text; a few words by default. */
  readonly bodyBytes?: number;
}

const [HEAD, EVENT, PROMPT_IDS, DONE] = [
  "HTTP/1.1 200 OK\r\nserver: uvicorn\r\ncontent-type: text/event-stream; charset=utf-8\r\ntransfer-encoding: chunked\r\n\r\n",
  event('"delta":{"content":" word"},"logprobs":null,"finish_reason":null,"token_ids":[103492]}]'),
  event(
    '"delta":{"role":"assistant","content":""},"logprobs":null,"finish_reason":null}],"prompt_token_ids":[1,2,3],"prompt_text":null',
  ),
  `${chunk("data: [DONE]\n\n")}0\r\n\r\n`,
].map((text) => Buffer.from(text)) as [Buffer, Buffer, Buffer, Buffer];
const MODELS = '{"object":"list","data":[{"id":"tiny","object":"model","max_model_len":131072}]}';

const ANSWER =
  '{"id":"chatcmpl-1","object":"chat.completion","created":1,"model":"tiny","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"logprobs":null,"finish_reason":"stop"}],"usage":{"prompt_tokens":4,"total_tokens":5,"completion_tokens":1}}';

function whole(json: string): string {
  return `HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: ${json.length}\r\n\r\n${json}`;
}

function event(choice: string): string {
  return chunk(
    `data: {"id":"chatcmpl-ab4a080792c17ef2","object":"chat.completion.chunk","created":1795219500,"model":"tiny","choices":[{"index":0,${choice}}\n\n`,
  );
}

function chunk(text: string): string {
  return `${text.length.toString(16)}\r\n${text}\r\n`;
}

/** Engines' ends of the streams, by the number that their prompt has. */
const engines = new Map<string, Socket>();

function serve(socket: Socket): void {
  let text = "";
  socket.setNoDelay(true);
  socket.on("error", () => {});
  socket.on("data", (data) => {
    text += data.toString("latin1");
    if (text.startsWith("GET ")) {
      text = "";
      return void socket.write(whole(MODELS));
    }
    if (!text.trimEnd().endsWith("}")) return;
    const number = /stream number (\d+)/.exec(text)?.[1];
    text = "";
    if (number === undefined) return void socket.write(whole(ANSWER));
    engines.set(number, socket);
    socket.write(Buffer.concat([HEAD, PROMPT_IDS, EVENT]));
  });
}

let streamsBegun = 0;

/** One stream of so many events; resolves with how many came. */
function stream({ port, events, bodyBytes = 0 }: LockstepOrder): Promise<number> {
  const number = String(streamsBegun++);
  const text = `stream number ${number} ${words(bodyBytes)}`;
  const body = JSON.stringify({
    model: "tiny",
    messages: [{ role: "user", content: text }],
    stream: true,
  });
  const socket = connect(port, "127.0.0.1");
  socket.setNoDelay(true);
  socket.write(
    `POST /v1/chat/completions HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\ncontent-length: ${body.length}\r\n\r\n${body}`,
  );
  let came = 0;
  return new Promise((resolve) => {
    socket.on("data", (data: Buffer) => {
      let here = 0;
      for (let at = data.indexOf('"content":" word"'); at >= 0; at = data.indexOf('"content":" word"', at + 1)) here++;
      came += here;
      if (data.includes("[DONE]")) return void socket.end();
      if (here > 0) engines.get(number)?.write(came < events ? EVENT : DONE);
    });
    socket.on("error", () => {});
    socket.on("close", () => {
      engines.delete(number);
      resolve(came);
    });
  });
}

const WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or".split(" ");

function words(bytes: number): string {
  let text = "";
  while (text.length < bytes) text += `${WORDS[Math.floor(Math.random() * WORDS.length)]} `;
  return text;
}

process.on("message", (order: LockstepOrder) => {
  void Promise.all(Array.from({ length: order.streams }, () => stream(order))).then((all) =>
    process.send!({ events: all.reduce((sum, one) => sum + one, 0) }),
  );
});
process.on("disconnect", () => process.exit(0));
const server = createServer(serve).listen(0, "127.0.0.1", () => {
  process.send!({ port: (server.address() as AddressInfo).port });
});
