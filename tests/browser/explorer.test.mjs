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

/** The page with an answer to `prompt`. */
const explore = (prompt, look, options = {}) =>
  visit(address, async (page) => {
    await page.waitForSelector("#predictions table");
    await asking(page, () => read(page, prompt));
    await look(page);
  }, options);

/** The browser itself reports an answer that is an error on the console; nothing else may stand there. */
const expected = (message) => message.includes("422");

async function put(page, { from = OTHER, site = "blocks.0.hook_resid_pre", positions = "" }) {
  const patch = page.locator("#patch");
  await patch.getByLabel("The other prompt").fill(from);
  await patch.getByLabel("Place").selectOption(site);
  await patch.getByLabel("Positions").fill(positions);
  await patch.getByRole("button", { name: "patch" }).click();
}

test("a prompt, switched-off heads and a patch change what the model says to what inspect says", async () => {
  const untouched = predicted(PROMPT);
  await explore(PROMPT, async (page) => {
    const shows = async (...args) => {
      const wanted = predicted(PROMPT, ...args);
      assert.deepEqual(await said(page, "with changes"), wanted);
      assert.deepEqual(await said(page, "untouched"), untouched);
      assert.notDeepEqual(wanted, untouched);
    };
    // Where nothing is changed, nothing stands beside the model as it is.
    assert.deepEqual(await said(page, "with changes"), []);
    assert.deepEqual(await said(page, "untouched"), untouched);
    await asking(page, () => page.getByLabel("switch L0H1 off").check());
    await shows("--off", "L0H1");
    await asking(page, () => page.getByLabel("switch L1H2 off").check());
    await shows("--off", "L0H1,L1H2");
    await asking(page, () => page.getByLabel("What stands in place").selectOption("zero"));
    await shows("--off", "L0H1,L1H2", "--by", "zero");
    await asking(page, () => page.getByLabel("What stands in place").selectOption("mean"));

    await asking(page, () => put(page, { site: "blocks.1.hook_resid_pre", positions: "2 13" }));
    await shows("--off", "L0H1,L1H2", "--patch-from", OTHER, "--patch", "blocks.1.hook_resid_pre@2,13");
    await asking(page, () => page.getByLabel("switch L0H1 off").uncheck());
    await asking(page, () => page.getByLabel("switch L1H2 off").uncheck());
    await shows("--patch-from", OTHER, "--patch", "blocks.1.hook_resid_pre@2,13");
    // At another position of the prompt.
    await page.locator("#predictions .said button").nth(2).click();
    assert.deepEqual(
      await said(page, "with changes"),
      predicted(PROMPT, "--position", "2", "--patch-from", OTHER, "--patch", "blocks.1.hook_resid_pre@2,13"),
    );
    await page.locator("#predictions .said button").last().click();

    // All of another prompt's stream: the model says what it says to that prompt.
    await asking(page, () => page.locator("#patch").getByRole("button", { name: "remove" }).click());
    await asking(page, () => put(page, {}));
    await shows("--patch-from", OTHER, "--patch", "blocks.0.hook_resid_pre");
    assert.deepEqual(await said(page, "with changes"), predicted(OTHER));
    await asking(page, () => page.getByRole("button", { name: "reset all changes" }).click());
    assert.deepEqual(await said(page, "with changes"), []);
    assert.equal(await page.locator("#patch li").count(), 0);
  });
});

test("a patch that cannot be is not listed, and says why beside its form while the answer stays", async () => {
  await explore(PROMPT, async (page) => {
    await put(page, { from: "c a d" });
    const warning = page.locator("#patch .error");
    await page.waitForFunction(() => document.querySelector("#patch .error").textContent !== "");
    assert.match(await warning.innerText(), /from: has 3 tokens, the prompt has 14/);
    assert.equal(await page.locator("#patch li").count(), 0);
    assert.equal(await page.locator(".answer.stale").count(), 0);
    await asking(page, () => page.getByLabel("switch L0H1 off").check());
    assert.deepEqual(await said(page, "with changes"), predicted(PROMPT, "--off", "L0H1"));

    // A prompt of another length beside a patch in force: nothing old looks like an answer.
    await asking(page, () => put(page, {}));
    await read(page, "c a t s");
    await page.waitForSelector(".answer.stale");
    assert.match(await page.locator("#predictions .error").innerText(), /Not answered: from: has 14 tokens, the prompt has 4/);
    await asking(page, () => page.locator("#patch").getByRole("button", { name: "remove" }).click());
    assert.equal(await page.locator(".answer.stale").count(), 0);
    assert.deepEqual(await said(page, "with changes"), predicted("c a t s", "--off", "L0H1"));
  }, { expected });
});

test("the predictions are those after the last token, unless the reader chose one of the same prompt", async () => {
  await explore(PROMPT, async (page) => {
    const chosen = () => page.locator("#predictions .said button").evaluateAll((all) => all.findIndex((one) => one.ariaPressed === "true"));
    assert.equal(await chosen(), 13);
    await page.locator("#predictions .said button").nth(4).click();
    await asking(page, () => page.getByLabel("switch L0H1 off").check());
    assert.equal(await chosen(), 4);
    await asking(page, () => read(page, `${PROMPT} t`));
    assert.equal(await chosen(), 14);
  });
});

test("letters without spaces are the same prompt, and each token has its probability", async () => {
  await explore(PROMPT.replaceAll(" ", ""), async (page) => {
    assert.deepEqual(await said(page, "untouched"), predicted(PROMPT));
    const titles = await page.locator("#predictions .said button").evaluateAll((all) => all.map((one) => one.title));
    assert.equal(titles.length, 14);
    for (const position of [1, 7, 13]) {
      const before = PROMPT.split(" ").slice(0, position).join(" ");
      const all = inspect("predict", "--prompt", before, "--top", "64").predictions;
      const { probability } = all.find(({ token }) => token === PROMPT.split(" ")[position]);
      const shown = Number(/probability (\d\.\d+)/.exec(titles[position])[1]);
      assert.ok(Math.abs(shown - probability) < 6e-4, `${titles[position]}: ${probability}`);
    }
  });
});

test("the heads of a role are switched off together, and look off", async () => {
  await explore(PROMPT, async (page) => {
    const heads = inspect("heads");
    const { role } = heads.find((head) => head.role !== "mixed") ?? heads[0];
    const names = heads.filter((head) => head.role === role).map(({ head }) => head);
    await asking(page, () => page.getByRole("button", { name: `${role} (${names.length})` }).click());
    assert.deepEqual(await said(page, "with changes"), predicted(PROMPT, "--off", names.join(",")));
    const isOff = await page.locator(".switch.is-off").evaluateAll((cards) => cards.map((card) => card.querySelector("button").firstChild.textContent));
    assert.deepEqual(isOff.sort(), names.sort());
    await asking(page, () => page.getByRole("button", { name: "all on" }).click());
    assert.equal(await page.locator(".switch.is-off").count(), 0);
  });
});

test("the sweep has the shares of inspect patch", async () => {
  await explore(PROMPT, async (page) => {
    for (const [kind, name, direction] of [["the stream before each layer", "blocks.1.hook_resid_pre", "returns"], ["the blend of each head", "L1H3", "lost"]]) {
      await page.getByLabel("The other prompt of the sweep").fill(OTHER);
      await page.getByLabel("What is patched").selectOption({ label: kind });
      await page.getByRole("button", { name: direction === "lost" ? "what is lost" : "what returns" }).click();
      await page.getByRole("button", { name: "sweep" }).click();
      await page.waitForFunction(() => /After position 13/.test(document.querySelector("#sweep").innerText));
      const patched = inspect("patch", "--prompt", PROMPT, "--corrupted", OTHER)[direction].find(({ place }) => place === name);
      const canvas = page.locator("#sweep canvas");
      await canvas.focus();
      // The last layer stands on top: the first row is the last place, of the blend L1H3, of the stream layer 1.
      for (const key of ["Escape", "Home", ...Array(13).fill("ArrowRight")]) await canvas.press(key);
      const readout = await page.locator("#sweep .readout").innerText();
      const share = Number(/: (−?\d\.\d+) of/.exec(readout)[1].replace("−", "-"));
      assert.ok(readout.startsWith(name) && readout.includes("position 13"), readout);
      assert.ok(Math.abs(share - patched.by_position[13]) < 6e-4, `${readout}: ${patched.by_position[13]}`);
      await page.reload();
      await page.waitForSelector("#predictions table");
      await asking(page, () => read(page, PROMPT));
    }
  });
});

test("the model writes on what inspect generate writes, and something else without its heads", async () => {
  await explore(PROMPT, async (page) => {
    const write = async () => {
      await page.getByLabel("Temperature").fill("0.7");
      await page.getByLabel("Seed").fill("5");
      await page.getByLabel("Tokens to write").fill("8");
      const before = await page.locator("#writing .written").count();
      await page.getByRole("button", { name: "write on" }).click();
      await page.waitForFunction((before) => document.querySelectorAll("#writing .written").length > before, before);
      return page.locator("#writing .written").evaluateAll((all) => all.map((one) => [...one.querySelectorAll(".token")].map((token) => token.textContent)));
    };
    const { tokens } = inspect("generate", "--prompt", PROMPT, "--tokens", "8", "--temperature", "0.7", "--seed", "5");
    assert.deepEqual(await write(), [tokens]);
    await asking(page, () => page.getByRole("button", { name: "layer 1", exact: true }).click());
    const [without, untouched] = await write();
    assert.deepEqual(untouched, tokens);
    assert.equal(without.length, 8);
    assert.notDeepEqual(without, tokens);
  });
});

test("a slow question holds up no other, and its answer never stands over a newer one", async () => {
  await visit(address, async (page) => {
    await page.waitForSelector("#predictions table");
    // The first question that is asked from here on is answered late.
    let late = null;
    await page.route("**/explore", async (route) => {
      if (late) return route.fallback();
      late = new Promise((answer) => setTimeout(answer, 800));
      await late;
      await route.fallback().catch(() => {});
    });
    await read(page, OTHER);
    await asking(page, () => read(page, PROMPT));
    assert.deepEqual(await said(page, "untouched"), predicted(PROMPT));
    await late;
    await page.waitForTimeout(300);
    assert.deepEqual(await said(page, "untouched"), predicted(PROMPT));
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

test("a circuit is drawn when it is asked for, and a click on a head of it shows this head", async () => {
  await visit(address, async (page) => {
    await page.waitForSelector("#predictions table");
    const section = page.locator("#circuit");
    assert.equal(await section.locator("svg").count(), 0);
    await section.getByRole("button", { name: /^key:/ }).click();
    await section.locator("g.edge").first().waitFor({ timeout: 120_000 });
    const said = inspect("circuit", "--pairs", "key");
    const text = await section.innerText();
    for (const sentence of said.circuit.sentences) assert.ok(text.includes(sentence), sentence);
    assert.equal(await section.locator("g.edge").count(), said.circuit.edges.length);
    await section.locator('g.part[data-part="L1H2"]').click();
    await page.waitForFunction(() => document.querySelector("#heads h3").textContent.includes("L1H2"));
  });
});

test("an unknown token is named and shown as text", async () => {
  await visit(address, async (page) => {
    await read(page, 'c <img src=x onerror="alert(1)">');
    await page.waitForFunction(() => document.querySelector(".error").textContent !== "");
    assert.match(await page.locator(".error").first().innerText(), /prompt: <img: is no token/);
    assert.equal(await page.locator("img").count(), 0);
  }, { expected });
});

for (const [width, dark] of [[1280, false], [1280, true], [390, false], [390, true], [2200, false]]) {
  test(`it fits ${width} pixels, ${dark ? "dark" : "light"}`, async () => {
    await visit(address, async (page) => {
      await page.locator("#walk").scrollIntoViewIfNeeded();
      await page.waitForSelector("#walk .stage");
      await fitsItsWidth(page);
      await page.screenshot({ path: `${process.env.PAGES}/explorer-${width}-${dark ? "dark" : "light"}.png`, fullPage: true });
    }, { width, dark });
  });
}
