// `train --live`: the page of a run under way shows what the run's own files say.
import assert from "node:assert/strict";
import { spawn } from "node:child_process";
import { readFileSync } from "node:fs";
import { after, before, test } from "node:test";
import { fitsItsWidth, visit } from "./browser.mjs";

const { PAGES, TRAIN } = process.env;
const started = [];

/** Starts a run of the main job and gives the address of its page. */
async function train(name, ...settings) {
  const set = ["log.every=10", "log.patterns_every=20", ...settings].flatMap((setting) => ["--set", setting]);
  const args = ["configs/induction.toml", "--out", `${PAGES}/${name}`, "--overwrite", "--live", "--port", "0", ...set];
  const program = spawn(TRAIN, args, { stdio: ["ignore", "ignore", "pipe"] });
  started.push(program);
  let said = "";
  return new Promise((found, lost) => {
    program.stderr.on("data", (data) => {
      said += data;
      const address = /live +(http:\S+)\n/.exec(said);
      if (address) found(address[1]);
    });
    program.on("exit", () => lost(new Error(said)));
  });
}

const rows = (name, file) => readFileSync(`${PAGES}/${name}/${file}`, "utf8").trim().split("\n").map((line) => JSON.parse(line));

/** The step that the page's first sentence speaks of. */
const stepShown = async (page) => Number(/^Step (\d+) of/.exec(await page.locator(".finding").innerText())?.[1] ?? -1);
const reaches = (page, step) =>
  page.waitForFunction((step) => Number(/^Step (\d+) of/.exec(document.querySelector(".finding").textContent)?.[1] ?? -1) >= step, step, { timeout: 60_000 });

let address = "";
before(async () => {
  address = await train("live", "train.steps=1000000");
});
after(() => started.forEach((program) => program.kill("SIGKILL")));

test("loss and patterns appear while the run trains", async () => {
  await visit(address, async (page) => {
    await reaches(page, 0);
    const first = await stepShown(page);
    await reaches(page, first + 20);
    const step = await stepShown(page);
    const { validation, accuracy } = rows("live", "metrics.jsonl").find((row) => row.step === step);
    const sentence = await page.locator(".finding").innerText();
    assert.ok(sentence.includes(`loss ${validation.toFixed(4)} nats`) && sentence.includes(`accuracy ${accuracy.toFixed(3)}`), sentence);
    assert.match(await page.locator("#curves .key").first().innerText(), /best possible 0\.002/);
    assert.ok((await page.locator("#curves polyline").first().getAttribute("points")).split(" ").length >= 3);

    // The axis ends where the run will end, and the speed says how long that takes.
    const ticks = await page.locator("#curves svg").first().locator("text").allTextContents();
    assert.ok(ticks.includes("1000000"), ticks.join(" "));
    assert.match(await page.locator("#page > .readout").innerText(), /^[\d,]+ tokens\/s, about .* left at this speed$/);
    // Every head has a line, whose last value is that of the run's file.
    const lines = page.locator("#scores polyline");
    await page.waitForFunction(() => document.querySelectorAll("#scores polyline").length === 8);
    assert.ok((await lines.first().getAttribute("points")).split(" ").length >= 3);

    // A locked place stays locked while the pattern under it changes.
    const heads = page.locator("#heads .head-grid button");
    assert.equal(await heads.count(), 8);
    await heads.nth(1).click();
    const canvas = page.locator("#heads .heatmap canvas").first();
    const box = await canvas.boundingBox();
    await canvas.click({ position: { x: box.width * 0.3, y: box.height * 0.9 } });
    await page.mouse.move(0, 0);
    const readout = () => page.locator("#heads .heatmap .readout").innerText();
    const locked = await readout();
    assert.match(locked, /^query \d+ .* → key \d+ .*: 0\.\d+ \(locked\)$/);
    // The weight there may stay what it is, so the step that the patterns are of says that others were drawn.
    const drawn = () => page.evaluate(() => /Patterns at step (\d+)/.exec(document.querySelector("#heads").textContent)[1]);
    await page.waitForFunction((before) => /Patterns at step (\d+)/.exec(document.querySelector("#heads").textContent)[1] !== before, await drawn(), { timeout: 60_000 });
    const place = (text) => text.split(": ")[0];
    assert.equal(place(await readout()), place(locked));
    assert.equal(await heads.nth(1).getAttribute("aria-pressed"), "true");
  });
});

for (const [width, dark] of [[1280, false], [1280, true], [390, false], [390, true]]) {
  test(`it fits ${width} pixels, ${dark ? "dark" : "light"}`, async () => {
    await visit(address, async (page) => {
      await reaches(page, 20);
      await page.waitForSelector("#heads .thumbnail");
      await fitsItsWidth(page);
      await page.screenshot({ path: `${PAGES}/live-${width}-${dark ? "dark" : "light"}.png`, fullPage: true });
    }, { width, dark });
  });
}

test("when the run has ended, its report opens though the program is gone", async () => {
  const short = await train("live-ended", "train.steps=500");
  await visit(short, async (page) => {
    const link = page.getByRole("link", { name: "its report" });
    await link.waitFor({ timeout: 60_000 });
    assert.equal(await stepShown(page), 500);
    const asked = page.waitForRequest((request) => request.url().endsWith("/news"), { timeout: 3000 });
    await assert.rejects(asked, /Timeout/);
    if (started.at(-1).exitCode === null) await new Promise((ended) => started.at(-1).on("exit", ended));
    const [report] = await Promise.all([page.context().waitForEvent("page"), link.click()]);
    await report.waitForSelector("#training");
    assert.match(await report.locator("h1").innerText(), /live-ended/);
    // The blob has no learn.html beside it.
    assert.equal(await report.locator('a[href="learn.html"]').count(), 0);
  });
});
