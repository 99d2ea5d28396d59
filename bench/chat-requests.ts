/** What requests are like. */
export interface ChatSizes {
  /** Bytes of a request body. */
  readonly bodyBytes: number;
  readonly stream: boolean;
  /** Of the last message; what is left of the body by default, between some 300 and 1,200. */
  readonly lastBytes?: number;
  /** Of each message before it; some 400 by default. */
  readonly messageBytes?: number;
}

const CONVERSATIONS = 32;
/** JSON around a message's text, and around all messages. */
const MESSAGE_JSON_BYTES = 35;
const OUTER_BYTES = 120;
const WORDS = "the of and to in is that for it as was with be by on not he his but at are this have from or".split(" ");
let seed = 7;

function random(n: number): number {
  seed = (Math.imul(seed, 1103515245) + 12345) & 0x7fffffff;
  return (seed >>> 8) % n;
}

function words(bytes: number): string {
  let text = "";
  while (text.length < bytes) text += `${WORDS[random(WORDS.length)]} `;
  return text.slice(0, bytes);
}

let sent = 0;

/** Chat requests as they go over a connection: each last message is new, what precedes it is one of a few conversations. */
export function chatRequests({ bodyBytes, stream, lastBytes, messageBytes = 415 }: ChatSizes): () => Buffer {
  const around = 2 * (messageBytes + MESSAGE_JSON_BYTES);
  const historyBytes = bodyBytes - (lastBytes ?? around) - OUTER_BYTES;
  const prefixes = Array.from({ length: CONVERSATIONS }, () => {
    const messages = [{ role: "system", content: words(Math.max(20, Math.min(400, historyBytes))) }];
    for (let size = 400 + MESSAGE_JSON_BYTES; size + around < historyBytes; size += around) {
      messages.push(
        { role: "user", content: words(messageBytes) },
        { role: "assistant", content: words(messageBytes) },
      );
    }
    return JSON.stringify(messages).slice(0, -1);
  });
  return () => {
    const prefix = prefixes[random(CONVERSATIONS)]!;
    const last = `${sent++} ${words(lastBytes ?? Math.max(50, bodyBytes - prefix.length - OUTER_BYTES))}`;
    const body = `{"model":"tiny","messages":${prefix},{"role":"user","content":"${last}"}],"max_tokens":10${stream ? ',"stream":true' : ""}}`;
    return Buffer.from(
      `POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nUser-Agent: bench\r\nAccept: */*\r\nContent-Type: application/json\r\nAuthorization: Bearer sk-bench\r\nContent-Length: ${body.length}\r\n\r\n${body}`,
    );
  };
}
