// Shows text from untrusted sources, such as names, with its invisible characters escaped.
//
// The same characters are escaped as on the terminal: controls, format characters (which include
// bidirectional controls), line and paragraph separators, and what Unicode declares ignorable.

const HIDDEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}]/gu;
const SHORT = new Map([["\t", "\\t"], ["\n", "\\n"], ["\r", "\\r"]]);

// Returns `text` with each invisible character as `\n` or `\u{202e}`.
export function escapeText(text: string): string {
  return text.replace(HIDDEN, (character) => SHORT.get(character) ?? codePoint(character));
}

function codePoint(character: string): string {
  return `\\u{${character.codePointAt(0)!.toString(16)}}`;
}

// Returns `text` escaped and cut in its middle to `length` characters at most.
export function shortText(text: string, length: number): string {
  const characters = [...escapeText(text)];
  if (characters.length === 0) return "(empty)";
  if (characters.length <= length) return characters.join("");
  const tail = Math.floor((length - 1) / 3);
  return `${characters.slice(0, length - 1 - tail).join("")}…${characters.slice(characters.length - tail).join("")}`;
}

// Returns an argument of a command as a shell would need it, with visible characters only.
export function shellQuote(argument: string): string {
  if (/^[\w@%+=:,./-]+$/.test(argument)) return argument;
  if (escapeText(argument) === argument) return `'${argument.replaceAll("'", `'\\''`)}'`;
  const quoted = argument.replace(/[\\']/g, "\\$&").replace(HIDDEN, ansiC);
  return `$'${quoted}'`;
}

function ansiC(character: string): string {
  return `\\U${character.codePointAt(0)!.toString(16).padStart(8, "0")}`;
}
