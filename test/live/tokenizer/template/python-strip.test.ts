import assert from "node:assert/strict";
import { test } from "node:test";
import { ChatTemplate, PLAIN_RENDER } from "#live/tokenizer/template/chat-template.ts";
import { pythonStrip } from "#live/tokenizer/template/python-strip.ts";

/** All of str.isspace() in Python 3. */
const SPACES = new Set([
  0x09, 0x0a, 0x0b, 0x0c, 0x0d, 0x1c, 0x1d, 0x1e, 0x1f, 0x20, 0x85, 0xa0, 0x1680, 0x2000, 0x2001, 0x2002, 0x2003,
  0x2004, 0x2005, 0x2006, 0x2007, 0x2008, 0x2009, 0x200a, 0x2028, 0x2029, 0x202f, 0x205f, 0x3000,
]);

test("takes off exactly what Python takes for white space", () => {
  for (let code = 0; code < 0x10000; code++) {
    const character = String.fromCharCode(code);
    assert.equal(pythonStrip(`${character}x${character}`) === "x", SPACES.has(code), code.toString(16));
  }
});

test("takes off one side, and given characters", () => {
  assert.equal(pythonStrip("  x ", "left"), "x ");
  assert.equal(pythonStrip("  x ", "right"), "  x");
  assert.equal(pythonStrip("\n x\n\n", "both", "\n"), " x");
  assert.equal(pythonStrip("xyzzyx", "both", "xy"), "zz");
  assert.equal(pythonStrip(" \n ", "left"), "");
});

test("templates strip as in Python", () => {
  const source =
    "{{ messages[0].content.strip('\\n') }}|{{ messages[0].content.lstrip('\\n ') }}|{{ messages[0].content | trim }}|" +
    "{{ messages[0].content.rstrip() }}|{{ (messages[0].content | trim).split('b')[0] }}";
  const template = new ChatTemplate(source, {});
  const content = "\n \ufeffa\u0085b \u001c\n";
  assert.equal(
    template.render([{ role: "user", content }], PLAIN_RENDER),
    " \ufeffa\u0085b \u001c|\ufeffa\u0085b \u001c\n|\ufeffa\u0085b|\n \ufeffa\u0085b|\ufeffa\u0085",
  );
});
