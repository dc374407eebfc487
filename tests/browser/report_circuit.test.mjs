// The circuits of report.html: what is drawn is what was found, and an edge leads to its head.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { dataOf, fitsItsWidth, headTitle, numbersIn, settled, visit } from "./browser.mjs";

const file = `${process.env.PAGES}/run/report.html`;
const compiled = `${process.env.PAGES}/compiled/report.html`;
const { data } = dataOf(file);
const [value, key] = data.edges;
const nameOf = ({ source, destination }) => `${source} → ${destination}`;
const inCircuit = ({ edges }) => edges.filter((edge) => edge.in_circuit);
const section = (page) => page.locator("#circuit");
/** What is out of sight is not drawn. */
async function drawn(page) {
  await settled(page);
  await section(page).scrollIntoViewIfNeeded();
  const edges = section(page).locator("g.edge");
  await edges.first().waitFor();
  return edges.evaluateAll((all) => all.map((edge) => edge.dataset.edge).sort());
}

/** The head that an edge leads to: the one that reads, or else the one that writes. */
const headOf = ({ source, destination }) => /L\d+H\d+/.exec(destination)?.[0] ?? /L\d+H\d+/.exec(source)?.[0];

test("the edges of the circuit are drawn, and each tells its effect and interval", async () => {
  assert.deepEqual(data.edges.map(({ pairs }) => pairs), ["value", "key", "query"]);
  await visit(file, async (page) => {
    assert.deepEqual(await drawn(page), inCircuit(value).map(nameOf).sort());
    const text = await section(page).innerText();
    for (const sentence of [value.finding, ...value.sentences]) assert.ok(text.includes(sentence), sentence);
    const [edge] = inCircuit(value);
    await section(page).locator(`g.edge[data-edge="${nameOf(edge)}"]`).focus();
    const told = await section(page).locator("figure.circuit .readout").innerText();
    const numbers = [edge.effect, edge.low, edge.high].map((number) => number.toFixed(2));
    assert.deepEqual(numbersIn(told).slice(0, 1), numbers.slice(0, 1), told);
    assert.ok(told.startsWith(nameOf(edge)), told);
    // Against the answer is dashed, so that no colour is needed to tell.
    for (const each of await section(page).locator("g.edge.against .drawn").all())
      assert.notEqual(await each.evaluate((path) => getComputedStyle(path).strokeDasharray), "none");
  });
});

test("every edge can be drawn, and the widest is the most important", async () => {
  await visit(file, async (page) => {
    await section(page).getByRole("button", { name: /^every edge/ }).click();
    const largest = Math.max(...value.edges.map(({ importance }) => Math.abs(importance)));
    const due = value.edges.filter(({ importance }) => Math.abs(importance) >= 0.01 * largest);
    assert.deepEqual(await drawn(page), due.map(nameOf).sort());
    const widths = await section(page).locator("g.edge").evaluateAll((edges) =>
      edges.map((edge) => [edge.dataset.edge, Number(edge.querySelector(".drawn").getAttribute("stroke-width"))]),
    );
    const [widest] = widths.sort(([, a], [, b]) => b - a);
    assert.equal(widest[1], 8);
    assert.equal(widest[0], nameOf(value.edges.find(({ importance }) => Math.abs(importance) === largest)));
  });
});

test("a click on an edge or a head leads to the pattern of this head, with the keyboard too", async () => {
  await visit(file, async (page) => {
    const other = data.heads.map(([name]) => name).find((name) => name !== data.headline);
    await drawn(page);
    await section(page).locator(`g.part[data-part="${other}"]`).click();
    assert.ok((await headTitle(page)).startsWith(other), await headTitle(page));
    assert.match(page.url(), /at=head/);
    assert.ok((await page.locator("#head .why").innerText()).length > 0);
    const edge = inCircuit(value).find((each) => headOf(each) && headOf(each) !== other);
    await drawn(page);
    const group = section(page).locator(`g.edge[data-edge="${nameOf(edge)}"]`);
    await group.focus();
    await group.press("Enter");
    assert.ok((await headTitle(page)).startsWith(headOf(edge)), await headTitle(page));
    // The name of an edge in the table does the same.
    await section(page).locator("tr[data-edge] button").first().click();
    assert.ok((await headTitle(page)).startsWith(headOf(inCircuit(value)[0])), await headTitle(page));
  });
});

test("the kind of pairs is chosen, stands in the address and outlives a reload", async () => {
  await visit(file, async (page) => {
    await section(page).getByRole("button", { name: /^key:/ }).click();
    assert.deepEqual(await drawn(page), inCircuit(key).map(nameOf).sort());
    await settled(page);
    assert.match(page.url(), /pairs=key/);
    await page.reload();
    assert.deepEqual(await drawn(page), inCircuit(key).map(nameOf).sort());
    await page.goBack();
    assert.deepEqual(await drawn(page), inCircuit(value).map(nameOf).sort());
  });
});

test("curve and training are drawn with their numbers, and a click on a step chooses it", async () => {
  const { steps, edges } = value.over_training;
  assert.deepEqual(steps, [100, 200, 300]);
  assert.deepEqual(edges.map(nameOf).sort(), inCircuit(value).map(nameOf).sort());
  // Over training, the last effects are those of the circuit.
  for (const edge of edges) {
    const { effect } = value.edges.find((other) => nameOf(other) === nameOf(edge));
    assert.ok(Math.abs(edge.effects.at(-1)[0] - effect) < 2e-3, nameOf(edge));
  }
  await visit(file, async (page) => {
    const csv = async (figure) => {
      const [download] = await Promise.all([
        page.waitForEvent("download"),
        figure.getByRole("button", { name: "CSV", exact: true }).click(),
      ]);
      return readFileSync(await download.path(), "utf8").trim().split("\n");
    };
    const [curve, training] = [0, 1].map((at) => section(page).locator("figure.curves").nth(at));
    assert.equal((await csv(curve)).length, 1 + 3 * value.curve.length);
    assert.equal((await csv(training)).length, 1 + edges.length * steps.length);
    assert.equal((await csv(section(page).locator("figure.circuit"))).length, 1 + value.edges.length);
    const box = await training.locator("svg").first().boundingBox();
    await training.locator("svg").first().click({ position: { x: box.width * 0.1, y: box.height / 2 } });
    await page.waitForFunction(() => location.hash.includes("step=100&"));
  });
});

for (const width of [390, 1400, 2200]) {
  test(`circuits fit ${width} pixels, light and dark`, async () => {
    for (const place of [file, compiled]) {
      for (const dark of [false, true])
        await visit(
          place,
          async (page) => {
            await page.locator("#circuit").scrollIntoViewIfNeeded();
            await fitsItsWidth(page);
            const name = place === file ? "circuit" : "compiled-circuit";
            await page.locator("#circuit").screenshot({ path: `${process.env.PAGES}/${name}-${width}-${dark ? "dark" : "light"}.png` });
          },
          { width, dark },
        );
    }
  });
}
