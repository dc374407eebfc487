// What is on show as the part of the address after #, so that it can be linked, reloaded and gone back to.
import { afterFrame } from "./elements.js";

const WAIT_MILLISECONDS = 150;

/** `#head=L1H0&step=250` as an object of texts; an id alone, as in `#walk`, is `{at: "walk"}`. */
export function readAddress() {
  const text = location.hash.slice(1);
  if (text && !text.includes("=")) return { at: text };
  return Object.fromEntries(new URLSearchParams(text));
}

/** The browser takes its time to note a step to go back to; what was asked for is drawn first. */
const pushLater = (text) => afterFrame(() => history.pushState(null, "", text));

/**
 * Writes what `shown()` gives whenever it is told to. A change that `isNew` makes a step to go back to; others replace
 * the address that is there, and wait until the reader holds still: a slider would fill the browser's list.
 */
export function addressOf(shown, onBack) {
  let timer = null;
  const text = () => `#${new URLSearchParams(shown())}`;
  addEventListener("popstate", () => onBack(readAddress()));
  return (isNew = false) => {
    clearTimeout(timer);
    if (!isNew) timer = setTimeout(() => history.replaceState(null, "", text()), WAIT_MILLISECONDS);
    else if (text() !== location.hash) pushLater(text());
  };
}
