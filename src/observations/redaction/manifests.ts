import { REDACTED } from './mark.js';

/** The values of a Kubernetes Secret: the lines below `data:` or `stringData:` that are indented. */
const SECRET_DATA =
  /((?:^|\n)([ \t]{0,64})(?:data|stringData):[ \t]*\r?\n)((?:\2[ \t]+[^\r\n]{0,65536}(?:\r?\n|$)){1,1000})/g;
const VALUE = /^([ \t]*(?:["']?[\w.-]{1,253}["']?:[ \t]+)["']?)(?![|>$"'{[][-+]?)[^\s"'][^"'\r\n]*/gm;

export function redactManifests(text: string): string {
  if (!/kind: Secret\s/.test(text)) return text;
  return text
    .split(/^(?=---)/m)
    .map((document) => (/kind: Secret(?:\s|$)/.test(document) ? redactData(document) : document))
    .join('');
}

function redactData(document: string): string {
  return document.replace(SECRET_DATA, (_, opening: string, __, lines: string) => {
    return opening + lines.replace(VALUE, `$1${REDACTED}`);
  });
}
