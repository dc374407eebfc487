// What report.html has on show is in its address, and its figures can be taken away.
import assert from "node:assert/strict";
import { execFileSync } from "node:child_process";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { bytesOf, dataOf, fitsItsWidth, floatsOf, headTitle, numberIn, numbersIn, visit, withData } from "./browser.mjs";

const run = `${process.env.PAGES}/run`;
const file = `${run}/report.html`;
const original = dataOf(file);
const { data } = original;

const slider = (page) => page.locator("#head").getByLabel("Logged step");
const score = (page) => page.locator('#training [aria-label="Score"] button[aria-pressed="true"]').textContent();

test("what is on show outlives a reload, and back goes back", async () => {
  await visit(file, async (page) => {
    await page.locator("#head").getByLabel("Head", { exact: true }).selectOption("2");
    await page.locator("#training").getByRole("button", { name: "first token", exact: true }).click();
    await slider(page).fill("1");
    await page.waitForFunction((step) => location.hash.includes(`step=${step}&`), data.steps[1]);
    const before = await headTitle(page);
    assert.ok(before.startsWith(data.heads[2][0]) && before.endsWith(`step ${data.steps[1]}`), before);
    await page.reload();
    assert.equal(await headTitle(page), before);
    assert.equal(await score(page), "first token");
    await page.locator("#head").getByLabel("Head", { exact: true }).selectOption("0");
    assert.ok((await headTitle(page)).startsWith(data.heads[0][0]));
    await page.goBack();
    assert.equal(await headTitle(page), before);
  });
});

test("an address that makes no sense shows what a page begins with", async () => {
  await visit(file, async (page) => {
    const begun = await headTitle(page);
    await page.goto(`${page.url().split("#")[0]}#head=L9H9&step=abc&score=__proto__&on=nowhere&sequence=99&at=nothing`);
    await page.reload();
    assert.equal(await headTitle(page), begun);
  });
});

test("the navigation stays in sight, leads to each section and marks it", async () => {
  await visit(file, async (page) => {
    const links = page.getByRole("navigation").getByRole("link");
    assert.equal(await links.count(), 9);
    const last = links.nth(5);
    await last.click();
    await page.waitForFunction(() => document.querySelector("nav a[aria-current]").textContent === "the walk");
    assert.ok((await last.boundingBox()).y < 50);
    assert.match(page.url(), /at=walk/);
    await page.reload();
    await page.waitForFunction(() => Math.abs(document.querySelector("#walk").getBoundingClientRect().top) < 100);
  });
});

test("the theme that a reader chose is kept", async () => {
  await visit(file, async (page) => {
    const theme = () => page.evaluate(() => document.documentElement.dataset.theme);
    await page.locator("button.theme").click();
    assert.equal(await theme(), "dark");
    await page.reload();
    assert.equal(await theme(), "dark");
  });
});

test("no step shows patterns of a later one", async () => {
  await visit(file, async (page) => {
    const { steps: kept } = data.patterns[0];
    assert.ok(kept.length > 5, `patterns at ${kept}`);
    const shown = await page.evaluate(async () => {
      const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
      const input = document.querySelector('#head input[aria-label="Logged step"]');
      const note = document.querySelector("#head .stays > .hint");
      const found = [];
      for (let at = 0; at <= Number(input.max); at++) {
        input.value = at;
        input.dispatchEvent(new Event("input"));
        await frame();
        found.push(Number(/of step (\d+)/.exec(note.textContent)[1]));
      }
      return found;
    });
    assert.deepEqual(shown, data.steps.map((step) => kept.findLast((other) => other <= step)));
    assert.equal(await page.locator("#head .ticks .kept").count(), kept.length);
  });
});

async function downloaded(page, figure, what) {
  const [download] = await Promise.all([
    page.waitForEvent("download"),
    figure.locator(".exports").first().getByRole("button", { name: what, exact: true }).click(),
  ]);
  return { name: download.suggestedFilename(), bytes: readFileSync(await download.path()) };
}

test("a figure is saved as SVG, PNG and CSV with its numbers", async () => {
  await visit(file, async (page) => {
    const head = Number(await page.locator("#head").getByLabel("Head", { exact: true }).inputValue());
    const figure = page.locator("#head .stays");
    const svg = await downloaded(page, figure, "SVG");
    assert.match(svg.name, new RegExp(`^${data.heads[head][0]}.*\\.svg$`));
    const n = data.patterns[0].tokens.length;
    assert.equal(svg.bytes.toString().match(/<rect /g).length, 1 + (n * (n + 1)) / 2);
    const png = await downloaded(page, figure, "PNG");
    assert.equal(png.bytes.subarray(1, 4).toString(), "PNG");
    const csv = (await downloaded(page, figure, "CSV")).bytes.toString().trim().split("\n");
    assert.equal(csv.length, 1 + (n * (n + 1)) / 2);
    const last = data.patterns[0].weights.at(-1);
    const due = bytesOf(last)[(head * n * (n + 1)) / 2 + (5 * 6) / 2 + 4] / 255;
    const row = csv.find((line) => line.startsWith("5,") && line.split(",").at(-3) === "4");
    assert.ok(Math.abs(Number(row.split(",").at(-1)) - due) < 1e-6, row);
    const panels = await downloaded(page, page.locator("#panels"), "SVG");
    assert.equal(panels.bytes.toString().includes("class="), false, "it needs no style sheet");
    const scores = (await downloaded(page, page.locator("#training .curves"), "CSV")).bytes.toString();
    assert.equal(scores.trim().split("\n").length, 1 + data.heads.length * data.steps.length);
  });
});

test("every command that the page shows runs", async () => {
  const commands = new Set();
  await visit(file, async (page) => {
    for (const button of await page.getByRole("button", { name: "command", exact: true }).all()) await button.click();
    for (const text of await page.locator("code.command:not([hidden])").allTextContents()) commands.add(text);
  });
  assert.ok(commands.size >= 6, [...commands].join("\n"));
  for (const command of commands) {
    const [program, name, ...words] = command.split(" ");
    assert.deepEqual([program, name], ["inspect", "run"], command);
    // In the folder that holds the run, as a reader would.
    execFileSync(process.env.INSPECT, [name, ...words], { cwd: process.env.PAGES, stdio: "pipe" });
  }
});

test("the pointer tells each line's value with its interval, a name isolates its line", async () => {
  await visit(file, async (page) => {
    const figure = page.locator("#training .curves");
    const [shown, series] = [await score(page), data.scores.find(({ on, name }) => on === "probe" && name === "induction")];
    assert.equal(shown, "induction");
    await figure.locator(".key button").nth(1).click();
    assert.equal(await figure.locator("polyline").count(), 1);
    const svg = figure.locator("svg").first();
    const box = await svg.boundingBox();
    await svg.hover({ position: { x: box.width - 16, y: 100 } });
    const values = floatsOf(series.values);
    const at = 3 * ((data.steps.length - 1) * data.heads.length + 1);
    const due = [...values.subarray(at, at + 3)].map((value) => value.toFixed(3));
    assert.deepEqual(numbersIn(await figure.locator(".told").innerText()), due);
    await figure.locator(".key button").nth(1).click();
    assert.equal(await figure.locator("polyline").count(), data.heads.length);
  });
});

test("steps may be logarithmic, and the height may fit what is drawn", async () => {
  await visit(file, async (page) => {
    const figure = page.locator("#training .curves");
    const line = () => figure.locator("polyline").first().getAttribute("points");
    const places = async () => (await line()).split(" ").map((point) => point.split(",").map(Number));
    const linear = await places();
    await figure.getByLabel("logarithmic steps").check();
    const logarithmic = await places();
    // The second step is further along, the last where it was, the heights the same.
    assert.ok(logarithmic[2][0] > linear[2][0] + 20);
    assert.deepEqual(logarithmic.at(-1), linear.at(-1));
    await figure.locator(".key button").first().click();
    await figure.getByLabel("height that fits").check();
    const heights = (await places()).map(([, y]) => y);
    const spread = (all) => Math.max(...all) - Math.min(...all);
    assert.ok(spread(heights) > spread(linear.map(([, y]) => y)));
  });
});

test("lines between tokens show the weights of the token that is pointed at", async () => {
  await visit(file, async (page) => {
    const section = page.locator("#head");
    const head = Number(await section.getByLabel("Head", { exact: true }).inputValue());
    await section.getByRole("button", { name: "lines between tokens" }).click();
    const n = data.patterns[0].tokens.length;
    const query = n - 3;
    await section.locator(`text[aria-label^="query ${query} "]`).hover();
    const told = await section.locator(".token-lines ~ .readout").innerText();
    const row = Array.from({ length: query + 1 }, (_, key) => bytesOf(data.patterns[0].weights.at(-1))[(head * n * (n + 1)) / 2 + (query * (query + 1)) / 2 + key] / 255);
    const key = row.indexOf(Math.max(...row));
    assert.match(told, new RegExp(`^query ${query} .* looks at keys ${key} .* ${row[key].toFixed(3)}`));
    const seen = await section.locator("line.link").evaluateAll((lines) => lines.filter((line) => Number(line.getAttribute("stroke-opacity")) > 0).length);
    assert.equal(seen, row.filter((weight) => weight >= 0.03).length);
  });
});

test("a scale of its own ends at a weight that its cells reach", async () => {
  await visit(file, async (page) => {
    const section = page.locator("#head");
    const legend = () => section.locator(".scales .legend").innerText();
    assert.match(await legend(), /1 attention weight/);
    await section.getByLabel("a colour scale of its own").check();
    const most = numberIn((await legend()).split(" attention")[0]);
    assert.ok(most > 0 && most < 1, await legend());
  });
});

test("on a phone a tap chooses a cell and arrows move it", async () => {
  await visit(
    file,
    async (page) => {
      await fitsItsWidth(page);
      const section = page.locator("#head");
      const canvas = section.locator("canvas").first();
      const box = await canvas.boundingBox();
      await canvas.tap({ position: { x: box.width * 0.5, y: box.height * 0.8 } });
      const place = async () => /^query (\d+) .* → key (\d+) /.exec(await section.locator(".readout").first().innerText()).slice(1).map(Number);
      const [query, key] = await place();
      await section.getByRole("button", { name: "One query on" }).tap();
      await section.getByRole("button", { name: "One key back" }).tap();
      assert.deepEqual(await place(), [query + 1, key - 1]);
    },
    { width: 390, touch: true },
  );
});

test("many heads are found by search and order", async () => {
  const many = structuredClone(data);
  const [layers, inLayer] = [30, 9];
  const names = Array.from({ length: layers * inLayer }, (_, at) => `L${Math.floor(at / inLayer)}H${at % inLayer}`);
  many.heads = names.map((name, at) => [name, at === 100 ? "previous token" : "mixed"]);
  many.steps = [0, 10];
  const values = new Float32Array(2 * 3 * names.length).fill(0.1);
  values.fill(0.9, 3 * (names.length + 100), 3 * (names.length + 101));
  many.scores = many.scores.map((series) => ({ ...series, values: Buffer.from(values.buffer).toString("base64") }));
  Object.assign(many, { patterns: [], walk: null, first: [], positions: [], circuits: [], shuffled: [], uses: [], headline: names[100] });
  const place = `${process.env.PAGES}/many.html`;
  writeFileSync(place, withData(original, many));
  await visit(place, async (page) => {
    const drawn = () => page.locator("#training .head-grid b").allTextContents();
    assert.equal((await drawn()).length, 32);
    assert.equal((await drawn())[0], names[100], "the highest score first");
    assert.equal(await page.locator(".head-map button").count(), names.length);
    await page.getByLabel("Search heads").fill("L17");
    assert.deepEqual((await drawn()).sort(), names.filter((name) => name.startsWith("L17H")));
    await page.getByLabel("Search heads").fill("previous");
    assert.deepEqual(await drawn(), [names[100]]);
    await fitsItsWidth(page);
  });
});
