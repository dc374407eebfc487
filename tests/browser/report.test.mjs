// report.html shows the numbers that are in it.
import assert from "node:assert/strict";
import { readFileSync, writeFileSync } from "node:fs";
import { test } from "node:test";
import { fileURLToPath } from "node:url";
import { bytesOf, dataOf, fitsItsWidth, floatsOf, headTitle, numberIn, settled, visit, withData } from "./browser.mjs";

const file = `${process.env.PAGES}/run/report.html`;
const original = dataOf(file);
const { data } = original;
/** A model that was compiled from the program induction. */
const compiled = `${process.env.PAGES}/compiled/report.html`;
const [bytes, floats] = [bytesOf, floatsOf];
const near = (text, value, by = 6e-4) => assert.ok(Math.abs(numberIn(text) - value) < by, `${text} beside ${value}`);

/** The weight as it is kept: `[head][query][key ≤ query]`, a byte each. */
function kept(set, stepIndex, head, query, key) {
  const n = set.tokens.length;
  return bytes(set.weights[stepIndex])[(head * n * (n + 1)) / 2 + (query * (query + 1)) / 2 + key] / 255;
}

/** Query and key that a line under a heat map speaks of. */
function placeIn(text) {
  const [, query, key] = /^query (\d+) .* → key (\d+) /.exec(text);
  return [Number(query), Number(key)];
}

/** The heat map of the chosen head, which is `data.heads[head]`. */
async function chosenHead(page) {
  const section = page.locator("#head");
  const head = Number(await section.getByLabel("Head", { exact: true }).inputValue());
  return { section, head, canvas: section.locator("canvas").first(), readout: section.locator(".heatmap .readout") };
}

test("the finding stands first in one sentence, and whole in words", async () => {
  await visit(file, async (page) => {
    const first = await page.locator("main section").first().innerText();
    assert.ok(data.finding.length > 1);
    assert.ok(first.includes(data.finding[0]), first);
    const words = await page.locator("#words").textContent();
    data.finding.forEach((sentence) => assert.ok(words.includes(sentence), sentence));
    assert.match(data.finding[0], /^Between steps \d+ and \d+ the induction heads? .*formed/);
  });
});

test("the lesson that it links to is beside it", async () => {
  await visit(file, async (page) => {
    const lesson = await page.getByRole("link", { name: "How it works" }).evaluate((link) => link.href);
    assert.match(readFileSync(fileURLToPath(lesson), "utf8"), /<title>How attention works<\/title>/);
  });
});

test("hovering shows a weight, a click locks it, Escape lets it go", async () => {
  await visit(file, async (page) => {
    const { head, canvas, readout } = await chosenHead(page);
    const [set] = data.patterns;
    const last = set.steps.length - 1;
    const box = await canvas.boundingBox();
    await canvas.hover({ position: { x: box.width * 0.3, y: box.height * 0.8 } });
    const hovered = await readout.innerText();
    const [query, key] = placeIn(hovered);
    assert.ok(query > key && key > 0, hovered);
    near(hovered, kept(set, last, head, query, key));
    await canvas.click({ position: { x: box.width * 0.3, y: box.height * 0.8 } });
    await page.mouse.move(0, 0);
    assert.equal(await readout.innerText(), `${hovered} (locked)`);
    // Over a token on the left: what its query looks at, the largest weight first.
    await canvas.hover({ position: { x: 3, y: box.height * 0.8 } });
    const row = Array.from({ length: query + 1 }, (_, at) => kept(set, last, head, query, at));
    assert.match(
      await readout.innerText(),
      new RegExp(`^query ${query} .* looks most at key ${row.indexOf(Math.max(...row))} `),
    );
    await canvas.press("Escape");
    await page.mouse.move(0, 0);
    assert.match(await readout.innerText(), /^Point at a cell/);
    // What the mask leaves out has no weight.
    await canvas.hover({ position: { x: box.width * 0.9, y: box.height * 0.3 } });
    assert.match(await readout.innerText(), /: masked$/);
  });
});

test("why a head looks there is told of its typical keys, and of a cell that is clicked", async () => {
  await visit(file, async (page) => {
    const { section, head, canvas } = await chosenHead(page);
    const { typical, cells } = data.why.heads[head];
    assert.equal(data.why.heads[head].head, data.heads[head][0]);
    const why = section.locator(".why");
    const shows = async ({ finding, terms, margin }) => {
      assert.ok((await why.innerText()).includes(finding), `${await why.innerText()}, not ${finding}`);
      const rows = why.locator("tr[data-term]");
      assert.equal(await rows.count(), terms.length);
      near(await rows.first().locator("td").nth(1).innerText(), terms[0][2], 6e-3);
      near(await why.locator("tr.here td").nth(1).innerText(), margin, 6e-3);
    };
    await shows(typical);
    const length = data.patterns[0].tokens.length;
    const at = async (query, key) => {
      // Column by column, row by row with the arrow keys: from the cell in the middle of the picture.
      const box = await canvas.boundingBox();
      await canvas.click({ position: { x: box.width * 0.3, y: box.height * 0.8 } });
      const readout = section.locator(".heatmap .readout");
      const [row, column] = placeIn((await readout.innerText()).replace(" (locked)", ""));
      const go = async (steps, forward, back) => {
        for (let step = 0; step < Math.abs(steps); step++) await canvas.press(steps > 0 ? forward : back);
      };
      await go(query - row, "ArrowDown", "ArrowUp");
      await go(key - column, "ArrowRight", "ArrowLeft");
      await canvas.press("Enter");
    };
    const cell = cells.find(({ place: [query] }) => query === length - 4);
    await at(...cell.place);
    await shows(cell);
    // The terms that are not shown are counted together, so that nothing is lost.
    const sum = cell.terms.reduce((total, [, , value]) => total + value, cell.others[1]);
    assert.ok(Math.abs(sum - cell.margin) < 0.02, `${sum} is not ${cell.margin}`);
    await canvas.press("Escape");
    await shows(typical);
  });
});

test("the slider moves scores and patterns", async () => {
  await visit(file, async (page) => {
    const { head, canvas, readout } = await chosenHead(page);
    const series = data.scores.find(({ on, name }) => on === "probe" && name === "induction");
    const box = await canvas.boundingBox();
    await canvas.click({ position: { x: box.width * 0.3, y: box.height * 0.8 } });
    await page.mouse.move(0, 0);
    for (const index of [0, data.steps.length - 1]) {
      await page.getByLabel("Logged step").first().fill(String(index));
      await settled(page);
      const shown = await page.locator("#training .head-grid button").nth(head).locator("small").innerText();
      near(shown, floats(series.values)[3 * (index * data.heads.length + head)], 6e-3);
      const text = (await readout.innerText()).replace(" (locked)", "");
      const stepIndex = data.patterns[0].steps.indexOf(data.steps[index]);
      near(text, kept(data.patterns[0], stepIndex, head, ...placeIn(text)));
    }
  });
});

test("the toggles change the weights as they say", async () => {
  await visit(file, async (page) => {
    const { section, head, canvas, readout } = await chosenHead(page);
    const [set] = data.patterns;
    const last = set.steps.length - 1;
    const norms = floats(set.value_norms);
    const box = await canvas.boundingBox();
    await canvas.click({ position: { x: box.width * 0.3, y: box.height * 0.8 } });
    await page.mouse.move(0, 0);
    const text = async () => (await readout.innerText()).replace(" (locked)", "");
    const [query, key] = placeIn(await text());
    const row = Array.from({ length: query + 1 }, (_, at) => kept(set, last, head, query, at));
    const sum = (numbers) => numbers.reduce((total, number) => total + number, 0);
    await section.getByLabel("hide the first token").check();
    near(await text(), row[key]);
    await section.getByLabel("make rows sum to 1 again").check();
    near(await text(), row[key] / sum(row.slice(1)));
    await section.getByLabel("weight by value norms").check();
    const carried = row.map((weight, at) => weight * norms[head * set.tokens.length + at]);
    near(await text(), carried[key] / sum(carried.slice(1)));
  });
});

test("the walk shows the model's own numbers and what they were made of", async () => {
  const { layers, d_head: dHead, d_model: dModel, tokens } = data.walk;
  await visit(file, async (page) => {
    const walk = page.locator("#walk");
    const chosen = Number(await walk.getByLabel("Head to walk through").inputValue());
    const [, layer, head] = /L(\d+)H(\d+)/.exec(data.heads[chosen][0]).map(Number);
    const own = layers.find((found) => found.layer === layer).heads.find((found) => found.head === head);
    const stages = [
      ["Q", own.qkv[0], dHead],
      ["K", own.qkv[1], dHead],
      ["V", own.qkv[2], dHead],
      ["softmax", own.pattern, tokens.length],
      ["A·V", own.z, dHead],
      ["Z·W_O", own.result, dModel],
    ];
    for (const [name, numbers, columns] of stages) {
      await walk.getByRole("group", { name: "Stage" }).getByRole("button", { name, exact: true }).click();
      await settled(page);
      const canvas = walk.locator(".stage canvas").last();
      // From the first cell: two down, one to the right.
      await canvas.focus();
      for (const key of ["ArrowDown", "ArrowDown", "ArrowRight", "Enter"]) await canvas.press(key);
      const value = floats(numbers)[2 * columns + 1];
      near(await walk.locator("output").innerText(), value, 6e-5);
      if (name === "softmax") continue;
      const terms = await walk
        .locator(".explained tbody tr")
        .evaluateAll((rows) => rows.map((row) => row.children[3].textContent));
      const sum = terms.reduce((total, term) => total + numberIn(term), 0);
      assert.ok(Math.abs(sum - value) < 6e-5 * terms.length, `${name}: terms sum to ${sum}, the cell is ${value}`);
    }
    // Another token: its row is the one that is explained.
    await walk.locator(".strip button").nth(5).click();
    assert.match(await walk.locator(".equation").innerText(), /^Z·W_O\[5, /);
  });
});

test("a compiled model's program stands beside what was found in it", async () => {
  const { program } = dataOf(compiled).data;
  await visit(compiled, async (page) => {
    const section = page.locator("#program");
    const rows = await section.locator("table.program tbody tr").allInnerTexts();
    assert.equal(rows.length, program.lines.length);
    rows.forEach((row, at) => {
      const { variable, how, part } = program.lines[at];
      assert.ok(row.replace(/\s+/g, " ").includes(`${variable} = ${how} ${part}`), row);
    });
    assert.equal(await section.locator("b.right").count(), 4);
    assert.equal(await section.locator("b.wrong").count(), 0);
    // The values of a line along the sequence, as the stream holds them.
    const values = await section.locator("table.values tbody tr").last().locator("td").allInnerTexts();
    assert.deepEqual(values, program.traces[0].values.at(-1).map((value) => value || "·"));
    // A head of the program is the head that the page shows.
    await section.getByRole("button", { name: "L1H0" }).click();
    assert.match(await headTitle(page), /^L1H0/);
    // The walk names the directions of the stream.
    const walk = page.locator("#walk");
    await walk.getByRole("button", { name: "Z·W_O", exact: true }).click();
    assert.match(await walk.locator(".equation").innerText(), /^Z·W_O\[\d+, next:/);
  });
});

test("hostile tokens are text", async () => {
  const hostile = [
    "</script><script>document.title='bad'</script>",
    "<img src=x onerror=\"document.title='bad'\">",
    "\u202eevil\n\0",
    "'\"&amp;",
    "",
  ];
  const changed = structuredClone(data);
  changed.patterns.forEach((set) => set.tokens.splice(0, hostile.length, ...hostile));
  changed.walk.tokens.splice(0, hostile.length, ...hostile);
  changed.stream.lens.tokens.splice(0, hostile.length, ...hostile);
  changed.run.name = hostile[1];
  const place = `${process.env.PAGES}/hostile.html`;
  writeFileSync(place, withData(original, changed));
  await visit(place, async (page) => {
    assert.notEqual(await page.title(), "bad");
    assert.equal(await page.locator("img").count(), 0);
    const strip = await page.locator("#walk .strip button").allTextContents();
    assert.deepEqual(strip.slice(0, 5), ["</scrip…", "<img␣sr…", "⟨U+202E…", "'\"&amp;", "⟨empty⟩"]);
  });
});

for (const width of [390, 1280, 2200]) {
  test(`fits ${width} pixels, light and dark`, async () => {
    for (const place of [file, compiled]) {
      for (const dark of [false, true]) await visit(place, fitsItsWidth, { width, dark });
    }
  });
}
