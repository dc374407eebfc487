// The live explorer: prompt, switched-off heads and patches change the predictions, to what `inspect` says.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fitsItsWidth, visit } from "./browser.mjs";

const [program, run] = [process.env.INSPECT, `${process.env.PAGES}/run`];
const inspect = (...args) => JSON.parse(execFileSync(program, [run, ...args, "--json"], { encoding: "utf8" }));
const PROMPT = "c a t s o n c a t s o n c a";
const OTHER = "c a d s o n c a t s o n c t";
let server = null;
let address = "";

before(async () => {
  server = spawn(program, [run, "serve", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  [address] = await once(server.stdout, "data").then(([data]) => String(data).trim().split("\n"));
});
after(() => server.kill());

/** What `inspect predict` prints, as the page writes it: the five likeliest tokens and their probabilities. */
const predicted = (prompt, ...args) =>
  inspect("predict", "--prompt", prompt, ...args).predictions.slice(0, 5).map(({ token, probability }) => [token, probability.toFixed(4)]);

/** The rows of a column: `with changes` or `untouched`. */
const said = (page, column) =>
  page.locator(`#predictions table[data-which="${column}"] tr`).evaluateAll((rows) => rows.map((row) => [...row.children].slice(0, 2).map((cell) => cell.textContent)));

/** Does something that asks the model, and waits until its answer is on the page. */
async function asking(page, act) {
  const before = await page.locator("#predictions table").first().elementHandle();
  await act();
  // An answer brings new tables.
  await page.waitForFunction((table) => !table.isConnected, before);
}

async function read(page, prompt) {
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill(prompt);
  await page.getByRole("button", { name: "read it" }).click();
}

test("a prompt, switched-off heads and a patch change what the model says to what inspect says", async () => {
  const untouched = predicted(PROMPT);
  await visit(address, async (page) => {
    await page.waitForSelector("#predictions table");
    const shows = async (...args) => {
      const expected = predicted(PROMPT, ...args);
      assert.deepEqual(await said(page, "with changes"), expected);
      assert.deepEqual(await said(page, "untouched"), untouched);
      if (args.length) assert.notDeepEqual(expected, untouched);
    };
    await asking(page, () => read(page, PROMPT));
    await shows();
    await asking(page, () => page.getByLabel("switch L0H1 off").check());
    await shows("--off", "L0H1");
    await asking(page, () => page.getByLabel("switch L1H2 off").check());
    await shows("--off", "L0H1,L1H2");

    const patch = page.locator("#patch");
    const put = async (site, positions) => {
      await patch.getByLabel("The other prompt").fill(OTHER);
      await patch.getByLabel("Place").selectOption(site);
      await patch.getByLabel("Positions").fill(positions);
      await patch.getByRole("button", { name: "patch" }).click();
    };
    await asking(page, () => put("blocks.1.hook_resid_pre", "2 13"));
    await shows("--off", "L0H1,L1H2", "--patch-from", OTHER, "--patch", "blocks.1.hook_resid_pre@2,13");
    await asking(page, () => page.getByLabel("switch L0H1 off").uncheck());
    await asking(page, () => page.getByLabel("switch L1H2 off").uncheck());
    await shows("--patch-from", OTHER, "--patch", "blocks.1.hook_resid_pre@2,13");
    // At another position of the prompt.
    await page.locator("#predictions .strip button").nth(2).click();
    assert.deepEqual(
      await said(page, "with changes"),
      predicted(PROMPT, "--position", "2", "--patch-from", OTHER, "--patch", "blocks.1.hook_resid_pre@2,13"),
    );
    await page.locator("#predictions .strip button").last().click();

    // All of another prompt's stream: the model says what it says to that prompt.
    await asking(page, () => patch.getByRole("button", { name: "remove" }).click());
    await asking(page, () => put("blocks.0.hook_resid_pre", ""));
    await shows("--patch-from", OTHER, "--patch", "blocks.0.hook_resid_pre");
    assert.deepEqual(await said(page, "with changes"), predicted(OTHER));
  });
});

test("a click on a cell says why the head looks there, as inspect does", async () => {
  await visit(address, async (page) => {
    await page.waitForSelector("#predictions table");
    await asking(page, () => read(page, PROMPT));
    const why = page.locator(".why");
    assert.match(await why.innerText(), /Click a cell of the pattern/);
    const canvas = page.locator(".one-pattern canvas").first();
    const box = await canvas.boundingBox();
    await canvas.click({ position: { x: box.width * 0.5, y: box.height * 0.85 } });
    await page.waitForSelector(".why tr[data-term]");
    const [, query, key] = /query (\d+) .* → key (\d+)/.exec(await page.locator(".one-pattern .readout").innerText());
    const head = (await page.locator(".one-pattern canvas").first().getAttribute("aria-label")).match(/L\dH\d/)[0];
    const said = inspect("why", "--head", head, "--prompt", PROMPT, "--query", query, "--key", key);
    assert.ok((await why.innerText()).includes(said.finding), `${await why.innerText()}, not ${said.finding}`);
    const adds = await why.locator("tr[data-term]").first().locator("td").nth(1).innerText();
    assert.equal(adds.replace("−", "-"), said.terms[0].value.toFixed(2));
    // Another prompt has another answer.
    await asking(page, () => read(page, OTHER));
    await page.waitForFunction((finding) => !document.querySelector(".why").textContent.includes(finding), said.finding);
  });
});

test("an unknown token is named and shown as text", async () => {
  // The browser itself reports an answer that is an error on the console; nothing else may stand there.
  const expected = (message) => message.includes("422");
  await visit(address, async (page) => {
    await read(page, 'c <img src=x onerror="alert(1)">');
    await page.waitForFunction(() => document.querySelector(".error").textContent !== "");
    assert.match(await page.locator(".error").innerText(), /prompt: <img: is no token/);
    assert.equal(await page.locator("img").count(), 0);
  }, { expected });
});

for (const [width, dark] of [[1280, false], [1280, true], [390, false], [390, true]]) {
  test(`it fits ${width} pixels, ${dark ? "dark" : "light"}`, async () => {
    await visit(address, async (page) => {
      await page.waitForSelector("#walk .stage");
      await fitsItsWidth(page);
      await page.screenshot({ path: `${process.env.PAGES}/explorer-${width}-${dark ? "dark" : "light"}.png`, fullPage: true });
    }, { width, dark });
  });
}
