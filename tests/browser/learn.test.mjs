// learn.html shows what `cargo run --example worked_example` prints.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fitsItsWidth, numberIn, settled, visit } from "./browser.mjs";

const file = `${process.env.PAGES}/learn.html`;
const example = JSON.parse(readFileSync(`${process.env.PAGES}/worked_example.json`, "utf8"));
const near = (text, value) => assert.ok(Math.abs(numberIn(text) - value) < 6e-5, `${text} beside ${value}`);

/** Goes to a stage of the walk and gives what it says of the chosen number. */
async function stage(page, name) {
  const walk = page.locator("#example .walk");
  await walk.getByRole("group", { name: "Stage" }).getByRole("button", { name, exact: true }).click();
  // How a number was made is told a frame after the stage.
  await settled(page);
  return walk.locator(".explained");
}

test("the worked example is the example's", async () => {
  await visit(file, async (page) => {
    for (const [query, token] of example.tokens.entries()) {
      await page.locator("#example .walk .strip").getByRole("button", { name: token, exact: true }).click();
      const explained = await stage(page, "softmax");
      const cells = await explained.locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.children[3].textContent));
      assert.equal(cells.length, example.tokens.length);
      cells.forEach((cell, key) => near(cell, example.weights[query][key]));
      assert.match(await explained.innerText(), /sum to 1\.00/);
    }
    // Of every stage the numbers that the keyboard reaches are those of the matrix.
    for (const [name, matrix] of [["Q", "Q"], ["K", "K"], ["V", "V"], ["Q·Kᵀ", "scores"], ["A·V", "output"]]) {
      const explained = await stage(page, name);
      const [cell] = await explained.locator(".equation").allInnerTexts();
      const [, row, column] = /\[(\d+), (\d+)\]/.exec(cell);
      near(await explained.locator("output").innerText(), example[matrix][row][column]);
    }
  });
});

test("a click on a number shows the row and the column that made it", async () => {
  await visit(file, async (page) => {
    const figure = page.locator("#queries .stage");
    const canvas = figure.locator("canvas").nth(2);
    await canvas.focus();
    // From the first cell: one down, two to the right.
    for (const key of ["ArrowDown", "ArrowRight", "ArrowRight", "Enter"]) await canvas.press(key);
    near(await figure.locator("output").innerText(), example.Q[2][2]);
    const terms = await figure.locator("tbody tr").evaluateAll((rows) => rows.map((row) => row.children[3].textContent));
    const sum = terms.reduce((total, term) => total + numberIn(term), 0);
    assert.ok(Math.abs(sum - example.Q[2][2]) < 1e-3);
  });
});

test("sliders change what is seen", async () => {
  await visit(file, async (page) => {
    const set = (section, at) => page.locator(`#${section} input`).fill(String(at));
    await set("scale", 9);
    assert.match(await page.locator("#scale .readout").innerText(), /^d = 512: /);
    // At d = 512 one of eight raw weights is nearly 1, scaled none is.
    await set("saturation", 9);
    const column = (table) => page.locator(`#saturation table >> nth=${table} >> td:nth-child(2)`).allInnerTexts();
    const [raw, scaled] = (await Promise.all([column(0), column(1)])).map((cells) => Math.max(...cells.map(numberIn)));
    assert.ok(raw > 0.95 && scaled < 0.6, `${raw} ${scaled}`);
    await set("values", 4);
    assert.equal(await page.locator("#values table >> nth=1 >> td:nth-child(2) >> nth=2").innerText(), "0.000");
  });
});

test("a question hides its numbers until it is answered, and the answer is the numbers'", async () => {
  await visit(file, async (page) => {
    const question = page.locator("#scores .exercise");
    assert.equal(await question.locator("table").count(), 0);
    const weights = example.weights[example.tokens.indexOf("sat")];
    const right = weights.indexOf(Math.max(...weights));
    const wrong = (right + 1) % weights.length;
    await question.getByRole("button", { name: example.tokens[wrong], exact: true }).click();
    assert.equal(await question.locator(".verdict").innerText(), `Not so: ${example.tokens[right]}.`);
    await question.getByRole("button", { name: example.tokens[right], exact: true }).click();
    assert.equal(await question.locator(".verdict").innerText(), "Right.");
    const shown = await question.locator("td:nth-child(2)").allInnerTexts();
    shown.forEach((cell, key) => assert.ok(Math.abs(numberIn(cell) - weights[key]) < 6e-4));
  });
});

test("the causal mask takes later keys out and the rest of a row sums to 1", async () => {
  await visit(file, async (page) => {
    await page.getByRole("group", { name: "Mask" }).getByRole("button", { name: "causal", exact: true }).click();
    assert.match(await page.locator("#mask .readout").last().innerText(), /^Each row sums to 1: \S+ 1\.00, \S+ 1\.00, \S+ 1\.00, \S+ 1\.00\.$/);
    const canvas = page.locator("#mask canvas");
    await canvas.focus();
    await canvas.press("ArrowRight");
    assert.match(await page.locator("#mask figcaption").innerText(), /masked/);
  });
});

test("the contents lead to every lesson", async () => {
  await visit(file, async (page) => {
    const links = await page.locator("nav a").evaluateAll((all) => all.map((link) => link.getAttribute("href")));
    assert.ok(links.length >= 10);
    for (const link of links) assert.equal(await page.locator(link).count(), 1);
  });
});

test("beside a report the lesson asks about the run, and the run's numbers answer", async () => {
  await visit(`${process.env.PAGES}/run/learn.html`, async (page) => {
    const uses = readFileSync(`${process.env.PAGES}/run/uses.jsonl`, "utf8").trim().split("\n").map((line) => JSON.parse(line)).at(-1);
    const questions = page.locator("#run .exercise");
    assert.ok((await questions.count()) >= 1);
    await questions.first().getByRole("button").first().click();
    const [all, without] = (await questions.first().locator("td:nth-child(2)").allInnerTexts()).map(numberIn);
    const alone = uses.uses.filter(({ heads, ablated }) => heads.length === 1 && ablated).map(({ ablated }) => ablated.accuracy);
    assert.ok(Math.abs(all - uses.untouched.accuracy) < 6e-4);
    assert.ok(Math.abs(without - Math.min(...alone)) < 6e-4);
    assert.equal(await page.locator("nav .back").getAttribute("href"), "report.html");
  });
});

test("on a phone the matrices of a product stand below each other, with cells to tap", async () => {
  await visit(file, async (page) => {
    const boxes = await page.locator("#queries .matrix canvas").evaluateAll((all) => all.map((canvas) => canvas.getBoundingClientRect().toJSON()));
    assert.ok(boxes[0].bottom <= boxes[1].top && boxes[1].bottom <= boxes[2].top);
    // W_Q has 4 columns and X has 8, each with its labels.
    for (const [box, columns] of [[boxes[0], 8], [boxes[1], 4], [boxes[2], 4]]) assert.ok((box.width - 62) / columns >= 24, `${box.width} for ${columns} columns`);
  }, { width: 390 });
});

for (const width of [1280, 390]) {
  for (const dark of [false, true]) {
    test(`it fits ${width} pixels, ${dark ? "dark" : "light"}`, async () => {
      const look = async (page) => {
        await fitsItsWidth(page);
        await page.screenshot({ path: `${process.env.PAGES}/learn-${width}-${dark ? "dark" : "light"}.png`, fullPage: true });
      };
      await visit(file, look, { width, dark });
    });
  }
}
