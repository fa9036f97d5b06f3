// Computes the central Poisson interval of an observed count.
//
// The interval of F. Garwood (Biometrika 28 (1936) 437) for n observed events and the probability α
// outside is [½ χ²(α/2; 2n), ½ χ²(1 − α/2; 2n + 2)], with quantiles of the χ² distribution. Half of
// such a quantile is one of the gamma distribution with half as many degrees of freedom, which is
// solved for here. Counts that are not integers, as Asimov data are, need no other formula.

export interface Interval {
  lower: number;
  upper: number;
}

// P(|x| > 1) of a standard normal variable.
const OUTSIDE = 0.31731050786291415;
// z with P(x < z) = α/2 and 1 − α/2 for that α.
const Z = 1;
// Above it, the expansion of a quantile in 1/√a is more precise than a sum is fast.
const LARGE = 1e4;

// Returns the interval of one standard deviation for `count` ≥ 0 events.
export function garwood(count: number): Interval {
  return {
    lower: count > 0 ? gammaQuantile(count, OUTSIDE / 2, -Z) : 0,
    upper: gammaQuantile(count + 1, 1 - OUTSIDE / 2, Z),
  };
}

// Returns x with P(a, x) = p, the regularised lower incomplete gamma function; z is the quantile of
// the normal distribution for p.
function gammaQuantile(a: number, p: number, z: number): number {
  if (a > LARGE) return cornishFisher(a, z);
  let [low, high] = [0, a + 10 * Math.sqrt(a) + 20];
  let x = Math.min(Math.max(wilsonHilferty(a, p, z), 1e-300), high);
  for (let step = 0; step < 200; step += 1) {
    const excess = lowerGamma(a, x) - p;
    if (excess > 0) high = x;
    else low = x;
    const density = Math.exp((a - 1) * Math.log(x) - x - logGamma(a));
    const newton = x - excess / density;
    // Bisection where Newton's step leaves the bracket.
    const next = newton > low && newton < high ? newton : 0.5 * (low + high);
    if (Math.abs(next - x) <= 1e-15 * x) return next;
    x = next;
  }
  return x;
}

// The normal approximation of the cube root, good enough to start from; for small a, the leading
// power of the distribution.
function wilsonHilferty(a: number, p: number, z: number): number {
  if (a < 0.5) return Math.exp((Math.log(p) + logGamma(a + 1)) / a);
  return a * Math.max(1 - 1 / (9 * a) + z / (3 * Math.sqrt(a)), 0.01) ** 3;
}

// The Cornish-Fisher expansion of the quantile (Abramowitz and Stegun 26.2.49), with an error of
// O(a^-3/2).
function cornishFisher(a: number, z: number): number {
  const root = Math.sqrt(a);
  const third = (z ** 3 - 7 * z) / (36 * root);
  return a + z * root + (z * z - 1) / 3 + third - (3 * z ** 4 + 7 * z * z - 16) / (810 * a);
}

// Returns P(a, x): a series below a + 1, a continued fraction above (Numerical Recipes 6.2).
export function lowerGamma(a: number, x: number): number {
  if (x <= 0) return 0;
  const front = Math.exp(a * Math.log(x) - x - logGamma(a));
  return x < a + 1 ? front * series(a, x) : 1 - front * fraction(a, x);
}

function series(a: number, x: number): number {
  let term = 1 / a;
  let sum = term;
  for (let n = a + 1; term > sum * 1e-17; n += 1) {
    term *= x / n;
    sum += term;
  }
  return sum;
}

// The continued fraction of Q(a, x) without its front factor, by Lentz's method.
function fraction(a: number, x: number): number {
  let b = x + 1 - a;
  let c = 1e300;
  let d = 1 / b;
  let product = d;
  for (let i = 1; i < 10000; i += 1) {
    const factor = -i * (i - a);
    b += 2;
    d = 1 / (factor * d + b);
    c = b + factor / c;
    product *= c * d;
    if (Math.abs(c * d - 1) < 1e-16) break;
  }
  return product;
}

const STIRLING = [1 / 12, -1 / 360, 1 / 1260, -1 / 1680, 1 / 1188, -691 / 360360, 1 / 156, -3617 / 122400];

// Returns ln Γ(a) for a > 0: Stirling's series after recurrence up to 10.
export function logGamma(a: number): number {
  let [shift, x] = [0, a];
  for (; x < 10; x += 1) shift += Math.log(x);
  let sum = 0;
  let power = 1 / x;
  for (const coefficient of STIRLING) {
    sum += coefficient * power;
    power /= x * x;
  }
  return (x - 0.5) * Math.log(x) - x + 0.5 * Math.log(2 * Math.PI) + sum - shift;
}
