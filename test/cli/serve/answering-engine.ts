import type { TestContext } from "node:test";
import { modelsText, StubEngine, answer } from "../../live/discovery/stub-engine.ts";

/**
 * An engine in this process that answers any chat at once: for tests that look at a gateway, to which an emulated one would be
 * another process to start.
 */
export async function answeringEngine(t: TestContext, model = "tiny"): Promise<StubEngine> {
  const engine = await StubEngine.start();
  const models = answer(200, modelsText(model));
  const completion = JSON.stringify({
    id: "c",
    object: "chat.completion",
    created: 1,
    model,
    choices: [{ index: 0, message: { role: "assistant", content: "ok" }, finish_reason: "stop" }],
    usage: { prompt_tokens: 3, completion_tokens: 1, total_tokens: 4 },
  });
  engine.models = (request, response) => {
    if (request.url !== "/v1/chat/completions") return models(request, response);
    request.resume();
    response.writeHead(200, { "content-type": "application/json" }).end(completion);
  };
  t.after(() => engine.kill());
  return engine;
}
