// A training, read again and again while it runs: what its files say, as charts and tables.

import { Feed } from "./feed.js";
import { clock, number, percent, plural } from "./format.js";
import { get, pause } from "./source.js";

const OFTEN = 2000; // milliseconds between two requests

export class TrainingFeed extends Feed {
  constructor(item, changed, failed) {
    super(item.name, `/v1/trainings/${item.id}`, changed, failed);
  }

  async follow(working, signal) {
    const about = await get(this.path, { signal }), state = about.finished ? "finished" : "live";
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
    const { runs, faults, epochs, last, best } = this.about;
    return {
      facts: this.#facts(),
      now: this.#now(),
      charts: runs.length === 0 ? [] : this.#charts(),
      arms: { title: "Learners", columns: ["learner", ...this.about.columns], rows: Object.entries(this.about.arms).map(([name, row]) => [name, ...row.map(number)]) },
      tables: [
        { title: "Runs", columns: ["seed", "episodes", "steps", "value at the end", "faults", "in control"], rows: runs.map(each => [`${each.seed}`, number(each.episodes), number(each.steps), number(each.end), number(each.faults), each.arm]) },
        { title: "Best policy so far", note: best ? "" : "No policy has been evaluated yet.", columns: ["learner", "seed", "steps", "mean when selected", "mean of fresh episodes"], rows: best ? [[best.learner, `${best.seed}`, number(best.steps), number(best.mean), number(best.rescored)]] : [], empty: "" },
        { title: `Faults: ${number(this.about.faults_total)}`, columns: ["seed", "episode", "learner", "where", "dismissed for", "message"], rows: faults.map(each => [`${each.seed}`, number(each.episode), each.learner, each.where, plural(each.dismissed, "episode"), each.message]) },
        { title: "Epochs", note: epochs.length ? "The last ones of each run, and where they started." : "The selector has no epochs.", columns: ["seed", "epoch", "episode", "steps"], rows: epochs.map(each => [`${each.seed}`, number(each.epoch), number(each.episode), number(each.steps)]), empty: "" },
        { title: "Last episodes", columns: ["seed", "episode", "steps", "learner", "value", "length", "epoch"], rows: last.map(each => [`${each.seed}`, number(each.episode), number(each.steps), each.arm, number(each.value), number(each.length), number(each.epoch)]) },
      ],
    };
  }

  #facts() {
    const { task, selector, objective, maximize, progress, budget, changed, folder } = this.about;
    return [
      ["task", task], ["selector", selector], ["value", `${objective} (${maximize ? "larger" : "smaller"} is better)`],
      ["progress", `${percent(progress)} of ${budget}`], ["last change", changed === null ? "–" : clock(changed)], ["folder", folder],
    ];
  }

  #now() {
    const { control, runs, window } = this.about;
    if (runs.length === 0) return null;
    const [arm, share] = Object.entries(control.now).sort((a, b) => b[1] - a[1])[0];
    return { arm, text: ` has ${percent(share)} of ${window} of each run. The last episode: `, last: this.about.last[0].arm };
  }

  #charts() {
    const { control, values, moving, objective, runs } = this.about;
    const shares = Object.entries(control.shares).map(([name, each]) => ({ name, values: each }));
    const band = runs.length > 1 ? `, mean of ${runs.length} runs and 95 % band within the observed values; from the end of a run on, of the others` : "";
    const mean = runs.length > 1 ? { name: "mean", values: values.mean, low: values.low, high: values.high } : { name: "mean", values: values.mean };
    return [
      { title: "Share of control", note: `in the ${moving}`, xLabel: "step", x: control.steps, series: shares, stacked: true },
      { title: "Value", note: `${objective}: mean of the ${moving}${band}`, xLabel: "step", x: values.steps, series: [mean] },
    ];
  }
}
