// A study, followed live: what the service says about it, as charts and tables.

import { Feed } from "./feed.js";
import { clock, date, duration, number, percent, plural, words } from "./format.js";
import { get, pause, stream } from "./source.js";
import { Totals } from "./totals.js";

const KEPT = 500; // events in memory
const LISTED = 100; // rows of a table
const OFTEN = 1500; // milliseconds between two requests for what events do not contain
const PATIENCE = 10; // requests that take a second are sent every ten seconds
const MISSED = 5000; // events after which the log is summed up again, instead of adding each
const SERIES = 8; // arms in a chart
const DECISIVE = ["index", "probability", "value", "mean", "bonus", "spread"]; // columns of `explain` that are shown first

export class StudyFeed extends Feed {
  constructor(name, changed, failed) {
    super(name, `/v1/studies/${encodeURIComponent(name)}`, changed, failed);
    this.events = [];
  }

  /** What a past choice depended on, and what became of it. */
  async explain(choice) {
    const [explained, { events }, before] = await Promise.all([
      get(`${this.path}/explain?choice=${choice}`),
      get(`${this.path}/choices/${choice}`),
      choice > 1 ? get(`${this.path}/choices/${choice - 1}`) : null,
    ]);
    return { ...explained, events, before: before?.events.asked };
  }

  async follow(working, signal) {
    this.about = await get(this.path, { signal });
    if (!this.totals || this.about.last > this.last + MISSED) {
      const overview = await get(`${this.path}/overview`, { signal });
      const after = Math.max(0, overview.last - KEPT);
      const { events } = await get(`${this.path}/history?after=${after}&limit=${KEPT}`, { signal });
      this.events = events.filter(each => each.seq <= overview.last);
      this.totals = new Totals(overview);
      this.last = overview.last;
    }
    this.about.counted = this.about.last; // the last event in its counts
    await this.#refresh(signal);
    const opened = () => { working(); this.state = "live"; this.problem = ""; this.changed(); };
    await stream(`${this.path}/events`, { after: this.last, opened, signal, event: event => this.#add(event, signal) });
  }

  #add(event, signal) {
    this.last = event.seq;
    this.totals.add(event);
    this.#count(event);
    this.events.push(event);
    if (this.events.length > 2 * KEPT) this.events = this.events.slice(-KEPT);
    this.changed();
    if (this.waiting) return;
    this.waiting = pause(Math.max(OFTEN, PATIENCE * this.took), signal).then(async () => {
      this.waiting = null;
      if (!signal.aborted) await this.#refresh(signal).catch(() => {}); // if the service is gone, the stream ends, too
    });
  }

  /** Keep the description up to date: the service counts all events for it, which takes long if there are many. */
  #count({ seq, kind, number: choice, epoch, data }) {
    const { about } = this;
    if (seq <= about.counted) return;
    about.counts[kind] = (about.counts[kind] ?? 0) + 1;
    if (kind === "asked") Object.assign(about, { number: choice, epoch });
    if (kind === "epoch_claimed") about.claim = epoch === null ? null : { epoch, claimant: data.claimant, until: data.until };
    if (kind === "epoch_ready") Object.assign(about, { epoch, claim: null });
    if (kind === "epoch_released") about.claim = null;
  }

  async #refresh(signal) {
    const start = performance.now();
    const [explained, opened] = await Promise.all(["/explain", "/choices"].map(rest => get(this.path + rest, { signal })));
    Object.assign(this, { explained: explained.arms, opened, took: performance.now() - start });
    this.changed();
  }

  /** Charts, tables and choices, or null before the first answer. */
  view() {
    if (!this.explained) return null;
    const groups = this.#groups(), curves = this.totals.curves(groups), names = [...groups.keys()];
    const over = `moving window of ${plural(this.totals.window, "choice")}`;
    const shares = names.map(name => ({ name, values: curves.arms.get(name).share }));
    const values = names.map(name => ({ name, values: curves.arms.get(name).mean, ...curves.arms.get(name) }));
    return {
      facts: this.#facts(),
      now: this.#now(shares),
      charts: [
        { title: "Share of control", note: over, xLabel: "choice", x: curves.x, series: shares, stacked: true },
        { title: "Value", note: `mean and 95 % band, ${over}`, xLabel: "choice", x: curves.x, series: values },
      ],
      arms: { title: "What the next choice depends on", ...armTable(this.explained) },
      choices: this.#choices(),
      tables: [this.#open(), this.#expired(), this.#epochs(), this.#last()],
    };
  }

  /** Series of the charts by name: each arm, or the most frequent ones and all others together. */
  #groups() {
    const chosen = this.totals.chosen(), all = [...new Set([...Object.keys(this.explained), ...chosen.keys()])];
    if (all.length <= SERIES) return new Map(all.map(arm => [arm, [arm]]));
    const often = new Set([...all].sort((a, b) => (chosen.get(b) ?? 0) - (chosen.get(a) ?? 0)).slice(0, SERIES - 1));
    const others = all.filter(arm => !often.has(arm));
    return new Map([...all.filter(arm => often.has(arm)).map(arm => [arm, [arm]]), [`${others.length} others`, others]]);
  }

  #facts() {
    const { selector, epoch, counts, claim, expire_after: expires } = this.about;
    const options = Object.entries(selector.options).map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
    const count = kind => number(counts[kind] ?? 0);
    return [
      ["selector", options ? `${selector.name} (${options})` : selector.name],
      ["choices", number(this.about.number)],
      ["told", count("told")], ["open", number(this.opened.open)], ["expired", count("expired")], ["withdrawn", count("withdrawn")],
      ["epoch", claim ? `${number(epoch)}; ${claim.claimant} prepares ${number(claim.epoch)}` : number(epoch)],
      ["choices expire", expires === null ? "never" : `after ${duration(expires)}`],
    ];
  }

  #now(shares) {
    const last = this.events.findLast(each => each.kind === "asked");
    const best = shares.map(({ name, values }) => [name, values.at(-1) ?? 0]).sort((a, b) => b[1] - a[1])[0];
    if (!last || !best) return null;
    const rounds = Math.min(this.totals.window, this.totals.rounds);
    return { arm: best[0], text: ` has ${percent(best[1])} of the last ${plural(rounds, "choice")}. The last one: `, last: last.arm };
  }

  #choices() {
    const found = new Map();
    for (const event of this.events) {
      if (event.kind === "asked") found.set(event.number, { number: event.number, arm: event.arm, at: event.at, state: "open" });
      else if (found.has(event.number)) {
        const state = event.kind === "told" ? number(event.value) : words(event.kind);
        found.get(event.number).state = event.data.late ? `${state} (late)` : state;
      }
    }
    return [...found.values()].reverse().slice(0, LISTED);
  }

  #open() {
    const now = Date.now() / 1000, { open, choices } = this.opened;
    const rows = choices.slice(0, LISTED).map(each => [number(each.number), each.arm, duration(now - each.at), clock(each.at)]);
    return { title: `Open choices: ${number(open)}`, columns: ["choice", "arm", "age", "since"], rows, note: cut(open, rows.length, "the oldest") };
  }

  #expired() {
    const asked = new Map(this.events.filter(each => each.kind === "asked").map(each => [each.number, each.at]));
    const gone = this.events.filter(each => each.kind === "expired").reverse().slice(0, LISTED);
    const rows = gone.map(each => [number(each.number), each.arm, asked.has(each.number) ? duration(each.at - asked.get(each.number)) : "–", clock(each.at)]);
    const all = this.about.counts.expired ?? 0;
    const empty = all ? "None of the last events." : "None.";
    return { title: `Expired choices: ${number(all)}`, columns: ["choice", "arm", "age", "expired at"], rows, empty, note: cut(all, rows.length, "the last") };
  }

  #epochs() {
    const { claim, epoch } = this.about;
    const rows = this.events.filter(each => each.kind.startsWith("epoch_")).reverse().slice(0, LISTED).map(each => [
      number(each.epoch), words(each.kind.slice(6)) + (each.data.expired ? ", because its time was over" : ""), each.data.claimant ?? "–",
      each.data.until ? date(each.data.until) : "–", clock(each.at),
    ]);
    const who = claim ? `${claim.claimant} prepares epoch ${number(claim.epoch)}, until ${date(claim.until)} at the latest.` : "Nobody prepares an epoch.";
    return { title: `Epoch ${number(epoch)}`, note: who, columns: ["epoch", "event", "claimant", "until", "at"], rows, empty: "" };
  }

  #last() {
    const rows = this.events.slice(-LISTED).reverse().map(each => [
      number(each.seq), words(each.kind), each.number === null ? "–" : number(each.number), each.arm ?? "–", number(each.value), clock(each.at), each.key ?? "–",
    ]);
    return { title: "Last events", columns: ["event", "kind", "choice", "arm", "value", "at", "key"], rows };
  }
}

/** The answer of `explain` as a table. */
export function armTable(explained) {
  const found = [...new Set(Object.values(explained).flatMap(Object.keys))];
  const columns = [...DECISIVE.filter(each => found.includes(each)), ...found.filter(each => !DECISIVE.includes(each))];
  const rows = Object.entries(explained).map(([arm, row]) => [arm, ...columns.map(column => (column in row ? number(row[column]) : ""))]);
  return { columns: ["arm", ...columns.map(words)], rows };
}

function cut(all, shown, which) {
  return all > shown && shown > 0 ? `${which} ${number(shown)}` : "";
}
