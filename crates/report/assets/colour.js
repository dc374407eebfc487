// Colours for numbers: one map for weights, one for signed numbers, both safe for colour-blind eyes.
import { element, fixed } from "./elements.js";

/** Red, green and blue of a weight between 0 and 1: cividis, linear between the anchors that the page carries. */
export function weightColour(weight) {
  const at = Math.min(Math.max(weight, 0), 1) * (colourAnchors.length - 1);
  const below = Math.min(Math.floor(at), colourAnchors.length - 2);
  return colourAnchors[below].map((from, i) => Math.round(from + (at - below) * (colourAnchors[below + 1][i] - from)));
}

// Blue and vermillion of Okabe & Ito 2008, each a way from the paper.
const NEGATIVE = [0, 114, 178];
const POSITIVE = [213, 94, 0];

/** Red, green and blue of a number of either sign: the paper at 0, full colour at ±`largest`. */
export function signedColour(value, largest, paper) {
  const share = Math.min(Math.abs(value) / (largest || 1), 1);
  const end = value < 0 ? NEGATIVE : POSITIVE;
  return paper.map((from, i) => Math.round(from + share * (end[i] - from)));
}

/** Black or white, whichever is read more easily on this colour. */
export function inkOn([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#000" : "#fff";
}

export const css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;

/** A colour of the theme in force, for canvases. */
export function themeColour(name) {
  return getComputedStyle(document.documentElement).getPropertyValue(name).trim();
}

/** The theme's paper as red, green and blue. */
export function paperColour() {
  const hex = themeColour("--paper");
  return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
}

/** What the colours of weights mean. */
export function weightLegend(unit = "attention weight") {
  const stops = colourAnchors.map((colour) => css(colour)).join(", ");
  return element(
    "div",
    { class: "legend" },
    element("span", {}, "0"),
    element("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops})`, "aria-hidden": "true" }),
    element("span", {}, `1 ${unit}`),
    element("span", { class: "hatched", "aria-hidden": "true" }),
    element("span", {}, "masked: may not attend"),
  );
}

/** What the colours of signed numbers mean. */
export function signedLegend(largest) {
  const ramp = `linear-gradient(to right, ${css(NEGATIVE)}, var(--paper), ${css(POSITIVE)})`;
  return element(
    "div",
    { class: "legend" },
    element("span", {}, fixed(-largest, 2)),
    element("span", { class: "ramp", style: `background: ${ramp}`, "aria-hidden": "true" }),
    element("span", {}, `+${fixed(largest, 2)}`),
  );
}
