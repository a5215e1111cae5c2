/** What is wrong with a setting, or with a variable that does not count. */
export interface Problem {
  readonly kind: ProblemKind;
  /** The variable that it is about. */
  readonly variable: string;
  /** A line for people. It never contains a value, which could be a key. */
  readonly text: string;
}

export type ProblemKind =
  | 'missing'
  | 'bad value'
  /** A redaction rule of the user's cannot be applied. */
  | 'bad rule'
  /** Another setting makes it useless, or a part of it. */
  | 'no effect'
  /** A project set it and may not. */
  | 'ignored'
  /** A project set it, so hooks do not see the shell's value. */
  | 'hidden';

export function problemWith(variable: string, kind: ProblemKind, words: string): Problem {
  return { kind, variable, text: `${variable}: ${words}` };
}
