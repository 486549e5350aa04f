// Past choices, and why the arm of one of them was chosen.

import { clock, date, duration, number, percent } from "./format.js";
import { armTable } from "./study.js";
import { Table } from "./table.js";
import {
  html,
  useEffect,
  useRef,
  useState,
} from "./vendor/htm-preact-standalone.module.js";

const MOST_NUMBERS = 50; // of a context
const CERTAIN =
  "The selector leaves nothing to chance: with these numbers, it always chooses this arm.";

/** The last choices of a study as a list of buttons, and a field for any other. */
export function Choices({ feed, choices }) {
  const [asked, setAsked] = useState(null);
  const [answer, setAnswer] = useState(null);
  const [focused, setFocused] = useState(null);
  useEffect(() => {
    if (asked === null) return undefined;
    let current = true;
    setAnswer(null);
    const show = found => {
      if (current) setAnswer({ choice: asked, ...found });
    };
    feed.explain(asked).then(show, error => show({ problem: error.message }));
    return () => {
      current = false;
    };
  }, [asked]);
  const numbers = choices.map(each => each.number);
  const first = numbers.includes(focused) ? focused : numbers[0];
  const submit = event => {
    event.preventDefault();
    // Read from the field, not from the last drawing: it may have changed since.
    const { value } = event.currentTarget.elements.choice;
    if (/^[1-9][0-9]{0,14}$/.test(value)) setAsked(Number(value));
  };
  return html`<section>
    <h3>Choices</h3>
    <form class="row" onSubmit=${submit}>
      <label>Any choice, by its number <input
        name="choice"
        inputmode="numeric"
        size="8"
        required
        pattern="[1-9][0-9]{0,14}"
      /></label>
      <button>Why this arm?</button>
    </form>
    <div class="columns">
    <ol class="choices" aria-label="Last choices, the newest first" onKeyDown=${move}>
      ${choices.map(each => html`<li key=${each.number}><button
        type="button"
        tabindex=${each.number === first ? 0 : -1}
        aria-pressed=${each.number === asked}
        onFocus=${() => setFocused(each.number)}
        onClick=${() => setAsked(each.number)}
      >
        <span class="number">${number(each.number)}</span>${" "}
        <span class="name">${each.arm}</span>${" "}
        <span class="quiet">${each.state}</span>${" "}
        <span class="quiet">${clock(each.at)}</span>
      </button></li>`)}
    </ol>
    ${answer?.events
      ? html`<${Explanation} answer=${answer} />`
      : html`<p class=${answer ? "problem" : "quiet"}>${message(choices, asked, answer)}</p>`}
    </div>
    <p class="unseen" aria-live="polite">
      ${answer?.events ? `${title(answer)} ${reason(answer)}` : answer?.problem}
    </p>
  </section>`;
}

function message(choices, asked, answer) {
  if (answer) return answer.problem;
  if (asked !== null) return `Computing what choice ${number(asked)} depended on …`;
  return choices.length ? "Select a choice to see why its arm was chosen." : "None yet.";
}

function title({ events: { asked } }) {
  return `Choice ${number(asked.number)}: why ${asked.arm}?`;
}

/** Arrow keys, Home and End in the list. */
function move(event) {
  const buttons = [...event.currentTarget.querySelectorAll("button")];
  const at = buttons.indexOf(document.activeElement);
  const to = { ArrowDown: at + 1, ArrowUp: at - 1, Home: 0, End: buttons.length - 1 }[event.key];
  if (to === undefined || at < 0) return;
  event.preventDefault();
  buttons[Math.min(Math.max(to, 0), buttons.length - 1)].focus();
}

function Explanation({ answer }) {
  const element = useRef(null);
  useEffect(() => element.current.scrollIntoView({ block: "nearest" }), [answer]);
  const { asked } = answer.events;
  const table = {
    title: `What choice ${asked.number} depended on`,
    ...armTable(answer.arms),
    marked: Object.keys(answer.arms).indexOf(asked.arm),
    mark: "chosen",
  };
  return html`<div class="explanation" ref=${element}>
    <h4>${title(answer)}</h4>
    <p>${reason(answer)}</p>
    <dl class="facts">
      ${facts(answer).map(([term, text]) => html`<div key=${term}>
        <dt>${term}</dt><dd>${text}</dd>
      </div>`)}
    </dl>
    <${Table} table=${table} />
  </div>`;
}

/** Why the arm was chosen, in a sentence, as far as the numbers say. */
function reason({ arms, events: { asked }, before }) {
  const available = asked.data.among ?? Object.keys(arms);
  const own = arms[asked.arm] ?? {};
  if (available.length === 1) return "It was the only arm that was available.";
  if (before && before.epoch !== asked.epoch) {
    return (
      `It was the first choice of epoch ${asked.epoch}, in which the selector starts to compare ` +
      "anew. The table shows what was known just before."
    );
  }
  if (asked.propensity === null) {
    return (
      "It was drawn at random from what the selector believed about the arms. " +
      "The probability of that has no closed form."
    );
  }
  if (asked.propensity < 1) {
    return `It was drawn at random, with a probability of ${percent(asked.propensity)}.`;
  }
  if (!("index" in own)) return CERTAIN;
  if (own.index === null) {
    return "The selector had no value of it, or had forgotten all. Such arms are tried first.";
  }
  const others = available.filter(arm => arm !== asked.arm && arms[arm]);
  if (others.some(arm => arms[arm].index === null)) return CERTAIN;
  const [next] = others.sort((a, b) => arms[b].index - arms[a].index);
  if (next === undefined || arms[next].index > own.index) return CERTAIN;
  const among = asked.data.among ? " among the arms that were available" : "";
  return (
    `Its index, ${number(own.index)}, was the largest${among}. ` +
    `The next one was that of ${next}: ${number(arms[next].index)}.`
  );
}

function facts({ events: { asked, told, withdrawn, expired } }) {
  const { among, context } = asked.data;
  const after = event => duration(event.at - asked.at);
  const found = [
    ["chosen at", date(asked.at)],
    ["epoch", number(asked.epoch)],
    ["probability", asked.propensity === null ? "unknown" : number(asked.propensity)],
  ];
  if (among) found.push(["available", among.join(", ")]);
  if (context) {
    let text = context.slice(0, MOST_NUMBERS).map(number).join(", ");
    if (context.length > MOST_NUMBERS) text += `, … (${number(context.length)} numbers)`;
    found.push(["context", text]);
  }
  if (expired) found.push(["expired", `after ${after(expired)}`]);
  if (withdrawn) found.push(["withdrawn", `after ${after(withdrawn)}`]);
  let value = "not told";
  if (told) {
    const late = told.data.late ? ", too late for the selector" : "";
    value = `${number(told.value)}, ${after(told)} later${late}`;
  }
  found.push(["value", value]);
  if (asked.key) found.push(["key", asked.key]);
  return found;
}
