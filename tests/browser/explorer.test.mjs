// The live explorer: prompt, switched-off heads and patches change the predictions, to what `inspect` says.
import assert from "node:assert/strict";
import { execFileSync, spawn } from "node:child_process";
import { once } from "node:events";
import { after, before, test } from "node:test";
import { fitsItsWidth, visit } from "./browser.mjs";

const [program, run] = [process.env.INSPECT, `${process.env.PAGES}/run`];
const inspect = (...args) => JSON.parse(execFileSync(program, [run, ...args, "--json"], { encoding: "utf8" }));
const PROMPT = "c a t s o n c a t s o n c a";
const OTHER = "c a t s o n c a t s o n c t";
let server = null;
let address = "";

before(async () => {
  server = spawn(program, [run, "serve", "--port", "0"], { stdio: ["ignore", "pipe", "inherit"] });
  [address] = await once(server.stdout, "data").then(([data]) => String(data).trim().split("\n"));
});
after(() => server.kill());

/** The likeliest token of a column: `with changes` or `untouched`. */
const said = (page, column) => page.locator(`#predictions table[data-which="${column}"] th`).first().innerText();

async function read(page, prompt) {
  await page.getByRole("textbox", { name: "Prompt", exact: true }).fill(prompt);
  const answered = page.waitForResponse((response) => response.url().endsWith("/explore"));
  await page.getByRole("button", { name: "read it" }).click();
  await answered;
}

const answerTo = (prompt) => inspect("generate", "--prompt", prompt, "--tokens", "1", "--temperature", "0").tokens[0];

test("a prompt, switched-off heads and a patch change what the model says", async () => {
  await visit(address, async (page) => {
    await read(page, PROMPT);
    const untouched = answerTo(PROMPT);
    assert.equal(await said(page, "with changes"), untouched);
    const probability = () => page.locator('#predictions table[data-which="with changes"] td').first().innerText();
    const whole = await probability();
    for (const head of inspect("heads").map(({ head }) => head)) {
      const answered = page.waitForResponse((response) => response.url().endsWith("/explore"));
      await page.getByLabel(`switch ${head} off`).check();
      await answered;
    }
    await page.waitForFunction((before) => document.querySelector('#predictions table[data-which="with changes"] td').textContent !== before, whole);
    assert.equal(await said(page, "untouched"), untouched);
    for (const box of await page.locator('#heads input[type="checkbox"]').all()) await box.uncheck();

    // All of another prompt's stream: the model says what it says to that prompt.
    const patch = page.locator("#patch");
    await patch.getByLabel("The other prompt").fill(OTHER);
    await patch.getByLabel("Place").selectOption("blocks.0.hook_resid_pre");
    const answered = page.waitForResponse((response) => response.url().endsWith("/explore"));
    await patch.getByRole("button", { name: "patch" }).click();
    await answered;
    await page.waitForTimeout(200);
    assert.equal(await said(page, "with changes"), answerTo(OTHER));
    assert.equal(await said(page, "untouched"), untouched);
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
