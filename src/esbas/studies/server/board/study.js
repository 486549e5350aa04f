// A study that is followed live, as charts and tables.

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
// Columns of `explain` that are shown first
const DECISIVE = ["index", "probability", "value", "mean", "bonus", "spread"];

export class StudyFeed extends Feed {
  constructor(name, changed, failed) {
    super(name, `/v1/studies/${encodeURIComponent(name)}`, changed, failed);
    this.events = [];
  }

  /** What a past choice depended on, and what became of it. */
  async explain(choice) {
    const [explained, { events }] = await Promise.all([
      get(`${this.path}/explain?choice=${choice}`),
      get(`${this.path}/choices/${choice}`),
    ]);
    // Asked for later: if there is no such choice, the error must name it, not the one before.
    const before = choice > 1 ? await get(`${this.path}/choices/${choice - 1}`) : null;
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
    const opened = () => {
      working();
      this.state = "live";
      this.problem = "";
      this.changed();
    };
    const event = each => this.#add(each, signal);
    await stream(`${this.path}/events`, { after: this.last, opened, signal, event });
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
      // An error is ignored here: if the service is gone, the stream ends, too.
      if (!signal.aborted) await this.#refresh(signal).catch(() => {});
    });
  }

  /**
   * Keep the description up to date. The service would count all events for it, which takes long if
   * there are many.
   */
  #count({ seq, kind, number: choice, epoch, data }) {
    const { about } = this;
    if (seq <= about.counted) return;
    about.counts[kind] = (about.counts[kind] ?? 0) + 1;
    if (kind === "asked") Object.assign(about, { number: choice, epoch });
    if (kind === "epoch_claimed") {
      about.claim = epoch === null ? null : { epoch, claimant: data.claimant, until: data.until };
    }
    if (kind === "epoch_ready") Object.assign(about, { epoch, claim: null });
    if (kind === "epoch_released") about.claim = null;
  }

  async #refresh(signal) {
    const start = performance.now();
    const [explained, opened] = await Promise.all([
      get(`${this.path}/explain`, { signal }),
      get(`${this.path}/choices`, { signal }),
    ]);
    this.explained = explained.arms;
    this.opened = opened;
    this.took = performance.now() - start;
    this.changed();
  }

  /** Charts, tables and choices, or null before the first answer. */
  view() {
    if (!this.explained) return null;
    const groups = this.#groups();
    const { x, arms } = this.totals.curves(groups);
    const shares = [];
    const values = [];
    for (const name of groups.keys()) {
      const { share, mean, low, high } = arms.get(name);
      shares.push({ name, values: share });
      values.push({ name, values: mean, low, high });
    }
    const over = `moving window of ${plural(this.totals.window, "choice")}`;
    const control = { title: "Share of control", note: over, series: shares, stacked: true };
    const value = { title: "Value", note: `mean and 95 % band, ${over}`, series: values };
    return {
      facts: this.#facts(),
      now: this.#now(shares),
      charts: [
        { ...control, xLabel: "choice", x },
        { ...value, xLabel: "choice", x },
      ],
      arms: { title: "What the next choice depends on", ...armTable(this.explained) },
      choices: this.#choices(),
      tables: [this.#open(), this.#expired(), this.#epochs(), this.#last()],
    };
  }

  /** Series of the charts by name: each arm, or the most frequent ones and all others together. */
  #groups() {
    const chosen = this.totals.chosen();
    const count = arm => chosen.get(arm) ?? 0;
    const all = [...new Set([...Object.keys(this.explained), ...chosen.keys()])];
    if (all.length <= SERIES) return new Map(all.map(arm => [arm, [arm]]));
    const byCount = [...all].sort((a, b) => count(b) - count(a));
    const often = new Set(byCount.slice(0, SERIES - 1));
    const groups = new Map();
    for (const arm of all) if (often.has(arm)) groups.set(arm, [arm]);
    const others = all.filter(arm => !often.has(arm));
    groups.set(`${others.length} others`, others);
    return groups;
  }

  #facts() {
    const { selector, epoch, counts, claim, expire_after: expires } = this.about;
    const given = Object.entries(selector.options);
    const options = given.map(([name, value]) => `${name}=${JSON.stringify(value)}`).join(", ");
    const count = kind => number(counts[kind] ?? 0);
    let prepared = "";
    if (claim) prepared = `; ${claim.claimant} prepares ${number(claim.epoch)}`;
    return [
      ["selector", options ? `${selector.name} (${options})` : selector.name],
      ["choices", number(this.about.number)],
      ["told", count("told")],
      ["open", number(this.opened.open)],
      ["expired", count("expired")],
      ["withdrawn", count("withdrawn")],
      ["epoch", `${number(epoch)}${prepared}`],
      ["choices expire", expires === null ? "never" : `after ${duration(expires)}`],
    ];
  }

  #now(shares) {
    const last = this.events.findLast(each => each.kind === "asked");
    const now = shares.map(({ name, values }) => ({ name, share: values.at(-1) ?? 0 }));
    const [best] = now.sort((a, b) => b.share - a.share);
    if (!last || !best) return null;
    const rounds = Math.min(this.totals.window, this.totals.rounds);
    const share = `${percent(best.share)} of the last ${plural(rounds, "choice")}`;
    return { arm: best.name, text: ` has ${share}. The last one: `, last: last.arm };
  }

  #choices() {
    const found = new Map();
    for (const { kind, number: choice, arm, at, value, data } of this.events) {
      if (kind === "asked") {
        found.set(choice, { number: choice, arm, at, state: "open" });
      } else if (found.has(choice)) {
        const state = kind === "told" ? number(value) : words(kind);
        found.get(choice).state = data.late ? `${state} (late)` : state;
      }
    }
    return [...found.values()].reverse().slice(0, LISTED);
  }

  #open() {
    const now = Date.now() / 1000;
    const { open, choices } = this.opened;
    const rows = choices.slice(0, LISTED).map(each => [
      number(each.number),
      each.arm,
      duration(now - each.at),
      clock(each.at),
    ]);
    return {
      title: `Open choices: ${number(open)}`,
      columns: ["choice", "arm", "age", "since"],
      rows,
      note: cut(open, rows.length, "the oldest"),
    };
  }

  #expired() {
    const asked = new Map(); // number -> when
    for (const each of this.events) if (each.kind === "asked") asked.set(each.number, each.at);
    const gone = this.events.filter(each => each.kind === "expired").reverse().slice(0, LISTED);
    const rows = gone.map(each => [
      number(each.number),
      each.arm,
      asked.has(each.number) ? duration(each.at - asked.get(each.number)) : "–",
      clock(each.at),
    ]);
    const all = this.about.counts.expired ?? 0;
    return {
      title: `Expired choices: ${number(all)}`,
      columns: ["choice", "arm", "age", "expired at"],
      rows,
      empty: all ? "None of the last events." : "None.",
      note: cut(all, rows.length, "the last"),
    };
  }

  #epochs() {
    const { claim, epoch } = this.about;
    const found = this.events.filter(each => each.kind.startsWith("epoch_")).reverse();
    const rows = found.slice(0, LISTED).map(({ kind, epoch: started, data, at }) => [
      number(started),
      words(kind.slice("epoch_".length)) + (data.expired ? ", because its time was over" : ""),
      data.claimant ?? "–",
      data.until ? date(data.until) : "–",
      clock(at),
    ]);
    let note = "No epoch is being prepared.";
    if (claim) {
      note = `${claim.claimant} prepares epoch ${number(claim.epoch)}, `;
      note += `until ${date(claim.until)} at the latest.`;
    }
    const columns = ["epoch", "event", "claimant", "until", "at"];
    return { title: `Epoch ${number(epoch)}`, note, columns, rows, empty: "" };
  }

  #last() {
    const rows = this.events.slice(-LISTED).reverse().map(each => [
      number(each.seq),
      words(each.kind),
      number(each.number),
      each.arm ?? "–",
      number(each.value),
      clock(each.at),
      each.key ?? "–",
    ]);
    const columns = ["event", "kind", "choice", "arm", "value", "at", "key"];
    return { title: "Last events", columns, rows };
  }
}

/** The answer of `explain` as a table. */
export function armTable(explained) {
  const found = [...new Set(Object.values(explained).flatMap(Object.keys))];
  const first = DECISIVE.filter(each => found.includes(each));
  const others = found.filter(each => !DECISIVE.includes(each));
  const columns = [...first, ...others];
  const cell = (row, column) => (column in row ? number(row[column]) : "");
  const rows = Object.entries(explained).map(([arm, row]) => [
    arm,
    ...columns.map(column => cell(row, column)),
  ]);
  return { columns: ["arm", ...columns.map(words)], rows };
}

function cut(all, shown, which) {
  return all > shown && shown > 0 ? `${which} ${number(shown)}` : "";
}
