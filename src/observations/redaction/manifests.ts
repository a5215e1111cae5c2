import { REDACTED } from './mark.js';

/** The values of a Kubernetes Secret: the lines below `data:` or `stringData:` that are indented. A text may be escaped. */
const SECRET_DATA =
  /((?:^|\n|\\n)([ \t]{0,64})(?:data|stringData):[ \t]{0,64}(?:\r?\n|\\n))((?:\2[ \t]{1,64}(?:(?!\\n)[^\r\n]){0,65536}(?:\r?\n|\\n|$)){1,1000})/g;
const VALUE =
  /((?:^|\n|\\n)[ \t]{1,128}["']?[\w.-]{1,253}["']?:[ \t]{1,64}["']?)(?![|>$"'{[])(?:(?!\\["n])[^"'\r\n\s])(?:(?!\\["n])[^"'\r\n])*/g;

export function redactManifests(text: string): string {
  if (!text.includes('kind: Secret')) return text;
  return text
    .split(/(?<=\n|\\n)(?=---)/)
    .map((document) => (/kind: Secret(?:\s|\\n|$)/.test(document) ? redactData(document) : document))
    .join('');
}

function redactData(document: string): string {
  return document.replace(SECRET_DATA, (_, opening: string, __, lines: string) => {
    return opening + lines.replace(VALUE, `$1${REDACTED}`);
  });
}
