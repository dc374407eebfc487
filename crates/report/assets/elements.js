// Elements of the page. Text only ever becomes text: nothing here parses HTML.

/** An element with attributes, listeners (`onclick: f`) and children; a child that is null is left out. */
export function element(name, attributes = {}, ...children) {
  return filled(document.createElement(name), attributes, children);
}

/** The same for SVG. */
export function svgElement(name, attributes = {}, ...children) {
  return filled(document.createElementNS("http://www.w3.org/2000/svg", name), attributes, children);
}

function filled(node, attributes, children) {
  for (const [key, value] of Object.entries(attributes)) {
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else if (value !== null && value !== undefined && value !== false)
      node.setAttribute(key, value === true ? "" : value);
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined));
  return node;
}

/** A token as it is: control characters, and those that turn the direction of text, are named. */
export function visible(token) {
  const unseen = /[\p{Cc}\u061c\u200e\u200f\u2028\u2029\u202a-\u202e\u2066-\u2069]/gu;
  const named = token.replace(unseen, (c) => `⟨U+${c.codePointAt(0).toString(16).toUpperCase().padStart(4, "0")}⟩`);
  return named === "" ? "⟨empty⟩" : named.replace(/ /g, "␣");
}

/** A token for a narrow place. */
export function short(token, most = 8) {
  const characters = [...visible(token)];
  return characters.length > most ? characters.slice(0, most - 1).join("") + "…" : characters.join("");
}

/** A number with so many digits after the point, and a minus sign as wide as a plus. */
export function fixed(value, digits = 3) {
  if (value === Infinity || value === -Infinity) return value > 0 ? "∞" : "−∞";
  if (value === null || Number.isNaN(value)) return "–";
  const text = value.toFixed(digits);
  return (Number(text) === 0 ? text.replace("-", "") : text).replace("-", "−");
}

/** A sentence whose negative numbers have a minus sign as wide as a plus. */
export function withMinus(sentence) {
  return sentence.replace(/(?<=^|[\s(±])-(?=[\d.])/g, "−");
}

/** `0.948–0.959` */
export function interval(low, high) {
  return between(fixed(low, 3), fixed(high, 3));
}

/** `250–300`; a dash beside a minus sign is not read, so `−0.09 to −0.04`. */
export function between(low, high) {
  return low.startsWith("−") ? `${low} to ${high}` : `${low}–${high}`;
}

/** Numbers that were written as base64 of little-endian 32-bit floats, the order of all browsers' processors. */
export function floats(base64) {
  return new Float32Array(decoded(base64).buffer);
}

/** Bytes that were written as base64 with each run of zeros as 0 and its length. */
export function bytes(base64) {
  const coded = decoded(base64);
  let length = 0;
  for (let at = 0; at < coded.length; at++) length += coded[at] === 0 ? coded[++at] : 1;
  const out = new Uint8Array(length);
  let to = 0;
  for (let at = 0; at < coded.length; at++) {
    if (coded[at] === 0) to += coded[++at];
    else out[to++] = coded[at];
  }
  return out;
}

function decoded(base64) {
  const text = atob(base64);
  const out = new Uint8Array(text.length);
  for (let i = 0; i < out.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

/** Draws into `node` for the width it has, and again whenever that changes. Gives a function that draws. */
export function drawnForWidth(node, draw) {
  let width = 0;
  const again = () => {
    if (width > 0) draw(width);
  };
  new ResizeObserver(([entry]) => {
    const now = Math.floor(entry.contentRect.width);
    if (now !== width) {
      width = now;
      again();
    }
  }).observe(node);
  return again;
}

/** Does `act` when the frame that is being made is on the screen. */
export function afterFrame(act) {
  requestAnimationFrame(() => setTimeout(act));
}

/** What `paint` puts into `node`: at once where that is in the window, else a frame later. What is looked at comes first. */
export function inSightFirst(node, paint) {
  let [isInSight, isWaiting] = [false, false];
  new IntersectionObserver((entries) => (isInSight = entries.at(-1).isIntersecting)).observe(node);
  function paintLater() {
    isWaiting = false;
    paint();
  }
  return () => {
    if (isInSight) return paint();
    if (!isWaiting) afterFrame(paintLater);
    isWaiting = true;
  };
}

/** A group of choices of which one holds: buttons that say whether they are pressed. `mark` changes it silently. */
export function choice(name, options, chosen, onChoose) {
  const buttons = options.map(({ value, text, title }) =>
    element(
      "button",
      { type: "button", "aria-pressed": String(value === chosen), title, onclick: () => choose(value) },
      text,
    ),
  );
  const node = element("div", { class: "choice", role: "group", "aria-label": name }, buttons);
  function mark(value) {
    options.forEach((option, i) => buttons[i].setAttribute("aria-pressed", String(option.value === value)));
  }
  function choose(value) {
    mark(value);
    onChoose(value);
  }
  return { node, choose, mark };
}

/** A box to tick. */
export function toggle(text, checked, onChange) {
  const box = element("input", { type: "checkbox", checked, onchange: () => onChange(box.checked) });
  return element("label", { class: "toggle" }, box, ` ${text}`);
}
