// learn.html shows what `cargo run --example worked_example` prints.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { test } from "node:test";
import { fitsItsWidth, numberIn, visit } from "./browser.mjs";

const file = `${process.env.PAGES}/learn.html`;
const example = JSON.parse(readFileSync(`${process.env.PAGES}/worked_example.json`, "utf8"));
const near = (text, value) => assert.ok(Math.abs(numberIn(text) - value) < 6e-5, `${text} beside ${value}`);

/** Goes to a stage of the walk and gives what it says of the chosen number. */
async function stage(page, name) {
  const walk = page.locator("#example .walk");
  await walk.getByRole("group", { name: "Stage" }).getByRole("button", { name, exact: true }).click();
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
