// Questions to the program that serves the page.

/** What the program answers, or an error with its message. */
export const ask = async (path, question) => {
  const body = JSON.stringify(question);
  const response = await fetch(path, { method: "POST", headers: { "content-type": "application/json" }, body });
  const answer = await response.json();
  if (!response.ok) throw new Error(answer.error);
  return answer;
};

/** Runs `work`, and drops what it gives if another call came meanwhile. `say` hears what went wrong, or nothing. */
export function latest(work, show, say) {
  let calls = 0;
  return async (...args) => {
    calls += 1;
    const call = calls;
    try {
      const found = await work(...args);
      if (call !== calls) return;
      say("");
      show(found);
    } catch (error) {
      if (call === calls) say(error.message);
    }
  };
}
