const PLAIN = /^[\p{L}\p{N}_@%+=:,./-]+$/u;

/** A path as it stands in a command that is there to be copied: quoted where a shell would take it for more than one word. */
export function quoteForShell(path: string): string {
  if (process.platform === 'win32') return /\s/.test(path) ? `"${path}"` : path;
  return PLAIN.test(path) ? path : `'${path.replaceAll("'", "'\\''")}'`;
}

/** The command that makes room where something else lies. */
export function moveAsideCommand(path: string): string {
  return `mv ${quoteForShell(path)} ${quoteForShell(`${path}.old`)}`;
}
