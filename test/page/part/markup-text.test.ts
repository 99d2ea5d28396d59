import assert from "node:assert/strict";
import { test } from "node:test";
import { element } from "#page/part/markup.ts";
import { markupText } from "#page/part/markup-text.ts";

test("what stands in a text or an attribute stays text, and handlers and keys are left out", () => {
  const hostile = `"><script>alert('&')</script>`;
  const piece = element(
    "p",
    { class: hostile, onclick: () => {}, key: "k", hidden: true, id: undefined },
    hostile,
    false,
    undefined,
  );
  const safe = "&quot;&gt;&lt;script&gt;alert(&#39;&amp;&#39;)&lt;/script&gt;";
  assert.equal(markupText(piece), `<p class="${safe}" hidden>${safe}</p>`);
});

test("elements without an end have none, and children may come in lists", () => {
  const list = [element("li", {}, "a"), element("li", {}, "b")];
  assert.equal(
    markupText([element("br"), element("ul", { "aria-label": "x", tabindex: 0 }, list, "c")]),
    `<br><ul aria-label="x" tabindex="0"><li>a</li><li>b</li>c</ul>`,
  );
});
