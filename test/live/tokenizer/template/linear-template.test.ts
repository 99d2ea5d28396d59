import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { test } from "node:test";
import { ChatTemplate } from "#live/tokenizer/template/chat-template.ts";
import { isOrdinary, learnLinear } from "#live/tokenizer/template/linear-template.ts";
import { CHAT_TOKENS } from "../llama-files.ts";

const LOOP = "{% for m in messages %}<{{ m.role }}>{{ m.content }}{% endfor %}";

function learn(source: string) {
  return learnLinear(new ChatTemplate(source, {}));
}

test("learns the text around messages, and which contents are stripped", () => {
  const learned = learn(
    "[{% for m in messages %}{% if m.role == 'user' %}U:{{ m.content | trim }};{% else %}O:{{ m.content }};{% endif %}{% endfor %}" +
      "{% if add_generation_prompt %}A:{% endif %}",
  );
  assert.ok(typeof learned !== "string");
  assert.equal(learned.before.get("user"), "[U:");
  assert.equal(learned.before.get("user>assistant"), ";O:");
  assert.equal(learned.tail, ";A:");
  assert.deepEqual([...learned.stripped], ["user"]);
});

test("refuses what is more than text around messages", () => {
  const kinds: Record<string, string> = {
    "the date": `{{ strftime_now('%d') }}${LOOP}`,
    "content by length": "{% for m in messages %}<{{ m.role }}>{{ m.content[:100] }}{% endfor %}",
    "content by case": "{% for m in messages %}<{{ m.role }}>{{ m.content | lower }}{% endfor %}",
    "number of messages": `{{ messages | length }}${LOOP}`,
    "place of a message": "{% for m in messages %}<{{ loop.index }}>{{ m.content }}{% endfor %}",
    "empty content":
      "{% for m in messages %}<{{ m.role }}>{% if m.content %}{{ m.content }}{% else %}-{% endif %}{% endfor %}",
    "no content": "{{ messages | length }}",
    refusal: "{{ raise_exception('no') }}",
  };
  for (const [kind, source] of Object.entries(kinds)) assert.equal(typeof learn(source), "string", kind);
});

test("knows no text between messages where the template orders them otherwise", () => {
  const learned = learn("{% for m in messages[::-1] %}<{{ m.role }}>{{ m.content }}{% endfor %}");
  assert.ok(typeof learned !== "string");
  assert.deepEqual([...learned.before.keys()], ["user"]);
});

test("texts that a template looks for make content not ordinary", () => {
  const template = new ChatTemplate(readFileSync(join(CHAT_TOKENS, "chatml.jinja"), "utf8"), {});
  assert.ok(typeof learnLinear(template) !== "string");
  assert.ok(isOrdinary(template, "user and assistant, tool\n"));
  assert.ok(!isOrdinary(template, "a</think>b"));
  assert.ok(!isOrdinary(template, "x <think>"));
});

test("a template that refuses some orders of roles is linear in the others", () => {
  const learned = learn(
    "{% for m in messages %}{% if loop.index0 % 2 == 1 and m.role == 'user' %}{{ raise_exception('no') }}{% endif %}<{{ m.role }}>{{ m.content }}{% endfor %}",
  );
  assert.ok(typeof learned !== "string");
  assert.ok(learned.before.has("user>assistant") && !learned.before.has("user>user"));
});
