// Shows names and messages, which are untrusted text, escaped and without markup of their own.

import { escapeText } from "../numbers/escape";

// A name; its full text is the tooltip, because long ones are cut by the style sheet.
export function Name({ text }: { text: string }) {
  if (text === "") return <i class="name">(empty)</i>;
  const shown = escapeText(text);
  return <bdi class="name" title={shown}>{shown}</bdi>;
}

// A message of the engine, which has names in backquotes.
export function Message({ text }: { text: string }) {
  const parts = escapeText(text).split(/`([^`]*)`/);
  return <>{parts.map((part, i) => (i % 2 === 1 ? <code key={i}>{part || "(empty)"}</code> : part))}</>;
}

// A list of warnings; nothing if there are none.
export function Warnings({ texts }: { texts: string[] | undefined }) {
  if (!texts || texts.length === 0) return null;
  return (
    <ul class="warnings" aria-label="Warnings">
      {texts.map((text, i) => <li key={i}><Message text={text} /></li>)}
    </ul>
  );
}
