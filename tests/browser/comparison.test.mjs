// Runs side by side: the page has the numbers of `inspect A B --json`.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { existsSync } from "node:fs";
import { test } from "node:test";
import { fitsItsWidth, numberIn, visit } from "./browser.mjs";

const { INSPECT, PAGES } = process.env;
const compared = (...runs) => JSON.parse(execFileSync(INSPECT, [...runs.map((run) => `${PAGES}/${run}`), "heads", "--json"], { encoding: "utf8" }));
const SEEDS = `${PAGES}/seeds/report.html`;
const BOTH = `${PAGES}/run-and-seeds.html`;

/** The cells of the row of a table that begins with `name`. */
const row = (page, table, name) =>
  page.getByRole("region", { name: table }).locator("tbody tr").evaluateAll((rows, name) => {
    const found = rows.find((row) => row.children[0].textContent === name);
    return [...found.children].slice(1).map((cell) => cell.textContent);
  }, name);

test("the seeds of a folder stand side by side, and their page leads to each report", async () => {
  const data = compared("seeds");
  await visit(SEEDS, async (page) => {
    assert.equal(await page.title(), "seeds: 2 seeds");
    const [mean, , ...values] = await row(page, "At the end", "accuracy");
    const [accuracy] = data.measures;
    assert.ok(Math.abs(numberIn(mean) - accuracy.sides[0].mean) < 6e-5);
    values.forEach((value, at) => assert.ok(Math.abs(numberIn(value) - accuracy.sides[0].values[at]) < 6e-5));
    const links = await page.getByRole("link", { name: /^seed / }).evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.deepEqual(links, ["seed-0/report.html", "seed-1/report.html"]);
    for (const link of links) assert.ok(existsSync(`${PAGES}/seeds/${link}`));
    // A line a seed, each in its own colour.
    const lines = page.locator(".curves").first().locator("polyline");
    const drawn = await lines.evaluateAll((all) => all.map((line) => line.getAttribute("class")));
    assert.deepEqual(drawn, ["line line-0", "line line-1"]);
    // First comes which heads look like what in which seed.
    const [role] = data.roles;
    const seeds = page.locator("#roles tbody tr:not(.all)");
    assert.equal(await seeds.count(), 2 * data.roles.length);
    const cell = async (at, name) => (await seeds.nth(at).locator(`td[data-name="${name}"]`)).innerText();
    for (const at of [0, 1]) {
      assert.equal(await cell(at, "heads"), role.sides[0].heads[at].join(" ") || "none");
      assert.ok(Math.abs(numberIn(await cell(at, "highest score")) - role.sides[0].highest.values[at]) < 6e-4);
    }
  });
});

test("two configurations: what differs, the difference, the heads by role", async () => {
  const data = compared("run", "seeds");
  await visit(BOTH, async (page) => {
    assert.equal(await page.locator("h1").innerText(), "run and seeds");
    const layers = data.keys.find(([key]) => key === "model.n_layers")[1];
    assert.deepEqual(await row(page, "What differs", "model.n_layers"), layers);
    const [first, second, difference] = await row(page, "At the end", "accuracy");
    assert.ok(Math.abs(Number(first.split(" ± ")[0]) - data.measures[0].sides[0].mean) < 6e-5);
    assert.ok(Math.abs(Number(second.split(" ± ")[0]) - data.measures[0].sides[1].mean) < 6e-5);
    // One run beside two seeds.
    assert.equal(difference, "–");
    assert.equal(await page.locator("#roles tbody tr").count(), 2 * data.roles.length);
    // The tasks differ, so each side has a null of its own.
    const { levels } = data.curves.at(-1);
    assert.equal(levels.length, 2);
    const keys = await page.locator("#training .curves").last().locator(".key").innerText();
    for (const [name, value] of levels) assert.ok(keys.includes(`${name} ${value.toFixed(3)}`), keys);
  });
});

for (const [width, dark] of [[1400, false], [1400, true], [390, false], [390, true], [2200, false]]) {
  test(`it fits ${width} pixels, ${dark ? "dark" : "light"}`, async () => {
    await visit(BOTH, async (page) => {
      await fitsItsWidth(page);
      const cut = await page.locator("#roles td").evaluateAll((cells) => cells.filter((cell) => cell.getBoundingClientRect().right > innerWidth).length);
      assert.equal(cut, 0, "no number of the heads is out of sight");
      await page.screenshot({ path: `${PAGES}/comparison-${width}-${dark ? "dark" : "light"}.png`, fullPage: true });
    }, { width, dark });
  });
}
