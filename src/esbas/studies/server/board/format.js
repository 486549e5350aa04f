// Numbers and times as text.

const whole = new Intl.NumberFormat("en");
const digits = new Intl.NumberFormat("en", { maximumSignificantDigits: 4 });

/** A number with about four digits; a dash for null, which stands for all that is not finite. */
export function number(value) {
  if (typeof value !== "number") return "–";
  if (Number.isInteger(value) && Math.abs(value) < 1e15) return whole.format(value);
  const size = Math.abs(value);
  if (size !== 0 && (size < 1e-4 || size >= 1e9)) return value.toExponential(3);
  return size >= 1e4 ? whole.format(Math.round(value)) : digits.format(value);
}

export function percent(value) {
  return typeof value === "number" ? `${digits.format(Math.round(1000 * value) / 10)} %` : "–";
}

/** A duration in its largest unit. */
export function duration(seconds) {
  const size = Math.max(0, seconds < 10 ? Math.round(10 * seconds) / 10 : Math.round(seconds));
  if (size < 100) return `${size} s`;
  if (size < 6000) return `${Math.round(size / 60)} min`;
  return size < 172800 ? `${Math.round(size / 3600)} h` : `${Math.round(size / 86400)} days`;
}

/** The date and time in the time zone of the reader. */
export function date(seconds) {
  return new Date(1000 * seconds).toLocaleString("sv");
}

/** The time alone if it is today. */
export function clock(seconds) {
  const text = date(seconds);
  const today = date(Date.now() / 1000);
  return text.slice(0, 10) === today.slice(0, 10) ? text.slice(11) : text;
}

export function plural(count, word, words = `${word}s`) {
  return `${number(count)} ${count === 1 ? word : words}`;
}

/** A kind of event, or a column, as words. */
export function words(name) {
  return name.replaceAll("_", " ");
}
