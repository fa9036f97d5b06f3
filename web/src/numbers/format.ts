// Formats numbers for people.
//
// A value and its uncertainty are rounded by the rule of the Particle Data Group (Review of
// Particle Physics, Introduction, section 5.3): of the three leading digits of the uncertainty, 100
// to 354 keep two digits, 355 to 949 one, and 950 to 999 are rounded to 1000 with two.

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
  const text = rounded(value, decimals);
  return minus(/[1-9]/.test(text) ? text : text.replace("-", ""));
}

function rounded(value: number, decimals: number): string {
  if (decimals >= 0) return value.toFixed(decimals);
  const unit = 10 ** -decimals;
  return (Math.round(value / unit) * unit).toFixed(0);
}

// Returns how many decimals an uncertainty has by the rule; negative for tens and hundreds.
export function decimalsOf(uncertainty: number): number {
  const [mantissa, power] = uncertainty.toExponential(2).split("e");
  const leading = Math.round(Number(mantissa) * 100);
  const exponent = Number(power);
  // One digit; from 950 on, two of the next power of ten, which is the same place.
  return leading < 355 ? 1 - exponent : -exponent;
}

// Returns `value ± uncertainty`, rounded by the rule; without an uncertainty, the value alone.
export function measured(value: Maybe, uncertainty: Maybe): string {
  if (!isNumber(value)) return MISSING;
  if (!isNumber(uncertainty) || uncertainty <= 0) return significant(value, 5);
  const decimals = decimalsOf(uncertainty);
  if (decimals > 8 || decimals < -8 || Math.abs(value) >= 1e12) {
    return `${significant(value, 5)} ± ${significant(uncertainty, 2)}`;
  }
  return `${fixed(value, decimals)} ± ${fixed(uncertainty, decimals)}`;
}

// Returns `value ± uncertainty` with more digits than are significant, for a read-out.
export function precise(value: Maybe, uncertainty: Maybe): string {
  return isNumber(uncertainty) ? `${significant(value, 6)} ± ${significant(uncertainty, 4)}` : significant(value, 6);
}

// Returns a part of `whole`, an uncertainty, with the decimals that `measured` gives `whole`.
export function partOf(whole: Maybe, part: Maybe): string {
  if (!isNumber(whole) || whole <= 0) return significant(part, 2);
  const decimals = decimalsOf(whole);
  return Math.abs(decimals) > 8 ? significant(part, 2) : fixed(part, decimals);
}

// Returns a number with its sign, such as `+0.25`.
export function signed(value: Maybe, decimals: number): string {
  const text = fixed(value, decimals);
  return isNumber(value) && value > 0 && /[1-9]/.test(text) ? `+${text}` : text;
}

// Returns a probability with two digits.
export function probability(value: Maybe): string {
  if (!isNumber(value)) return MISSING;
  return value >= 0.001 ? fixed(value, value < 0.1 ? 3 : 2) : significant(value, 2);
}

// Returns all digits of a number, for a tooltip.
export function full(value: Maybe): string {
  return isNumber(value) ? String(value) : MISSING;
}
