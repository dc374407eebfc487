// The first screen of report.html: its numbers are those of the command line.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { test } from "node:test";
import { dataOf, headTitle, numbersIn, visit } from "./browser.mjs";

const run = `${process.env.PAGES}/run`;
const file = `${run}/report.html`;
const { data } = dataOf(file);
const inspected = (...words) => JSON.parse(execFileSync(process.env.INSPECT, [run, ...words, "--json"], { maxBuffer: 1 << 28 }));
const shown = (value) => value.toFixed(3);

/** The cell of a line, by the name of its column. */
const cell = (row, name) => row.locator(`td[data-name="${name}"]`).innerText();

test("each line has the head's role, score, interval and null of heads --json", async () => {
  const heads = inspected("heads");
  await visit(file, async (page) => {
    const rows = await page.locator("table.lines tbody tr:not(.all)").all();
    assert.ok(rows.length > 0);
    for (const row of rows) {
      const name = (await row.locator("th").innerText()).trim();
      const head = heads.find((found) => found.head === name);
      const looks = await cell(row, "looks like");
      const role = head.role === "mixed" ? looks.split(" at positions ")[0] : head.role;
      assert.ok(looks.startsWith(role), `${name}: ${looks}`);
      const score = head.scores[role];
      if (!score) continue;
      const { value, low, high } = score;
      assert.deepEqual(numbersIn(await cell(row, "score")), [value, low, high, score.null].map(shown));
    }
  });
});

test("each line has the accuracy without the head of ablate --json", async () => {
  const { untouched, alone, sets } = inspected("ablate");
  await visit(file, async (page) => {
    for (const row of await page.locator("table.lines tbody tr").all()) {
      const name = (await row.locator("th").innerText()).trim();
      const numbers = numbersIn((await cell(row, "accuracy without it")).split(/control/)[0]);
      const ofHead = alone.find((found) => found.heads.join() === name);
      const looks = await cell(row, "looks like");
      const ofSet = sets.find((found) => found.name === `all ${looks.replace(", together", "")}`);
      const { accuracy } = (ofHead ?? ofSet).performance;
      const due = numbers.length === 1 ? [accuracy] : [untouched.accuracy, accuracy];
      assert.deepEqual(numbers.slice(0, 2), due.map(shown), `${name}: ${numbers}`);
    }
  });
});

test("accuracy, loss, guessing and the best possible are those of the summary", async () => {
  const { accuracy, best_accuracy: best, loss, chance, floor } = data.run;
  await visit(file, async (page) => {
    const facts = await page.locator(".facts dd").evaluateAll((all) => all.map((fact) => fact.firstChild.textContent));
    assert.deepEqual(facts, [accuracy, best, chance, loss, floor].map(shown));
  });
});

test("a line leads to the pattern of its head, a panel to its head", async () => {
  await visit(file, async (page) => {
    const row = page.locator("table.lines tbody tr:not(.all)").last();
    const name = (await row.locator("th").innerText()).trim();
    await row.getByRole("button").click();
    const chosen = () => headTitle(page);
    assert.ok((await chosen()).startsWith(name), await chosen());
    await page.locator("#panels .panel").first().click();
    assert.ok((await chosen()).startsWith(data.heads[0][0]));
    assert.equal(await page.locator("#panels .panel.here").count(), 1);
  });
});

test("every underlined word has a meaning, which the keyboard shows", async () => {
  await visit(file, async (page) => {
    const terms = await page.locator(".term").all();
    assert.ok(terms.length > 10);
    for (const term of terms) assert.ok((await term.getAttribute("title")).length > 20);
    await terms[0].focus();
    const shown = await terms[0].evaluate((term) => getComputedStyle(term, "::after").content);
    assert.ok(shown.includes((await terms[0].getAttribute("title")).slice(0, 20)), shown);
  });
});
