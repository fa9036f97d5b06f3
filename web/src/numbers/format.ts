// Formats numbers for people, as the command does (`nextstat::number`): a value has the decimals of
// two digits of its uncertainty.

// A number of a document; JSON has `null` for what is not finite or does not exist.
export type Maybe = number | null | undefined;

export const MISSING = "–";

// U+2212, which is as wide as a plus sign.
function minus(text: string): string {
  return text.replace(/-/g, "−");
}

// Returns whether `value` is a finite number.
export function isNumber(value: Maybe): value is number {
  return typeof value === "number" && Number.isFinite(value);
}

// Returns `value` with `digits` significant digits and without trailing zeros.
export function significant(value: Maybe, digits: number): string {
  if (!isNumber(value)) return MISSING;
  if (value === 0) return "0";
  const exponent = Number(value.toExponential(digits - 1).split("e")[1]);
  if (exponent < -5 || exponent >= Math.max(digits, 6)) {
    const [mantissa, power] = value.toExponential(digits - 1).split("e");
    return minus(`${Number(mantissa)}e${Number(power)}`);
  }
  const text = value.toFixed(Math.max(0, digits - 1 - exponent));
  return minus(text.includes(".") ? text.replace(/\.?0+$/, "") : text);
}

// Returns `value` with `decimals` digits after the point; what is rounded to zero has no sign.
export function fixed(value: Maybe, decimals: number): string {
  if (!isNumber(value)) return MISSING;
  if (Math.abs(value) >= 1e12) return significant(value, 5);
  const text = value.toFixed(decimals);
  return minus(/[1-9]/.test(text) ? text : text.replace("-", ""));
}

// Returns the power of ten of a number that is rounded to two digits.
function exponentOf(value: number): number {
  return Number(value.toExponential(1).split("e")[1]);
}

// Returns the number of decimals that show two digits of an uncertainty.
export function decimalsOf(uncertainty: number): number {
  return Math.max(0, 1 - exponentOf(uncertainty));
}

// Whether two digits of an uncertainty are written without a power of ten.
function isWrittenOut(uncertainty: number): boolean {
  return exponentOf(uncertainty) >= -6 && exponentOf(uncertainty) < 9;
}

// Returns `value ± uncertainty` with two digits of the uncertainty; without one, the value alone.
export function measured(value: Maybe, uncertainty: Maybe): string {
  if (!isNumber(value)) return MISSING;
  if (!isNumber(uncertainty) || uncertainty <= 0) return significant(value, 5);
  if (!isWrittenOut(uncertainty) || Math.abs(value) >= 1e12) {
    return `${significant(value, 5)} ± ${significant(uncertainty, 2)}`;
  }
  const decimals = decimalsOf(uncertainty);
  return `${fixed(value, decimals)} ± ${fixed(uncertainty, decimals)}`;
}

// Returns `value ± uncertainty` with more digits than are significant, for a read-out.
export function precise(value: Maybe, uncertainty: Maybe): string {
  return isNumber(uncertainty) ? `${significant(value, 6)} ± ${significant(uncertainty, 4)}` : significant(value, 6);
}

// Returns a part of `whole`, an uncertainty, with the decimals that `measured` gives `whole`.
export function partOf(whole: Maybe, part: Maybe): string {
  if (!isNumber(whole) || whole <= 0) return significant(part, 2);
  return isWrittenOut(whole) ? fixed(part, decimalsOf(whole)) : significant(part, 2);
}

// Returns a number with its sign, such as `+0.25`.
export function signed(value: Maybe, decimals: number): string {
  const text = fixed(value, decimals);
  return isNumber(value) && value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

// Returns a probability with two digits.
export function probability(value: Maybe): string {
  if (!isNumber(value)) return MISSING;
  return value >= 0.01 ? fixed(value, value < 0.1 ? 3 : 2) : significant(value, 2);
}

// Returns all digits of a number, for a tooltip.
export function full(value: Maybe): string {
  return isNumber(value) ? String(value) : MISSING;
}
