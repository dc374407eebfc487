// A real browser without a network, for the pages' tests. `scripts/test-browser` says where it and its driver are.
import assert from "node:assert/strict";
import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const { chromium } = createRequire(`${process.env.BROWSER_MODULES}/`)("playwright-core");

/**
 * Opens a file, or a page of an address on this machine, and hands it to `look`; `touch` is a phone. Whatever the page asks for elsewhere is
 * refused; a refused request, an error or a warning on the console fails the test, unless it is `expected`.
 */
export async function visit(place, look, { width = 1280, dark = false, touch = false, expected = () => false } = {}) {
  const browser = await chromium.launch({ executablePath: process.env.BROWSER, args: ["--no-sandbox"] });
  try {
    const colorScheme = dark ? "dark" : "light";
    const context = await browser.newContext({ viewport: { width, height: 900 }, colorScheme, hasTouch: touch, isMobile: touch });
    const address = place.startsWith("http://") ? place : pathToFileURL(place).href;
    const own = address.startsWith("http://") ? new URL(address).origin : address;
    const wrong = [];
    await context.route("**/*", (route) => {
      if (route.request().url().startsWith(own)) return route.continue();
      wrong.push(`asked for ${route.request().url()}`);
      return route.abort();
    });
    const page = await context.newPage();
    page.on("pageerror", (error) => wrong.push(String(error)));
    page.on("console", (message) => ["error", "warning"].includes(message.type()) && wrong.push(message.text()));
    await page.goto(address);
    await settled(page);
    await look(page);
    assert.deepEqual(wrong.filter((message) => !expected(message)), []);
  } finally {
    await browser.close();
  }
}

/** A report paints its first screen before it makes the rest, and draws a frame later what is out of sight. */
export async function settled(page) {
  await page.waitForFunction(() => {
    const report = document.querySelector("main.report");
    return document.readyState === "complete" && (!report || report.dataset.whole !== undefined);
  });
  const frame = () => new Promise((done) => requestAnimationFrame(() => setTimeout(done)));
  for (const _ of [1, 2]) await page.evaluate(frame);
}

/** The title of the section on one head; out of sight it has no inner text. */
export async function headTitle(page) {
  await settled(page);
  return page.locator("#head h3").first().textContent();
}

/** The number at the end of a text, with the page's own minus sign read. */
export const numberIn = (text) => Number(text.trim().replaceAll("−", "-").split(/[\s=]+/).at(-1));

/** No part of the page reaches beyond the window's side. */
export async function fitsItsWidth(page) {
  const [content, window] = await page.evaluate(() => [document.documentElement.scrollWidth, document.documentElement.clientWidth]);
  assert.ok(content <= window, `the page is ${content} pixels wide in a window of ${window}`);
}

/** The numbers in a text, as they are written. */
export const numbersIn = (text) => text.replaceAll("−", "-").match(/-?\d+\.\d+/g) ?? [];

/** The data of a page, and the page before and after it. */
export function dataOf(file) {
  const [before, json, after] = readFileSync(file, "utf8").split(
    /(?<=<script type="application\/json" id="data">)(.*)(?=<\/script>\s*<script)/s,
  );
  return { before, data: JSON.parse(json), after };
}

/** Bytes of the page's data: a run of zeros stands as 0 and its length. */
export function bytesOf(base64) {
  const coded = Buffer.from(base64, "base64");
  const bytes = [];
  for (let at = 0; at < coded.length; at++) {
    if (coded[at] === 0) bytes.push(...new Array(coded[++at]).fill(0));
    else bytes.push(coded[at]);
  }
  return Buffer.from(bytes);
}

export const floatsOf = (base64) => new Float32Array(new Uint8Array(Buffer.from(base64, "base64")).buffer);

/** A page with other data. */
export const withData = ({ before, after }, data) => before + JSON.stringify(data).replaceAll("<", "\\u003c") + after;
