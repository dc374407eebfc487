// A figure as a file: the picture as SVG or PNG, its numbers as CSV, and the command that makes the same.
import { themeColour } from "./colour.js";
import { element, svgElement } from "./elements.js";

const DENSITY = 2;
const COMPUTED = ["fill", "fill-opacity", "stroke", "stroke-width", "stroke-dasharray", "opacity", "font-size", "font-family", "font-weight"];

/**
 * The line under a figure. `{name, svg?(), csv?(), command?, note?}`: `name` names the files, `svg` gives an SVG element
 * that stands alone, `csv` rows of cells, `command` is what a person types; where there is none, `note` says why.
 */
export function exports({ name, svg = null, csv = null, command = null, note = null }) {
  const button = (text, what, onclick) =>
    element("button", { type: "button", class: "plain", title: what, onclick }, text);
  const code = element("code", { class: "command", hidden: true });
  const show = () => {
    code.textContent = typeof command === "function" ? command() : command;
    code.hidden = !code.hidden;
    if (!code.hidden) getSelection()?.selectAllChildren(code);
  };
  const fileName = () => (typeof name === "function" ? name() : name).replace(/[^\p{L}\p{N}]+/gu, "-");
  const parts = [
    svg && button("SVG", "Save this figure as SVG", () => save(`${fileName()}.svg`, svgBlob(svg()))),
    svg && button("PNG", "Save this figure as PNG", async () => save(`${fileName()}.png`, await pngBlob(svg()))),
    csv && button("CSV", "Save the numbers of this figure as CSV", () => save(`${fileName()}.csv`, csvBlob(csv()))),
    command && button("command", "Show the command that prints the same", show),
    note && element("span", {}, note),
  ];
  return element("div", { class: "exports" }, parts, code);
}

function save(name, blob) {
  const address = URL.createObjectURL(blob);
  element("a", { href: address, download: name }).click();
  // The browser reads it after this turn.
  setTimeout(() => URL.revokeObjectURL(address), 10_000);
}

const textOf = (svg) => new XMLSerializer().serializeToString(svg);
const svgBlob = (svg) => new Blob([textOf(svg)], { type: "image/svg+xml" });

/** Rows of cells as RFC 4180 has them; a number keeps its own minus sign. */
export function csvText(rows) {
  const cell = (value) => {
    const text = value === null || value === undefined || Number.isNaN(value) ? "" : String(value);
    return /[",\n\r]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };
  return rows.map((row) => `${row.map(cell).join(",")}\n`).join("");
}

const csvBlob = (rows) => new Blob([csvText(rows)], { type: "text/csv" });

async function pngBlob(svg) {
  const [width, height] = [Number(svg.getAttribute("width")), Number(svg.getAttribute("height"))];
  const image = new Image();
  image.src = `data:image/svg+xml;charset=utf-8,${encodeURIComponent(textOf(svg))}`;
  await image.decode();
  const canvas = element("canvas", { width: DENSITY * width, height: DENSITY * height });
  canvas.getContext("2d").drawImage(image, 0, 0, canvas.width, canvas.height);
  return new Promise((resolve) => canvas.toBlob(resolve));
}

/** A drawn SVG that needs no style sheet: on paper, with its title above and what its lines are below. */
export function standalone(drawn, title, legend = []) {
  const [width, height] = [Number(drawn.getAttribute("width")), Number(drawn.getAttribute("height"))];
  const copy = drawn.cloneNode(true);
  const originals = [drawn, ...drawn.querySelectorAll("*")];
  [copy, ...copy.querySelectorAll("*")].forEach((node, at) => {
    const style = getComputedStyle(originals[at]);
    for (const property of COMPUTED) node.setAttribute(property, style.getPropertyValue(property));
    node.removeAttribute("class");
  });
  const all = svgElement("svg", { width, height: height + 26 + 18 * legend.length, xmlns: "http://www.w3.org/2000/svg" });
  const ink = themeColour("--ink");
  const words = (x, y, text) =>
    svgElement("text", { x, y, fill: ink, "font-size": 13, "font-family": "sans-serif" }, text);
  copy.setAttribute("y", "24");
  all.append(
    svgElement("rect", { width: "100%", height: "100%", fill: themeColour("--paper") }),
    words(8, 17, title),
    copy,
    ...legend.flatMap(({ text, colour, dash }, at) => {
      const y = height + 38 + 18 * at;
      const line = { x1: 8, x2: 30, y1: y - 4, y2: y - 4, stroke: colour, "stroke-width": 2, "stroke-dasharray": dash };
      return [svgElement("line", line), words(36, y, text)];
    }),
  );
  return all;
}

/** `inspect NAME …` for the run of this page, to be typed in the folder that holds the run. */
export function command(run, ...words) {
  const quoted = (word) => (/^[\w./:=,%+→-]+$/u.test(word) ? word : `'${word.replaceAll("'", "'\\''")}'`);
  return ["inspect", run, ...words].map(quoted).join(" ");
}
