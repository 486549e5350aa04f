// How often each arm was chosen, and its values, over the rounds of a study: the overview of the
// service, kept up to date.

const MOST_PARTS = 400;
const WINDOW = 50; // rounds, at least
const SHARE = 0.05; // of all rounds: the window of a long study
const FEWEST = 5; // values from which on there is a band

export class Totals {
  constructor({ width, origin, totals }) {
    this.width = width;
    this.origin = origin;
    this.parts = []; // of each: arm -> {asked, told, sum, squares}
    this.rounds = totals.reduce((sum, { asked }) => sum + asked, 0);
    this.empty = totals.every(({ told }) => told === 0);
    for (const { part, arm, ...numbers } of totals) Object.assign(this.#cell(part, arm), numbers);
  }

  /** Add an event of the log. */
  add({ kind, number, arm, value }) {
    if (kind !== "asked" && kind !== "told") return;
    const cell = this.#cell(Math.floor((number - 1) / this.width), arm);
    if (kind === "asked") {
      cell.asked += 1;
      this.rounds = Math.max(this.rounds, number);
    } else if (Math.abs(value) < 1e140) {
      if (this.empty) this.origin = value;
      this.empty = false;
      cell.told += 1;
      cell.sum += value - this.origin;
      cell.squares += (value - this.origin) ** 2;
    }
    if (this.parts.length > MOST_PARTS) this.#halve();
  }

  /** Rounds over which shares and values are averaged. */
  get window() {
    return Math.max(1, Math.ceil(Math.max(WINDOW, SHARE * this.rounds) / this.width)) * this.width;
  }

  /**
   * Of the last `window` rounds up to each part: {x, arms: name -> {share, mean, low, high}}. All
   * arrays have the same length.
   */
  curves(groups) {
    const size = this.window / this.width;
    const x = [];
    const names = [...groups.keys()];
    const sums = new Map(names.map(name => [name, zero()]));
    const arms = new Map(names.map(name => [name, { share: [], mean: [], low: [], high: [] }]));
    const slide = (part, sign) => {
      for (const name of names) {
        for (const arm of groups.get(name)) {
          const cell = part.get(arm);
          if (cell) add(sums.get(name), cell, sign);
        }
      }
    };
    this.parts.forEach((part, k) => {
      slide(part, 1);
      if (k >= size) slide(this.parts[k - size], -1);
      x.push(Math.min((k + 1) * this.width, this.rounds));
      const asked = names.reduce((sum, name) => sum + sums.get(name).asked, 0);
      for (const name of names) {
        const { mean, half } = estimate(sums.get(name), this.origin);
        const curve = arms.get(name);
        curve.share.push(asked ? sums.get(name).asked / asked : null);
        curve.mean.push(mean);
        curve.low.push(half === null ? null : mean - half);
        curve.high.push(half === null ? null : mean + half);
      }
    });
    return { x, arms };
  }

  /** How often each arm was chosen. */
  chosen() {
    const found = new Map();
    for (const part of this.parts) {
      for (const [arm, { asked }] of part) found.set(arm, (found.get(arm) ?? 0) + asked);
    }
    return found;
  }

  #cell(part, arm) {
    while (this.parts.length <= part) this.parts.push(new Map());
    if (!this.parts[part].has(arm)) this.parts[part].set(arm, zero());
    return this.parts[part].get(arm);
  }

  #halve() {
    const old = this.parts;
    this.width *= 2;
    this.parts = [];
    old.forEach((part, k) => {
      part.forEach((cell, arm) => add(this.#cell(Math.floor(k / 2), arm), cell, 1));
    });
  }
}

function zero() {
  return { asked: 0, told: 0, sum: 0, squares: 0 };
}

/** Add the numbers of a cell to those of another one, or subtract them if the sign is -1. */
function add(sums, cell, sign) {
  for (const key of Object.keys(cell)) sums[key] += sign * cell[key];
}

/** The mean, and half of its 95 % interval; null where there are too few values. */
function estimate({ told, sum, squares }, origin) {
  if (told < 1) return { mean: null, half: null };
  const mean = sum / told;
  if (told < FEWEST) return { mean: origin + mean, half: null };
  const variance = Math.max(0, squares / told - mean * mean) * told / (told - 1);
  return { mean: origin + mean, half: quantile(told - 1) * Math.sqrt(variance / told) };
}

/**
 * The quantile 0.975 of Student's t, by its expansion around the normal one: exact to 0.3 % from 4
 * degrees of freedom on.
 */
function quantile(degrees) {
  const z = 1.959964;
  const first = (z ** 3 + z) / 4;
  const second = (5 * z ** 5 + 16 * z ** 3 + 3 * z) / 96;
  const third = (3 * z ** 7 + 19 * z ** 5 + 17 * z ** 3 - 15 * z) / 384;
  return z + first / degrees + second / degrees ** 2 + third / degrees ** 3;
}
