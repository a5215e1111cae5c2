import type { Json } from '../../shared/json.js';

type Details = { readonly [key: string]: Json | undefined };

export interface Finding {
  /** Scripts look findings up by name, so names must not change. */
  readonly name: string;
  /** `none`: there was nothing to check, or it could not be checked. */
  readonly status: 'ok' | 'warning' | 'broken' | 'none';
  /** One sentence, without a full stop. */
  readonly message: string;
  /** What the user should do. Present if the status is `warning` or `broken`. */
  readonly fix?: string;
  /** Findings with the same cause are one fault. */
  readonly cause?: string;
  readonly details: Details;
}

/** Starts a finding, for example `about('proxy').none('not used')`. */
export function about(name: string, details: Details = {}) {
  return {
    ok: (message: string): Finding => ({ name, status: 'ok', message, details }),
    none: (message: string): Finding => ({ name, status: 'none', message, details }),
    warning: (message: string, fix: string): Finding => ({ name, status: 'warning', message, fix, details }),
    broken: (message: string, fix: string, cause?: string): Finding => ({
      name,
      status: 'broken',
      message,
      fix,
      ...(cause !== undefined && { cause }),
      details,
    }),
  };
}

/** What `install` sets up all at once. */
export const NOT_INSTALLED = 'not installed';

/** Of the faults with one cause, the first stays one; the others refer to it. `first` has the name of the first for each cause. */
export function joinFaults(findings: readonly Finding[], first = new Map<string, string>()): Finding[] {
  return findings.map((finding) => {
    const { name, status, message, cause, details } = finding;
    if (status !== 'broken' || cause === undefined) return finding;
    const earlier = first.get(cause);
    if (earlier !== undefined) return { name, status: 'none', message: `${message}; see ${earlier}`, details };
    first.set(cause, name);
    return finding;
  });
}

/** The findings about one part of the path from Claude Code to Langfuse. */
export interface Part {
  readonly title: string;
  readonly findings: readonly Finding[];
}
