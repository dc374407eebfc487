// Colours for numbers: one map for weights, one for signed numbers, both safe for colour-blind eyes.
import { element, fixed } from "./elements.js";

/** Weights are kept to the nearest 1/255, and so are their colours: cividis, linear between the anchors that the page carries. */
const FINENESS = 255;
const WEIGHT_COLOURS = Array.from({ length: FINENESS + 1 }, (_, at) => cividis(at / FINENESS));

function cividis(weight) {
  const at = weight * (colourAnchors.length - 1);
  const below = Math.min(Math.floor(at), colourAnchors.length - 2);
  return colourAnchors[below].map((from, i) => Math.round(from + (at - below) * (colourAnchors[below + 1][i] - from)));
}

/** Red, green and blue of a weight between 0 and 1; what is no number has the colour of 0. */
export function weightColour(weight) {
  return WEIGHT_COLOURS[Math.round(FINENESS * Math.min(Math.max(weight, 0), 1)) || 0];
}

/** The theme's colours for numbers of either sign: blue, paper, vermillion (Okabe & Ito 2008). */
export function signedColours() {
  const read = (name) => {
    const hex = themeColour(name);
    return [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
  };
  return { negative: read("--negative"), zero: read("--paper"), positive: read("--positive") };
}

/** Red, green and blue of a number of either sign: full colour at ±`largest`. */
export function signedColour(value, largest, { negative, zero, positive }) {
  const share = Math.min(Math.abs(value) / (largest || 1), 1);
  const end = value < 0 ? negative : positive;
  const part = (i) => Math.round(zero[i] + share * (end[i] - zero[i]));
  return [part(0), part(1), part(2)];
}

/** Black or white, whichever is read more easily on this colour. */
export function inkOn([red, green, blue]) {
  return 0.299 * red + 0.587 * green + 0.114 * blue > 140 ? "#000" : "#fff";
}

export const css = ([red, green, blue]) => `rgb(${red} ${green} ${blue})`;

/** The theme's colours by name, as far as they were asked for: a browser lays the page out before it says what one is. */
const known = new Map();
document.addEventListener("themechange", () => known.clear());

/** A colour of the theme in force, for canvases. */
export function themeColour(name) {
  if (!known.has(name)) known.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
  return known.get(name);
}

/** What the colours of numbers of either sign mean: full colour at ±`largest`. */
export function signedLegend(largest) {
  return element(
    "span",
    { class: "legend signed" },
    element("span", {}, fixed(-largest, 2)),
    element("span", { class: "ramp to-zero", "aria-hidden": "true" }),
    element("span", {}, "0"),
    element("span", { class: "ramp from-zero", "aria-hidden": "true" }),
    element("span", {}, `+${fixed(largest, 2)}`),
  );
}

/**
 * What the colours of weights mean; `masks` says whether some cells may be hatched, `most` is the weight of the last
 * colour.
 */
export function weightLegend(unit = "attention weight", masks = true, most = 1) {
  const stops = colourAnchors.map((colour) => css(colour)).join(", ");
  return element(
    "div",
    { class: "legend" },
    element("span", {}, "0"),
    element("span", { class: "ramp", style: `background: linear-gradient(to right, ${stops})`, "aria-hidden": "true" }),
    element("span", {}, most === 1 ? `1 ${unit}` : `${fixed(most, 3)} ${unit} and more`),
    masks
      ? element(
          "span",
          { class: "masked" },
          element("span", { class: "hatched", "aria-hidden": "true" }),
          "masked: may not attend",
        )
      : null,
  );
}
