// Matches names of parameters with shell patterns such as `JES_*`.

// A test of one name.
export type Matcher = (name: string) => boolean;

// Returns a test for `filter`: patterns separated by spaces, of which a name must match one. A
// pattern with `*` or `?` is compared with the whole name, one without is looked for anywhere in
// it, and one that begins with `!` excludes. The case of letters does not matter.
export function matcher(filter: string): Matcher {
  const patterns = filter.toLowerCase().split(/\s+/).filter((pattern) => pattern !== "" && pattern !== "!");
  const excluded = patterns.filter((pattern) => pattern.startsWith("!")).map((pattern) => pattern.slice(1));
  const wanted = patterns.filter((pattern) => !pattern.startsWith("!"));
  return (name) => {
    const lower = name.toLowerCase();
    return (wanted.length === 0 || wanted.some((one) => matches(lower, one))) && !excluded.some((one) => matches(lower, one));
  };
}

function matches(name: string, pattern: string): boolean {
  return /[*?]/.test(pattern) ? glob([...name], [...pattern]) : name.includes(pattern);
}

// Whether `pattern` matches all of `name`, in time proportional to the product of their lengths.
function glob(name: string[], pattern: string[]): boolean {
  let [at, p, star, resume] = [0, 0, -1, 0];
  while (at < name.length) {
    if (p < pattern.length && pattern[p] === "*") {
      [star, resume] = [p, at];
      p += 1;
    } else if (p < pattern.length && (pattern[p] === "?" || pattern[p] === name[at])) {
      p += 1;
      at += 1;
    } else if (star >= 0) {
      p = star + 1;
      resume += 1;
      at = resume;
    } else {
      return false;
    }
  }
  return pattern.slice(p).every((character) => character === "*");
}
