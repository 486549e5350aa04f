// Requests to the service that this page comes from, with a token if it needs one.

const KEY = "esbas-token";
// Milliseconds without a byte until a stream counts as lost: the service sends something every 15 s
const SILENCE = 40_000;
const LONGEST = 10_000; // milliseconds between two attempts

/** An answer with an error. */
export class Refused extends Error {
  constructor(status, message) {
    super(message);
    this.status = status;
  }
}

export const token = {
  get: () => sessionStorage.getItem(KEY) ?? "",
  set: text => (text ? sessionStorage.setItem(KEY, text) : sessionStorage.removeItem(KEY)),
};

/** The JSON of an answer. */
export async function get(path, { signal } = {}) {
  return (await request(path, { signal })).json();
}

async function request(path, { signal, headers = {} } = {}) {
  const own = token.get() ? { ...headers, authorization: `Bearer ${token.get()}` } : headers;
  const options = { signal, headers: own, cache: "no-cache", credentials: "omit" };
  const answer = await fetch(path, options);
  if (answer.ok) return answer;
  const { error } = await answer.json().catch(() => ({}));
  throw new Refused(answer.status, error?.message ?? `status ${answer.status}`);
}

/** Wait; ends early if the signal is aborted. */
export function pause(milliseconds, signal) {
  return new Promise(resolve => {
    const timer = setTimeout(resolve, milliseconds);
    const stop = () => {
      clearTimeout(timer);
      resolve();
    };
    signal?.addEventListener("abort", stop, { once: true });
  });
}

/**
 * Call `attempt` again and again until the signal is aborted. After an error, `failed` gets it, and
 * the pauses get longer. `attempt` calls the function that it is given as soon as it works.
 */
export async function persist(attempt, { failed, signal }) {
  for (let wait = 1000; !signal.aborted; ) {
    try {
      await attempt(() => {
        wait = 1000;
      });
    } catch (error) {
      if (signal.aborted) return;
      failed(error);
      if (error.status === 401) return;
      await pause(wait, signal);
      wait = Math.min(2 * wait, LONGEST);
    }
  }
}

/**
 * Read server-sent events until the stream ends. This uses fetch, because EventSource cannot send a
 * token.
 */
export async function stream(path, { after, opened, event, signal }) {
  const connection = new AbortController();
  const stop = () => connection.abort();
  signal.addEventListener("abort", stop, { once: true });
  let watchdog = setTimeout(stop, SILENCE);
  let text = "";
  try {
    const headers = { "last-event-id": String(after) };
    const answer = await request(path, { signal: connection.signal, headers });
    opened();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (;;) {
      const { done, value } = await reader.read();
      if (done) return;
      clearTimeout(watchdog);
      watchdog = setTimeout(stop, SILENCE);
      const blocks = (text + value).split("\n\n");
      text = blocks.pop();
      for (const block of blocks) {
        const data = block.split("\n").find(line => line.startsWith("data: "));
        if (data) event(JSON.parse(data.slice(6)));
      }
    }
  } finally {
    clearTimeout(watchdog);
    signal.removeEventListener("abort", stop);
  }
}
