import assert from "node:assert/strict";
import { type AddressInfo, createServer, type Socket } from "node:net";
import { type TestContext, test } from "node:test";
import { policyCommand } from "../../../src/cli/policy/policy.ts";
import { inProcess } from "../in-process.ts";

const HEAD = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\ncontent-length: 100\r\n\r\n";

/** A gateway that does with each of its callers what it is told; resolves with its address. */
function gateway(t: TestContext, answer: (socket: Socket) => void): Promise<string> {
  const server = createServer((socket) => socket.on("error", () => {}).once("data", () => answer(socket)));
  t.after(() => server.close());
  return new Promise((resolve) => {
    server.listen(0, "127.0.0.1", () => resolve(`http://127.0.0.1:${(server.address() as AddressInfo).port}`));
  });
}

for (const [what, answer, said] of [
  ["hangs up before an answer", (socket: Socket) => socket.destroy(), /^URL does not answer: ./],
  ["hangs up within its answer", (socket: Socket) => socket.end(`${HEAD}{"version":`), /^URL does not answer: ./],
  ["answers no JSON", (socket: Socket) => socket.end(`${HEAD}${"x".repeat(100)}`), /^URL answered 200: x{100}$/],
] as const) {
  test(`a gateway that ${what} is named in one line, and the command ends with 1`, async (t) => {
    const url = await gateway(t, answer);
    process.env["CLIENT_TOKEN"] = "a";
    t.after(() => delete process.env["CLIENT_TOKEN"]);
    const flags = ["--url", url, "--token-env", "CLIENT_TOKEN"];
    const { code, said: complaint } = await inProcess(t, [policyCommand()], ["policy", "get", ...flags]);
    assert.equal(code, 1, complaint);
    assert.match(complaint.replace(url, "URL"), said);
    assert.equal(complaint.split("\n").length, 1);
  });
}
