// The report of a task that knows which word depends on which.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { bytesOf, dataOf, fitsItsWidth, headTitle, visit } from "./browser.mjs";

const run = `${process.env.PAGES}/grammar`;
const file = `${run}/report.html`;
const { data } = dataOf(file);
const rows = readFileSync(`${run}/heads.jsonl`, "utf8").trim().split("\n").map((line) => JSON.parse(line));
const last = rows.filter(({ step, on }) => on === "task" && step === data.run.steps);

test("the matrix has the weights and nulls of heads.jsonl", async () => {
  await visit(file, async (page) => {
    const table = page.locator("#relations tbody tr");
    const names = Object.keys(last[0].relations);
    assert.equal(await table.count(), names.length);
    for (const line of await table.all()) {
      const name = (await line.locator("th").innerText()).trim();
      const cells = await line.locator("td button").allInnerTexts();
      assert.deepEqual(cells, last.map(({ relations }) => relations[name].value.toFixed(2)));
      const [even, distance] = await line.locator("td.null").allInnerTexts();
      assert.equal(even, last[0].relations[name].null.toFixed(2));
      assert.equal(distance, Math.max(...last.map(({ relations }) => relations[name].distance_null)).toFixed(2));
    }
  });
});

test("a cell shows its head and its relation, on sequences that have it", async () => {
  await visit(file, async (page) => {
    const line = page.locator("#relations tbody tr").filter({ hasText: /^verb→subject/ });
    await line.locator("td button").nth(5).click();
    assert.match(await headTitle(page), new RegExp(`^${data.heads[5][0]}`));
    const pressed = page.locator("#training .controls button[aria-pressed=true]");
    assert.deepEqual(await pressed.allTextContents(), ["verb→subject", "task grammar"]);
    assert.match(await page.locator("#training .curves figcaption").textContent(), /^verb→subject on the task/);
    await fitsItsWidth(page);
  });
});

test("the pairs of a sentence are those that the grammar knows, with the head's weights", async () => {
  const at = data.patterns.findIndex(({ on }) => on === "task");
  const { tokens, relations, weights } = data.patterns[at];
  const own = relations.filter(([name]) => name === "noun→determiner");
  assert.ok(own.length > 3);
  await visit(file, async (page) => {
    const line = page.locator("#relations tbody tr").filter({ hasText: /^noun→determiner/ });
    await line.locator("td button").nth(2).click();
    const items = await page.locator(".gold .pairs li").allInnerTexts();
    const n = tokens.length;
    const bytes = bytesOf(weights.at(-1));
    const due = own.map(([, from, to]) => {
      const weight = bytes[2 * ((n * (n + 1)) / 2) + (from * (from + 1)) / 2 + to] / 255;
      return `${tokens[from]} ${from} → ${tokens[to]} ${to} ${weight.toFixed(2)}`;
    });
    assert.deepEqual(items.map((text) => text.replace(/\s+/g, " ").trim()), due);
  });
});
