// A training that is read again while it runs, as charts and tables.

import { Feed } from "./feed.js";
import { clock, number, percent, plural } from "./format.js";
import { get, pause } from "./source.js";

const OFTEN = 2000; // milliseconds between two requests

export class TrainingFeed extends Feed {
  constructor(item, changed, failed) {
    super(item.name, `/v1/trainings/${item.id}`, changed, failed);
  }

  async follow(working, signal) {
    const about = await get(this.path, { signal });
    const state = about.finished ? "finished" : "live";
    working();
    if (this.about?.version !== about.version || this.state !== state) {
      Object.assign(this, { about, state, problem: "" });
      this.changed();
    }
    await pause(OFTEN, signal);
  }

  /** Charts and tables, or null before the first answer. */
  view() {
    if (!this.about) return null;
    return {
      facts: this.#facts(),
      now: this.#now(),
      charts: this.about.runs.length === 0 ? [] : this.#charts(),
      arms: this.#learners(),
      tables: [this.#runs(), this.#best(), this.#faults(), this.#epochs(), this.#last()],
    };
  }

  #learners() {
    const { arms, columns } = this.about;
    const rows = Object.entries(arms).map(([name, row]) => [name, ...row.map(number)]);
    return { title: "Learners", columns: ["learner", ...columns], rows };
  }

  #runs() {
    const rows = this.about.runs.map(each => [
      `${each.seed}`,
      number(each.episodes),
      number(each.steps),
      number(each.end),
      number(each.faults),
      each.arm,
    ]);
    const columns = ["seed", "episodes", "steps", "value at the end", "faults", "in control"];
    return { title: "Runs", columns, rows };
  }

  #best() {
    const { best } = this.about;
    const columns = ["learner", "seed", "steps", "mean when selected", "mean of fresh episodes"];
    const rows = [];
    if (best) {
      rows.push([
        best.learner,
        `${best.seed}`,
        number(best.steps),
        number(best.mean),
        number(best.rescored),
      ]);
    }
    const note = best ? "" : "No policy has been evaluated yet.";
    return { title: "Best policy so far", note, columns, rows, empty: "" };
  }

  #faults() {
    const rows = this.about.faults.map(each => [
      `${each.seed}`,
      number(each.episode),
      each.learner,
      each.where,
      plural(each.dismissed, "episode"),
      each.message,
    ]);
    const columns = ["seed", "episode", "learner", "where", "dismissed for", "message"];
    return { title: `Faults: ${number(this.about.faults_total)}`, columns, rows };
  }

  #epochs() {
    const { epochs } = this.about;
    const rows = epochs.map(each => [
      `${each.seed}`,
      number(each.epoch),
      number(each.episode),
      number(each.steps),
    ]);
    const note = epochs.length
      ? "The last ones of each run, and where they started."
      : "The selector has no epochs.";
    const columns = ["seed", "epoch", "episode", "steps"];
    return { title: "Epochs", note, columns, rows, empty: "" };
  }

  #last() {
    const rows = this.about.last.map(each => [
      `${each.seed}`,
      number(each.episode),
      number(each.steps),
      each.arm,
      number(each.value),
      number(each.length),
      number(each.epoch),
    ]);
    const columns = ["seed", "episode", "steps", "learner", "value", "length", "epoch"];
    return { title: "Last episodes", columns, rows };
  }

  #facts() {
    const { env, selector, objective, maximize, progress, budget, changed, folder } = this.about;
    return [
      ["best policy", this.#bestText()],
      ["environment", env],
      ["selector", selector],
      ["value", `${objective} (${maximize ? "larger" : "smaller"} is better)`],
      ["progress", `${percent(progress)} of ${budget}`],
      ["last change", changed === null ? "–" : clock(changed)],
      ["folder", folder],
    ];
  }

  #bestText() {
    const { best } = this.about;
    if (!best) return "not evaluated yet";
    const fresh = best.rescored === null ? "" : " on fresh episodes";
    return `${number(best.rescored ?? best.mean)}${fresh} (${best.learner})`;
  }

  #now() {
    const { control, runs, window, last } = this.about;
    if (runs.length === 0) return null;
    const [[arm, share]] = Object.entries(control.now).sort((a, b) => b[1] - a[1]);
    const text = ` has ${percent(share)} of ${window} of each run. The last episode: `;
    return { arm, text, last: last[0].arm };
  }

  #charts() {
    const { control, values, own, moving, objective, runs } = this.about;
    const shares = Object.entries(control.shares).map(([name, each]) => ({ name, values: each }));
    const learners = Object.entries(own.means).map(([name, each]) => ({ name, values: each }));
    const mean = { name: "mean", values: values.mean };
    let note = `${objective}: mean of the ${moving}`;
    if (runs.length > 1) {
      mean.low = values.low;
      mean.high = values.high;
      note += `, mean of ${runs.length} runs and 95 % band within the observed values`;
      note += "; from the end of a run on, of the others";
    }
    return [
      {
        title: "Share of control",
        note: `in the ${moving}`,
        xLabel: "step",
        x: control.steps,
        series: shares,
        stacked: true,
      },
      { title: "Value", note, xLabel: "step", x: values.steps, series: [mean] },
      {
        title: "Value by learner in control",
        note: `${objective}: mean of the episodes that each learner controlled, of all runs together`,
        xLabel: "step",
        x: own.steps,
        series: learners,
      },
    ];
  }
}
