// Questions to the program that serves the page.

/** What the program answers, or an error with its message and the field of the question that is wrong. */
export const ask = async (path, question, signal) => {
  const body = JSON.stringify(question);
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body, signal });
  const answer = await response.json();
  if (!response.ok) throw Object.assign(new Error(answer.error), { field: answer.field });
  return answer;
};

/**
 * Runs `work(signal, …)`. Another call ends it: the answer to an older question is never shown after a newer one was
 * asked. `show` hears what it found, `fail` what went wrong.
 */
export function latest(work, show, fail) {
  let current = null;
  return async (...args) => {
    current?.abort();
    const own = new AbortController();
    current = own;
    try {
      const found = await work(own.signal, ...args);
      if (current === own) show(found);
    } catch (error) {
      if (current === own) fail(error);
    }
  };
}
