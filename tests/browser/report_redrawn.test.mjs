// What a click changes is drawn anew, and nothing else: that keeps an answer within 50 ms.
import assert from "node:assert/strict";
import { test } from "node:test";
import { dataOf, settled, visit } from "./browser.mjs";

const file = `${process.env.PAGES}/run/report.html`;
const grammar = `${process.env.PAGES}/grammar/report.html`;
const { data } = dataOf(file);

/** Marks what `selector` finds, so that it is known again. */
const mark = (page, selector) =>
  page.locator(selector).evaluateAll((nodes) => nodes.forEach((node, at) => (node.known = at)));
const known = (page, selector) => page.locator(selector).evaluateAll((nodes) => nodes.map((node) => node.known));
const drawn = (page, selector) => page.locator(selector).evaluateAll((nodes) => nodes.map((node) => node.toDataURL()));

test("another score leaves the small patterns as they are; another step draws them", async () => {
  await visit(file, async (page) => {
    const canvases = "#training .head-grid canvas";
    await page.locator("#training").scrollIntoViewIfNeeded();
    await settled(page);
    await mark(page, canvases);
    const before = await drawn(page, canvases);
    assert.equal(before.length, data.heads.length);
    await page.locator("#training").getByRole("button", { name: "first token", exact: true }).click();
    await settled(page);
    assert.match(await page.locator("#training .head-grid small").first().textContent(), /^first token \d/);
    assert.deepEqual(await known(page, canvases), [...before.keys()]);
    assert.deepEqual(await drawn(page, canvases), before);

    await page.locator("#training").getByLabel("Logged step").fill("0");
    await settled(page);
    const untrained = await drawn(page, canvases);
    assert.equal(untrained.length, before.length);
    untrained.forEach((picture, head) => assert.notEqual(picture, before[head]));
    assert.deepEqual(await known(page, canvases), [...before.keys()]);
  });
});

test("a stage of the walk keeps the tokens, and its explanation is its own", async () => {
  await visit(file, async (page) => {
    const tokens = "#walk .strip button";
    await mark(page, tokens);
    const count = await page.locator(tokens).count();
    for (const [stage, cell] of [["V", /^V\[/], ["softmax", /^A\[/], ["Q·Kᵀ", /^Q·Kᵀ\[/]]) {
      await page.locator('#walk [aria-label="Stage"]').getByRole("button", { name: stage, exact: true }).click();
      await settled(page);
      assert.match(await page.locator("#walk .explained .equation").first().innerText(), cell);
    }
    assert.deepEqual(await known(page, tokens), Array.from({ length: count }, (_, at) => at));
    // A token is chosen: it alone is marked, and its row is explained.
    await page.locator(tokens).nth(2).click();
    assert.match(await page.locator("#walk .explained .equation").first().innerText(), /^Q·Kᵀ\[2, /);
    assert.equal(await page.locator(`${tokens}[aria-pressed="true"]`).count(), 1);
  });
});

test("of many lines between tokens the strongest stand there again when no token is pointed at", async () => {
  await visit(file, async (page) => {
    const section = page.locator("#head");
    await section.getByRole("button", { name: "lines between tokens" }).click();
    const widths = () => page.locator("#head line.link").evaluateAll((lines) => lines.map((line) => [Number(line.getAttribute("stroke-opacity")), Number(line.getAttribute("stroke-width"))]));
    await page.waitForFunction(() => document.querySelectorAll("#head line.link").length > 0);
    const all = await widths();
    assert.ok(all.length <= 300);
    for (const [weight, width] of all) assert.ok(Math.abs(width - Math.max(3.25 * weight, 1)) < 1e-6);
    await section.locator('text[aria-label^="query 5 "]').hover();
    assert.ok((await widths()).length < all.length);
    await page.mouse.move(1, 1);
    assert.deepEqual(await widths(), all);
  });
});

test("what was opened stays open at another step", async () => {
  await visit(file, async (page) => {
    const formulas = page.locator("#head details", { hasText: "How the scores are computed" });
    await formulas.locator("summary").click();
    await page.locator("#head").getByLabel("Logged step").fill("1");
    await settled(page);
    assert.equal(await formulas.getAttribute("open"), "");
  });
});

test("a canvas takes the colours of the theme, there and back", async () => {
  await visit(file, async (page) => {
    const canvas = "#head .heatmap .grid canvas";
    await page.locator(canvas).scrollIntoViewIfNeeded();
    await settled(page);
    const [light] = await drawn(page, canvas);
    const change = () => page.locator("button.theme").evaluate((button) => button.click());
    await change();
    await settled(page);
    const [dark] = await drawn(page, canvas);
    assert.notEqual(dark, light);
    await change();
    await settled(page);
    assert.deepEqual(await drawn(page, canvas), [light]);
  });
});

test("a cell of relations is one step to go back from", async () => {
  await visit(grammar, async (page) => {
    const cells = page.locator("#relations td button");
    const pressed = () => page.locator('#relations td button[aria-pressed="true"]').evaluateAll((found) => found.map((node) => node.title));
    const [begun] = await pressed();
    // Of another relation and another head.
    const [head, relation] = begun.split(":")[0].split(", ");
    const titles = await cells.evaluateAll((found) => found.map((node) => node.title));
    const other = titles.findIndex((title) => !title.startsWith(`${head}, `) && !title.includes(`, ${relation}: `));
    await cells.nth(other).click();
    await settled(page);
    assert.deepEqual(await pressed(), [titles[other]]);
    await page.goBack();
    await settled(page);
    assert.deepEqual(await pressed(), [begun]);
  });
});
