import assert from "node:assert/strict";
import { test } from "node:test";
import { TokenForm } from "#live/answer/stream-answer.ts";

const event = (text: string, end: string, created = 1): Buffer =>
  Buffer.from(
    `data: {"id":"a","created":${created},"choices":[{"index":0,"delta":{"content":"${text}"},"logprobs":null,"finish_reason":null${end}}\n\n`,
  );
const matches = (form: TokenForm, bytes: Buffer): boolean => form.matches(bytes, 0, bytes.length);

test("another text and another id are matched; whatever else differs is not", () => {
  const form = new TokenForm();
  const learned = event(" a", ',"token_ids":[7]}]');
  assert.equal(matches(form, learned), false);
  form.learn(learned, 0, learned.length);
  for (const [text, id] of [
    [" longer", "123456"],
    ["", "0"],
    ['\\"', "9"],
    ["\\\\", "9"],
    ["}]}", "10"],
  ] as const) {
    const bytes = event(text, `,"token_ids":[${id}]}]`);
    assert.ok(matches(form, bytes), bytes.toString());
    assert.equal(bytes[form.bracket], "[".charCodeAt(0));
    assert.equal(bytes.toString("utf8", form.bracket + 1, form.bracket + 1 + id.length), id);
    assert.equal(form.hasText, text !== "");
  }
  for (const bytes of [
    event(" a", ',"token_ids":[7,8]}]'),
    event(" a", ',"token_ids":[]}]'),
    event(" a", ',"token_ids":null}]'),
    event(" a", "}]"),
    event(" a", ',"token_ids":[7]}],"usage":{"prompt_tokens":1}'),
    event(" a", ',"token_ids":[7]}]', 2),
    event("a\nb", ',"token_ids":[7]}]'),
    event('a"', ',"token_ids":[7]}]'),
    event('a\\\\"', ',"token_ids":[7]}]'),
    learned.subarray(0, -1),
    Buffer.concat([learned, learned]),
  ])
    assert.equal(matches(form, bytes), false, bytes.toString());
});

test("nothing is learned of an event that ends a choice, counts, or has lines of another kind", () => {
  const plain = event(" a", "}]").toString();
  for (const text of [
    plain.replace("null}", '"stop"}'),
    plain.replace("}]}", '}],"usage":{"prompt_tokens":1}}'),
    plain.replace("}]}\n\n", "}]}\r\n\r\n"),
    plain.replace("data: ", ": hi\ndata: "),
    plain.replace('"delta":{"content":', '"delta":{"reasoning":'),
    plain.replace("data: ", "data:"),
  ]) {
    const form = new TokenForm();
    const bytes = Buffer.from(text);
    form.learn(bytes, 0, bytes.length);
    assert.equal(matches(form, bytes), false, text);
  }
});

test("events that all differ are learned from ever more rarely, and a form that comes is found again", () => {
  const form = new TokenForm();
  let learned = 0;
  for (let i = 0; i < 1_000; i++) {
    const bytes = event(" a", "}]", i);
    form.learn(bytes, 0, bytes.length);
    if (matches(form, bytes)) learned++;
  }
  assert.equal(learned, 1_000, "each match begins anew");
  learned = 0;
  for (let i = 0; i < 1_000; i++) {
    const bytes = event(" a", "}]", -i);
    form.learn(bytes, 0, bytes.length);
    const next = event(" a", "}]", -i - 1);
    if (matches(form, next)) learned++;
  }
  assert.equal(learned, 0);
  const between = event(" a", "}]", 3_000);
  form.learn(between, 0, between.length);
  assert.equal(matches(form, between), false, "not each event is learned from");
  const same = event(" b", "}]", 5);
  for (let i = 0; i < 2_000; i++) form.learn(same, 0, same.length);
  assert.ok(matches(form, same));
});
