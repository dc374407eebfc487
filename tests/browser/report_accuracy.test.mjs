// Accuracy with and without heads: position by position, and the answers that go wrong.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { dataOf, fitsItsWidth, headTitle, visit, withData } from "./browser.mjs";

const { INSPECT, PAGES } = process.env;
const run = `${PAGES}/run`;

/** The lines of the figure by name: `[position, value, low, high]`. */
async function linesOf(page) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    page.locator("#accuracy-by-position").getByRole("button", { name: "CSV", exact: true }).click(),
  ]);
  const [, ...rows] = readFileSync(await download.path(), "utf8").trim().split("\n");
  const lines = {};
  for (const row of rows) {
    const [name, ...numbers] = row.split(",");
    (lines[name] ??= []).push(numbers.map(Number));
  }
  return lines;
}

test("accuracy by position with and without the chosen head is that of positions --json", async () => {
  const name = "L0H1";
  const found = JSON.parse(execFileSync(INSPECT, [run, "positions", "--head", name, "--json"], { maxBuffer: 1 << 28 }));
  const due = (accuracy) => accuracy.flatMap((at, position) => (at ? [[position, at.mean, at.low, at.high]] : []));
  const near = (rows, expected) => {
    assert.equal(rows.length, expected.length);
    rows.forEach((row, at) => expected[at].forEach((number, part) => assert.ok(Math.abs(row[part] - number) < 1e-6, `${row}: ${expected[at]}`)));
  };
  await visit(`${run}/report.html`, async (page) => {
    // The second of all heads.
    await page.locator("#head").getByLabel("Head", { exact: true }).selectOption("1");
    // It is drawn a frame later.
    await page.locator("#accuracy-by-position figcaption", { hasText: /with and without L0H1$/ }).waitFor();
    const lines = await linesOf(page);
    assert.ok(due(found.accuracy).length > 40);
    near(lines["nothing switched off"], due(found.accuracy));
    near(lines[`${name} switched off`], due(found.heads[0].accuracy_without));
    const best = found.best_accuracy.flatMap((value, position) => (value === null ? [] : [[position, value]]));
    near(lines["best possible"], best);
  });
});

test("a head's line says what it follows, since when, how surely and what goes wrong without it", async () => {
  const original = dataOf(`${PAGES}/grammar/report.html`);
  const lost = { head: "L1H2", kind: "agreement", untouched: 0.98, without: 0.7, interval: { low: 0.65, high: 0.75 }, count: 300 };
  const place = `${PAGES}/answers.html`;
  const [first, ...others] = original.data.relations;
  const followed = { value: 0.8, low: 0.75, high: 0.85, distance: 0.1, shuffled: 0.2, since: [10, 20] };
  const seen = first.heads.map((head, at) => (at === 6 ? followed : head));
  const relations = [{ ...first, uniform: 0.05, heads: seen }, ...others];
  writeFileSync(place, withData(original, { ...original.data, relations, answers_lost: [lost] }));
  await visit(place, async (page) => {
    const row = page.locator("#answers tbody tr");
    const told = ["L1H2", first.name, "10–20", "0.80 (0.75–0.85; 0.20)", "0.980 → 0.700 agreement (0.650–0.750), 300 questions"];
    const cells = await row.locator("th, td").allInnerTexts();
    assert.deepEqual(cells.map((text) => text.replace(/\s+/g, " ").trim()), told);
    await row.getByRole("button").click();
    assert.match(await headTitle(page), /^L1H2/);
    const pressed = page.locator("#relations button[aria-pressed=true]");
    assert.equal(await pressed.count(), 1);
    assert.match(await pressed.getAttribute("title"), /^L1H2, /);
    await fitsItsWidth(page);
  }, { width: 390 });
});
