/** What kept something from being sent: the user's redaction rules, the command that prints the secret key, or anything else. */
export const FAILURE_CODES = ['rules', 'key command', 'other'] as const;
export type FailureCode = (typeof FAILURE_CODES)[number];

export interface Failure {
  readonly code: FailureCode;
  /** For people: nothing is decided by its words. */
  readonly text: string;
}

/** An error that says by its code what failed. Each bundle of the program has classes of its own, so a class would not do. */
export function codedError(failureCode: FailureCode, text: string): Error {
  return Object.assign(new Error(text), { failureCode });
}

export function toFailure(error: Error): Failure {
  const { failureCode: named } = error as Error & { readonly failureCode?: unknown };
  return { code: FAILURE_CODES.find((code) => code === named) ?? 'other', text: error.message };
}

export function otherFailure(text: string): Failure {
  return { code: 'other', text };
}
